"""Compare methods of searching between two views with few labels.

All methods get the same labels and are measured on the other items.

>>> import numpy as np
>>> from linkspread.studies.report.comparison import choose_labeled
>>> y = np.array([0, 0, 0, 1, 1, 1])
>>> y[choose_labeled(y, 1)].tolist()
[0, 1]
"""

import time
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from sklearn.semi_supervised import LabelSpreading

from linkspread.ground.errors import LinkspreadError
from linkspread.metrics import ScoreBlock, mean_average_precision
from linkspread.studies.report.study import STANDARD_SPLIT, Cell, Run

Array = np.ndarray
Labels = Mapping[str, Array]


def compare_scores(
    method: str,
    scores: ScoreBlock,
    labels: Labels,
    hidden: Labels,
    *,
    seconds: float | None = None,
) -> Cell:
    """Measure a method on the hidden items of two views, in both directions."""

    def precision(source: str, target: str) -> float:
        i, j = hidden[source], hidden[target]
        block = scores(source, target, rows=i, cols=j)
        return mean_average_precision(block, labels[source][i], labels[target][j])

    first, second = labels
    values = precision(first, second), precision(second, first)
    return _cell(method, labels, values, seconds=seconds)


def _cell(
    method: str, labels: Labels, values: Sequence[float], seconds: float | None = None
) -> Cell:
    """Return the precision of a method in both directions, for a study."""
    first, second = labels
    ways = f"{first} to {second}", f"{second} to {first}"
    run = Run(
        STANDARD_SPLIT,
        fmean(values),
        dict(zip(ways, values, strict=True)),
        {} if seconds is None else {"fit": seconds},
    )
    return Cell(method, "labels per class", None, (run,))


def compare_label_spreading(
    views: Mapping[str, Any],
    known: Labels,
    labels: Labels,
    hidden: Labels,
    *,
    n_neighbors: int = 30,
) -> Cell:
    """Measure scikit-learn's LabelSpreading on each view, joined by dot products."""
    start = time.perf_counter()
    # At its default tolerance of 1e-3 it stops before labels reach far items.
    model = LabelSpreading(
        kernel="knn", n_neighbors=n_neighbors, max_iter=1000, tol=1e-6
    )
    shares = {v: model.fit(X, known[v]).label_distributions_ for v, X in views.items()}
    seconds = time.perf_counter() - start

    def scores(source: str, target: str, *, rows: Any, cols: Any) -> Array:
        return shares[source][rows] @ shares[target][cols].T

    name = "LabelSpreading per view"
    return compare_scores(name, scores, labels, hidden, seconds=seconds)


def compare_chance(labels: Labels, hidden: Labels) -> Cell:
    """Compute the expected quality of a random order of the hidden items."""
    first, second = (labels[view][hidden[view]] for view in labels)
    there, back = expected_by_chance(first, second), expected_by_chance(second, first)
    return _cell("chance", labels, (there, back))


def choose_labeled(
    labels: Array, labels_per_class: int = 5, *, random_state: int = 0
) -> Array:
    """Choose the items of each class whose label is known."""
    smallest = np.unique(labels, return_counts=True)[1].min()
    # Each class must have one item more than labels, to be searched for.
    if not 1 <= labels_per_class < smallest:
        raise LinkspreadError(
            f"`labels_per_class` must lie between 1 and {smallest - 1}, one less than "
            f"the size of the smallest class, got {labels_per_class}. Choose a number "
            "in this range."
        )
    order = np.random.default_rng(random_state).permutation(len(labels))
    labeled = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        labeled[order[labels[order] == label][:labels_per_class]] = True
    return labeled


def choose_queries(
    labels: Array, hidden: Array, n_queries: int = 3, *, random_state: int = 0
) -> Array:
    """Choose hidden items of different classes to search with."""
    shuffled = np.random.default_rng(random_state).permutation(hidden)
    first_of_class = np.unique(labels[shuffled], return_index=True)[1]
    return shuffled[np.sort(first_of_class)[:n_queries]]


def expected_by_chance(query_labels: Array, item_labels: Array) -> float:
    """Return the expected mean average precision of a random order.

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
    items: Array, scores: Array, labeled: Array, *, n_results: int = 10
) -> tuple[Array, Array]:
    """Remove the labelled items from the results of one search.

    They come first in almost every search for their class; the results after them show
    the quality of a search.
    """
    kept = np.flatnonzero(~labeled[items])[:n_results]
    return items[kept], scores[kept]
