"""Average precision, its mean, and the curve of precision against recall."""

from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkspread.compiled import average_precisions, small_loops
from linkspread.ground.errors import LinkspreadError
from linkspread.metrics.ranking import (
    Scores,
    check_cutoff,
    mean_over_queries,
    measure_queries,
    score_blocks,
)


def average_precision(
    scores: Scores,
    query_labels: ArrayLike,
    item_labels: ArrayLike,
    *,
    k: int | None = None,
) -> NDArray[np.float64]:
    """Compute the average precision of every query.

    ``AP = sum_r relevant(r) * precision(r) / min(k, n_relevant)`` over the ranks
    r = 1, ..., k. Dividing by what k ranks can hold lets a perfect ranking reach 1
    for every k.

    Parameters
    ----------
    scores : array-like of shape (n_queries, n_items), or object with ``rows(index)``
        Larger is better; equal scores are ranked by the position of the item.
    query_labels : array-like of shape (n_queries,) or (n_queries, n_classes)
        Class numbers with -1 for unknown, or 0/1 memberships, dense or sparse.
    item_labels : array-like of shape (n_items,) or (n_items, n_classes)
        In the form of ``query_labels``. Unknown items count as not relevant.
    k : int, default=None
        Ranks to look at; None for all.

    Returns
    -------
    values : ndarray of shape (n_queries,)
        NaN for queries that are unknown or have no relevant item.

    Examples
    --------
    >>> from linkspread.metrics import average_precision
    >>> average_precision([[0.9, 0.5, 0.1]], [1], [1, 0, 1]).round(3)
    array([0.833])
    """
    if k is None:
        # Without a cutoff the items need not be sorted, which takes most of the time.
        blocks = score_blocks(scores, query_labels, item_labels)
        return np.concatenate([_precisions(*block) for block in blocks])
    check_cutoff(k)
    measure = partial(_average_precision, k=k)
    return measure_queries(measure, scores, query_labels, item_labels)


def mean_average_precision(
    scores: Scores,
    query_labels: ArrayLike,
    item_labels: ArrayLike,
    *,
    k: int | None = None,
) -> float:
    """Compute the mean of the average precisions (MAP).

    Queries that are unknown or have no relevant item are left out of the mean.

    Parameters
    ----------
    scores : array-like of shape (n_queries, n_items), or object with ``rows(index)``
        Larger is better; equal scores are ranked by the position of the item.
    query_labels : array-like of shape (n_queries,) or (n_queries, n_classes)
        Class numbers with -1 for unknown, or 0/1 memberships, dense or sparse.
    item_labels : array-like of shape (n_items,) or (n_items, n_classes)
        In the form of ``query_labels``. Unknown items count as not relevant.
    k : int, default=None
        Ranks to look at; None for all.

    Returns
    -------
    mean : float
        Between 0 and 1.

    Examples
    --------
    >>> from linkspread.metrics import mean_average_precision
    >>> scores = [[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]]
    >>> round(mean_average_precision(scores, [1, 0], [1, 0, 1]), 3)
    0.667
    """
    values = average_precision(scores, query_labels, item_labels, k=k)
    return float(mean_over_queries(values))


def precision_recall_curve(
    scores: Scores,
    query_labels: ArrayLike,
    item_labels: ArrayLike,
    *,
    n_points: int = 11,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute the interpolated precision at evenly spaced levels of recall.

    The interpolated precision at recall r is the largest precision at any rank
    where the recall is at least r. The curve is the mean over the queries that have a
    relevant item.

    Parameters
    ----------
    scores : array-like of shape (n_queries, n_items), or object with ``rows(index)``
        Larger is better; equal scores are ranked by the position of the item.
    query_labels : array-like of shape (n_queries,) or (n_queries, n_classes)
        Class numbers with -1 for unknown, or 0/1 memberships, dense or sparse.
    item_labels : array-like of shape (n_items,) or (n_items, n_classes)
        In the form of ``query_labels``. Unknown items count as not relevant.
    n_points : int, default=11
        Number of levels of recall from 0 to 1, at least 2.

    Returns
    -------
    precision : ndarray of shape (n_points,)
        Never rises.
    recall : ndarray of shape (n_points,)

    Examples
    --------
    >>> from linkspread.metrics import precision_recall_curve
    >>> precision, recall = precision_recall_curve(
    ...     [[0.9, 0.5, 0.1]], [1], [1, 0, 1], n_points=3)
    >>> precision.round(3)
    array([1.   , 1.   , 0.667])
    """
    if not isinstance(n_points, Integral) or n_points < 2:
        raise LinkspreadError(
            f"`n_points` must be an integer of at least 2, got {n_points!r}. Pass 11 "
            "for the usual levels 0, 0.1, ..., 1."
        )
    measure = partial(_interpolated_precision, n_points=n_points)
    values = measure_queries(measure, scores, query_labels, item_labels)
    return mean_over_queries(values), np.linspace(0, 1, n_points)


def _precisions(scores: Any, relevant: Any) -> NDArray[np.float64]:
    """Return the average precisions of a block of queries; sorting takes the time."""
    with small_loops(16 * scores.size):
        return average_precisions(scores, relevant)


def _average_precision(ranked: NDArray[np.bool_], k: int) -> NDArray[np.float64]:
    """Average the precision over the ranks of the relevant items."""
    top = ranked[:, :k]
    reachable = np.minimum(ranked.sum(axis=1), top.shape[1])
    return (_precision(top) * top).sum(axis=1) / np.maximum(reachable, 1)


def _interpolated_precision(ranked: NDArray[np.bool_], n_points: int) -> Any:
    """Read the envelope of the precision where each level of recall is reached."""
    n_relevant = ranked.sum(axis=1)
    if not n_relevant.any():
        return np.full((len(ranked), n_points), np.nan)
    best_from = np.maximum.accumulate(_precision(ranked)[:, ::-1], axis=1)[:, ::-1]
    # In whole numbers, because 3 * 0.1 * 10 exceeds 3 in floating point.
    steps = n_points - 1
    wanted = -(-np.arange(n_points) * n_relevant[:, np.newaxis] // steps)
    # All relevant ranks in one list: those of a query follow its predecessors'.
    relevant_ranks = np.nonzero(ranked)[1]
    before = np.cumsum(n_relevant) - n_relevant
    place = before[:, np.newaxis] + np.maximum(wanted, 1) - 1
    # Only queries without a relevant item point past the end; they become NaN later.
    rank = relevant_ranks[np.minimum(place, len(relevant_ranks) - 1)]
    return np.take_along_axis(best_from, rank, axis=1)


def _precision(ranked: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the share of relevant items among the first r, for every rank r."""
    return np.cumsum(ranked, axis=1) / np.arange(1, ranked.shape[1] + 1)
