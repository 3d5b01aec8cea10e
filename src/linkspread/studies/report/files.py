"""Files that are replaced as a whole: readers see the old or the new one."""

import os
import tempfile
from pathlib import Path

from linkspread.ground.errors import LinkspreadError


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Make a folder, and make sure before long work that it can be written."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise LinkspreadError(
            f"The report must go to a folder that can be written, got "
            f"{str(folder)!r}: {error.strerror}. Choose another folder."
        ) from error
    return folder


def replace_file(path: str | os.PathLike[str], text: str, *, what: str) -> Path:
    """Write a text, making its folder; a failure leaves the old file as it was."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, text)
    except OSError as error:
        raise LinkspreadError(
            f"The {what} must go to a folder that can be written, got {str(path)!r}: "
            f"{error.strerror}. Choose another folder."
        ) from error
    return path


def _replace(path: Path, text: str) -> None:
    """Write to a temporary file beside the target, then put it in its place."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
