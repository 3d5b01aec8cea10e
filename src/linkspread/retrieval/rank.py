"""Best-matching items by inner product, exactly, a block of queries at a time."""

import numpy as np

__all__ = ["rank"]

Array = np.ndarray

# Scores that are held at a time.
BLOCK_ENTRIES = 1 << 23


def rank(vectors: Array, items: Array, *, n_results: int) -> tuple[Array, Array]:
    """Return the items with the largest inner products for each query.

    Parameters
    ----------
    vectors : ndarray of shape (n_queries, rank)
    items : ndarray of shape (n_items, rank)
    n_results : int
        More than there are items returns what there is.

    Returns
    -------
    positions : ndarray of shape (n_queries, min(n_results, n_items))
        Best first; equal scores in the order of the items.
    scores : ndarray of the same shape

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.retrieval import rank
    >>> rank(np.array([[1.0]]), np.array([[2.0], [3.0], [3.0]]), n_results=2)
    (array([[1, 2]]), array([[3., 3.]]))
    """
    n_queries, n_items = len(vectors), len(items)
    n_results = min(n_results, n_items)
    positions = np.empty((n_queries, n_results), dtype=np.int64)
    scores = np.empty((n_queries, n_results), dtype=np.result_type(vectors, items))
    step = max(1, BLOCK_ENTRIES // max(n_items, 1))
    for start in range(0, n_queries, step):
        block = vectors[start : start + step] @ items.T
        for i, row in enumerate(block, start=start):
            positions[i] = _best(row, n_results)
            scores[i] = row[positions[i]]
    return positions, scores


def _best(row: Array, n_results: int) -> Array:
    """Return the positions of the largest entries, equal ones in order."""
    if n_results == 0:
        return np.zeros(0, dtype=np.int64)
    # Everything that ties with the last place stays, so that order decides, not luck.
    threshold = np.partition(row, len(row) - n_results)[len(row) - n_results]
    candidates = np.flatnonzero(row >= threshold)
    return candidates[np.argsort(-row[candidates], kind="stable")][:n_results]
