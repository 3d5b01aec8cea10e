"""Folders of published data, and the text files in them."""

import os
from pathlib import Path

from linkspread.ground.errors import LinkspreadError


def find_folder(
    folder: str | os.PathLike[str] | None,
    *,
    name: str,
    title: str,
    holds: str,
    source: str,
    argument: str = "folder",
) -> Path:
    """Return the folder given, or the one below LINKSPREAD_DATA."""
    if folder is None and not os.environ.get("LINKSPREAD_DATA"):
        raise LinkspreadError(
            f"`{argument}` must name the folder of {title} where the environment "
            f"variable LINKSPREAD_DATA is not set, got None. {source}"
        )
    if folder is None:
        folder = Path(os.environ["LINKSPREAD_DATA"]) / name
    if not Path(folder).is_dir():
        raise LinkspreadError(
            f"`{argument}` must be a folder with {holds}, got {str(folder)!r}, which "
            f"does not exist. {source}"
        )
    return Path(folder)


def read_lines(path: Path, *, source: str) -> list[str]:
    """Return the lines of a text file that are not blank, at least one."""
    if not path.is_file():
        raise file_error(path, "must exist", "no such file", source=source)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise file_error(
            path, "must be plain text", "other bytes", source=source
        ) from error
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise file_error(path, "must have at least one line", "none", source=source)
    return lines


def file_error(path: Path, rule: str, received: str, *, source: str) -> LinkspreadError:
    """Return the error of a file that breaks a rule."""
    return LinkspreadError(
        f"{path} {rule}, got {received}. Unpack the data again. {source}"
    )
