"""Rows of features as plain arrays."""

from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["as_dense_rows"]

Array = np.ndarray


def as_dense_rows(X: Any) -> Array:
    """Return rows as an array of float64.

    Parameters
    ----------
    X : ndarray or sparse of shape (n_items, n_features)

    Returns
    -------
    X : ndarray of shape (n_items, n_features)
    """
    dense = X.toarray() if sparse.issparse(X) else X
    return np.asarray(dense, dtype=np.float64)
