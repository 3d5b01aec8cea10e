"""DataFrames of pandas, polars and pyarrow: features, ids and labels.

>>> import pandas as pd
>>> from linkspread.tables.frames import read_frame
>>> frame = pd.DataFrame({"id": ["a"], "title": ["x"], "e": [[1.0, 2.0]]})
>>> print(read_frame(frame))
2 features of the list column 'e'; left out: title
"""

from collections.abc import Sequence
from numbers import Number
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from linkspread.ground.errors import ViewError
from linkspread.tables.validation import Table, column_names

Array = np.ndarray
Column = nw.Series[Any]
# Values of a text column that are checked for being numbers.
N_LOOKED_AT = 1000


def read_frame(
    frame: Any,
    *,
    columns: Sequence[str] = (),
    id_column: str | None = None,
    label_column: str | None = None,
    read_ids: bool = True,
    first_row: int = 0,
) -> Table:
    """Read features, ids and labels from a DataFrame; see `read_table`.

    The first row of the values has the number `first_row` in messages.
    """
    names = column_names(frame)
    _check_distinct(names)
    if nw.dependencies.is_pandas_dataframe(frame):
        frame = frame.set_axis(list(names), axis=1)
    frame = nw.from_native(frame, eager_only=True)
    if id_column:
        check_columns_exist([id_column], names, what="ids")
    taken, dropped = _parse_choice(columns, names)
    id_name = id_column or "id"
    kept = {id_name, label_column} - set(taken)
    features = taken or _usual_features(frame, kept | set(dropped), first_row)
    others = set(names) - set(features) - kept
    ids = labels = None
    if read_ids and id_name in names:
        ids = _read_ids(frame[id_name], first_row)
    if label_column in names:
        values = frame[label_column].to_list()
        labels = np.array([as_text(value) for value in values], dtype=str)
    return Table(
        values=_read_values(frame, features, first_row),
        columns=tuple(features),
        ids=ids,
        labels=labels,
        left_out=tuple(name for name in names if name in others),
        chosen=bool(taken),
    )


def as_text(value: Any) -> str:
    """Return a cell as in CSV; a missing value is an empty text."""
    return "" if value is None or value != value else str(value)


def check_columns_exist(
    wanted: Sequence[str], names: Sequence[str], *, what: str
) -> None:
    """Refuse columns that a table does not have."""
    known = set(names)
    for name in wanted:
        if name not in known:
            raise ViewError(
                f"the table must have the column {name!r} for the {what}, and has "
                f"{', '.join(map(repr, names))}. Name one of these."
            )


def _check_distinct(names: Sequence[str]) -> None:
    """Refuse repeated names of columns."""
    for name in names if len(set(names)) < len(names) else ():
        if names.count(name) > 1:
            raise ViewError(
                f"columns must have different names, but {name!r} occurs "
                f"{names.count(name)} times. Rename it."
            )


def _parse_choice(
    columns: Sequence[str], names: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the columns to take, or those to leave out; exact names first."""
    known = set(names)
    dropped = [c[1:] for c in columns if c not in known and c.startswith("-")]
    taken = [c for c in columns if c in known or not c.startswith("-")]
    if taken and dropped:
        raise ViewError(
            "`columns` must be all to take or all to leave out, got "
            f"{taken[0]!r} and '-{dropped[0]}'. Write either the columns to take, or "
            "those to leave out, each with a minus before it."
        )
    check_columns_exist(taken + dropped, names, what="features")
    _check_distinct(taken)
    return taken, dropped


def _usual_features(
    frame: nw.DataFrame[Any], kept: set[str | None], first_row: int
) -> list[str]:
    """Return the default features."""
    kinds = {name: _kind(frame[name]) for name in frame.columns if name not in kept}
    lists = [name for name, kind in kinds.items() if kind == "list"]
    numbers = [name for name, kind in kinds.items() if kind == "number"]
    if len(lists) == 1:
        return lists
    for name, kind in kinds.items():
        if kind == "text":
            # A text column of mostly numbers probably has a typing error.
            head = [v for v in frame[name].head(N_LOOKED_AT).to_list() if v is not None]
            if 2 * sum(map(_is_number, head)) >= len(head) > 0:
                _check_numbers(frame[name], first_row)
    if lists or not numbers:
        got = f"{len(lists)} columns of lists" if lists else "no numeric column"
        shown = [f"{name!r} ({kind})" for name, kind in frame.schema.items()]
        raise ViewError(
            f"the table must have numeric columns or one column of lists, got {got}. "
            f"It has {', '.join(shown)}; name the features in `columns`."
        )
    return numbers


def _kind(column: Column) -> str:
    """Return the type of a column: "number", "list", or "text" for all others."""
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        return "number"
    if isinstance(column.dtype, nw.List | nw.Array):
        return "list"
    if column.dtype == nw.Object:  # of pandas
        first = next((v for v in column.to_numpy() if v is not None), None)
        if isinstance(first, list | tuple | np.ndarray):
            return "list"
        return "number" if isinstance(first, Number) else "text"
    return "text"


def _check_numbers(column: Column, first_row: int) -> None:
    """Refuse a column with a value that is not a number, naming its row."""
    for row, value in enumerate(column.to_list(), start=first_row):
        if value is not None and not _is_number(value):
            raise ViewError(
                f"column {column.name!r} must hold numbers throughout, got "
                f"{value!r:.60} in row {row:,}. Correct it, or leave the column out "
                f"with '-{column.name}' in `columns`."
            )


def _is_number(value: Any) -> bool:
    """Return whether a value is a number, or the text of one."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _read_values(
    frame: nw.DataFrame[Any], features: list[str], first_row: int
) -> Array:
    """Return features as an array, from columns of numbers or one of lists."""
    kinds = {name: _kind(frame[name]) for name in features}
    if list(kinds.values()) == ["list"]:
        return _read_lists(frame[features[0]], first_row)
    for name, kind in kinds.items():
        if kind != "number":
            first = next(iter(frame[name].head(1).to_list()), None)
            remedy = "Take it alone" if kind == "list" else "Leave it out"
            raise ViewError(
                f"column {name!r} must hold numbers, got {frame[name].dtype} such as "
                f"{first!r:.60}. {remedy}, or turn it into features first."
            )
    values = frame.select(features).to_numpy()
    if values.dtype.kind not in "iufb":  # objects, of pandas or with decimals
        for name in features:
            _check_numbers(frame[name], first_row)
        values = values.astype(np.float64)
    if values.dtype != np.float32:
        values = values.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(values.sum()) or np.isfinite(values).all()
    if not finite:
        bad = ~np.isfinite(values)
        place = int(np.flatnonzero(bad.any(axis=0))[0])
        rows = np.flatnonzero(bad[:, place])
        got = frame[features[place]].to_list()[int(rows[0])]
        raise ViewError(
            f"column {features[place]!r} must hold finite numbers, got "
            f"{'nothing' if got is None else repr(got)} in row {rows[0] + first_row:,} "
            f"and {len(rows) - 1:,} more such rows. Fill them in, or drop those rows."
        )
    return values


def _read_lists(column: Column, first_row: int) -> Array:
    """Return a column of lists of equal length as an array."""
    rows = column.to_numpy()  # two-dimensional if polars knows the length
    lengths = np.array([-1 if row is None else np.size(row) for row in rows])
    # The most frequent length; a table without rows is refused later.
    width = int(np.bincount(np.maximum(lengths, 0)).argmax()) if len(lengths) else 0
    wrong = np.flatnonzero((lengths != width) | (lengths <= 0))
    if len(wrong):
        got = "no list" if lengths[wrong[0]] < 0 else f"{lengths[wrong[0]]} values"
        raise ViewError(
            f"lists of column {column.name!r} must all have the same length, {width} "
            f"here, got {got} in row {wrong[0] + first_row:,} and {len(wrong) - 1:,} "
            "more such rows. Fill these rows in, or drop them."
        )
    values = np.array([np.asarray(row) for row in rows]).reshape(len(rows), width)
    if values.dtype.kind not in "iufb":
        raise ViewError(
            f"lists of column {column.name!r} must hold numbers only, got "
            f"{column.dtype} such as {column.to_list()[0]!r:.60}. Write them as lists "
            "of float."
        )
    return values if values.dtype == np.float32 else values.astype(np.float64)


def _read_ids(column: Column, first_row: int) -> Array:
    """Return the ids, one for each row; `Items` refuses repeated ones."""
    values = column.to_list()
    for row, value in enumerate(values, start=first_row):
        if not isinstance(value, int | str) or value == "":
            raise ViewError(
                f"column {column.name!r} must have an id in each row, a text or an "
                f"integer, got {value!r:.60} in row {row:,}. Correct it, drop the row, "
                "or take other ids."
            )
    return np.array(values)
