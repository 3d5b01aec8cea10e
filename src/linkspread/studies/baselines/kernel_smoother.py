"""Kernel smoothing: a pair is scored by the links of similar pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from linkspread.graphs.distances import Pairwise, ProductDistances, mean_distance
from linkspread.graphs.knn import exponents, lift_exponents
from linkspread.graphs.neighbors import cached
from linkspread.ground.checks import check_name, check_positive, naming
from linkspread.links import LinkMatrix, Links
from linkspread.studies.baselines.inputs import as_dense_rows, balanced_links
from linkspread.studies.baselines.matching import Chosen, PairMatching, Side, in_tiles

Array = np.ndarray

# Kernels by name, with the metric of a Gaussian, or None.
KERNELS: dict[str, str | None] = {
    "chi2": "chi2",
    "hellinger": "hellinger",
    "linear": None,
    "rbf": "euclidean",
}


class GaussianKernel:
    """Compare rows with anchors by ``exp(-d^2 / (width * mean distance)^2)``."""

    def __init__(self, X: Any, anchors: Array, *, metric: str | Pairwise) -> None:
        # All items: no second table is needed.
        is_all = np.array_equal(anchors, np.arange(X.shape[0]))
        self.anchors = X if is_all else X[anchors]
        self._measure = ProductDistances(self.anchors, metric=metric)
        self.unit = 1.0
        if X.shape[0] > 1:
            mean = partial(mean_distance, X, metric=metric)
            # If all items are equal, any width works.
            self.unit = cached(X, ("mean", metric), mean) or 1.0

    def distances(self, rows: Any) -> Array:
        """Return the distances of rows to all anchors."""
        if sparse.issparse(rows) != sparse.issparse(self.anchors):
            is_sparse = sparse.issparse(self.anchors)
            rows = sparse.csr_array(rows) if is_sparse else as_dense_rows(rows)
        return self._measure(rows)

    def weights_at(self, distances: Array, width: float) -> Array:
        """Return the kernel from the distances to all anchors."""
        exponent = exponents(distances, width * self.unit, width * self.unit)
        # Shifted, so that the ratios remain in rows far from all anchors.
        return np.exp(-lift_exponents(exponent, np.dtype(np.float64)))

    def __call__(self, rows: Any, width: float) -> Array:
        """Return the kernel of shape (n_rows, n_anchors)."""
        return self.weights_at(self.distances(rows), width)


def choose_kernel(kernel: str, X: Any, anchors: Array, *, width: float) -> Any:
    """Return the function from rows to their kernel with the anchors, by its name."""
    metric = KERNELS[check_name(kernel, KERNELS, name="kernel")]
    if metric is None:
        return partial(_inner_products, X[anchors])
    return partial(GaussianKernel(X, anchors, metric=metric), width=_check_width(width))


def _check_width(width: Any) -> float:
    return check_positive(width, name="width", remedy="1 is the mean distance.")


def _inner_products(anchors: Any, rows: Any) -> Array:
    return as_dense_rows(rows @ anchors.T)


@dataclass(kw_only=True, eq=False, repr=False)
class KernelSmoother(PairMatching):
    """Match by the links of similar pairs, weighted by a Gaussian kernel.

    ``score(x, y) = sum_ij z_ij K(x, x_i) K(y, y_j)`` over the links: the estimate of
    [Nadaraya1964] and [Watson1964], for pairs; divided by the weight of all links near
    x and near y if `normalize`. Items without links are not used.
    """

    PER_VIEW: ClassVar[tuple[str, ...]] = ("width", "metric")

    width: Any = 0.5
    metric: Any = "euclidean"
    normalize: bool = True
    balance: str | float = "auto"

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> Sequence[Side]:
        left, right = self._once(
            ("links", a, b, repr(self.balance)),
            lambda: _anchor_links(balanced_links(links, a, b, balance=self.balance)),
        )
        return (
            self._smooth(tables[a], (a, b), *left, **chosen[a]),
            self._smooth(tables[b], (b, a), *right, **chosen[b]),
        )

    def _smooth(
        self,
        X: Any,
        way: tuple[str, str],
        anchors: Array,
        block: sparse.csr_array,
        *,
        metric: Any,
        width: Any,
    ) -> Side:
        """Return the side of a view; its anchors are the items with links."""
        # Anchors depend on the other view, and on whether cannot-links count.
        key = way, repr((self.balance, metric))
        with naming(way[0]):
            width = _check_width(width)
            kernel = self._once(
                ("kernel", *key), lambda: GaussianKernel(X, anchors, metric=metric)
            )
        finish = _averages if self.normalize else _sums
        embed = partial(_smoothed, kernel, width, block, finish)
        if self._memory is None:
            return Side(embed, X)

        def weigh() -> Array:
            # Settings of any width share the distances.
            distances = self._once(
                ("distances", *key), lambda: in_tiles(kernel.distances, X)
            )
            return in_tiles(lambda d: kernel.weights_at(d, width) @ block, distances)

        return Side(embed, vectors=finish(self._once(("sums", *key, width), weigh)))


def _anchor_links(Z: LinkMatrix) -> list[tuple[Array, sparse.csr_array]]:
    """Return the items of each view with links, and a block of their links.

    The last column has the weight of all links of each, must and cannot alike.
    """
    U, G, V = Z.thin()
    sizes = LinkMatrix(Z.left, abs(Z.core), Z.right, abs(Z.pairs))
    weights = sizes @ np.ones(Z.shape[1]), sizes.T @ np.ones(Z.shape[0])
    cores = G, sparse.eye_array(V.shape[1], format="csr")
    found = []
    for memberships, core, weight in zip((U, V), cores, weights, strict=True):
        members = sparse.csr_array(memberships)
        anchors = np.flatnonzero(np.diff(members.indptr))
        linked = members[anchors] @ sparse.csr_array(core)
        both = [linked, sparse.csr_array(weight[anchors, None])]
        found.append((anchors, sparse.hstack(both, format="csr")))
    return found


def _smoothed(kernel: Any, width: float, block: Any, finish: Any, rows: Any) -> Array:
    """Return the links of anchors, weighted by the kernel."""
    return finish(kernel(rows, width) @ block)


def _sums(smoothed: Array) -> Array:
    """Return sums of links without their weight, which is the last column."""
    return smoothed[:, :-1]


def _averages(smoothed: Array) -> Array:
    """Return sums of links divided by their weight, which is the last column."""
    # A class that is missing in the other view has members but no links.
    weight = np.where(smoothed[:, -1:] > 0, smoothed[:, -1:], 1.0)
    return smoothed[:, :-1] / weight
