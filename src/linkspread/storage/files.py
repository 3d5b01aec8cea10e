"""Atomic writing of files, file locks, and safe opening.

`write_file` and `new_file` write a temporary file beside the target, flush it to disk
and rename it. `locked` is a file lock.
"""

import errno
import hashlib
import os
import re
import reprlib
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from linkspread.ground.errors import LinkspreadError, ModelError

# A data file is named after its contents and the beginning of its checksum.
DATA_NAME = re.compile(r"(arrays|ids)-[0-9a-f]{32}\.(safetensors|parquet)")
# A file that is being written, or that a killed process left.
PARTIAL_NAME = re.compile(r"\.linkspread-[0-9a-f]{16}\.partial")
CHUNK = 1 << 18

FilePath = str | os.PathLike[str]


@dataclass(frozen=True)
class FileEntry:
    """The entry of a file in a manifest."""

    name: str
    n_bytes: int
    sha256: str


class HashingFile:
    """Write to a file, counting its bytes and computing its checksum."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.n_bytes = 0

    def write(self, data: Any) -> None:
        """Write bytes, a piece at a time."""
        # In pieces, so that each is still in the cache when it is hashed.
        for start in range(0, len(data), CHUNK):
            piece = data[start : start + CHUNK]
            self._file.write(piece)
            self._hash.update(piece)
        self.n_bytes += len(data)

    @property
    def sha256(self) -> str:
        """Checksum of the bytes written so far."""
        return self._hash.hexdigest()


def brief(value: Any) -> str:
    """Return a short representation of a value for a message."""
    return reprlib.repr(value)[:60]


@contextmanager
def naming_file(name: str) -> Iterator[None]:
    """Prefix the message of any error with the name of a file."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from error


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn an OSError while a folder is written into a ModelError."""
    try:
        yield
    except OSError as error:
        raise ModelError(
            f"a folder must be writable, and writing to {str(folder)!r} failed: "
            f"{error.strerror or error}. Free some space, or give another path."
        ) from error


def write_file(
    folder: Path,
    write: Callable[[HashingFile], None],
    name: Callable[[FileEntry], str],
) -> FileEntry:
    """Write a file of a folder, whose name may depend on its checksum."""
    with _temporary(folder) as temporary:
        with open(temporary, "xb") as file:
            hashing = HashingFile(file)
            write(hashing)
            file.flush()
            os.fsync(file.fileno())
        entry = FileEntry("", hashing.n_bytes, hashing.sha256)
        entry = FileEntry(name(entry), entry.n_bytes, entry.sha256)
        os.replace(temporary, folder / entry.name)
    return entry


@contextmanager
def new_file(path: FilePath, *, overwrite: bool) -> Iterator[Path]:
    """Yield a temporary file to write, and rename it to the target at the end.

    Any failure leaves the target as it was, and no other file.
    """
    path = Path(path)
    check_new(path, overwrite)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _temporary(path.parent) as temporary:
            temporary.touch()
            yield temporary
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            # Again, because another process may have written there meanwhile.
            check_new(path, overwrite)
            os.replace(temporary, path)
    except OSError as error:
        raise LinkspreadError(
            f"`path` must be a file that can be written, got {str(path)!r}: "
            f"{error.strerror or error}. Choose another."
        ) from error


def check_new(path: Path, overwrite: bool) -> None:
    """Refuse a folder, and an existing file unless `overwrite`."""
    if path.is_dir():
        raise LinkspreadError(
            f"`path` must be a file, got the folder {str(path)!r}. Add a file's name."
        )
    if not overwrite and os.path.lexists(path):
        raise LinkspreadError(
            f"`path` must be new unless overwrite=True, but {str(path)!r} exists. "
            "Choose another, or pass overwrite=True to replace it."
        )


@contextmanager
def _temporary(folder: Path) -> Iterator[Path]:
    """Yield the path of a new file; remove the file unless it was renamed."""
    path = folder / f".linkspread-{secrets.token_hex(8)}.partial"
    try:
        yield path
    finally:
        with suppress(OSError):  # the folder may not exist, or not be writable
            path.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[None]:
    """Hold the lock of a folder or of a file, where the system has locks.

    The file is created if missing. Without `wait` a held lock is a ModelError.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    handle = os.open(path, flags, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise ModelError(
                f"a folder must be written by one process at a time, and another "
                f"is saving to {str(path)!r}. Wait for it to end."
            ) from error
        except OSError:
            pass  # Some network drives have no locks.
        yield
    finally:
        # A killed process releases its locks, too.
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Flush the names of a folder to disk, where the system can."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def open_plain(folder: Path, name: str) -> BinaryIO:
    """Open a regular file of the folder; refuse links and devices."""
    path = folder / name
    # Non-blocking, because opening a pipe would wait for ever.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    flags |= getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    if path.is_symlink():
        raise _not_plain("a symbolic link")
    try:
        handle = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _not_plain("a symbolic link") from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _not_plain("something else")
    return os.fdopen(handle, "rb")


def _not_plain(what: str) -> ModelError:
    """Return the error about something that is not a regular file."""
    return ModelError(
        f"files of a model must be regular files in its folder, got {what}. "
        "Copy the folder with the files themselves."
    )


def hash_file(file: BinaryIO) -> str:
    """Return the checksum of a whole file."""
    file.seek(0)
    found = hashlib.sha256()
    while chunk := file.read(CHUNK):
        found.update(chunk)
    return found.hexdigest()
