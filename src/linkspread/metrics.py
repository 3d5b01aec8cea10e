"""Measures of rankings: average precision, precision and recall, nDCG, partner ranks.

>>> from linkspread.metrics import mean_average_precision
>>> scores = [[0.9, 0.5, 0.1], [0.2, 0.3, 0.8]]
>>> mean_average_precision(scores, query_labels=[0, 1], item_labels=[0, 1, 1])
1.0

Functions about classes take ``(scores, query_labels, item_labels)``. Scores are a
table of shape (n_queries, n_items), or any object with ``shape`` and ``rows(index)``
such as the result of a propagation, which is read in blocks of rows. Equal scores are
ranked by the position of the item. Labels are class numbers of shape (n,), with -1 for
unknown. An item is relevant to a query of its class. Means are over the queries that
have a relevant item.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from linkspread.compiled.backends import small_loops
from linkspread.compiled.cpu import average_precisions
from linkspread.ground.checks import check_count
from linkspread.ground.errors import LinkspreadError

__all__ = [
    "Assignment",
    "ScoreBlock",
    "assignment_quality",
    "average_precision",
    "mean_average_precision",
    "ndcg",
    "partner_ranks",
    "precision_at_k",
    "precision_recall_curve",
    "rank_summary",
]

Array = np.ndarray
# An array, or an object with `shape` and `rows(index)`.
Scores = Any
Labels = ArrayLike
UNKNOWN = -1
# A block of float64 scores takes 32 MB, and its ranking about three times as much.
ENTRIES_PER_BLOCK = 2**22
RECALL_AT = (1, 5, 10)
# Levels of recall of a curve.
N_LEVELS = 11


class ScoreBlock(Protocol):
    """Scores of some items of a view against some items of another."""

    def __call__(self, source: str, target: str, *, rows: Any, cols: Any) -> Any:
        """Return the block of shape (n_rows, n_cols) for positions in the views."""


class Assignment(NamedTuple):
    """The quality of a one-to-one assignment.

    Parameters
    ----------
    precision, recall, f1 : float
    """

    precision: float
    recall: float
    f1: float


def precision_at_k(
    scores: Scores, query_labels: Labels, item_labels: Labels, *, k: int
) -> float:
    """Compute the share of relevant items among the first k ranks.

    Parameters
    ----------
    scores, query_labels, item_labels : array-like
    k : int
        Number of first ranks; all where there are fewer items.

    Examples
    --------
    >>> precision_at_k([[0.9, 0.5, 0.1]], [1], [1, 0, 1], k=2)
    0.5
    """
    check_count(k, name="k", remedy="Pass a number of ranks.")
    data = scores, query_labels, item_labels
    return _mean(_by_rank(lambda ranked: ranked[:, :k].mean(axis=1), *data))


def ndcg(scores: Scores, query_labels: Labels, item_labels: Labels) -> float:
    """Compute the normalised discounted cumulative gain of the rankings.

    ``DCG = sum_r relevant(r) / log2(r + 1)`` over the ranks r = 1, 2, ..., divided by
    the DCG of the best ranking.

    Parameters
    ----------
    scores, query_labels, item_labels : array-like

    Examples
    --------
    >>> round(ndcg([[0.9, 0.5, 0.1]], [1], [1, 0, 1]), 3)
    0.92
    """

    def gain(ranked: Array) -> Array:
        discount = 1 / np.log2(np.arange(2, ranked.shape[1] + 2))
        # The best ranking has its relevant items first, so its gain is a partial sum.
        best = np.concatenate([[1.0], np.cumsum(discount)])
        return ranked @ discount / best[ranked.sum(axis=1)]

    return _mean(_by_rank(gain, scores, query_labels, item_labels))


def average_precision(
    scores: Scores, query_labels: Labels, item_labels: Labels
) -> Array:
    """Compute the average precision of every query.

    ``AP = sum_r relevant(r) * precision(r) / n_relevant`` over the ranks r = 1, 2, ...

    Parameters
    ----------
    scores, query_labels, item_labels : array-like

    Returns
    -------
    values : ndarray of shape (n_queries,)
        NaN for queries that are unknown or have no relevant item.

    Examples
    --------
    >>> average_precision([[0.9, 0.5, 0.1]], [1], [1, 0, 1]).round(3)
    array([0.833])
    """
    values = []
    for block, relevant in _score_blocks(scores, query_labels, item_labels):
        with small_loops(16 * block.size):
            values.append(average_precisions(block, relevant))
    return np.concatenate(values)


def mean_average_precision(
    scores: Scores, query_labels: Labels, item_labels: Labels
) -> float:
    """Compute the mean of the average precisions (MAP).

    Parameters
    ----------
    scores, query_labels, item_labels : array-like
    """
    return _mean(average_precision(scores, query_labels, item_labels))


def precision_recall_curve(
    scores: Scores, query_labels: Labels, item_labels: Labels
) -> tuple[Array, Array]:
    """Compute the interpolated precision at recall 0, 0.1, ..., 1.

    The interpolated precision at recall r is the largest precision at any rank
    where the recall is at least r; the curve is the mean over the queries.

    Parameters
    ----------
    scores, query_labels, item_labels : array-like

    Returns
    -------
    precision, recall : ndarray of shape (11,)

    Examples
    --------
    >>> precision, recall = precision_recall_curve([[0.9, 0.5, 0.1]], [1], [1, 0, 1])
    >>> precision[[0, 5, 10]].round(3)
    array([1.   , 1.   , 0.667])
    """

    def curve(ranked: Array) -> Array:
        n_relevant = ranked.sum(axis=1)
        if not n_relevant.any():
            return np.full((len(ranked), N_LEVELS), np.nan)
        precision = _precision_by_rank(ranked)
        best_from = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
        # In whole numbers, because 3 * 0.1 * 10 exceeds 3 in floating point.
        wanted = -(-np.arange(N_LEVELS) * n_relevant[:, np.newaxis] // (N_LEVELS - 1))
        # All relevant ranks in one list: those of a query follow its predecessors'.
        relevant_ranks = np.nonzero(ranked)[1]
        before = np.cumsum(n_relevant) - n_relevant
        place = before[:, np.newaxis] + np.maximum(wanted, 1) - 1
        # Only queries without a relevant item point past the end; they become NaN.
        rank = relevant_ranks[np.minimum(place, len(relevant_ranks) - 1)]
        return np.take_along_axis(best_from, rank, axis=1)

    values = _by_rank(curve, scores, query_labels, item_labels)
    return _mean(values), np.linspace(0, 1, N_LEVELS)


def partner_ranks(
    score: Callable[[Array], Any],
    queries: Any,
    partners: Any,
    *,
    n_candidates: int,
    itself: Callable[[Array], Array] | None = None,
) -> Array:
    """Return the rank at which each query finds its partner among all candidates.

    Equal scores get their mean rank. Other partners of the same query are not counted.

    Parameters
    ----------
    score : callable
        Maps distinct queries to scores of shape (n_queries, n_candidates).
    queries, partners : array-like of int of shape (n_pairs,)
        Queries, and the column of the partner of each.
    n_candidates : int
    itself : callable, default=None
        Maps distinct queries to a mask of the candidates that are the query itself,
        which are not ranked.

    Returns
    -------
    ranks : ndarray of shape (n_pairs,)

    Examples
    --------
    >>> scores = np.array([[0.9, 0.1, 0.5], [0.2, 0.2, 0.8]])
    >>> partner_ranks(lambda q: scores[q], [0, 1], [2, 1], n_candidates=3).tolist()
    [2.0, 2.5]
    """
    queries, partners = np.asarray(queries), np.asarray(partners)
    if queries.shape != partners.shape:
        raise LinkspreadError(
            f"`queries` and `partners` must be of one length, got {len(queries)} and "
            f"{len(partners)}. Give one partner for each query."
        )
    if len(partners) and not 0 <= partners.min() <= partners.max() < n_candidates:
        raise LinkspreadError(
            f"`partners` must be columns from 0 to {n_candidates - 1}, got "
            f"{partners.min()} to {partners.max()}. Give positions of candidates."
        )
    distinct, row = np.unique(queries, return_inverse=True)
    ranks = np.empty(len(queries))
    step = max(1, ENTRIES_PER_BLOCK // max(1, n_candidates))
    for start in range(0, len(distinct), step):
        some = distinct[start : start + step]
        block = np.array(score(some), dtype=np.float64)
        _check_finite(block)
        if itself is not None:
            block[itself(some)] = -np.inf
        here = np.flatnonzero((row >= start) & (row < start + len(some)))
        place = row[here] - start, partners[here]
        own = block[place][:, None]
        block[place] = -np.inf
        others = block[place[0]]
        before = np.sum(others > own, axis=1) + np.sum(others == own, axis=1) / 2
        ranks[here] = 1 + before
    return ranks


def rank_summary(ranks: Array) -> dict[str, float]:
    """Return the recall at 1, 5 and 10 and the mean reciprocal rank.

    Parameters
    ----------
    ranks : ndarray of shape (n_pairs,)
    """
    recalls = {f"recall at {k}": float(np.mean(ranks < k + 0.5)) for k in RECALL_AT}
    return recalls | {"mean reciprocal rank": float(np.mean(1 / ranks))}


def assignment_quality(scores: Any, pairs: Any) -> Assignment:
    """Return the quality of the best one-to-one assignment.

    Every item of the smaller side is assigned, so precision is below 1 where some have
    no partner.

    Parameters
    ----------
    scores : array-like of shape (n_rows, n_cols)
    pairs : array-like of int of shape (n_pairs, 2)
        Row and column of the true pairs.

    Examples
    --------
    >>> assignment_quality([[0.9, 0.8], [0.7, 0.1]], [[0, 1], [1, 0]]).f1
    1.0
    """
    scores, pairs = np.asarray(scores), np.asarray(pairs).reshape(-1, 2)
    if not len(pairs) or not scores.size:
        raise LinkspreadError(
            "`scores` and `pairs` must not be empty, got scores of shape "
            f"{scores.shape} and {len(pairs)} pairs. Give both."
        )
    _check_finite(scores)
    rows, cols = linear_sum_assignment(scores, maximize=True)
    n_cols = scores.shape[1]
    n_found = np.isin(rows * n_cols + cols, pairs[:, 0] * n_cols + pairs[:, 1]).sum()
    precision, recall = float(n_found / len(rows)), float(n_found / len(pairs))
    f1 = 2 * precision * recall / (precision + recall) if n_found else 0.0
    return Assignment(precision, recall, f1)


def _by_rank(
    measure: Callable[[Array], Array], scores: Any, query_labels: Any, item_labels: Any
) -> Array:
    """Apply a measure to the relevance by rank; NaN for queries without any."""
    values = []
    for block, relevant in _score_blocks(scores, query_labels, item_labels):
        ranked = np.take_along_axis(relevant, _stable_order(-block), axis=1)
        measured = measure(ranked)
        measured[~ranked.any(axis=1)] = np.nan
        values.append(measured)
    return np.concatenate(values)


def _score_blocks(
    scores: Any, query_labels: Any, item_labels: Any
) -> Iterator[tuple[Array, Array]]:
    """Yield blocks of scores of some queries, and which items are relevant."""
    queries = _check_labels(query_labels, "query_labels")
    items = _check_labels(item_labels, "item_labels")
    rows, shape = getattr(scores, "rows", None), getattr(scores, "shape", ())
    if not callable(rows):
        table = np.asarray(scores)
        if table.ndim != 2 or table.dtype.kind not in "iubf":
            raise LinkspreadError(
                "`scores` must be a table of numbers of shape (n_queries, n_items), "
                f"got {type(scores).__name__} of shape {shape or table.shape}. Pass a "
                "dense array, or an object with `shape` and `rows(index)`."
            )
        rows, shape = table.__getitem__, table.shape
    n_queries, n_items = queries.shape[0], items.shape[0]
    if tuple(shape) != (n_queries, n_items):
        raise LinkspreadError(
            "`scores` must have one row per query and one column per item, got shape "
            f"{tuple(shape)} for {n_queries} query labels and {n_items} item labels. "
            "Transpose the scores, or pass the labels of the other view."
        )
    step = max(1, ENTRIES_PER_BLOCK // max(1, n_items))
    # At least one block, which is empty where there are no queries.
    for start in range(0, max(1, n_queries), step):
        index = np.arange(start, min(start + step, n_queries))
        block = np.asarray(rows(index))
        if block.dtype.kind != "f":
            # Negation overflows for the smallest integer and for unsigned ones.
            block = block.astype(np.float64)
        bad = np.isnan(block)
        if bad.any():
            row, item = np.argwhere(bad)[0]
            raise LinkspreadError(
                f"`scores` must not contain NaN, got NaN for query {index[row]} and "
                f"item {item}. Replace it, for instance by -inf to rank the item last."
            )
        # Unknown items have equal labels, but need not be of one class.
        yield block, (queries[index, None] == items) & (items != UNKNOWN)


def _check_finite(scores: Array) -> None:
    """Refuse NaN, which would rank first, and infinity."""
    n_wrong = scores.size - int(np.isfinite(scores).sum())
    if n_wrong:
        raise LinkspreadError(
            f"`scores` must be finite, got {n_wrong} that are NaN or infinity. Correct "
            "the model that makes them."
        )


def _stable_order(block: Array) -> Array:
    """Sort each row, equal values by their position."""
    # A stable sort takes about three times as long, and only rows with ties need it.
    order = np.argsort(block, axis=1)
    values = np.take_along_axis(block, order, axis=1)
    tied = (values[:, 1:] == values[:, :-1]).any(axis=1)
    order[tied] = np.argsort(block[tied], axis=1, kind="stable")
    return order


def _precision_by_rank(ranked: Array) -> Array:
    """Return the share of relevant items among the first r, for every rank r."""
    return np.cumsum(ranked, axis=1) / np.arange(1, ranked.shape[1] + 1)


def _mean(values: Array) -> Any:
    """Average over the queries that have a relevant item."""
    counted = ~np.isnan(values).any(axis=tuple(range(1, values.ndim)))
    if not counted.any():
        raise LinkspreadError(
            "At least one query must have a relevant item, got none among "
            f"{len(values)} queries. Check that queries and items use the same class "
            "numbers and that not all are unknown (-1)."
        )
    mean = values[counted].mean(axis=0)
    return float(mean) if mean.ndim == 0 else mean


def _check_labels(labels: Any, name: str) -> Array:
    """Return class numbers as integers."""
    table = np.asarray(labels)
    # An empty list becomes an array of floats, which is no mistake of the caller.
    if table.ndim == 1 and (table.dtype.kind in "iub" or not table.size):
        return table.astype(np.int64)
    raise LinkspreadError(
        f"`{name}` must hold integers, the class numbers, in shape (n,), got "
        f"{table.dtype} of shape {table.shape}. Number the classes over queries and "
        "items together, with -1 for unknown."
    )
