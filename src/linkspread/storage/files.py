"""Atomic writing of files, file locks, and safe opening.

All files are written beside their target, flushed to disk and renamed. The writer holds
a lock on the unfinished file; one without a lock was left by a killed process, and the
next write into the folder removes it.
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
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from linkspread.ground.errors import GraphError, LinkspreadError, ModelError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

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


def damaged(rule: str, got: Any) -> ModelError:
    """Return the error about a value in a folder that no save can have written."""
    return ModelError(f"{rule}, got {brief(got)}. Save the model again.")


@contextmanager
def naming_file(name: str) -> Iterator[None]:
    """Prefix the message of any error with the name of a file."""
    try:
        yield
    except (GraphError, ModelError) as error:
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
    folder: Path, write: Callable[[HashingFile], None], name: str
) -> FileEntry:
    """Write a file of a folder; ``{}`` in its name becomes its checksum."""
    with temporary_file(folder) as temporary:
        with open(temporary, "wb") as file:
            hashing = HashingFile(file)
            write(hashing)
            file.flush()
            os.fsync(file.fileno())
        name = name.format(hashing.sha256[:32])
        os.replace(temporary, folder / name)
    return FileEntry(name, hashing.n_bytes, hashing.sha256)


@contextmanager
def new_file(path: FilePath, *, overwrite: bool) -> Iterator[Path]:
    """Yield a temporary file to write, and rename it to the target at the end.

    Any failure leaves the target as it was, and no other file.
    """
    path = Path(path)
    check_new(path, overwrite)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary_file(path.parent) as temporary:
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
def temporary_file(folder: Path) -> Iterator[Path]:
    """Yield a new empty file, locked; remove it at the end unless it was renamed."""
    remove_abandoned(folder)
    path, handle = _new_locked(folder)
    try:
        yield path
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


def _new_locked(folder: Path) -> tuple[Path, int | None]:
    """Create an unfinished file; return it and the handle that keeps its lock."""
    while True:
        path = folder / f".linkspread-{secrets.token_hex(8)}.partial"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        if fcntl is None:
            # Windows renames no open file.
            os.close(handle)
            return path, None
        _lock(handle, wait=True)
        # Another process may have removed it before it was locked.
        if os.fstat(handle).st_nlink:
            return path, handle
        os.close(handle)


def remove_abandoned(folder: Path) -> None:
    """Remove the unfinished files of a folder that no process is writing."""
    if fcntl is None or not folder.is_dir():
        return
    for name in filter(PARTIAL_NAME.fullmatch, os.listdir(folder)):
        with suppress(OSError):
            flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
            handle = os.open(folder / name, flags)
            try:
                if _lock(handle, wait=False):
                    os.unlink(folder / name)
            finally:
                os.close(handle)


def _lock(handle: int, *, wait: bool) -> bool:
    """Lock an open file until it is closed; return whether that succeeded."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if isinstance(error, BlockingIOError):
            raise
        return False  # Some network drives have no locks.
    return True


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[None]:
    """Hold the lock of a folder or of a file, where the system has locks.

    The file is created if missing. Without `wait` a held lock is a ModelError.
    """
    if fcntl is None:
        yield
        return
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    # A killed process releases its locks, too.
    handle = os.open(path, flags | os.O_NONBLOCK, 0o666)
    try:
        try:
            _lock(handle, wait=wait)
        except BlockingIOError as error:
            raise ModelError(
                f"a folder must be written by one process at a time, and another "
                f"is saving to {str(path)!r}. Wait for it to end."
            ) from error
        yield
    finally:
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


def open_plain(folder: Path, name: str) -> BufferedReader:
    """Open a regular file of the folder; refuse links and devices."""
    path = folder / name
    # Non-blocking, because opening a pipe would wait for ever.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    flags |= getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        if path.is_symlink():
            raise OSError(errno.ELOOP, "a symbolic link")
        handle = os.open(path, flags)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise OSError(errno.ELOOP, "a folder, a pipe or a device")
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        raise ModelError(
            f"files of a model must be regular files in its folder, got "
            f"{error.strerror}. Copy the folder with the files themselves."
        ) from error
    return os.fdopen(handle, "rb")


def read_small(folder: Path, name: str, *, max_bytes: int) -> bytes:
    """Return the bytes of a regular file of a folder, limited in number."""
    with open_plain(folder, name) as file:
        n_bytes = os.fstat(file.fileno()).st_size
        if n_bytes > max_bytes:
            raise ModelError(
                f"it must have at most {max_bytes:,} bytes, got {n_bytes:,}. Save the "
                "model again."
            )
        return file.read(n_bytes)


def hash_file(file: BufferedReader) -> str:
    """Return the checksum of a whole file."""
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()
