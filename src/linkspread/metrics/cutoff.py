"""Measures of the first k ranks: recall and normalised discounted gain."""

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkspread.metrics.ranking import (
    Scores,
    check_cutoff,
    mean_over_queries,
    measure_queries,
)


def precision_at_k(
    scores: Scores, query_labels: ArrayLike, item_labels: ArrayLike, *, k: int
) -> float:
    """Compute the share of relevant items among the first k ranks.

    The mean is over the queries that have a relevant item. Where a query has fewer
    than k of them, its precision cannot reach 1.

    Parameters
    ----------
    scores : array-like of shape (n_queries, n_items), or object with ``rows(index)``
        Larger is better; equal scores are ranked by the position of the item.
    query_labels : array-like of shape (n_queries,) or (n_queries, n_classes)
        Class numbers with -1 for unknown, or 0/1 memberships, dense or sparse.
    item_labels : array-like of shape (n_items,) or (n_items, n_classes)
        In the form of ``query_labels``. Unknown items count as not relevant.
    k : int
        Ranks to look at; where there are fewer items, all of them.

    Returns
    -------
    mean : float
        Between 0 and 1.

    Examples
    --------
    >>> from linkspread.metrics import precision_at_k
    >>> precision_at_k([[0.9, 0.5, 0.1]], [1], [1, 0, 1], k=2)
    0.5
    """
    check_cutoff(k)
    measure = partial(_share_relevant, k=k)
    values = measure_queries(measure, scores, query_labels, item_labels)
    return float(mean_over_queries(values))


def recall_at_k(
    scores: Scores, query_labels: ArrayLike, item_labels: ArrayLike, *, k: int
) -> float:
    """Compute the share of the relevant items found in the first k ranks.

    The mean is over the queries that have a relevant item. Where a query has more
    than k of them, its recall cannot reach 1.

    Parameters
    ----------
    scores : array-like of shape (n_queries, n_items), or object with ``rows(index)``
        Larger is better; equal scores are ranked by the position of the item.
    query_labels : array-like of shape (n_queries,) or (n_queries, n_classes)
        Class numbers with -1 for unknown, or 0/1 memberships, dense or sparse.
    item_labels : array-like of shape (n_items,) or (n_items, n_classes)
        In the form of ``query_labels``. Unknown items count as not relevant.
    k : int
        Ranks to look at.

    Returns
    -------
    mean : float
        Between 0 and 1.

    Examples
    --------
    >>> from linkspread.metrics import recall_at_k
    >>> recall_at_k([[0.9, 0.5, 0.1]], [1], [1, 0, 1], k=2)
    0.5
    """
    check_cutoff(k)
    measure = partial(_recall, k=k)
    values = measure_queries(measure, scores, query_labels, item_labels)
    return float(mean_over_queries(values))


def ndcg(
    scores: Scores,
    query_labels: ArrayLike,
    item_labels: ArrayLike,
    *,
    k: int | None = None,
) -> float:
    """Compute the normalised discounted cumulative gain of the rankings.

    ``DCG = sum_r relevant(r) / log2(r + 1)`` over the ranks r = 1, ..., k, divided by
    the DCG of the best ranking. The mean is over the queries that have a relevant
    item.

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
    >>> from linkspread.metrics import ndcg
    >>> round(ndcg([[0.9, 0.5, 0.1]], [1], [1, 0, 1]), 3)
    0.92
    """
    if k is not None:
        check_cutoff(k)
    measure = partial(_discounted_gain, k=k)
    values = measure_queries(measure, scores, query_labels, item_labels)
    return float(mean_over_queries(values))


def _share_relevant(ranked: NDArray[np.bool_], k: int) -> NDArray[np.float64]:
    """Count the relevant items of the first k ranks among these ranks."""
    return ranked[:, :k].mean(axis=1)


def _recall(ranked: NDArray[np.bool_], k: int) -> NDArray[np.float64]:
    """Count the relevant items of the first k ranks among all of them."""
    return ranked[:, :k].sum(axis=1) / np.maximum(ranked.sum(axis=1), 1)


def _discounted_gain(ranked: NDArray[np.bool_], k: int | None) -> NDArray[np.float64]:
    """Divide the discounted gain of each ranking by that of the best one."""
    top = ranked[:, :k]
    discount = 1 / np.log2(np.arange(2, top.shape[1] + 2))
    # The best ranking has its relevant items first, so its gain is a partial sum.
    best = np.concatenate([[1.0], np.cumsum(discount)])
    reachable = np.minimum(ranked.sum(axis=1), top.shape[1])
    return top @ discount / best[reachable]
