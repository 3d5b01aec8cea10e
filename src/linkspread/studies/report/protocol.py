"""What is known, what is asked, and what chance would reach.

>>> import numpy as np
>>> from linkspread.studies.report import choose_labeled
>>> y = np.array([0, 0, 0, 1, 1, 1])
>>> y[choose_labeled(y, 1)].tolist()
[0, 1]
"""

import numpy as np

from linkspread.ground.errors import LinkspreadError


def choose_labeled(
    labels: np.ndarray, labels_per_class: int = 5, *, random_state: int = 0
) -> np.ndarray:
    """Choose the items of each class whose label is known."""
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
    """Choose hidden items of different classes to search with."""
    shuffled = np.random.default_rng(random_state).permutation(hidden)
    first_of_class = np.unique(labels[shuffled], return_index=True)[1]
    return shuffled[np.sort(first_of_class)[:n_queries]]


def expected_by_chance(query_labels: np.ndarray, item_labels: np.ndarray) -> float:
    """Return the mean average precision that a random order is expected to have.

    With m relevant items among n, ``E[AP] = (H + (m - 1) / (n - 1) * (n - H)) / n``
    where ``H = 1 + 1/2 + ... + 1/n``; averaged over the queries with m > 0.
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
    """
    kept = np.flatnonzero(~labeled[items])[:n_results]
    return items[kept], scores[kept]
