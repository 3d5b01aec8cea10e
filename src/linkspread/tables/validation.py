"""Tables as views: validated, and warned of columns that may not be features.

A table is anything with rows of numbers: an array, a sparse matrix, a DataFrame of
pandas, polars or pyarrow, or the path of a file. Doubtful columns are indexes, ids,
labels, dates, and those whose large numbers dominate all distances; the user decides.

>>> import numpy as np
>>> from linkspread.tables import Table
>>> from linkspread.tables.validation import doubtful_columns
>>> rng = np.random.default_rng(0)
>>> values = np.column_stack([rng.random((50, 3)), rng.integers(1990, 2020, 50)])
>>> doubtful_columns(Table(values, ("a", "b", "c", "year")))
{'year': 'looks like a date and makes 100 % of all squared distances'}
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse

from linkspread.ground.checks import check_sparse, naming
from linkspread.ground.errors import ColumnWarning, ViewError, warn_caller
from linkspread.ground.progress import announce

Array = np.ndarray
# Files with named columns.
WITH_COLUMNS = (".parquet", ".csv", ".tsv")
# The name of the view when a bare table is given instead of a mapping.
SINGLE_VIEW = "X"
# Squares of larger entries overflow in float32, those of smaller ones vanish.
LARGEST = 1e15
# Columns, or runs such as f0 to f31, that a message names.
N_SHOWN = 6


# Rows examined, and rows of the first, quick check of all columns.
MAX_ROWS = 100_000
N_HEAD = 200
# With fewer rows nothing is concluded from the values.
MIN_ROWS = 10
DOMINATING = 0.9
MAX_CLASSES = 20

INDEX_NAME = re.compile(r"Unnamed: \d+(_level_\d+)?|__index_level_\d+__|")
ID_NAME = re.compile(r"(?i:id|key|uuid|guid)")
# Compound names, which are not words of a vocabulary.
SURE_ID_NAME = re.compile(
    r".+[_. -](?i:id|key|uuid|guid)|.*[a-z0-9](Id|ID|Key|Uuid|UUID)"
)
DATE_WORDS = {"year", "date", "datetime", "timestamp"}
# Years, and seconds since 1970, of 1990 to 2100, and the same in smaller units.
UNITS = (1, 10**3, 10**6, 10**9)
SPANS = [(1900, 2100), *((631_152_000 * u, 4_102_444_800 * u) for u in UNITS)]


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
            text += f": {shorten(self.names)}"
        elif self.columns:
            text += f" of the list column {self.columns[0]!r}"
        return text + (f"; left out: {shorten(self.left_out)}" * bool(self.left_out))


def is_frame(table: Any) -> bool:
    """Return whether a table is a DataFrame of pandas, polars or pyarrow."""
    return nw.dependencies.is_into_dataframe(table)


def column_names(frame: Any) -> tuple[str, ...]:
    """Return the names of a DataFrame's columns; those of pandas may be numbers."""
    arrow = nw.dependencies.is_pyarrow_table(frame)
    return tuple(map(str, frame.column_names if arrow else frame.columns))


def shorten(names: Sequence[str]) -> str:
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
    # Here because that module imports this one.
    from linkspread.tables.frames import read_frame

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
    from linkspread.tables.frames import read_frame

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


def doubtful_columns(table: Table) -> dict[str, str]:
    """Return the columns that may not be features, and why.

    Columns the user has named one by one are not doubted. Without names only a column
    that dominates all distances is found, by its place such as "column 7".
    """
    n_rows, n_columns = table.shape
    if table.chosen or n_columns < 2:
        return {}
    rows = np.arange(n_rows)
    if n_rows > MAX_ROWS:
        rows = np.linspace(0, n_rows - 1, MAX_ROWS).astype(np.intp)
    X = table.values if len(rows) == n_rows else table.values[rows]
    variances = _variances(X)
    reasons: dict[int, list[str]] = {}
    if table.names and not sparse.issparse(X) and np.any(variances > 0):
        varied = np.flatnonzero(variances > 0).tolist()
        reasons = _reasons(X, table.names, rows, varied)
    share = variances / (variances.sum() or 1.0)
    largest = int(share.argmax())
    if share[largest] > DOMINATING and np.count_nonzero(variances) > 1:
        reason = f"makes {100 * share[largest]:.0f} % of all squared distances"
        reasons.setdefault(largest, []).append(reason)
    names = table.names or [f"column {place}" for place in range(n_columns)]
    return {names[place]: " and ".join(reasons[place]) for place in sorted(reasons)}


def describe_doubts(
    table: Table, view: str, *, leave_out: Callable[[str, list[str]], str]
) -> str | None:
    """Return a warning about doubtful columns, None if there are none.

    ``leave_out(view, ["-a", "-b"])`` returns what to write to leave columns out.
    """
    reasons = doubtful_columns(table)
    if not reasons:
        return None
    shown = [
        f"{repr(name) if table.names else name} {why}"
        for name, why in list(reasons.items())[:N_SHOWN]
    ]
    more = len(reasons) - len(shown)
    rest = f", and {more:,} more" if more else ""
    them = "it" if len(reasons) == 1 else "them"
    remedy = f"Leave {them} out, or scale {them}."
    if table.names:
        written = leave_out(view, [f"-{name}" for name in reasons])
        remedy = f"Leave {them} out with {written}, or name the columns to use."
    return (
        f"view {view!r} may be misled by its columns: {', '.join(shown)}{rest}. "
        f"{remedy}"
    )


def _variances(X: Any) -> Array:
    """Return the variance of each column, in one pass."""
    if sparse.issparse(X):
        # The means of sparse columns are near 0, so there is no cancellation.
        means = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        squares = np.asarray((X.multiply(X)).mean(axis=0, dtype=np.float64)).ravel()
        return np.maximum(squares - means**2, 0)
    sums = np.zeros((2, X.shape[1]))
    step = max(1, (1 << 20) // X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(X), step):
            # Shifted by the first row, against cancellation of large numbers.
            block = X[start : start + step].astype(np.float64) - X[0]
            sums += block.sum(axis=0), np.einsum("ij,ij->j", block, block)
        means, squares = sums / len(X)
        return np.nan_to_num(np.maximum(squares - means**2, 0), posinf=0.0)


def _reasons(
    X: Array, names: tuple[str, ...], rows: Array, varied: list[int]
) -> dict[int, list[str]]:
    """Return the first reason why each doubtful column may not be a feature."""
    head, n_columns = X[:N_HEAD], len(varied)
    found: dict[int, list[str]] = {}
    # The values of few rows prove nothing.
    is_long = len(X) >= MIN_ROWS
    # Columns of whole numbers in the first rows; each is checked again before use.
    whole_heads = np.all(head == np.rint(head), axis=0)
    integers = [j for j in varied if whole_heads[j]]

    def are_few(places: list[int]) -> bool:
        """Return whether columns are exceptions in their table."""
        n = len(places)
        return 0 < n <= max(2, n_columns // 10) and 2 * n <= n_columns

    def is_whole(j: int) -> bool:
        return bool(np.all(X[:, j] == np.rint(X[:, j])))

    def doubt(places: Iterable[int], reason: str) -> None:
        for j in places:
            found.setdefault(j, [reason])

    few_integers = are_few(integers)
    doubt((j for j in varied if INDEX_NAME.fullmatch(names[j])), "counts the rows")
    if is_long:
        start = head - rows[:N_HEAD, np.newaxis]
        near = np.all(start == start[0], axis=0) & np.isin(start[0], (0, 1))
        counting = (
            j for j in varied if near[j] and np.all(X[:, j] - rows == start[0, j])
        )
        doubt(counting, "counts the rows")
    named = (j for j in varied if _is_date(names[j]) and np.median(X[:, j]) >= 1000)
    doubt(named, "looks like a date")
    if is_long:
        low, high = head.min(axis=0), head.max(axis=0)
        dates = [
            j
            for a, b in SPANS
            for j in integers
            if a <= low[j] and high[j] <= b
            if a <= X[:, j].min() and X[:, j].max() <= b and is_whole(j)
        ]
        doubt(dates if are_few(dates) else (), "looks like a date")
    n_values = {j: len(np.unique(head[:, j])) for j in integers}
    named = (
        j
        for j in integers
        if SURE_ID_NAME.fullmatch(names[j])
        or (ID_NAME.fullmatch(names[j]) and (few_integers or n_values[j] > MAX_CLASSES))
    )
    doubt(filter(is_whole, named), "looks like an id")
    if not is_long:
        return found
    distinct = [j for j in integers if n_values[j] == len(head)]
    ids = (j for j in distinct if _is_numbered(X[:, j], few_integers) and is_whole(j))
    doubt(ids if are_few(distinct) else (), "looks like an id")
    # Counts, TF-IDF and one-hot codes are mostly zeros; few distinct values are normal
    # there.
    is_sparse = np.mean(head[:, varied] == 0) > 0.5
    if not is_sparse and len(integers) <= 2 and n_columns - len(integers) >= 3:
        most = min(MAX_CLASSES, len(X) // 5)
        labels = (j for j in integers if len(np.unique(X[:, j])) <= most)
        doubt(filter(is_whole, labels), "looks like a label")
    return found


def _is_date(name: str) -> bool:
    """Return whether a column is named like year, release_date or createdAt."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    words = [word.lower() for word in words]
    return bool(DATE_WORDS & {*words}) or (len(words) > 1 and words[-1] == "at")


def _is_numbered(column: Array, few_integers: bool) -> bool:
    """Return whether whole numbers are all distinct, and not by chance."""
    values = np.unique(column)
    # Random numbers of such a short range would collide (birthday paradox). Those of a
    # long range need not, and are only unusual among fractions.
    meets = values[-1] - values[0] < len(values) ** 2 / 6
    return len(values) == len(column) and bool(meets or few_integers)
