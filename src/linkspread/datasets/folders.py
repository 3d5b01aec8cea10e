"""Find and read folders of published data."""

import os
from dataclasses import dataclass
from pathlib import Path

from linkspread.ground.errors import LinkspreadError


@dataclass(frozen=True)
class PublishedFolder:
    """A folder of published data, with its source for error messages."""

    path: Path
    source: str

    def lines(self, name: str) -> list[str]:
        """Return the lines of a text file that are not blank; refuse an empty file."""
        try:
            text = self.file(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            received = f"{type(error).__name__} while reading it"
            raise self.error(name, "must be plain text in UTF-8", received) from error
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            raise self.error(name, "must have at least one line", "none")
        return lines

    def table(self, name: str, separator: str) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows of a table, split into fields."""
        header, *rows = (line.split(separator) for line in self.lines(name))
        for number, row in enumerate(rows, start=2):
            if len(row) != len(header):
                rule = f"must have {len(header)} fields on each line"
                raise self.error(name, rule, f"{len(row)} on line {number}")
        if not rows:
            raise self.error(name, "must have rows below its first line", "none")
        return header, rows

    def file(self, name: str) -> Path:
        """Return the path of a file; refuse a missing one."""
        if not (self.path / name).is_file():
            raise self.error(name, "must exist", "no such file")
        return self.path / name

    def error(self, name: str, rule: str, received: str) -> LinkspreadError:
        """Return the error of a file that breaks a rule."""
        return LinkspreadError(
            f"{self.path / name} {rule}, got {received}. Unpack the data again. "
            f"{self.source}"
        )


def find_folder(
    folder: str | os.PathLike[str] | None,
    *,
    name: str,
    title: str,
    holds: str,
    source: str,
) -> PublishedFolder:
    """Return the folder given, or the one below LINKSPREAD_DATA."""
    if folder is None and not os.environ.get("LINKSPREAD_DATA"):
        raise LinkspreadError(
            f"`folder` must name the folder of {title} where the environment variable "
            f"LINKSPREAD_DATA is not set, got None. {source}"
        )
    if folder is None:
        folder = Path(os.environ["LINKSPREAD_DATA"]) / name
    if not Path(folder).is_dir():
        raise LinkspreadError(
            f"`folder` must be a folder with {holds}, got {str(folder)!r}, which does "
            f"not exist. {source}"
        )
    return PublishedFolder(Path(folder), source)
