"""Checks of the tables that people bring: one sentence for each mistake.

A table is anything with rows of numbers: an array, a sparse matrix, or a DataFrame of
pandas, polars or pyarrow.
"""

from collections.abc import Mapping
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse

from linkspread.exceptions import ViewError

__all__ = [
    "as_mapping",
    "check_columns",
    "check_table",
    "check_views",
    "column_names",
    "per_view",
]

Array = np.ndarray
# The name of the view when a bare table is given instead of a mapping.
SINGLE_VIEW = "X"


def check_views(
    views: Any, ids: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tables and the ids of all views.

    Parameters
    ----------
    views : mapping from str to table of shape (n, n_features)
        A bare table is one view named "X".
    ids : mapping from str to array-like of shape (n,), default=None
        Ids of the items; where missing, the index of a pandas DataFrame if it was
        set, else positions.

    Returns
    -------
    tables : dict from str to ndarray or csr_array of shape (n, n_features)
    items : dict from str to ids, or to the number of items
    """
    views = as_mapping(views)
    if not views or not all(isinstance(view, str) for view in views):
        raise ViewError(
            f"`views` must map names to tables, got the names {list(views)}. "
            'Write {"text": T, "image": I}.'
        )
    if ids is not None and not isinstance(ids, Mapping):
        raise ViewError(
            f"`ids` must map names of views to ids, got {type(ids).__name__}. "
            f"Write {{{next(iter(views))!r}: ids}}."
        )
    ids = dict(ids or {})
    unknown = [view for view in ids if view not in views]
    if unknown:
        raise ViewError(
            f"`ids` must be for views at hand, {list(views)}, got {unknown}. "
            "Correct the names."
        )
    tables = {view: check_table(table, view=view) for view, table in views.items()}
    items = {v: _items(views[v], tables[v], ids.get(v), v) for v in views}
    return tables, items


def as_mapping(views: Any) -> Mapping[str, Any]:
    """Return tables by name; a bare table is one view named "X".

    Parameters
    ----------
    views : mapping from str to table, or table

    Returns
    -------
    views : mapping from str to table
    """
    return views if _is_by_view(views) else {SINGLE_VIEW: views}


def column_names(table: Any) -> tuple[str, ...] | None:
    """Return the names of a DataFrame's columns, or None for any other table.

    Parameters
    ----------
    table : array-like, sparse matrix or DataFrame

    Returns
    -------
    names : tuple of str or None
    """
    if not nw.dependencies.is_into_dataframe(table):
        return None
    # pandas allows names that are no strings, which narwhals does not read.
    if nw.dependencies.is_pandas_dataframe(table):
        return tuple(map(str, table.columns))
    return tuple(nw.from_native(table, eager_only=True).columns)


def check_columns(table: Any, names: tuple[str, ...] | None, *, view: str) -> None:
    """Refuse a DataFrame whose columns are not those of the fit, in their order.

    Parameters
    ----------
    table : array-like, sparse matrix or DataFrame
    names : tuple of str or None
        Columns of the fit; None if they had no names.
    view : str
        Name of the view, for messages.
    """
    got = column_names(table)
    if names is None or got is None or got == names:
        return
    if len(got) != len(names):
        return  # `check_table` tells their number
    place = next(i for i in range(len(got)) if got[i] != names[i])
    raise ViewError(
        f"view {view!r} must have the columns of the fit in the same order, but "
        f"column {place} is {got[place]!r} and was {names[place]!r}. Rename or "
        "reorder the columns."
    )


def check_table(table: Any, *, view: str, n_features: int | None = None) -> Any:
    """Return a table of finite numbers as an array or a CSR matrix.

    Parameters
    ----------
    table : array-like, sparse matrix or DataFrame of shape (n, n_features)
    view : str
        Name of the view, for messages.
    n_features : int, default=None
        Number of columns that the table must have.

    Returns
    -------
    X : ndarray or csr_array of shape (n, n_features)
        float32 stays, everything else becomes float64.
    """
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
    values = X.data if sparse.issparse(X) else X
    # A sum needs no memory; one that overflows is looked at again, entry by entry.
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()
    if not np.isfinite(total) and not np.isfinite(values).all():
        raise ViewError(_not_finite(X, view))
    return X


def per_view(value: Any, views: Mapping[str, Any], *, name: str) -> dict[str, Any]:
    """Return a parameter's value for each view, from one value or a dict.

    Parameters
    ----------
    value : object or dict from str to object
    views : mapping with the names of the views
    name : str
        Name of the parameter, for messages.

    Returns
    -------
    values : dict from str to object
    """
    if not _is_by_view(value):
        return dict.fromkeys(views, value)
    if set(value) != set(views):
        raise ViewError(
            f"`{name}` given by view must name each of {list(views)} and no other, "
            f"got {list(value)}. Correct the names, or give one value for all."
        )
    return {view: value[view] for view in views}


def _is_by_view(value: Any) -> bool:
    """Tell whether something is given view by view."""
    # A sparse matrix in DOK format is a dict too, but not by view.
    return isinstance(value, Mapping) and not sparse.issparse(value)


def _to_numbers(table: Any, view: str) -> Any:
    """Return any kind of table as numbers, float32 or float64."""
    if nw.dependencies.is_into_dataframe(table):
        table = _from_frame(table, view)
    if sparse.issparse(table):
        X = sparse.csr_array(table)
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
    if X.dtype.kind not in "iufb":
        return _parse_numbers(X, view)  # texts, objects, dates
    return X if X.dtype == np.float32 else X.astype(np.float64, copy=False)


def _from_frame(frame: Any, view: str) -> Array:
    """Return a DataFrame of numeric columns as an array."""
    names = list(getattr(frame, "columns", ()))
    # pyarrow keeps its columns themselves there, and refuses the same name twice later.
    if nw.dependencies.is_pandas_dataframe(frame) and len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ViewError(
            f"view {view!r} must have columns of different names, but {repeated!r} "
            "occurs more than once. Rename it."
        )
    native = nw.from_native(frame, eager_only=True)
    words = [name for name, kind in native.schema.items() if not kind.is_numeric()]
    words = [name for name in words if native.schema[name] != nw.Boolean]
    if words:
        raise ViewError(
            f"view {view!r} must have numeric columns only, but {words[:3]} are not. "
            f"Drop them; a column of ids goes into `ids={{{view!r}: ...}}`."
        )
    return native.to_numpy()


def _parse_numbers(X: Any, view: str) -> Array:
    """Return an array of objects as float64, if they are numbers."""
    try:
        if X.dtype.kind in "mM":
            raise TypeError("dates and durations have no common unit")
        return X.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ViewError(
            f"view {view!r} must hold numbers, got {X.dtype} ({error}). "
            "Turn texts, dates or pictures into features first."
        ) from error


def _items(table: Any, X: Any, ids: Any, view: str) -> Any:
    """Return the ids of a view's items, or their number."""
    if ids is None and _has_own_index(table):
        ids = np.asarray(table.index)
    if ids is None:
        return X.shape[0]
    ids = np.asarray(ids)
    if ids.shape != (X.shape[0],):
        got = f"{len(ids):,}" if ids.ndim == 1 else f"shape {ids.shape}"
        raise ViewError(
            f"ids of view {view!r} must be as many as its rows, {X.shape[0]:,}, got "
            f"{got}. Give one id per row."
        )
    return ids


def _has_own_index(table: Any) -> bool:
    """Tell whether a table is a pandas DataFrame with an index that was set."""
    if not nw.dependencies.is_pandas_dataframe(table):
        return False
    index = np.asarray(table.index)
    return index.dtype.kind not in "iu" or not np.array_equal(
        index, np.arange(len(index))
    )


def _not_finite(X: Any, view: str) -> str:
    """Return the sentence about entries that are not finite, naming a row."""
    X = X.tocoo() if sparse.issparse(X) else X
    if sparse.issparse(X):
        row = int(X.row[~np.isfinite(X.data)][0])
        count = int(np.sum(~np.isfinite(X.data)))
    else:
        bad = ~np.isfinite(X)
        row, count = int(np.flatnonzero(bad.any(axis=1))[0]), int(bad.sum())
    return (
        f"view {view!r} must be finite, but {count:,} entries are NaN or infinity, "
        f"the first in row {row}. Fill them in or drop those rows."
    )
