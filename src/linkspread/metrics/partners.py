"""Quality of a search for partners: where each stands, and a one-to-one assignment."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from linkspread.ground.errors import LinkspreadError

Array = np.ndarray
# Scores are asked for in blocks of so many entries.
BLOCK_ENTRIES = 1 << 22
RECALL_AT = (1, 5, 10)


class Assignment(NamedTuple):
    """Hold the quality of a one-to-one assignment.

    Parameters
    ----------
    precision, recall, f1 : float
    """

    precision: float
    recall: float
    f1: float


def partner_ranks(
    score: Callable[[Array], Any],
    queries: Any,
    partners: Any,
    *,
    n_candidates: int,
    itself: Callable[[Array], Array] | None = None,
) -> Array:
    """Return the rank at which each query finds its partner among all candidates.

    Equal scores share their ranks, so that a model which scores all alike ranks every
    partner in the middle. Other partners of the same query are no mistakes.

    Parameters
    ----------
    score : callable
        Called with distinct queries; returns their scores of shape
        (n_queries, n_candidates).
    queries : array-like of int of shape (n_pairs,)
    partners : array-like of int of shape (n_pairs,)
        Column of the partner of each query.
    n_candidates : int
    itself : callable, default=None
        Called with distinct queries; returns a mask of the candidates that are the
        query itself, which nobody searches.

    Returns
    -------
    ranks : ndarray of shape (n_pairs,)
        1 is first.

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.metrics import partner_ranks
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
    step = max(1, BLOCK_ENTRIES // max(1, n_candidates))
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
        Of `partner_ranks`.

    Returns
    -------
    summary : dict from str to float

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.metrics import rank_summary
    >>> rank_summary(np.array([1.0, 2.0]))["recall at 1"]
    0.5
    """
    recalls = {f"recall at {k}": float(np.mean(ranks < k + 0.5)) for k in RECALL_AT}
    return recalls | {"mean reciprocal rank": float(np.mean(1 / ranks))}


def assignment_quality(scores: Any, pairs: Any) -> Assignment:
    """Return how many pairs the best one-to-one assignment finds.

    Every item of the smaller side is assigned, so that precision is below 1 where
    some have no partner.

    Parameters
    ----------
    scores : array-like of shape (n_rows, n_cols)
    pairs : array-like of int of shape (n_pairs, 2)
        Row and column of the true pairs.

    Returns
    -------
    quality : Assignment
        Precision, recall and F1.

    Examples
    --------
    >>> from linkspread.metrics import assignment_quality
    >>> assignment_quality([[0.9, 0.8], [0.7, 0.1]], [[0, 1], [1, 0]]).f1
    1.0
    """
    scores, pairs = np.asarray(scores), np.asarray(pairs).reshape(-1, 2)
    if not len(pairs) or not scores.size:
        raise LinkspreadError(
            "there must be scores and a true pair to measure an assignment, got "
            f"scores of shape {scores.shape} and {len(pairs)} pairs. Give both."
        )
    _check_finite(scores)
    rows, cols = linear_sum_assignment(scores, maximize=True)
    n_cols = scores.shape[1]
    n_found = np.isin(rows * n_cols + cols, pairs[:, 0] * n_cols + pairs[:, 1]).sum()
    precision, recall = float(n_found / len(rows)), float(n_found / len(pairs))
    f1 = 2 * precision * recall / (precision + recall) if n_found else 0.0
    return Assignment(precision, recall, f1)


def _check_finite(scores: Array) -> None:
    """Refuse scores that cannot be ranked: NaN would come before everything."""
    n_wrong = scores.size - int(np.isfinite(scores).sum())
    if n_wrong:
        raise LinkspreadError(
            f"`scores` must be finite, got {n_wrong} that are NaN or infinity. Correct "
            "the model that makes them."
        )
