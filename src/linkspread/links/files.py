"""Files of judged pairs and of labels: CSV, TSV and parquet."""

import csv
import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from linkspread.ground.errors import LinkError, require
from linkspread.links.verdicts import OPPOSITES

# Signs that part the columns of a text file; of equally many the first is taken.
DELIMITERS = "\t;,"


def read_columns(path: Path) -> dict[str, Any]:
    """Return the columns of a CSV, TSV or parquet file."""
    readers = {".csv": _read_csv, ".tsv": _read_csv, ".parquet": _read_parquet}
    if path.suffix.lower() not in readers:
        raise LinkError(
            f"a file of pairs must end in {', '.join(readers)}, got {path.name!r}. "
            "Save it as CSV with a header such as text,image,weight."
        )
    if not path.is_file():
        raise LinkError(
            f"a file of pairs must exist, and there is none at {str(path)!r}. "
            "Check the path."
        )
    return readers[path.suffix.lower()](path)


def find_delimiter(first_line: str) -> str:
    """Return the sign that parts the names of a header: a comma, semicolon or tab."""
    names = re.sub(r'"[^"]*"', "", first_line)
    return max(DELIMITERS, key=names.count) if set(names) & set(DELIMITERS) else ","


def _read_csv(path: Path) -> dict[str, Any]:
    """Return the columns of a delimited file whose first line names them."""
    text = _read_text(path)
    first = re.search(r"[^\r\n]+", text)
    delimiter = find_delimiter(first[0] if first else "")
    lines = _read_lines(path, text, delimiter)
    if not lines or _is_pair([row for _, row in lines]):
        got = repr(delimiter.join(lines[0][1])) if lines else "an empty file"
        raise LinkError(
            f"{path.name!r} must begin with a line of column names, got {got}. "
            "Add one such as text,image,weight."
        )
    header = [name.strip() for name in lines[0][1]]
    for number, row in lines[1:]:
        if len(row) != len(header):
            raise LinkError(
                f"line {number} of {path.name!r} must have {len(header)} values like "
                f"its header, got {len(row)}: {delimiter.join(row)!r}. Correct it."
            )
    rows = [row for _, row in lines[1:]]
    columns = ([row[i] for row in rows] for i in range(len(header)))
    return _named(header, columns)


def _read_text(path: Path) -> str:
    """Return the characters of a text file."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LinkError(
            f"a file of pairs must be UTF-8, and {path.name!r} is not at byte "
            f"{error.start}. Save it anew as UTF-8."
        ) from error


def _read_lines(path: Path, text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """Return the lines of a delimited file that are not blank, with their numbers."""
    # Not splitlines(): a quoted id may hold a line break.
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise LinkError(
            f"{path.name!r} must be a text file of values that commas, semicolons or "
            f"tabs part, and line {reader.line_num} cannot be read ({error}). Save it "
            "anew."
        ) from error


def _read_parquet(path: Path) -> dict[str, Any]:
    """Return the columns of a parquet file."""
    parquet = require("pyarrow.parquet", extra="tables", purpose="reading parquet")
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError) as error:  # pyarrow's own errors derive from these
        raise LinkError(
            f"{path.name!r} must be a parquet file, and it cannot be read as one "
            f"({str(error).partition(chr(10))[0][:80]}). Write it anew."
        ) from error
    return _named(table.column_names, (column.to_numpy() for column in table.columns))


def _named(names: list[str], columns: Iterable[Any]) -> dict[str, Any]:
    """Return columns by name; the header text,text names two columns of one view."""
    named: dict[str, Any] = {}
    for number, (name, column) in enumerate(zip(names, columns, strict=True), start=1):
        named[f"{name} (column {number})" if name in named else name] = column
    return named


def _is_pair(rows: list[list[str]]) -> bool:
    """Tell whether the line that should be a header is a judged pair already."""
    row, *others = rows
    numbered = len(row) > 1 and row[0].isdecimal() and row[1].isdecimal()
    if numbered or len(row) < 3:
        return numbered
    try:
        float(row[2])
        return True
    except ValueError:
        # A column may be called "same", but then it does not say same or different.
        verdicts = next((two for two in OPPOSITES if _word(row) in two), ())
        return bool(verdicts) and (
            not others or any(_word(other) in verdicts for other in others)
        )


def _word(row: list[str]) -> str:
    """Return the third value of a line, as verdicts are compared."""
    return row[2].strip().lower() if len(row) > 2 else ""
