"""Neighbours and their weights as a sparse matrix."""

import numpy as np
import scipy.sparse as sp


def neighbor_matrix(
    ids: np.ndarray, weights: np.ndarray, dtype: np.dtype, n_items: int
) -> sp.csr_array:
    """Return the weights of neighbours as a matrix."""
    n_rows, n_neighbors = ids.shape
    small = ids.size <= np.iinfo(np.int32).max
    indptr = np.arange(n_rows + 1, dtype=np.int32 if small else np.int64) * n_neighbors
    # Copies, because sorting the indices would reorder the caller's arrays.
    arrays = (weights.astype(dtype).ravel(), ids.ravel().copy(), indptr)
    W = sp.csr_array(arrays, shape=(n_rows, n_items))
    W.sort_indices()
    W.eliminate_zeros()
    return W


def replace_edges(
    W: sp.csr_array,
    edges: sp.csr_array,
    changed: np.ndarray,
    *,
    dropped: np.ndarray | None = None,
) -> sp.csr_array:
    """Return a graph in which some items have other edges."""
    n_items = edges.shape[1]
    kept = np.ones(W.shape[0], dtype=W.dtype)
    dropped = changed if dropped is None else dropped
    kept[dropped[dropped < W.shape[0]]] = 0
    scale = sp.diags_array(kept, dtype=W.dtype)
    old = sp.csr_array(scale @ W @ scale)
    old.eliminate_zeros()
    old.resize((n_items, n_items))
    ones = np.ones(len(changed), dtype=W.dtype), (changed, np.arange(len(changed)))
    fresh = sp.csr_array(ones, shape=(n_items, len(changed))) @ edges
    return sp.csr_array(old.maximum(fresh).maximum(sp.csr_array(fresh.T)))


def without_own(
    own: np.ndarray, ids: np.ndarray, distances: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the neighbours of items without these items themselves."""
    is_own = ids == own[:, None]
    # Among many duplicates of an item it may not have been found itself.
    is_own[~is_own.any(axis=1), -1] = True
    shape = len(own), ids.shape[1] - 1
    return ids[~is_own].reshape(shape), distances[~is_own].reshape(shape)
