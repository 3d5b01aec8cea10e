"""Best-matching items by inner product, exactly, a block of queries at a time."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from linkspread.cores import count_threads
from linkspread.kernels.backends import choose_device
from linkspread.kernels.threads import map_blocks
from linkspread.retrieval.best import best_entries

__all__ = ["count_open", "rank", "rank_rows"]

Array = np.ndarray

# Scores that a thread holds at a time.
BLOCK_ENTRIES = 1 << 22
# Multiplications from which a GPU pays, the way of the items to it included.
LEAST_PRODUCTS = 1e11


def rank(
    vectors: Array,
    items: Array,
    *,
    n_results: int,
    only: Array | None = None,
    barred: Any = None,
    backend: str = "auto",
) -> tuple[Array, Array]:
    """Return the items with the largest inner products for each query.

    Parameters
    ----------
    vectors : ndarray of shape (n_queries, rank)
    items : ndarray of shape (n_items, rank)
    n_results : int
        More than there are items returns what there is.
    only : ndarray of int of shape (n_open,), default=None
        Positions that may be found, each once and in order; None for all.
    barred : csr_array of shape (n_queries, n_items), default=None
        What a query may not find: its stored entries, whatever their values.
    backend : {"auto", "cpu", "cuda", "torch"}, default="auto"
        "auto" takes a GPU for many queries of many items where there is one.

    Returns
    -------
    positions : ndarray of shape (n_queries, n_found)
        Best first; equal scores in the order of the items. All rows are as long as
        that of the query with the fewest items left, `n_results` at most.
    scores : ndarray of the same shape

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.retrieval import rank
    >>> rank(np.array([[1.0]]), np.array([[2.0], [3.0], [3.0]]), n_results=2)
    (array([[1, 2]]), array([[3., 3.]]))
    """
    if only is not None and 2 * len(only) <= len(items):
        # A few items are copied, so that no others are scored.
        own_bars = None if barred is None else barred[:, only]
        found, scores = rank(
            vectors,
            items[only],
            n_results=n_results,
            barred=own_bars,
            backend=backend,
        )
        return only[found], scores
    device = choose_device(
        backend, work=float(len(vectors)) * items.size, least=LEAST_PRODUCTS
    )
    if device is not None and n_results and len(vectors):
        from linkspread.kernels.gpu.ranking import best_items

        n_results = min(n_results, count_open(len(items), only, barred))
        closed = None if only is None else np.delete(np.arange(len(items)), only)
        parts = best_items(
            device, vectors, items, n_results, closed=closed, barred=barred
        )
        positions, values = zip(*parts, strict=True)
        return np.concatenate(positions), np.concatenate(values)
    return rank_rows(
        lambda rows: vectors[rows] @ items.T,
        (len(vectors), len(items)),
        np.result_type(vectors, items),
        n_results=n_results,
        only=only,
        barred=barred,
    )


def rank_rows(
    score: Callable[[slice], Array],
    shape: tuple[int, int],
    dtype: Any,
    *,
    n_results: int,
    only: Array | None = None,
    barred: Any = None,
    step: int | None = None,
) -> tuple[Array, Array]:
    """Return the items with the largest scores for each query.

    Parameters
    ----------
    score : callable
        Returns the scores of a slice of the queries with all items, which it may see
        overwritten; called by several threads at once unless `step` is given.
    shape : tuple of two int
        Numbers of queries and of items.
    dtype : dtype
        Of the scores.
    n_results : int
    only, barred : optional
        All as in :func:`rank`.
    step : int, default=None
        Queries at a time; None for as many as a thread may hold.

    Returns
    -------
    positions, scores : ndarray of shape (n_queries, n_found)
    """
    n_queries, n_items = shape
    n_results = min(n_results, count_open(n_items, only, barred))
    if n_queries == 0:
        return np.empty((0, n_results), np.int64), np.empty((0, n_results), dtype)
    closed = None if only is None else np.delete(np.arange(n_items), only)
    size = step or max(1, BLOCK_ENTRIES // max(n_items, 1))
    blocks = [slice(start, start + size) for start in range(0, n_queries, size)]
    work = partial(_rank_block, score, n_results, closed, barred)
    parts: Iterator[Any]
    if step is None:
        parts = map_blocks(work, blocks, n_threads=count_threads(None))
    else:
        parts = map(work, blocks)
    positions, values = zip(*parts, strict=True)
    return np.concatenate(positions), np.concatenate(values)


def count_open(n_items: int, only: Array | None, barred: Any) -> int:
    """Return how many items are left to the query that has the fewest.

    Parameters
    ----------
    n_items : int
    only : ndarray of int of shape (n_open,) or None
    barred : csr_array of shape (n_queries, n_items) or None

    Returns
    -------
    n_open : int
    """
    n_open = n_items if only is None else len(only)
    if barred is None or barred.nnz == 0:
        return n_open
    is_open = np.zeros(n_items, dtype=np.int64)
    is_open[slice(None) if only is None else only] = 1
    ends = np.append(0, np.cumsum(is_open[barred.indices]))
    return n_open - int(np.diff(ends[barred.indptr]).max())


def _rank_block(
    score: Callable[[slice], Array],
    n_results: int,
    closed: Array | None,
    barred: Any,
    rows: slice,
) -> tuple[Array, Array]:
    """Return the best items of some queries."""
    block = score(rows)
    if closed is not None:
        block[:, closed] = -np.inf
    if barred is not None:
        own = barred[rows].tocoo()
        block[own.coords] = -np.inf
    return best_entries(block, n_results)
