"""Rows of features as plain arrays."""

from typing import Any

import numpy as np
from scipy import sparse

from linkspread.exceptions import ViewError

__all__ = ["as_dense_rows", "root_of_shares"]

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


def root_of_shares(X: Any) -> Any:
    """Return the roots of each row's shares, the Hellinger map of histograms.

    Euclidean distances between the results are Hellinger distances between the rows,
    up to a factor.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_items, n_features)
        At least 0; a row of zeros stays one.

    Returns
    -------
    X : ndarray or csr_array of shape (n_items, n_features)
    """
    values = X.data if sparse.issparse(X) else X
    if values.min(initial=0) < 0:
        raise ViewError(
            "features must be at least 0 for scaling='sqrt', got "
            f"{values.min():.3g}. Use scaling='standard'."
        )
    sums = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    inverse = 1 / np.where(sums > 0, sums, 1.0)
    if sparse.issparse(X):
        return (sparse.diags_array(inverse) @ X).tocsr().sqrt()
    return np.sqrt(X * inverse[:, None])
