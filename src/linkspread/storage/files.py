"""Files that are written whole or not at all, and opened with suspicion.

`write_file` and `new_file` are the atomic writers of the house: a temporary file beside
the target, seen to the disk, and renamed. `locked` is its file lock.
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

# A data file is named after what it holds, and after the beginning of its checksum.
DATA_NAME = re.compile(r"(arrays|ids)-[0-9a-f]{32}\.(safetensors|parquet)")
# A file that is being written, or was when its writer was killed.
PARTIAL_NAME = re.compile(r"\.linkspread-[0-9a-f]{16}\.partial")
CHUNK = 1 << 18

FilePath = str | os.PathLike[str]


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
    """Yield a temporary file to write, and move it to its place at the end.

    Whatever goes wrong before that leaves the target as it was, and nothing else.
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
            # Again, because somebody may have written there in the meantime.
            check_new(path, overwrite)
            os.replace(temporary, path)
    except OSError as error:
        raise LinkspreadError(
            f"`path` must be a file that can be written, got {str(path)!r}: "
            f"{error.strerror or error}. Choose another."
        ) from error


def check_new(path: Path, overwrite: bool) -> None:
    """Refuse a folder, and a file that is there unless it may be replaced."""
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
    """Yield the path of a new file, which is removed unless it was renamed."""
    path = folder / f".linkspread-{secrets.token_hex(8)}.partial"
    try:
        yield path
    finally:
        with suppress(OSError):  # the folder may be none, or not be writable
            path.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[None]:
    """Hold the lock of a folder, or of a file that is made, where systems have locks.

    Who does not wait gets a ModelError while another process holds it.
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
                f"a folder must be written to by one at a time, and another process "
                f"is saving to {str(path)!r}. Wait for it to end."
            ) from error
        except OSError:
            pass  # Some network drives know no locks.
        yield
    finally:
        # A killed process gives its locks back, too.
        os.close(handle)


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
    """Return the error about something that only stands where a file should."""
    return ModelError(
        f"files of a model must be plain files within its folder, got {what}. "
        "Copy the folder with the files themselves."
    )


def hash_file(file: BinaryIO) -> str:
    """Return the checksum of a file, from its beginning, a piece at a time."""
    file.seek(0)
    found = hashlib.sha256()
    while chunk := file.read(CHUNK):
        found.update(chunk)
    return found.hexdigest()
