"""Hub correction: items that score high with everything are scored lower."""

from collections.abc import Callable
from typing import Any

import numpy as np

from linkspread.search import rank
from linkspread.studies.baselines.side import Side

Array = np.ndarray


def corrected_scores(scores: Array, n_neighbors: int) -> Array:
    """Return the scores that `correct_hubs` gives the items of a whole table."""

    def nearness(table: Array) -> Array:
        n_best = min(n_neighbors, table.shape[1])
        return np.partition(table, -n_best, axis=1)[:, -n_best:].mean(axis=1)

    back = nearness(np.ascontiguousarray(scores.T))
    return 2 * scores - nearness(scores)[:, None] - back


def correct_hubs(left: Side, right: Side, n_neighbors: int) -> tuple[Side, Side]:
    """Return two sides with the scores ``2 s(x, y) - r(x) - r(y)`` [Conneau2018].

    r(x) is the mean of the `n_neighbors` largest scores of x with fitted items of the
    other side. Two more coordinates hold it, so that scores stay inner products.
    """
    X, Y = left.vectors, right.vectors
    return (
        _corrected(left, _Correction(left.embed, Y, n_neighbors, is_left=True)),
        _corrected(right, _Correction(right.embed, X, n_neighbors, is_left=False)),
    )


class _Correction:
    """Make corrected vectors of new items."""

    def __init__(
        self,
        embed: Callable[[Any], Array],
        others: Array,
        n_neighbors: int,
        *,
        is_left: bool,
    ) -> None:
        self.embed, self.others = embed, others
        self.n_neighbors, self.is_left = n_neighbors, is_left

    def __call__(self, rows: Any) -> Array:
        return self.correct(self.embed(rows))

    def correct(self, vectors: Array) -> Array:
        """Return ``(2^1/2 x, -r(x), 1)``, on the right ``(2^1/2 y, 1, -r(y))``."""
        # Ranked a block at a time: never all scores at once.
        _, best = rank(vectors, self.others, n_results=self.n_neighbors)
        less = -best.mean(axis=1)
        ones = np.ones_like(less)
        ends = (less, ones) if self.is_left else (ones, less)
        return np.column_stack([np.sqrt(2) * vectors, *ends])


def _corrected(side: Side, correction: _Correction) -> Side:
    """Return the corrected side of a view."""
    return Side(correction.correct(side.vectors), correction, side.n_features)
