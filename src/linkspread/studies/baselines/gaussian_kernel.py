"""Kernels between rows and a few anchors, a tile at a time."""

import copy
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.graphs import mean_distance
from linkspread.graphs.distances import Pairwise, ProductDistances
from linkspread.graphs.memory import known
from linkspread.graphs.weights import exponents, lift_exponents
from linkspread.ground.checks import check_name, check_positive
from linkspread.studies.baselines.preparation import as_dense_rows

Array = np.ndarray

# Entries of the kernel that exist at a time.
TILE_ENTRIES = 1 << 22
# Kernels by name: the distance that each is a Gaussian of, or none.
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
        # All items are kept as they are, which needs no second table.
        is_all = np.array_equal(anchors, np.arange(X.shape[0]))
        self.anchors = X if is_all else X[anchors]
        self.metric = metric
        # Where all items are alike any width will do.
        self.width = width * (_unit(X, metric) or 1.0)
        self._measure: ProductDistances | None = None

    def __call__(self, rows: Any) -> Array:
        """Return the kernel of shape (n_rows, n_anchors)."""
        return self.weigh(self.distances(rows))

    def distances(self, rows: Any) -> Array:
        """Return the distances of rows to all anchors, whatever the width."""
        if sparse.issparse(rows) != sparse.issparse(self.anchors):
            is_sparse = sparse.issparse(self.anchors)
            rows = sparse.csr_array(rows) if is_sparse else as_dense_rows(rows)
        if self._measure is None:
            self._measure = ProductDistances(self.anchors, metric=self.metric)
        return self._measure(rows)

    def weigh(self, distances: Array) -> Array:
        """Return the kernel of rows whose distances to all anchors are known."""
        exponent = exponents(distances, self.width, self.width)
        # A row far from all anchors keeps the ratios of its entries.
        return np.exp(-lift_exponents(exponent, np.dtype(np.float64)))

    def widened(self, factor: float) -> "GaussianKernel":
        """Return the kernel that is so many times as wide, with the same anchors."""
        factor = check_positive(factor, name="width", remedy="1 is the mean distance.")
        kernel = copy.copy(self)
        kernel.width = factor * self.width
        return kernel

    def smooth(self, rows: Any, block: Any) -> Array:
        """Return ``K @ block`` without ever holding the whole kernel."""
        step = max(1, TILE_ENTRIES // self.anchors.shape[0])
        starts = range(0, rows.shape[0], step)
        tiles = [self(rows[i : i + step]) @ block for i in starts]
        return np.concatenate(tiles) if tiles else np.zeros((0, block.shape[1]))


def _unit(X: Any, metric: str | Pairwise) -> float:
    """Return the mean distance, 1 where there is none."""
    if X.shape[0] == 1:
        return 1.0
    return known(X, ("mean", metric), lambda: mean_distance(X, metric=metric))


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
