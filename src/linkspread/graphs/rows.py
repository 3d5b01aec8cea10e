"""A view's table as rows of floats, checked at the door.

>>> from linkspread.graphs.rows import check_rows
>>> check_rows([[1, 2], [3, 4]]).dtype
dtype('float64')
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from linkspread.ground.errors import ViewError

Rows = Any  # a dense array or a csr_array, of float32 or float64

# Squares of larger entries could overflow, and a distance of infinity ranks nothing.
LARGEST_ENTRY = 1e150


def check_rows(X: Any, *, name: str = "X", n_features: int | None = None) -> Rows:
    """Return a table as float rows, or say why it cannot be used."""
    rows = _sparse_rows(X) if sp.issparse(X) else _dense_rows(X, name)
    if rows.ndim != 2 or 0 in rows.shape:
        raise ViewError(
            f"`{name}` must be a table of at least one item and one feature, got shape "
            f"{rows.shape}. Pass one row per item."
        )
    _check_values(np.asarray(rows.data) if sp.issparse(rows) else rows, name)
    if n_features is not None and rows.shape[1] != n_features:
        raise ViewError(
            f"`{name}` must have the {n_features} features of the fitted items, got "
            f"{rows.shape[1]}. Compute its rows the way the fitted rows were computed."
        )
    return rows


def _float_dtype(dtype: np.dtype) -> type:
    """Return float32 for float32 and float64 for everything else."""
    return np.float32 if dtype == np.float32 else np.float64


def _sparse_rows(X: Any) -> sp.csr_array:
    """Return a canonical csr_array that shares nothing a caller could see change."""
    rows = sp.csr_array(X, dtype=_float_dtype(X.dtype))
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _dense_rows(X: Any, name: str) -> np.ndarray:
    """Return a C-contiguous float array."""
    try:
        array = np.asarray(X)
        if np.iscomplexobj(array):
            raise TypeError("complex numbers have no order")
        return np.ascontiguousarray(array, dtype=_float_dtype(array.dtype))
    except (TypeError, ValueError) as error:
        raise ViewError(
            f"`{name}` must be a table of real numbers, got {type(X).__name__} that "
            f"cannot be read as one ({error}). Convert its columns to numbers."
        ) from error


def _check_values(values: np.ndarray, name: str) -> None:
    """Refuse NaN, infinity and entries whose squares overflow."""
    largest = float(max(values.max(initial=0), -values.min(initial=0)))
    if not np.isfinite(largest):
        n_bad = values.size - np.count_nonzero(np.isfinite(values))
        raise ViewError(
            f"`{name}` must be finite, got {n_bad} entries that are NaN or infinite. "
            "Impute or drop them first."
        )
    if largest > LARGEST_ENTRY:
        raise ViewError(
            f"`{name}` must have entries below {LARGEST_ENTRY:g} in size, got "
            f"{largest:.3g}. Divide the features by their scale."
        )
