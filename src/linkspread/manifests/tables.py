"""Tables of a collection: a column of ids, and a column for each view."""

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.ground.errors import LinkspreadError, require
from linkspread.manifests.collection import ItemCollection, ViewItems
from linkspread.manifests.places import Places, is_picture_name

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet")
ID, LABEL = "id", "label"
# A column is of one kind when at least this part of its values are.
CLEAR = 0.9
# Longer than this no path is, so that a text that ends in ".jpg" stays a text.
MAX_PATH = 512
# Letters of a cell; Python's own limit is 131,072.
MAX_CELL = 1 << 26


def read_table(path: Path, places: Places) -> ItemCollection:
    """Return the views that the columns of a table hold."""
    columns = _read_columns(path)
    ids = _check_ids(columns.pop(ID, None), path, list(columns))
    labels = columns.pop(LABEL, None)
    views, skipped = {}, []
    for name, values in columns.items():
        kind = _kind(name, values, path)
        if kind == "number" or not any(values):
            why = "numbers" if kind == "number" else "empty"
            skipped.append(f"column {name!r} ({why})")
        else:
            views[name] = _make_view(kind, ids, values, labels, places)
    if not views:
        raise LinkspreadError(
            f"{path.name!r} must have a column with texts or paths beside `id`, got "
            f"{', '.join(map(repr, columns)) or 'none'!s:.120}. Add one for each view."
        )
    return ItemCollection(views, places.root, "a table", tuple(skipped))


def _make_view(
    kind: str,
    ids: list[str],
    values: Sequence[str],
    labels: Sequence[str] | None,
    places: Places,
) -> ViewItems:
    """Return the items that have a value in a column."""
    having = [i for i, value in enumerate(values) if value.strip()]
    own: list[Any] = [values[i] for i in having]
    if kind != "text":
        own = [places.path(value.strip()) for value in own]
    known = None
    if labels is not None and any(labels):
        known = np.array([labels[i].strip() for i in having], dtype=str)
    own_ids = np.array([ids[i] for i in having], dtype=str)
    return ViewItems("picture" if kind == "picture" else "text", own_ids, own, known)


def _kind(name: str, values: Sequence[str], path: Path) -> str:
    """Return what a column holds, by looking at all its values."""
    given = [value.strip() for value in values if value.strip()]
    tests = {"picture": is_picture_name, "file": _is_text_name, "number": _is_number}
    shares = {
        kind: sum(len(v) <= MAX_PATH and "\n" not in v and test(v) for v in given)
        / max(len(given), 1)
        for kind, test in tests.items()
    }
    kind, share = max(shares.items(), key=lambda own: own[1])
    if kind == "number":
        return "number" if share == 1 else "text"
    if 1 - CLEAR < share < CLEAR:
        other = next(v for v in given if not tests[kind](v))
        raise LinkspreadError(
            f"column {name!r} of {path.name!r} must hold either texts or paths, got "
            f"{share:.0%} paths, but also {other!r:.60}. Part it into two columns."
        )
    return kind if share >= CLEAR else "text"


def _is_text_name(value: str) -> bool:
    """Tell the path of a text file from a text that ends alike."""
    return value.lower().endswith(".txt")


def _is_number(value: str) -> bool:
    """Tell whether a value is a number, which is neither text nor path."""
    try:
        float(value)
    except ValueError:
        return False
    return True


def _check_ids(
    values: Sequence[str] | None, path: Path, others: list[str]
) -> list[str]:
    """Return ids that are there, and all different."""
    if values is None:
        raise LinkspreadError(
            f"{path.name!r} must have a column named {ID!r}, got "
            f"{', '.join(map(repr, others)) or 'none'!s:.120}. Name it so."
        )
    ids = [value.strip() for value in values]
    if not ids:
        raise LinkspreadError(
            f"{path.name!r} must have at least one row, got none. Add a row for each "
            "item."
        )
    seen: set[str] = set()
    for number, own in enumerate(ids, start=1):
        if not own or own in seen:
            got = f"{own!r:.60} again" if own else "an empty one"
            raise LinkspreadError(
                f"each row of {path.name!r} must have an id of its own, got {got} in "
                f"row {number}. Number the rows."
            )
        seen.add(own)
    return ids


def _read_columns(path: Path) -> dict[str, Sequence[str]]:
    """Return the columns of a table as texts, by their names."""
    readers = {".csv": _read_csv, ".tsv": _read_csv, ".parquet": _read_parquet}
    suffix = path.suffix.lower()
    if suffix not in readers:
        raise LinkspreadError(
            f"a table must end in {', '.join(readers)}, got {path.name!r}. Save it as "
            "CSV with a header such as id,text,image."
        )
    names, columns = readers[suffix](path)
    names = [str(name).strip() for name in names]
    if len(set(names)) < len(names) or not all(names):
        raise LinkspreadError(
            f"columns of {path.name!r} must have names of their own, got "
            f"{', '.join(map(repr, names))!s:.120}. Rename them."
        )
    return dict(zip(names, columns, strict=True))


def _read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the header and the columns of a delimited file."""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    rows: list[list[str]] = []
    try:
        # Not splitlines(): a quoted text may hold line breaks.
        text = io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")
        with _long_cells():
            rows = [row for row in csv.reader(text, delimiter=delimiter) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise LinkspreadError(
            f"{path.name!r} must be a table of delimited texts in UTF-8, and cannot be "
            f"read ({error!s:.80}). Save it anew."
        ) from error
    if not rows:
        raise LinkspreadError(
            f"{path.name!r} must begin with a line of column names, got an empty file. "
            "Add one such as id,text,image."
        )
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise LinkspreadError(
                f"row {number} of {path.name!r} must have {len(rows[0])} values like "
                f"its header, got {len(row)}. Put texts with commas in quotes."
            )
    return rows[0], [[row[i] for row in rows[1:]] for i in range(len(rows[0]))]


@contextmanager
def _long_cells() -> Iterator[None]:
    """Let a cell hold a long article; the limit belongs to the whole process."""
    before = csv.field_size_limit(MAX_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _read_parquet(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the names and the columns of a parquet file."""
    parquet = require("pyarrow.parquet", extra="tables", purpose="Reading parquet")
    try:
        table = parquet.read_table(path)
        columns = [column.to_pylist() for column in table.columns]
    except (OSError, ValueError) as error:  # pyarrow's own errors derive from these
        raise LinkspreadError(
            f"{path.name!r} must be a parquet file, and cannot be read as one "
            f"({str(error).partition(chr(10))[0]:.80}). Write it anew."
        ) from error
    return table.column_names, [[_as_text(v) for v in own] for own in columns]


def _as_text(value: Any) -> str:
    """Return a cell as CSV would have it; nothing is an empty text."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    return value if isinstance(value, str) else str(value)
