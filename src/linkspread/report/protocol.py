"""What is known, what is asked, and what chance would reach.

>>> import numpy as np
>>> from linkspread.report import choose_labeled
>>> y = np.array([0, 0, 0, 1, 1, 1])
>>> y[choose_labeled(y, 1)].tolist()
[0, 1]
"""

import numpy as np

from linkspread.exceptions import LinkspreadError

__all__ = ["choose_labeled", "choose_queries", "expected_by_chance", "keep_hidden"]


def choose_labeled(
    labels: np.ndarray, labels_per_class: int = 5, *, random_state: int = 0
) -> np.ndarray:
    """Choose the items of each class whose label is known.

    Parameters
    ----------
    labels : ndarray of int of shape (n_items,)
        Class of each item.
    labels_per_class : int, default=5
        How many items of each class are chosen.
    random_state : int, default=0
        Seed of the choice.

    Returns
    -------
    labeled : ndarray of bool of shape (n_items,)

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.report import choose_labeled
    >>> labels = np.array([0, 1, 0, 1, 1])
    >>> labels[choose_labeled(labels, 1)].tolist()
    [0, 1]
    """
    smallest = np.unique(labels, return_counts=True)[1].min()
    # One item more than is labelled must be left in each class, to be searched for.
    if not 1 <= labels_per_class < smallest:
        raise LinkspreadError(
            f"`labels_per_class` must lie between 1 and {smallest - 1}, one less than "
            f"the smallest class has items, got {labels_per_class}. Choose a number in "
            "this range."
        )
    order = np.random.default_rng(random_state).permutation(len(labels))
    labeled = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        labeled[order[labels[order] == label][:labels_per_class]] = True
    return labeled


def choose_queries(
    labels: np.ndarray, hidden: np.ndarray, n_queries: int = 3, *, random_state: int = 0
) -> np.ndarray:
    """Choose hidden items of different classes to search with.

    Parameters
    ----------
    labels : ndarray of int of shape (n_items,)
        Class of each item.
    hidden : ndarray of int of shape (n_hidden,)
        Positions of the items to choose from.
    n_queries : int, default=3
        How many to choose; no more than there are classes among them.
    random_state : int, default=0
        Seed of the choice.

    Returns
    -------
    queries : ndarray of int of shape (n_queries,)
        Positions, each of another class.

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.report import choose_queries
    >>> sorted(choose_queries(np.array([0, 1, 2]), np.array([0, 2]), 2).tolist())
    [0, 2]
    """
    shuffled = np.random.default_rng(random_state).permutation(hidden)
    first_of_class = np.unique(labels[shuffled], return_index=True)[1]
    return shuffled[np.sort(first_of_class)[:n_queries]]


def expected_by_chance(query_labels: np.ndarray, item_labels: np.ndarray) -> float:
    """Return the mean average precision that a random order is expected to have.

    With m relevant items among n, ``E[AP] = (H + (m - 1) / (n - 1) * (n - H)) / n``
    where ``H = 1 + 1/2 + ... + 1/n``; averaged over the queries with m > 0.

    Parameters
    ----------
    query_labels : ndarray of int of shape (n_queries,)
        Class of each query.
    item_labels : ndarray of int of shape (n_items,)
        Class of each item; at least two items.

    Returns
    -------
    precision : float

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.report import expected_by_chance
    >>> expected_by_chance(np.array([0]), np.array([0, 1]))  # 1 or 1/2
    0.75
    """
    n = len(item_labels)
    classes, sizes = np.unique(item_labels, return_counts=True)
    answered = query_labels[np.isin(query_labels, classes)]
    m = sizes[np.searchsorted(classes, answered)]
    harmonic = np.sum(1 / np.arange(1, n + 1))
    return float(np.mean((harmonic + (m - 1) / (n - 1) * (n - harmonic)) / n))


def keep_hidden(
    items: np.ndarray, scores: np.ndarray, labeled: np.ndarray, *, n_results: int = 10
) -> tuple[np.ndarray, np.ndarray]:
    """Leave the labelled items out of the results of one search.

    Labelled items of a class come first in almost every search for it; what a search
    has learnt shows in the results behind them.

    Parameters
    ----------
    items : ndarray of int of shape (n_found,)
        Positions of the items found, best first.
    scores : ndarray of shape (n_found,)
        Their scores.
    labeled : ndarray of bool of shape (n_items,)
        Which items of the view have a known label.
    n_results : int, default=10
        How many results to keep.

    Returns
    -------
    items : ndarray of int of shape (<= n_results,)
    scores : ndarray of shape (<= n_results,)

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.report import keep_hidden
    >>> labeled = np.array([True, False, False])
    >>> items, scores = keep_hidden(
    ...     np.array([0, 2, 1]), np.array([3.0, 2.0, 1.0]), labeled, n_results=1)
    >>> items.tolist(), scores.tolist()
    ([2], [2.0])
    """
    kept = np.flatnonzero(~labeled[items])[:n_results]
    return items[kept], scores[kept]
