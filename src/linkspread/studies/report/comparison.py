"""Compare ways of searching between two views when few labels are known.

All methods get the same few labels and are measured on the items without one.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.semi_supervised import LabelSpreading

from linkspread.metrics import ScoreBlock, mean_average_precision
from linkspread.studies.report.protocol import expected_by_chance

Labels = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class ComparisonRow:
    """Hold the quality and the cost of one method."""

    method: str
    forward: float
    backward: float
    seconds: float | None = None

    @property
    def average(self) -> float:
        """Mean of both directions."""
        return (self.forward + self.backward) / 2


def compare_scores(
    method: str,
    scores: ScoreBlock,
    labels: Labels,
    hidden: Labels,
    *,
    seconds: float | None = None,
) -> ComparisonRow:
    """Measure a method on the hidden items of two views, in both directions."""

    def precision(source: str, target: str) -> float:
        return mean_average_precision(
            _ScoreRows(partial(scores, source, target), hidden[source], hidden[target]),
            labels[source][hidden[source]],
            labels[target][hidden[target]],
        )

    first, second = labels
    return ComparisonRow(
        method, precision(first, second), precision(second, first), seconds
    )


def compare_label_spreading(
    views: Mapping[str, Any],
    known: Labels,
    labels: Labels,
    hidden: Labels,
    *,
    n_neighbors: int = 30,
) -> ComparisonRow:
    """Measure scikit-learn's LabelSpreading on each view, joined by dot products."""
    start = time.perf_counter()
    shares = {v: _spread(X, known[v], n_neighbors) for v, X in views.items()}
    seconds = time.perf_counter() - start

    def scores(source: str, target: str, *, rows: Any, cols: Any) -> np.ndarray:
        return shares[source][rows] @ shares[target][cols].T

    name = "LabelSpreading per view"
    return compare_scores(name, scores, labels, hidden, seconds=seconds)


def compare_chance(labels: Labels, hidden: Labels) -> ComparisonRow:
    """Compute what a random order of the hidden items is expected to reach."""
    first, second = (labels[view][hidden[view]] for view in labels)
    forward, backward = (
        expected_by_chance(first, second),
        expected_by_chance(second, first),
    )
    return ComparisonRow("chance", forward, backward)


def _spread(X: Any, labels: np.ndarray, n_neighbors: int) -> np.ndarray:
    """Return the share of each class at each item, all 0 where no label arrives."""
    # At its own tolerance of 1e-3 it stops before labels have reached far items.
    model = LabelSpreading(
        kernel="knn", n_neighbors=n_neighbors, max_iter=1000, tol=1e-6
    )
    return model.fit(X, labels).label_distributions_


@dataclass(frozen=True)
class _ScoreRows:
    """Give the scores of some queries at a time, so that no whole table is made."""

    block: partial[Any]
    queries: np.ndarray
    items: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.queries), len(self.items)

    def rows(self, index: Any) -> np.ndarray:
        return self.block(rows=self.queries[index], cols=self.items)
