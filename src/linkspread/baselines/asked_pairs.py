"""Scores of the few pairs that somebody asks about, in blocks as of all pairs."""

from collections.abc import Sequence

import numpy as np

from linkspread.baselines.matching import Matching

__all__ = ["AskedPairs"]

Array = np.ndarray


class AskedPairs:
    """Score single pairs; whatever else a block has is not a number.

    Vectors may have thousands of entries, and a block of all their products takes far
    longer than the vectors.

    Parameters
    ----------
    model : Matching
        Fitted.
    asked : sequence of (str, str, ndarray of int, ndarray of int)
        Two views, and the positions of the items of pairs.
    """

    def __init__(
        self, model: Matching, asked: Sequence[tuple[str, str, Array, Array]]
    ) -> None:
        self.model = model
        self.asked = asked
        # All pairs of two views at once, though blocks of them are asked for.
        self._scored: dict[tuple[str, str], tuple[Array, Array, Array]] = {}

    def __call__(self, source: str, target: str, *, rows: Array, cols: Array) -> Array:
        """Return the block of some items, in the order of their positions."""
        if (source, target) not in self._scored:
            self._scored[source, target] = self._score(source, target)
        i, j, scores = self._scored[source, target]
        here = np.isin(i, rows) & np.isin(j, cols)
        block = np.full((len(rows), len(cols)), np.nan)
        places = np.searchsorted(rows, i[here]), np.searchsorted(cols, j[here])
        block[places] = scores[here]
        return block

    def _score(self, source: str, target: str) -> tuple[Array, Array, Array]:
        """Return all pairs of two views that are asked about, and their scores."""
        own = [(i, j) for a, b, i, j in self.asked if (a, b) == (source, target)]
        i, j = map(np.concatenate, zip(*own, strict=True))
        return i, j, self.model.pair_scores(source, target, i, j)
