"""DataFrames of pandas, polars and pyarrow: features, ids and labels.

>>> import pandas as pd
>>> from linkspread.tables import read_frame
>>> frame = pd.DataFrame({"id": ["a"], "title": ["x"], "e": [[1.0, 2.0]]})
>>> print(read_frame(frame))
2 features of the list column 'e'; left out: title
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from numbers import Number
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from linkspread.ground.errors import ViewError

Array = np.ndarray
# Columns, or runs such as f0 to f31, that a message names.
N_SHOWN = 6
# Values of a text column that are checked for being numbers.
N_LOOKED_AT = 1000


@dataclass(frozen=True)
class Table:
    """The numbers of a view, and the columns that they come from.

    Attributes
    ----------
    values : array-like, ndarray or csr_array of shape (n_items, n_features)
    columns : tuple of str, default=None
        Columns that are features, in order, or the one column of lists; None if
        columns have no names.
    ids : ndarray of shape (n_items,), default=None
        None if items have only row numbers.
    labels : ndarray of str of shape (n_items,), default=None
        Empty where unknown.
    metric : str, default=None
        The distance that suits the values, if known.
    left_out : tuple of str, default=()
        Columns that are neither features nor ids nor labels.
    chosen : bool, default=False
        Whether the user named the features one by one.
    """

    values: Any
    columns: tuple[str, ...] | None = None
    ids: Any = None
    labels: Array | None = None
    metric: str | None = None
    left_out: tuple[str, ...] = ()
    chosen: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of items and of features."""
        return self.values.shape

    @property
    def dtype(self) -> Any:
        """Of the values."""
        return self.values.dtype

    @property
    def names(self) -> tuple[str, ...] | None:
        """A name for each feature; None without names or for a column of lists."""
        n_features = self.shape[1]
        return self.columns if len(self.columns or ()) == n_features else None

    def __str__(self) -> str:
        n_features = self.shape[1]
        text = f"{n_features:,} feature{'' if n_features == 1 else 's'}"
        if self.names:
            text += f": {_shown(self.names)}"
        elif self.columns:
            text += f" of the list column {self.columns[0]!r}"
        return text + (f"; left out: {_shown(self.left_out)}" if self.left_out else "")


def is_frame(table: Any) -> bool:
    """Return whether a table is a DataFrame of pandas, polars or pyarrow.

    Parameters
    ----------
    table : object

    Returns
    -------
    frame : bool
    """
    return nw.dependencies.is_into_dataframe(table)


def column_names(frame: Any) -> tuple[str, ...]:
    """Return the names of a DataFrame's columns.

    Parameters
    ----------
    frame : DataFrame

    Returns
    -------
    names : tuple of str
    """
    arrow = nw.dependencies.is_pyarrow_table(frame)
    # pandas allows names that are not strings.
    return tuple(map(str, frame.column_names if arrow else frame.columns))


def read_frame(
    frame: Any,
    *,
    columns: Sequence[str] = (),
    id_column: str | None = None,
    label_column: str | None = None,
    read_ids: bool = True,
    first_row: int = 0,
) -> Table:
    """Read features, ids and labels from a DataFrame.

    Parameters
    ----------
    frame : DataFrame
    columns : sequence of str, default=()
        Features, or columns to leave out, each with a minus before its name; by
        default the only column of lists, or else all columns of numbers.
    id_column : str, default=None
        None takes `id` if there is one.
    label_column : str, default=None
        Ignored if the frame lacks it.
    read_ids : bool, default=True
        Whether to read the ids; they are not features in either case.
    first_row : int, default=0
        The number of the first row, for messages.

    Returns
    -------
    table : Table
    """
    names = column_names(frame)
    _check_names(names)
    if nw.dependencies.is_pandas_dataframe(frame):
        frame = frame.set_axis(list(names), axis=1)
    frame = nw.from_native(frame, eager_only=True)
    if id_column:
        _check_there([id_column], names, what="ids")
    taken, dropped = _parse_choice(columns, names)
    id_name = id_column or "id"
    kept = {id_name, label_column} - set(taken)
    features = taken or _usual_features(frame, kept | set(dropped), first_row)
    ids = labels = None
    if read_ids and id_name in names:
        ids = _read_ids(frame[id_name], first_row)
    if label_column in names:
        labels = _read_texts(frame[label_column])
    return Table(
        values=_read_values(frame, features, first_row),
        columns=tuple(features),
        ids=ids,
        labels=labels,
        left_out=tuple(n for n in names if n not in features and n not in kept),
        chosen=bool(taken),
    )


def _check_names(names: Sequence[str]) -> None:
    """Refuse repeated names of columns."""
    if len(set(names)) < len(names):
        again = next(name for name in names if names.count(name) > 1)
        raise ViewError(
            f"columns must have different names, but {again!r} occurs "
            f"{names.count(again)} times. Rename it."
        )


def _check_there(wanted: Sequence[str], names: Sequence[str], *, what: str) -> None:
    """Refuse columns that a frame does not have."""
    for name in wanted:
        if name not in names:
            raise ViewError(
                f"the table must have the column {name!r} for the {what}, and has "
                f"{', '.join(map(repr, names))}. Name one of these."
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
    _check_there(taken + dropped, names, what="features")
    _check_names(taken)
    return taken, dropped


def _usual_features(
    frame: nw.DataFrame[Any], kept: set[str | None], first_row: int
) -> list[str]:
    """Return the default features."""
    others = [name for name in frame.columns if name not in kept]
    kinds = {name: _kind(frame[name]) for name in others}
    lists = [name for name in others if kinds[name] == "list"]
    numbers = [name for name in others if kinds[name] == "number"]
    if len(lists) == 1:
        return lists
    for name in others:
        if kinds[name] == "text":
            _check_text(frame[name], first_row)
    if lists or not numbers:
        got = f"{len(lists)} columns of lists" if lists else "no numeric column"
        shown = [f"{name!r} ({kind})" for name, kind in frame.schema.items()]
        raise ViewError(
            f"the table must have numeric columns or one column of lists, got {got}. "
            f"It has {', '.join(shown)}; name the features in `columns`."
        )
    return numbers


def _kind(column: nw.Series[Any]) -> str:
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


def _check_text(column: nw.Series[Any], first_row: int) -> None:
    """Refuse a column of texts that mostly are numbers."""
    looked_at = [v for v in column.head(N_LOOKED_AT).to_list() if v is not None]
    n_numbers = sum(_is_number(value) for value in looked_at)
    if 2 * n_numbers >= len(looked_at) > 0:
        _check_numbers(column, first_row)


def _check_numbers(column: nw.Series[Any], first_row: int) -> None:
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
            column = frame[name]
            first = column.to_list()[0] if len(column) else None
            remedy = "Take it alone" if kind == "list" else "Leave it out"
            raise ViewError(
                f"column {name!r} must hold numbers, got {column.dtype} such as "
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
        _refuse_infinite(frame, features, values, first_row)
    return values


def _refuse_infinite(
    frame: nw.DataFrame[Any], features: list[str], values: Array, first_row: int
) -> None:
    """Refuse values that are not finite, naming the first column and its row."""
    bad = ~np.isfinite(values)
    place = int(np.flatnonzero(bad.any(axis=0))[0])
    rows = np.flatnonzero(bad[:, place])
    got = frame[features[place]].to_list()[int(rows[0])]
    shown = "nothing" if got is None else repr(got)
    raise ViewError(
        f"column {features[place]!r} must hold finite numbers, got {shown} in row "
        f"{rows[0] + first_row:,} and {len(rows) - 1:,} more such rows. Fill them in, "
        "or drop those rows."
    )


def _read_lists(column: nw.Series[Any], first_row: int) -> Array:
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


def _read_ids(column: nw.Series[Any], first_row: int) -> Array:
    """Return the ids, one for each row and all distinct."""
    values = column.to_list()
    for row, value in enumerate(values, start=first_row):
        if value is None or value == "" or value != value:
            raise ViewError(
                f"column {column.name!r} must have an id in each row, got none in row "
                f"{row:,}. Give that row an id, or drop it."
            )
        if not isinstance(value, int | str):
            raise ViewError(
                f"ids in column {column.name!r} must be texts or integers, got "
                f"{value!r:.60} in row {row:,}. Convert them, or take other ids."
            )
    ids = np.array(values)
    _, first, n_times = np.unique(ids, return_index=True, return_counts=True)
    if np.any(n_times > 1):
        again = ids[first[n_times > 1][0]]
        rows = np.flatnonzero(ids == again) + first_row
        raise ViewError(
            f"ids must be distinct, but {again.item()!r} in column {column.name!r} "
            f"is in rows {rows[0]:,} and {rows[1]:,}, and "
            f"{int(np.sum(n_times > 1)):,} ids occur more than once. Drop the repeated "
            "rows, or take other ids."
        )
    return ids


def _read_texts(column: nw.Series[Any]) -> Array:
    """Return a column as texts, empty for missing values."""
    values = column.to_list()
    return np.array(["" if v is None or v != v else str(v) for v in values])


def _shown(names: Sequence[str]) -> str:
    """Return names of columns for a message, runs such as f0 to f31 as one."""
    runs = [list(run) for _, run in groupby(enumerate(names), key=_run_of)]
    shown = []
    for run in runs[:N_SHOWN]:
        own = [
            name if re.fullmatch(r"[\w.-]+", name) else repr(name) for _, name in run
        ]
        shown += own if len(own) < 3 else [f"{own[0]} to {own[-1]}"]
    more = sum(len(run) for run in runs[N_SHOWN:])
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _run_of(numbered: tuple[int, str]) -> Any:
    """Return a key that columns such as f0, f1, f2 share."""
    place, name = numbered
    match = re.fullmatch(r"(.*?)(\d{1,9})", name)
    return (match[1], int(match[2]) - place) if match else (name, None)
