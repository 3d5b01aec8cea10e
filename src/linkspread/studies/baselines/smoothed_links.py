"""Averages over the links of similar items, made anew or shared among settings."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.studies.baselines.gaussian_kernel import GaussianKernel
from linkspread.studies.baselines.memory import Memory, RowsOnce, in_tiles
from linkspread.studies.baselines.side import Side

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class AnchorLinks:
    """The items of a view that have links, the anchors, and what they are linked to.

    `mass` is the weight of all links of each, must and cannot alike.
    """

    anchors: Array
    linked: sparse.csr_array
    mass: sparse.csr_array

    @classmethod
    def of(cls, memberships: Any, core: Any, mass: Array) -> "AnchorLinks":
        """Return the links of a view from its part of a thin product."""
        memberships = sparse.csr_array(memberships)
        anchors = np.flatnonzero(np.diff(memberships.indptr))
        linked = sparse.csr_array(memberships[anchors] @ sparse.csr_array(core))
        return cls(anchors, linked, sparse.csr_array(mass[anchors, None]))


class SmoothedLinks:
    """Average what is linked to the anchors of a view, by similarity."""

    def __init__(
        self, kernel: GaussianKernel, links: AnchorLinks, *, normalize: bool
    ) -> None:
        self.kernel = kernel
        self.normalize = normalize
        # Both in one pass over the kernel.
        parts = [links.linked, links.mass] if normalize else [links.linked]
        self.block = sparse.hstack(parts, format="csr")

    def __call__(self, rows: Any) -> Array:
        """Return vectors of shape (n_rows, n_dimensions)."""
        smoothed = self.kernel.smooth(rows, self.block)
        return _average_of(smoothed)[0] if self.normalize else smoothed


class SharedAverages:
    """Averages over the links of similar items, which several settings share."""

    def __init__(
        self,
        memory: Memory,
        key: tuple[Any, ...],
        X: Any,
        links: AnchorLinks,
        unit: GaussianKernel,
        kernel: GaussianKernel,
    ) -> None:
        self.memory, self.key = memory, key
        self.X, self.unit, self.kernel = X, unit, kernel
        self.block = sparse.hstack([links.linked, links.mass], format="csr")

    def of(self, positions: Array) -> tuple[Array, ...]:
        """Return averages, and the weights that they were divided by."""
        key = "averages", *self.key, self.kernel.width
        return self._rows(key).of(positions, self._average)

    def _average(self, positions: Array) -> tuple[Array, ...]:
        """Make averages from distances that all widths share."""
        known = self._rows(("distances", *self.key))
        (own,) = known.of(positions, self._measure)
        return in_tiles(
            lambda tile: _average_of(self.kernel.weigh(own[tile]) @ self.block),
            len(positions),
        )

    def _measure(self, positions: Array) -> tuple[Array, ...]:
        """Make the distances of items to all anchors."""
        return in_tiles(
            lambda tile: (self.unit.distances(self.X[positions[tile]]),),
            len(positions),
        )

    def _rows(self, key: tuple[Any, ...]) -> RowsOnce:
        """Return rows of the memory."""
        return self.memory.rows(key, self.X.shape[0])


class SharedSide(Side):
    """The side of a view in one of several settings that share averages."""

    def __init__(self, averages: SharedAverages, smoothed: SmoothedLinks) -> None:
        n_items, n_features = averages.X.shape
        super().__init__(None, smoothed, n_features)
        self._averages, self._n_items = averages, n_items
        self._normalize = smoothed.normalize

    @property
    def vectors(self) -> Array:
        """One per fitted item."""
        return self.vectors_of(np.arange(self._n_items))

    def vectors_of(self, positions: Array) -> Array:
        """Return the vectors of some items."""
        averages, scale = self.unscaled_of(positions)
        return averages if self._normalize else averages * scale[:, None]

    def unscaled_of(self, positions: Array) -> tuple[Array, Array]:
        """Return averages, and their weights where they are to be sums."""
        averages, mass = self._averages.of(positions)
        return averages, np.ones_like(mass) if self._normalize else mass


def _average_of(smoothed: Array) -> tuple[Array, Array]:
    """Return sums over the weight of their links, the last column, and that weight."""
    # A class that the other view lacks has members but no links.
    mass = np.where(smoothed[:, -1] > 0, smoothed[:, -1], 1.0)
    return smoothed[:, :-1] / mass[:, None], mass
