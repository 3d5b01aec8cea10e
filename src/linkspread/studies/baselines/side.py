"""What one view brings into a match: a vector for every item, old or new.

Two vectors are compared by the inner product of what they become here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from linkspread.compiled import sampled_products, small_loops

Array = np.ndarray


class Side:
    """What one view brings into a match.

    `embed` makes vectors of a table of features. Those of the fitted items are given,
    or made from `table` when they are asked for.
    """

    def __init__(
        self,
        vectors: Array | None,
        embed: Callable[[Any], Array],
        n_features: int,
        table: Any = None,
    ) -> None:
        self.embed = embed
        self.n_features = n_features
        self._vectors = vectors
        self._table = table

    @classmethod
    def of(cls, X: Any, embed: Callable[[Any], Array]) -> "Side":
        """Return the side of a view whose items are embedded by their features."""
        return cls(None, embed, X.shape[1], X)

    @property
    def vectors(self) -> Array:
        """One per fitted item, all made now if they were not; the table is let go."""
        if self._vectors is None:
            self._vectors, self._table = self.embed(self._table), None
        return self._vectors

    def vectors_of(self, positions: Array) -> Array:
        """Return the vectors of some items, and make those alone if none exist."""
        if self._vectors is None and 2 * len(positions) < self._table.shape[0]:
            return self.embed(self._table[positions])
        return self.vectors[positions]

    def unscaled_of(self, positions: Array) -> tuple[Array, Array]:
        """Return vectors of some items, and what each is yet to be multiplied by."""
        return self.vectors_of(positions), np.ones(len(positions))

    def products(self, rows: Array, other: "Side", cols: Array) -> Array:
        """Return the inner products of all of some items with some of another side."""
        return self.vectors_of(rows) @ other.vectors_of(cols).T

    def pair_products(self, rows: Array, other: "Side", cols: Array) -> Array:
        """Return the inner products of single pairs of items, and of no others."""
        i, rows = np.unique(rows, return_inverse=True)
        j, cols = np.unique(cols, return_inverse=True)
        left, left_scale = self.unscaled_of(i)
        right, right_scale = other.unscaled_of(j)
        left, right = map(np.ascontiguousarray, (left, right))
        with small_loops(len(rows) * left.shape[1]):
            scores = sampled_products(left, right, rows, cols)
        return scores * left_scale[rows] * right_scale[cols]


def unit_rows(vectors: Array) -> Array:
    """Scale rows to length 1; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)


def centred_units(vectors: Array) -> Array:
    """Subtract each row's mean, then scale rows to length 1."""
    return unit_rows(vectors - vectors.mean(axis=1, keepdims=True))


def share_rows(vectors: Array) -> Array:
    """Scale rows of at least 0 to sum 1; rows of zeros stay."""
    sums = vectors.sum(axis=1, keepdims=True)
    return vectors / np.where(sums > 0, sums, 1.0)


def _unchanged(vectors: Array) -> Array:
    """Return vectors whose plain inner products are the scores."""
    return vectors


SCORES: dict[str, Callable[[Array], Array]] = {
    "correlation": centred_units,
    "dot": _unchanged,
}
