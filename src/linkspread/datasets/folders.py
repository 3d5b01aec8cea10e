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

    def columns(self, name: str, separator: str, *names: str) -> list[tuple[str, ...]]:
        """Return the named columns of a table with a header, or all columns."""
        header, *rows = (line.split(separator) for line in self.lines(name))
        for number, row in enumerate(rows, start=2):
            if len(row) != len(header):
                rule = f"must have {len(header)} fields on each line"
                raise self.error(name, rule, f"{len(row)} on line {number}")
        if not rows:
            raise self.error(name, "must have rows below its first line", "none")
        absent = [own for own in names if own not in header]
        if absent:
            rule = (
                f"must have the columns {', '.join(names)}, separated by {separator!r}"
            )
            raise self.error(name, rule, f"no {absent[0]!r} in its first line")
        columns = list(zip(*rows, strict=True))
        return [columns[header.index(own)] for own in names] if names else columns

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
    folder: str | os.PathLike[str] | None, name: str, source: str
) -> PublishedFolder:
    """Return the folder given, or the one of this name below LINKSPREAD_DATA."""
    above = os.environ.get("LINKSPREAD_DATA")
    if folder is None and not above:
        raise LinkspreadError(
            "`folder` must name a folder where the environment variable "
            f"LINKSPREAD_DATA is not set, got None. Give that of {name}. {source}"
        )
    path = Path(above or "", name) if folder is None else Path(folder)
    if not path.is_dir():
        raise LinkspreadError(
            f"`folder` must be the folder of {name}, got {str(path)!r}, which does not "
            f"exist. Unpack the data there. {source}"
        )
    return PublishedFolder(path, source)
