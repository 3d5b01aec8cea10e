"""Exact search by inner product, for blocks of queries."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from linkspread.compiled.backends import choose_device, map_blocks
from linkspread.ground.cores import count_threads, hold_blas
from linkspread.search.bounds import bound_scores

Array = np.ndarray

# Scores per thread at a time.
BLOCK_ENTRIES = 1 << 22
# Multiplications from which a GPU is used, given the transfer of the items.
MIN_PRODUCTS = 1e11
# If more than one in this many items may be among the best, all are scored, because
# scattered rows take several times as long as consecutive ones.
MIN_SHARE = 10
# Items scored first, per result: those with the best lower bounds.
N_LIKELY = 4
# Pieces of a row: long enough for fast maxima, short enough that few are searched.
PIECE = 512
# With fewer pieces than this multiple of the results, nearly all would be searched.
MIN_PIECES = 4


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
        "auto" uses a GPU, if there is one, for many queries of many items.

    Returns
    -------
    positions : ndarray of shape (n_queries, n_found)
        Best first; ties in the order of the items. All rows are as long as
        that of the query with the fewest items left, `n_results` at most.
    scores : ndarray of the same shape

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.search import rank
    >>> rank(np.array([[1.0]]), np.array([[2.0], [3.0], [3.0]]), n_results=2)
    (array([[1, 2]]), array([[3., 3.]]))
    """
    asked: dict[str, Any] = {"n_results": n_results, "barred": barred}
    if only is not None and 2 * len(only) <= len(items):
        # Few items are copied, so that only they are scored.
        asked["barred"] = None if barred is None else barred[:, only]
        found, scores = rank(vectors, items[only], backend=backend, **asked)
        return only[found], scores
    work = float(len(vectors)) * items.size
    device = choose_device(backend, work=work, min_work=MIN_PRODUCTS)
    if device is not None and n_results and len(vectors):
        from linkspread.compiled.gpu.search import best_items

        n_results = min(n_results, count_open(len(items), only, barred))
        closed = None if only is None else np.delete(np.arange(len(items)), only)
        return _join(
            best_items(device, vectors, items, n_results, closed=closed, barred=barred)
        )
    return rank_rows(
        lambda rows: vectors[rows] @ items.T,
        (len(vectors), len(items)),
        np.result_type(vectors, items),
        only=only,
        **asked,
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

    `score` returns the scores of some queries. With a `step` it is called for that many
    at a time, one after the other; without, in threads.
    """
    n_queries, n_items = shape
    n_results = min(n_results, count_open(n_items, only, barred))
    if n_queries == 0:
        return np.empty((0, n_results), np.int64), np.empty((0, n_results), dtype)
    closed = _closed(n_items, only)

    def work(rows: slice) -> tuple[Array, Array]:
        bars = None if barred is None else barred[rows]
        return best_entries(_close(score(rows), closed, bars), n_results)

    size = step or max(1, BLOCK_ENTRIES // max(n_items, 1))
    blocks = [slice(start, start + size) for start in range(0, n_queries, size)]
    if step is None:
        return _join(map_blocks(work, blocks, n_threads=count_threads(None)))
    return _join(map(work, blocks))


def rank_bounded(
    ask: Callable[[slice], Any],
    shape: tuple[int, int],
    dtype: Any,
    *,
    n_results: int,
    only: Array | None = None,
    barred: Any = None,
) -> tuple[Array, Array]:
    """Return the items with the largest scores for each of a few queries.

    `ask` returns one query, with `scores` of some items and `score_parts` of all. Only
    items whose upper bound reaches the n-th best score of a few likely ones are scored.
    """
    n_queries, n_items = shape
    n_results = min(n_results, count_open(n_items, only, barred))
    positions = np.empty((n_queries, n_results), np.int64)
    values = np.empty((n_queries, n_results), dtype)
    closed = _closed(n_items, only)
    # The remaining products are small, and faster in one thread.
    with hold_blas(1):
        for i in range(n_queries if n_results else 0):
            row = slice(i, i + 1)
            asked = ask(row)
            bars = None if barred is None else barred[row]
            if only is not None and MIN_SHARE * len(only) <= n_items:
                some = only
                if bars is not None:
                    some = np.setdiff1d(only, bars.indices, assume_unique=True)
                best, values[row] = best_entries(asked.scores(some), n_results)
                positions[row] = some[best]
                continue
            found = _rank_reaching(asked, n_results, closed, bars)
            if found is None:
                found = best_entries(_close(asked.scores(), closed, bars), n_results)
            positions[row], values[row] = found
    return positions, values


def _rank_reaching(
    asked: Any, n_results: int, closed: Array | None, bars: Any
) -> tuple[Array, Array] | None:
    """Return the best items of one query by bounds, or None if too many remain."""
    lower, upper = bound_scores(*asked.score_parts())
    most = len(upper) // MIN_SHARE
    if n_results > most:
        return None
    n_likely = min(N_LIKELY * n_results, most)
    likely, lowest = best_entries(_close(lower[None], closed, bars), n_likely)
    some = likely[0, lowest[0] > -np.inf]
    if len(some) < n_results:
        return None
    _close(upper[None], closed, bars)
    reach, score = np.inf, best_entries(asked.scores(some), n_results)[1][0, -1]
    while score < reach:
        reach = score
        some = np.flatnonzero(~(upper < reach))
        # Infinite scales give infinite bounds, which exclude nothing.
        if len(some) > most or not np.isfinite(reach):
            return None
        best, values = best_entries(asked.scores(some), n_results)
        # Smaller than before only by different rounding: then repeat.
        score = values[0, -1]
    return some[best], values[0]


def count_open(n_items: int, only: Array | None, barred: Any) -> int:
    """Return the smallest number of items that a query may find."""
    n_open = n_items if only is None else len(only)
    if barred is None or barred.nnz == 0:
        return n_open
    if only is None:
        return n_open - int(np.diff(barred.indptr).max())
    is_open = np.zeros(n_items, dtype=np.int64)
    is_open[only] = 1
    ends = np.append(0, np.cumsum(is_open[barred.indices]))
    return n_open - int(np.diff(ends[barred.indptr]).max())


def _closed(n_items: int, only: Array | None) -> Array | None:
    """Return a mask of items that may not be found, None for none."""
    if only is None:
        return None
    closed = np.ones(n_items, dtype=bool)
    closed[only] = False
    return closed


def _close(block: Array, closed: Array | None, bars: Any) -> Array:
    """Set the scores of items that may not be found to -inf, in place."""
    if closed is not None:
        block[:, closed] = -np.inf
    if bars is not None:
        block[bars.tocoo().coords] = -np.inf
    return block


def _join(parts: Iterable[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the positions and values of all blocks."""
    positions, values = zip(*parts, strict=True)
    return np.concatenate(positions), np.concatenate(values)


def best_entries(block: Array, n_results: int) -> tuple[Array, Array]:
    """Return the positions and values of the largest entries of each row.

    The k-th largest of the maxima of pieces is a lower bound of the k-th largest entry,
    so only pieces that reach it are searched.
    """
    n_rows, n_columns = block.shape
    positions = np.empty((n_rows, n_results), dtype=np.int64)
    values = np.empty((n_rows, n_results), dtype=block.dtype)
    if n_results == 0:
        return positions, values
    maxima = None
    if n_columns >= MIN_PIECES * n_results * PIECE:
        starts = np.arange(0, n_columns, PIECE)
        maxima = np.maximum.reduceat(block, starts, axis=1)
        bounds = np.partition(maxima, -n_results, axis=1)[:, -n_results]
    for i, row in enumerate(block):
        if maxima is None:
            best = _best(row, n_results)
        else:
            pieces = np.flatnonzero(maxima[i] >= bounds[i])
            near = (pieces[:, None] * PIECE + np.arange(PIECE)).ravel()
            # The last piece may be shorter than the others.
            near = near[: np.searchsorted(near, len(row))]
            near = near[row[near] >= bounds[i]]
            best = near[_best(row[near], n_results)]
        positions[i], values[i] = best, row[best]
    return positions, values


def _best(row: Array, n_results: int) -> Array:
    """Return the positions of the largest entries, equal ones in order."""
    threshold = np.partition(row, len(row) - n_results)[len(row) - n_results]
    above = np.flatnonzero(row > threshold)
    # Ties with the last place are decided by position.
    equal = np.flatnonzero(row == threshold)[: n_results - len(above)]
    chosen = np.concatenate([above, equal])
    return chosen[np.argsort(-row[chosen], kind="stable")]
