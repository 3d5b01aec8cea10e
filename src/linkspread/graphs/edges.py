"""Neighbours and their weights as a sparse matrix."""

import numpy as np
import scipy.sparse as sp

__all__ = ["neighbor_matrix"]


def neighbor_matrix(
    ids: np.ndarray, weights: np.ndarray, dtype: np.dtype, n_items: int
) -> sp.csr_array:
    """Return the weights of neighbours as a matrix.

    Parameters
    ----------
    ids : ndarray of shape (n_rows, n_neighbors)
    weights : ndarray of shape (n_rows, n_neighbors)
    dtype : dtype
        Of the result; weights that round to 0 in it are no edges.
    n_items : int

    Returns
    -------
    W : csr_array of shape (n_rows, n_items)
        Indices are sorted.
    """
    n_rows, n_neighbors = ids.shape
    small = ids.size <= np.iinfo(np.int32).max
    indptr = np.arange(n_rows + 1, dtype=np.int32 if small else np.int64) * n_neighbors
    # Copies, because sorting the indices would reorder the caller's arrays.
    arrays = (weights.astype(dtype).ravel(), ids.ravel().copy(), indptr)
    W = sp.csr_array(arrays, shape=(n_rows, n_items))
    W.sort_indices()
    W.eliminate_zeros()
    return W
