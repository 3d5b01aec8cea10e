"""ASIF: compare items of two views by their similarities to matched items."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkspread.ground.checks import check_count, check_positive
from linkspread.links import Links
from linkspread.studies.baselines.correspondences import matched_rows
from linkspread.studies.baselines.matching import Chosen, PairMatching
from linkspread.studies.baselines.memory import RowsOnce, in_tiles
from linkspread.studies.baselines.preparation import as_dense_rows
from linkspread.studies.baselines.side import Side, unit_rows

Array = np.ndarray


@dataclass(kw_only=True, eq=False, repr=False)
class AnchorSimilarity(PairMatching):
    """Match by similarity to matched items: ASIF of [Norelli2023].

    An item is described by its cosines with the matched items of its own view, the
    anchors: the largest are kept, raised to a power and scaled to unit norm. Anchor i
    of one view is the partner of anchor i of the other, so that both views share a
    space. Nothing is learnt.
    """

    n_neighbors: int | None = None
    power: float = 1.0
    centered: bool = True
    hubs: int | None = None

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> Sequence[Side]:
        power = check_positive(self.power, name="power", remedy="The default is 1.")
        rows, cols, _ = matched_rows(links, a, b)
        n_kept = len(rows)
        if self.n_neighbors is not None:
            remedy = "None takes all anchors."
            n_kept = check_count(self.n_neighbors, name="n_neighbors", remedy=remedy)
        n_kept = min(n_kept, len(rows))
        return tuple(
            self._describe(tables[view], view, own, n_kept, power)
            for view, own in ((a, rows), (b, cols))
        )

    def _describe(
        self, X: Any, view: str, anchors: Array, n_kept: int, power: float
    ) -> Side:
        """Return the side of a view, given its anchors."""
        key = "cosines", view, self.centered
        cosines = self._once(
            ("anchors", *key), lambda: _Cosines(X[anchors], centered=self.centered)
        )
        embed = _Description(cosines, n_kept, power)
        if self._memory is None:
            return Side.of(X, embed)
        return _SharedSide(X, embed, self._memory.rows(key, X.shape[0]))


class _Cosines:
    """Cosines of rows with anchors; values below 0 count as 0."""

    def __init__(self, anchors: Any, *, centered: bool) -> None:
        anchors = as_dense_rows(anchors)
        self.mean = anchors.mean(axis=0) if centered else np.zeros(anchors.shape[1])
        self.anchors = unit_rows(anchors - self.mean)

    def __call__(self, rows: Any) -> Array:
        centred = as_dense_rows(rows) - self.mean
        return np.maximum(unit_rows(centred) @ self.anchors.T, 0)


class _Description:
    """Describe rows by their nearest anchors."""

    def __init__(self, cosines: _Cosines, n_kept: int, power: float) -> None:
        self.cosines, self.n_kept, self.power = cosines, n_kept, power

    def __call__(self, rows: Any) -> Array:
        (described,) = in_tiles(
            lambda tile: (self.of(self.cosines(rows[tile])),), rows.shape[0]
        )
        return described

    def of(self, cosines: Array) -> Array:
        """Return the descriptions of rows whose cosines are known."""
        if self.n_kept < cosines.shape[1]:
            # Anchors that tie with the last one stay too.
            least = np.partition(cosines, -self.n_kept, axis=1)[:, -self.n_kept]
            cosines = np.where(cosines >= least[:, None], cosines, 0)
        power = self.power
        while power % 2 == 0:  # squares are many times as fast
            cosines, power = cosines**2, power / 2
        return unit_rows(cosines if power == 1 else cosines**power)


class _SharedSide(Side):
    """The side of a view in one of several settings that share cosines."""

    def __init__(self, X: Any, embed: _Description, cosines: RowsOnce) -> None:
        super().__init__(None, embed, X.shape[1], X)
        self._description, self._cosines = embed, cosines

    @property
    def vectors(self) -> Array:
        """Vectors of the fitted items."""
        if self._vectors is None:
            self._vectors = self.vectors_of(np.arange(self._table.shape[0]))
        return self._vectors

    def vectors_of(self, positions: Array) -> Array:
        """Return the vectors of some items."""
        rows, cosines = self._table, self._description.cosines

        def make(missing: Array) -> tuple[Array, ...]:
            return in_tiles(lambda tile: (cosines(rows[missing[tile]]),), len(missing))

        return self._description.of(self._cosines.of(positions, make)[0])
