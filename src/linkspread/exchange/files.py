"""Files of exports: written whole or not at all, read with one sentence if damaged."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from linkspread.ground.errors import LinkspreadError, MissingDependencyError

FilePath = str | os.PathLike[str]


@contextmanager
def new_file(path: FilePath, *, overwrite: bool) -> Iterator[Path]:
    """Yield a file to write, beside the target, and move it there at the end.

    Whatever goes wrong before that leaves the target as it was, and nothing else.
    """
    path = Path(path)
    check_new(path, overwrite)
    temporary = path.with_name(f".{uuid4().hex}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch()
        yield temporary
        # Again, because somebody may have written there in the meantime.
        check_new(path, overwrite)
        os.replace(temporary, path)
    except OSError as error:
        raise LinkspreadError(
            f"`path` must be a file that can be written, got {str(path)!r}: "
            f"{error.strerror or error}. Choose another."
        ) from error
    finally:
        _discard(temporary)


@contextmanager
def reading(path: FilePath, *, what: str, writer: str) -> Iterator[None]:
    """Turn all that a missing, damaged or foreign file can cause into a sentence."""
    try:
        yield
    except MissingDependencyError:
        raise
    except FileNotFoundError as error:
        raise LinkspreadError(
            f"`path` must be {what}, but {str(path)!r} is no file. Correct the path."
        ) from error
    except Exception as error:  # damaged bytes can fail anywhere in a reader
        reason = str(error).partition("\n")[0][:120].rstrip(".") or type(error).__name__
        raise LinkspreadError(
            f"`path` must be {what} written by `{writer}`, and {str(path)!r} cannot be "
            f"read as one ({reason}). Export it anew."
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


def _discard(temporary: Path) -> None:
    """Remove a temporary file, where it is there and can be removed."""
    try:
        temporary.unlink(missing_ok=True)
    except OSError:  # the folder itself is no folder, or may not be written
        pass
