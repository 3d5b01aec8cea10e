"""Files of a model folder: opened with suspicion, written to stay."""

import errno
import hashlib
import os
import re
import reprlib
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from linkspread.ground.errors import ModelError

# A data file is named after what it holds, and after the beginning of its checksum.
DATA_NAME = re.compile(r"(arrays|ids)-[0-9a-f]{32}\.(safetensors|parquet)")
# A file that is being written, or was when its writer was killed.
PARTIAL_NAME = re.compile(r"\.linkspread-[0-9a-f]{16}\.partial")
CHUNK = 1 << 18


@dataclass(frozen=True)
class FileEntry:
    """What a manifest says of a file."""

    name: str
    n_bytes: int
    sha256: str


class HashingFile:
    """Write to a file, and know its size and checksum in the end."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.n_bytes = 0

    def write(self, data: Any) -> None:
        """Write bytes, a piece at a time."""
        # A piece is still in the cache when it is hashed.
        for start in range(0, len(data), CHUNK):
            piece = data[start : start + CHUNK]
            self._file.write(piece)
            self._hash.update(piece)
        self.n_bytes += len(data)

    @property
    def sha256(self) -> str:
        """Checksum of what was written so far."""
        return self._hash.hexdigest()


def brief(value: Any) -> str:
    """Return a value for a message, short however large it is."""
    return reprlib.repr(value)[:60]


@contextmanager
def naming_file(name: str) -> Iterator[None]:
    """Begin the message of any error within with the name of a file."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from error


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn what the system refuses while a folder is written into a sentence."""
    try:
        yield
    except OSError as error:
        raise ModelError(
            f"a folder must take all that is written to it, and {str(folder)!r} did "
            f"not: {error.strerror or error}. Free some space, or give another path."
        ) from error


def write_file(
    folder: Path,
    write: Callable[[HashingFile], None],
    name: Callable[[FileEntry], str],
) -> FileEntry:
    """Write a file under a passing name, see it to the disk, and rename it."""
    passing = folder / f".linkspread-{secrets.token_hex(8)}.partial"
    try:
        with open(passing, "xb") as file:
            hashing = HashingFile(file)
            write(hashing)
            file.flush()
            os.fsync(file.fileno())
        entry = FileEntry("", hashing.n_bytes, hashing.sha256)
        entry = FileEntry(name(entry), entry.n_bytes, entry.sha256)
        os.replace(passing, folder / entry.name)
    except BaseException:
        passing.unlink(missing_ok=True)
        raise
    return entry


def sync_folder(folder: Path) -> None:
    """See the names of a folder to the disk, where the system can do that."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def open_plain(folder: Path, name: str) -> BinaryIO:
    """Open a file that lies in the folder itself, and is no link or device."""
    path = folder / name
    # Not waiting: a pipe would never be written to.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    flags |= getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    if path.is_symlink():
        raise ModelError(_not_plain("a symbolic link"))
    try:
        handle = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ModelError(_not_plain("a symbolic link")) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ModelError(_not_plain("something else"))
    return os.fdopen(handle, "rb")


def _not_plain(what: str) -> str:
    """Return the sentence about something that only stands where a file should."""
    return (
        f"files of a model must be plain files within its folder, got {what}. "
        "Copy the folder with the files themselves."
    )


def check_entry(entry: Any, suffix: str) -> FileEntry:
    """Return what a manifest says of a data file, if it can be said."""
    if not isinstance(entry, dict) or set(entry) != {"name", "bytes", "sha256"}:
        raise ModelError(
            f"a file must have `name`, `bytes` and `sha256`, got {brief(entry)}. "
            "Save the model again."
        )
    name, n_bytes, sha256 = entry["name"], entry["bytes"], entry["sha256"]
    if not isinstance(name, str) or not DATA_NAME.fullmatch(name):
        raise ModelError(
            f"a data file must have a name as linkspread gives it, got {brief(name)}. "
            "Save the model again."
        )
    is_size = type(n_bytes) is int and n_bytes >= 0
    is_hash = isinstance(sha256, str) and re.fullmatch("[0-9a-f]{64}", sha256)
    if not name.endswith(suffix) or not is_size or not is_hash:
        raise ModelError(
            f"{name} must be a {suffix} file with its size and checksum, got "
            f"{brief(n_bytes)} bytes and checksum {brief(sha256)}. Save the model "
            "again."
        )
    return FileEntry(name, n_bytes, sha256)


def hash_file(file: BinaryIO) -> str:
    """Return the checksum of a file, from its beginning, a piece at a time."""
    file.seek(0)
    found = hashlib.sha256()
    while chunk := file.read(CHUNK):
        found.update(chunk)
    return found.hexdigest()
