"""Affinities within the neighbourhood of each item: small dense blocks, on the fly."""

from typing import Any

import numpy as np

from linkspread.graphs.distances import Metric, exact_sums
from linkspread.graphs.rows import Rows
from linkspread.graphs.weights import WEIGHTS, exponents

Array = np.ndarray


class NeighborhoodKernels:
    """Affinities among the neighbours of an item, and of the item to them."""

    def __init__(self, items: Rows, metric: Metric, widths: Any, kernel: str) -> None:
        self.items = items
        self.metric = metric
        self.widths = np.broadcast_to(np.asarray(widths, dtype=float), items.shape[:1])
        self.kernel = WEIGHTS[kernel]
        # Metrics may embed an item differently when it is the one that asks.
        self.queries = metric.embed(items, True)
        self.embedded = metric.embed(items, False)

    def among(self, ids: Array) -> Array:
        """Return the affinities among the neighbours of each row."""
        n_rows, k = ids.shape
        distances = self._distances(ids).reshape(n_rows, k, k)
        widths = self.widths[ids]
        exponent = exponents(distances, widths[:, :, None], widths[:, None, :])
        return self.kernel(distances, exponent, self.metric)

    def to_neighbors(self, distances: Array, ids: Array, own_widths: Array) -> Array:
        """Return the affinities of items, fitted or new, to their neighbours."""
        exponent = exponents(distances, own_widths[:, None], self.widths[ids])
        return self.kernel(distances, exponent, self.metric)

    def _distances(self, ids: Array) -> Array:
        """Return all distances within each row's neighbourhood, (n_rows * k, k)."""
        if self.metric.pairwise is not None:
            blocks = [self.metric.measure(self.items[i], self.items[i]) for i in ids]
            return np.concatenate(blocks)
        others = np.repeat(ids, ids.shape[1], axis=0)
        queries = self.queries[ids.ravel()]
        return np.sqrt(exact_sums(self.metric, queries, self.embedded, others))
