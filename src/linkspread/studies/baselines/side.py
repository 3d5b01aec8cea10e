"""One side of a match: the vectors of a view, to be compared by inner products."""

from collections.abc import Callable
from typing import Any

import numpy as np

from linkspread.compiled import sampled_products, small_loops
from linkspread.search import rank

Array = np.ndarray
Embed = Callable[[Any], Array]


class Side:
    """The vectors of one view.

    `embed` makes vectors from features. Those of the fitted items are given, or made
    from `table` on demand.
    """

    def __init__(
        self, vectors: Array | None, embed: Embed, n_features: int, table: Any = None
    ) -> None:
        self.embed = embed
        self.n_features = n_features
        self._vectors = vectors
        self._table = table

    @classmethod
    def of(cls, X: Any, embed: Embed) -> "Side":
        """Return the side of a view whose items are embedded by their features."""
        return cls(None, embed, X.shape[1], X)

    @property
    def vectors(self) -> Array:
        """Vectors of the fitted items; once all are made, the table is released."""
        if self._vectors is None:
            self._vectors, self._table = self.embed(self._table), None
        return self._vectors

    def vectors_of(self, positions: Array) -> Array:
        """Return the vectors of some items, and make only these if needed."""
        if self._vectors is None and 2 * len(positions) < self._table.shape[0]:
            return self.embed(self._table[positions])
        return self.vectors[positions]

    def unscaled_of(self, positions: Array) -> tuple[Array, Array]:
        """Return unscaled vectors of some items, and their scales."""
        return self.vectors_of(positions), np.ones(len(positions))

    def products(self, rows: Array, other: "Side", cols: Array) -> Array:
        """Return the inner products of items with items of another side."""
        return self.vectors_of(rows) @ other.vectors_of(cols).T

    def pair_products(self, rows: Array, other: "Side", cols: Array) -> Array:
        """Return the inner products of single pairs of items."""
        i, rows = np.unique(rows, return_inverse=True)
        j, cols = np.unique(cols, return_inverse=True)
        left, left_scale = self.unscaled_of(i)
        right, right_scale = other.unscaled_of(j)
        left, right = map(np.ascontiguousarray, (left, right))
        with small_loops(len(rows) * left.shape[1]):
            scores = sampled_products(left, right, rows, cols)
        return scores * left_scale[rows] * right_scale[cols]


class Steps:
    """A chain of functions that can be pickled, unlike a closure."""

    def __init__(self, *functions: Callable[[Any], Any]) -> None:
        self.functions = functions

    def __call__(self, value: Any) -> Any:
        """Return the value of the last function."""
        for function in self.functions:
            value = function(value)
        return value


def unit_rows(vectors: Array) -> Array:
    """Scale rows to unit norm; rows of zeros stay."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1.0)


def centred_units(vectors: Array) -> Array:
    """Subtract each row's mean, then scale rows to unit norm."""
    return unit_rows(vectors - vectors.mean(axis=1, keepdims=True))


def share_rows(vectors: Array) -> Array:
    """Scale rows of at least 0 to sum 1; rows of zeros stay."""
    sums = vectors.sum(axis=1, keepdims=True)
    return vectors / np.where(sums > 0, sums, 1.0)


def _unchanged(vectors: Array) -> Array:
    """Return vectors unchanged."""
    return vectors


SCORES: dict[str, Callable[[Array], Array]] = {
    "correlation": centred_units,
    "dot": _unchanged,
}


def corrected_scores(scores: Array, n_neighbors: int) -> Array:
    """Return the scores of a whole table after the hub correction."""

    def nearness(table: Array) -> Array:
        n_best = min(n_neighbors, table.shape[1])
        return np.partition(table, -n_best, axis=1)[:, -n_best:].mean(axis=1)

    back = nearness(np.ascontiguousarray(scores.T))
    return 2 * scores - nearness(scores)[:, None] - back


def correct_hubs(left: Side, right: Side, n_neighbors: int) -> tuple[Side, Side]:
    """Return two sides with the scores ``2 s(x, y) - r(x) - r(y)`` [Conneau2018].

    r(x) is the mean of the `n_neighbors` largest scores of x with fitted items of the
    other side. Two more coordinates represent it, so that scores are inner products.
    """
    X, Y = left.vectors, right.vectors
    ways = (
        (left, _HubCorrection(Y, n_neighbors, is_left=True)),
        (right, _HubCorrection(X, n_neighbors, is_left=False)),
    )
    return tuple(  # type: ignore[return-value]
        Side(correct(own.vectors), Steps(own.embed, correct), own.n_features)
        for own, correct in ways
    )


class _HubCorrection:
    """Make ``(2^1/2 x, -r(x), 1)`` of vectors, on the right ``(2^1/2 y, 1, -r(y))``."""

    def __init__(self, others: Array, n_neighbors: int, *, is_left: bool) -> None:
        self.others, self.n_neighbors, self.is_left = others, n_neighbors, is_left

    def __call__(self, vectors: Array) -> Array:
        # Ranked in blocks, without all scores in memory.
        _, best = rank(vectors, self.others, n_results=self.n_neighbors)
        less = -best.mean(axis=1)
        ones = np.ones_like(less)
        ends = (less, ones) if self.is_left else (ones, less)
        return np.column_stack([np.sqrt(2) * vectors, *ends])
