"""Tables and DataFrames as views: features, ids and labels, read and checked.

A table is anything with rows of numbers: an array, a sparse matrix, a DataFrame of
pandas, polars or pyarrow, or the path of a file.

>>> import pandas as pd
>>> from linkspread.tables.validation import read_frame
>>> frame = pd.DataFrame({"id": ["a"], "title": ["x"], "e": [[1.0, 2.0]]})
>>> print(read_frame(frame))
2 features of the list column 'e'; left out: title
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from numbers import Number
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse

from linkspread.ground.checks import check_sparse, naming
from linkspread.ground.errors import ColumnWarning, ViewError, warn_caller
from linkspread.ground.progress import announce

Array = np.ndarray
Column = nw.Series[Any]
# Files with named columns.
WITH_COLUMNS = (".parquet", ".csv", ".tsv")
# The name of the view when a bare table is given instead of a mapping.
SINGLE_VIEW = "X"
# Squares of larger entries overflow in float32, those of smaller ones vanish.
LARGEST = 1e15
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
            text += f": {_shorten(self.names)}"
        elif self.columns:
            text += f" of the list column {self.columns[0]!r}"
        return text + (f"; left out: {_shorten(self.left_out)}" * bool(self.left_out))


def is_frame(table: Any) -> bool:
    """Return whether a table is a DataFrame of pandas, polars or pyarrow."""
    return nw.dependencies.is_into_dataframe(table)


def column_names(frame: Any) -> tuple[str, ...]:
    """Return the names of a DataFrame's columns; those of pandas may be numbers."""
    arrow = nw.dependencies.is_pyarrow_table(frame)
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


def _shorten(names: Sequence[str]) -> str:
    """Return names of columns for a message, runs such as f0 to f31 as one."""

    def number_run(numbered: tuple[int, str]) -> Any:
        """Return a key that columns such as f0, f1, f2 share."""
        place, name = numbered
        match = re.fullmatch(r"(.*?)(\d{1,9})", name)
        return (match[1], int(match[2]) - place) if match else (name, None)

    runs = [[n for _, n in run] for _, run in groupby(enumerate(names), number_run)]
    shown = []
    for run in runs[:N_SHOWN]:
        own = [name if re.fullmatch(r"[\w.-]+", name) else repr(name) for name in run]
        shown += own if len(own) < 3 else [f"{own[0]} to {own[-1]}"]
    more = sum(map(len, runs[N_SHOWN:]))
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


@dataclass(frozen=True)
class Views:
    """The views of a fit, checked: with values in float32 or float64."""

    read: dict[str, Table]

    @property
    def tables(self) -> dict[str, Any]:
        """The numbers of each view, ndarray or csr_array."""
        return {view: own.values for view, own in self.read.items()}

    @property
    def ids(self) -> dict[str, Any]:
        """The ids of each view's items, or the number of items."""
        return {
            view: own.shape[0] if own.ids is None else own.ids
            for view, own in self.read.items()
        }

    @property
    def columns(self) -> dict[str, tuple[str, ...] | None]:
        """The names of the columns that are used; None without names."""
        return {view: own.columns for view, own in self.read.items()}

    def report_columns(self, *, verbose: bool = False) -> dict[str, str]:
        """Log and return which columns are used, and warn of doubtful ones."""
        # Here and below because these modules import this one.
        from linkspread.tables.doubts import describe_doubts

        for view, own in self.read.items():
            announce(f"{view}: {own}", verbose=verbose)
            doubts = describe_doubts(
                own, view, leave_out=lambda v, names: f"columns={{{v!r}: {names}}}"
            )
            if doubts:
                warn_caller(doubts, ColumnWarning)
        return {view: str(own) for view, own in self.read.items()}


def check_views(
    views: Any,
    ids: Mapping[str, Any] | None = None,
    columns: Mapping[str, Any] | None = None,
) -> Views:
    """Return the tables and the ids of all views."""
    views = as_mapping(views)
    ids = given_by_view(ids, views, name="ids")
    columns = given_by_view(columns, views, name="columns")
    return Views(
        {v: _read(own, ids.get(v), columns.get(v), v) for v, own in views.items()}
    )


def as_mapping(views: Any) -> Mapping[str, Any]:
    """Return tables by name; a bare table is one view named "X"."""
    if not _is_by_view(views):
        return {SINGLE_VIEW: views}
    if not views or not all(isinstance(view, str) for view in views):
        raise ViewError(
            f"`views` must map names to tables, got the names {list(views)}. "
            'Write {"text": T, "image": I}.'
        )
    return views


def check_columns(table: Any, names: tuple[str, ...] | None, *, view: str) -> Any:
    """Return the fitted columns of a DataFrame; other tables unchanged."""
    if not is_frame(table):
        return table
    got = column_names(table)
    missing = [name for name in names or () if name not in got]
    if missing:
        more = f" and {len(missing) - 3:,} more" if len(missing) > 3 else ""
        raise ViewError(
            f"view {view!r} must have the columns of the fit, but lacks "
            f"{', '.join(map(repr, missing[:3]))}{more}, got "
            f"{', '.join(map(repr, got[:3]))}{', ...' if len(got) > 3 else ''}. Rename "
            "the columns, or compute the same features."
        )
    with naming(view):
        return read_frame(table, columns=names or (), read_ids=False).values


def check_table(table: Any, *, view: str, n_features: int | None = None) -> Any:
    """Return a table of finite numbers as an array or a CSR matrix."""
    if is_frame(table):
        table = check_columns(table, None, view=view)
    X = _to_numbers(table, view)
    if X.ndim != 2:
        got = f"shape {X.shape}" if X.ndim else type(table).__name__
        raise ViewError(
            f"view {view!r} must be a table with rows and columns, got {got}. "
            "Reshape it to (n_items, n_features); `X.reshape(-1, 1)` is a single "
            "feature, `X.reshape(len(X), -1)` flattens pictures."
        )
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise ViewError(
            f"view {view!r} must have rows and columns, got 0 "
            f"{'sample(s)' if X.shape[0] == 0 else 'feature(s)'} (shape={X.shape}) "
            "while a minimum of 1 is required. Leave out empty views."
        )
    if n_features is not None and X.shape[1] != n_features:
        raise ViewError(
            f"view {view!r} must have {n_features} columns as in the fit, got "
            f"{X.shape[1]}. Compute the same features for new items."
        )
    largest = _largest(X)
    if not np.isfinite(largest):
        entries = X.tocoo() if sparse.issparse(X) else X
        bad = ~np.isfinite(entries.data if sparse.issparse(X) else X)
        row = entries.row[bad][0] if sparse.issparse(X) else np.nonzero(bad)[0][0]
        raise ViewError(
            f"view {view!r} must be finite, but {bad.sum():,} entries are NaN or "
            f"infinity, the first in row {row}. Fill them in or drop those rows."
        )
    if largest > LARGEST:
        raise _out_of_range(largest, view)
    return X


def check_varied(X: Any, *, view: str) -> None:
    """Refuse a table whose rows are all equal, or as good as zero."""
    n_rows = X.shape[0]
    if 0 < _largest(X) < 1 / LARGEST:
        raise _out_of_range(_largest(X), view)
    # The first, second and last row nearly always differ already.
    if n_rows < 2 or _spread(X[[0, 1]]) or _spread(X[[0, n_rows - 1]]):
        return
    if not _spread(X):
        raise ViewError(
            f"view {view!r} must have rows that differ, got {n_rows:,} rows that are "
            "all equal. Check how its features were computed, or leave the view out."
        )


def per_view(value: Any, views: Mapping[str, Any], *, name: str) -> dict[str, Any]:
    """Return a parameter's value for each view, from one value or a dict."""
    if not _is_by_view(value):
        return dict.fromkeys(views, value)
    if set(value) != set(views):
        raise ViewError(
            f"`{name}` given by view must name each of {list(views)} and no other, "
            f"got {list(value)}. Correct the names, or give one value for all."
        )
    return {view: value[view] for view in views}


def _is_by_view(value: Any) -> bool:
    """Return whether a value is a mapping by view."""
    # A sparse DOK matrix is a dict, too.
    return isinstance(value, Mapping) and not sparse.issparse(value)


def _to_numbers(table: Any, view: str) -> Any:
    """Return any table as float32 or float64."""
    if sparse.issparse(table):
        X = sparse.csr_array(check_sparse(table, name=f"view {view!r}"))
    else:
        try:
            X = np.asarray(table)
        except ValueError as error:  # rows of different lengths
            raise ViewError(
                f"view {view!r} must have rows of equal length ({error}). "
                "Give a rectangular table."
            ) from error
    if np.iscomplexobj(X):
        raise ViewError(
            f"view {view!r} must hold real numbers. Complex data not supported; "
            "use magnitudes, or real and imaginary parts as columns."
        )
    try:
        if X.dtype.kind in "mM":
            raise TypeError("dates and durations have no common unit")
        return X if X.dtype == np.float32 else X.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:  # texts, objects, dates
        raise ViewError(
            f"view {view!r} must hold numbers, got {X.dtype} ({error}). "
            "Turn texts, dates or pictures into features first."
        ) from error


def given_by_view(
    given: Mapping[str, Any] | None, views: Mapping[str, Any], *, name: str
) -> dict[str, Any]:
    """Return a mapping by view; refuse unknown views."""
    if given is not None and not isinstance(given, Mapping):
        raise ViewError(
            f"`{name}` must map names of views to {name}, got {type(given).__name__}. "
            f"Write {{{next(iter(views))!r}: {name}}}."
        )
    unknown = [view for view in given or {} if view not in views]
    if unknown:
        raise ViewError(
            f"`{name}` must be for the given views, {list(views)}, got {unknown}. "
            "Correct the names."
        )
    return dict(given or {})


def _read(table: Any, ids: Any, columns: Any, view: str) -> Table:
    """Return the table of one view, with its ids."""
    from linkspread.tables.files import read_table

    path = os.fspath(table) if isinstance(table, str | os.PathLike) else None
    if columns is not None:
        if not is_frame(table) and not (path or "").lower().endswith(WITH_COLUMNS):
            raise ViewError(
                f"`columns` must be of a DataFrame or a file with named columns, got "
                f"{type(table).__name__} for view {view!r}. Index the columns of the "
                "array itself."
            )
        is_list = isinstance(columns, list | tuple)
        if not is_list or not all(isinstance(name, str) for name in columns):
            raise ViewError(
                f"`columns` of view {view!r} must be a list of names, got "
                f"{columns!r:.60}. Write {{{view!r}: ['a', 'b']}}, or ['-c'] to leave "
                "one out."
            )
    with naming(view):
        if is_frame(table):
            read = read_frame(table, columns=columns or (), read_ids=ids is None)
        elif path is not None:
            read = read_table(path, columns=columns or ())
        else:
            read = table if isinstance(table, Table) else Table(table)
    X = check_table(read.values, view=view)
    if ids is None:
        ids = read.ids
    if ids is None and nw.dependencies.is_pandas_dataframe(table):
        index = np.asarray(table.index)
        rows = np.arange(len(index))
        if index.dtype.kind not in "iu" or not np.array_equal(index, rows):
            ids = index
    return replace(read, values=X, ids=check_ids(ids, X.shape[0], view=view))


def check_ids(ids: Any, n_items: int, *, view: str) -> Any:
    """Return ids, one for each row, or None."""
    if ids is None:
        return None
    ids = np.asarray(ids)
    if ids.shape != (n_items,):
        got = f"{len(ids):,}" if ids.ndim == 1 else f"shape {ids.shape}"
        raise ViewError(
            f"ids of view {view!r} must be as many as its rows, {n_items:,}, got "
            f"{got}. Give one id per row."
        )
    return ids


def _spread(X: Any) -> float:
    """Return the largest difference between two rows."""
    spread = X.max(axis=0) - X.min(axis=0)
    return float(spread.max())


def _largest(X: Any) -> float:
    """Return the largest absolute entry; NaN if there is a NaN."""
    values = X.data if sparse.issparse(X) else X
    return float(max(-values.min(initial=0), values.max(initial=0)))


def _out_of_range(largest: float, view: str) -> ViewError:
    """Return the error for entries whose squares overflow or vanish."""
    return ViewError(
        f"view {view!r} must have a largest entry between {1 / LARGEST:.0e} and "
        f"{LARGEST:.0e} in size, got {largest:.3g}. Multiply the table by a constant."
    )
