"""Validation of views.

A table is anything with rows of numbers: an array, a sparse matrix, a DataFrame of
pandas, polars or pyarrow, or the path of a file.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse

from linkspread.ground.checks import check_sparse, naming
from linkspread.ground.errors import ColumnWarning, ViewError, warn_caller
from linkspread.ground.progress import announce
from linkspread.tables.doubts import describe_doubts
from linkspread.tables.files import WITH_COLUMNS, read_table
from linkspread.tables.frames import Table, column_names, is_frame, read_frame

Array = np.ndarray
# The name of the view when a bare table is given instead of a mapping.
SINGLE_VIEW = "X"
# Squares of larger entries overflow in float32, those of smaller ones vanish.
LARGEST = 1e15


@dataclass(frozen=True)
class Views:
    """The views of a fit, checked.

    Attributes
    ----------
    read : dict from str to Table
        With values in float32 or float64, and with ids where items have any.
    """

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
        """Log which columns are used, and warn of doubtful ones.

        Parameters
        ----------
        verbose : bool, default=False
            Log at level INFO instead of DEBUG.

        Returns
        -------
        used : dict from str to str
            A description of the columns of each view.
        """
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
