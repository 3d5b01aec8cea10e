"""Kernel smoothing: a pair is scored by the links of similar pairs."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from linkspread.graphs import mean_distance
from linkspread.graphs.distances import Pairwise, ProductDistances
from linkspread.graphs.memory import cached
from linkspread.graphs.weights import exponents, lift_exponents
from linkspread.ground.checks import check_name, check_positive, naming
from linkspread.links import LinkMatrix, Links
from linkspread.studies.baselines.correspondences import balanced_links
from linkspread.studies.baselines.matching import Chosen, PairMatching
from linkspread.studies.baselines.memory import Memory, in_tiles
from linkspread.studies.baselines.preparation import as_dense_rows
from linkspread.studies.baselines.side import Side

Array = np.ndarray

# Entries of the kernel that are in memory at a time.
TILE_ENTRIES = 1 << 22
# Kernels by name, with the metric of a Gaussian, or None.
KERNELS: dict[str, str | None] = {
    "chi2": "chi2",
    "hellinger": "hellinger",
    "linear": None,
    "rbf": "euclidean",
}


class GaussianKernel:
    """Compare rows with anchors by ``exp(-d^2 / (width * mean distance)^2)``."""

    def __init__(
        self, X: Any, anchors: Array, *, metric: str | Pairwise, width: float
    ) -> None:
        width = check_positive(width, name="width", remedy="1 is the mean distance.")
        # All items: no second table is needed.
        is_all = np.array_equal(anchors, np.arange(X.shape[0]))
        self.anchors = X if is_all else X[anchors]
        self.metric = metric
        unit = 1.0
        if X.shape[0] > 1:
            unit = cached(X, ("mean", metric), lambda: mean_distance(X, metric=metric))
        # If all items are equal, any width works.
        self.width = width * (unit or 1.0)
        self._measure: ProductDistances | None = None

    def __call__(self, rows: Any) -> Array:
        """Return the kernel of shape (n_rows, n_anchors)."""
        return self.weights_at(self.distances(rows))

    def distances(self, rows: Any) -> Array:
        """Return the distances of rows to all anchors."""
        if sparse.issparse(rows) != sparse.issparse(self.anchors):
            is_sparse = sparse.issparse(self.anchors)
            rows = sparse.csr_array(rows) if is_sparse else as_dense_rows(rows)
        if self._measure is None:
            self._measure = ProductDistances(self.anchors, metric=self.metric)
        return self._measure(rows)

    def weights_at(self, distances: Array) -> Array:
        """Return the kernel from the distances to all anchors."""
        exponent = exponents(distances, self.width, self.width)
        # Shifted, so that the ratios remain in rows far from all anchors.
        return np.exp(-lift_exponents(exponent, np.dtype(np.float64)))

    def widened(self, factor: float) -> "GaussianKernel":
        """Return the kernel with its width times a factor."""
        factor = check_positive(factor, name="width", remedy="1 is the mean distance.")
        kernel = copy.copy(self)
        kernel.width = factor * self.width
        return kernel

    def smooth(self, rows: Any, block: Any) -> Array:
        """Return ``K @ block``, a block of the kernel at a time."""
        step = max(1, TILE_ENTRIES // self.anchors.shape[0])
        starts = range(0, rows.shape[0], step)
        tiles = [self(rows[i : i + step]) @ block for i in starts]
        return np.concatenate(tiles) if tiles else np.zeros((0, block.shape[1]))


class LinearKernel:
    """Compare rows with anchors by their inner product."""

    def __init__(self, X: Any, anchors: Array) -> None:
        self.anchors = X[anchors]

    def __call__(self, rows: Any) -> Array:
        """Return the kernel of shape (n_rows, n_anchors)."""
        return as_dense_rows(rows @ self.anchors.T)


def choose_kernel(kernel: str, X: Any, anchors: Array, *, width: float) -> Any:
    """Return a kernel by its name."""
    metric = KERNELS[check_name(kernel, KERNELS, name="kernel")]
    if metric is None:
        return LinearKernel(X, anchors)
    return GaussianKernel(X, anchors, metric=metric, width=width)


@dataclass(kw_only=True, eq=False, repr=False)
class KernelSmoother(PairMatching):
    """Match by the links of similar pairs, weighted by a Gaussian kernel.

    ``score(x, y) = sum_ij z_ij K(x, x_i) K(y, y_j)`` over the links: the estimate of
    [Nadaraya1964] and [Watson1964], for pairs. Items without links are not used.
    """

    PER_VIEW: ClassVar[tuple[str, ...]] = ("width", "metric")

    width: Any = 0.5
    metric: Any = "euclidean"
    normalize: bool = True
    balance: str | float = "auto"
    hubs: int | None = None

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> Sequence[Side]:
        links_of = self._once(
            ("links", a, b, repr(self.balance)),
            lambda: _anchor_links(balanced_links(links, a, b, balance=self.balance)),
        )
        return (
            self._smooth(tables[a], (a, b), links_of[0], **chosen[a]),
            self._smooth(tables[b], (b, a), links_of[1], **chosen[b]),
        )

    def _smooth(
        self,
        X: Any,
        way: tuple[str, str],
        links: "_AnchorLinks",
        *,
        metric: Any,
        width: Any,
    ) -> Side:
        """Return the side of a view; its anchors are the items with links."""
        # Anchors depend on the other view, and on whether cannot-links count.
        key = way, repr((self.balance, metric))
        with naming(way[0]):
            unit = self._once(
                ("kernel", *key),
                lambda: GaussianKernel(X, links.anchors, metric=metric, width=1.0),
            )
            kernel = unit.widened(width)
        smoothed = _SmoothedLinks(kernel, links, normalize=self.normalize)
        if self._memory is None:
            return Side.of(X, smoothed)
        return _SharedSide(X, smoothed, unit, self._memory, key)


@dataclass(frozen=True, eq=False)
class _AnchorLinks:
    """The items of a view with links, the anchors, and their links."""

    anchors: Array
    linked: sparse.csr_array
    weight: sparse.csr_array  # the weight of all links of each, must and cannot alike

    @classmethod
    def of(cls, memberships: Any, core: Any, weight: Array) -> "_AnchorLinks":
        """Return the links of a view from its thin factor."""
        memberships = sparse.csr_array(memberships)
        anchors = np.flatnonzero(np.diff(memberships.indptr))
        linked = sparse.csr_array(memberships[anchors] @ sparse.csr_array(core))
        return cls(anchors, linked, sparse.csr_array(weight[anchors, None]))


def _anchor_links(Z: LinkMatrix) -> tuple[_AnchorLinks, _AnchorLinks]:
    """Return the links of two views, from the side of each."""
    U, G, V = Z.thin()
    sizes = LinkMatrix(Z.left, abs(Z.core), Z.right, abs(Z.pairs))
    left, right = sizes @ np.ones(Z.shape[1]), sizes.T @ np.ones(Z.shape[0])
    identity = sparse.eye_array(V.shape[1], format="csr")
    return _AnchorLinks.of(U, G, left), _AnchorLinks.of(V, identity, right)


class _SmoothedLinks:
    """Averages of the links of anchors, weighted by the kernel."""

    def __init__(
        self, kernel: GaussianKernel, links: _AnchorLinks, *, normalize: bool
    ) -> None:
        self.kernel, self.links, self.normalize = kernel, links, normalize

    def __call__(self, rows: Any) -> Array:
        if not self.normalize:
            return self.kernel.smooth(rows, self.links.linked)
        return _average_of(self.kernel.smooth(rows, self.block))[0]

    @property
    def block(self) -> sparse.csr_array:
        """Links and their weights side by side, for one pass over the kernel."""
        return sparse.hstack([self.links.linked, self.links.weight], format="csr")


class _SharedSide(Side):
    """The side of a view in one of several settings that share distances."""

    def __init__(
        self,
        X: Any,
        smoothed: _SmoothedLinks,
        unit: GaussianKernel,
        memory: Memory,
        key: tuple[Any, ...],
    ) -> None:
        super().__init__(None, smoothed, X.shape[1], X)
        self._smoothed, self._unit = smoothed, unit
        self._memory, self._key, self._block = memory, key, smoothed.block

    @property
    def vectors(self) -> Array:
        """Vectors of the fitted items."""
        return self.vectors_of(np.arange(self._table.shape[0]))

    def vectors_of(self, positions: Array) -> Array:
        """Return the vectors of some items."""
        averages, scale = self.unscaled_of(positions)
        return averages if self._smoothed.normalize else averages * scale[:, None]

    def unscaled_of(self, positions: Array) -> tuple[Array, Array]:
        """Return averages, and their weights if sums are wanted."""
        n_items, kernel = self._table.shape[0], self._smoothed.kernel
        # Settings of any width share the distances, those of one width the averages.
        averages = self._memory.rows(("averages", *self._key, kernel.width), n_items)

        def measure(missing: Array) -> tuple[Array, ...]:
            rows = self._table
            return in_tiles(
                lambda tile: (self._unit.distances(rows[missing[tile]]),), len(missing)
            )

        def average(missing: Array) -> tuple[Array, ...]:
            distances = self._memory.rows(("distances", *self._key), n_items)
            (own,) = distances.of(missing, measure)
            return in_tiles(
                lambda tile: _average_of(kernel.weights_at(own[tile]) @ self._block),
                len(missing),
            )

        found, weight = averages.of(positions, average)
        return found, np.ones_like(weight) if self._smoothed.normalize else weight


def _average_of(smoothed: Array) -> tuple[Array, Array]:
    """Return sums divided by their weight, which is the last column, and the weight."""
    # A class that is missing in the other view has members but no links.
    weight = np.where(smoothed[:, -1] > 0, smoothed[:, -1], 1.0)
    return smoothed[:, :-1] / weight[:, None], weight
