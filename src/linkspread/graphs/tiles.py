"""Tiles of ranking keys between blocks of queries and blocks of items.

A search walks over tiles and keeps the smallest keys of each query. What a key is, and
what it proves, is the business of the classes here and in `products`:

=================  ====================================  ==========================
class              key                                   proves its ranking
=================  ====================================  ==========================
`DirectTiles`      the squared distance, in float64      always
`CallableTiles`    the user's own distance               always
`ProductTiles`     an approximation from a product       where a bound allows it
`RefinedTiles`     the squared distance, where a         always
                   product does not rule the item out
=================  ====================================  ==========================
"""

from typing import Any, Protocol

import numpy as np

from linkspread.graphs.distances import Metric, exact_sums
from linkspread.graphs.rows import Rows


class Tiles(Protocol):
    """What a search needs to know about a way to compare queries with items."""

    padding: int
    concurrent: bool
    offsets: np.ndarray

    def queries(self, Q: Rows, reach: np.ndarray) -> Any:
        """Return what `tile` and `rank` need to know of a block of queries.

        As many items as are asked for lie within ``reach`` of each, as far as is known.
        """

    def tile(self, queries: Any, items: slice, out: np.ndarray) -> np.ndarray:
        """Return keys less offsets, (n_queries, n_tile); may use the flat ``out``."""

    def rank(
        self, queries: Any, keys: np.ndarray, ids: np.ndarray, n_neighbors: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the nearest ids, their distances, and which rows are proven."""


class DirectTiles:
    """Squared distances from differences in float64; slow, and needs no proof."""

    padding = 0
    concurrent = True

    def __init__(self, items: Rows, metric: Metric):
        self.items = items
        self.metric = metric
        self.offsets = np.zeros(items.shape[0])

    def queries(self, Q: Rows, reach: np.ndarray) -> Rows:
        """Return the queries as they are."""
        return Q

    def tile(self, queries: Rows, items: slice, out: np.ndarray) -> np.ndarray:
        """Return the squared distances of one tile."""
        ids = np.arange(items.start, items.stop)
        ids = np.broadcast_to(ids, (queries.shape[0], len(ids)))
        return exact_sums(self.metric, queries, self.items, ids)

    def rank(
        self, queries: Rows, keys: np.ndarray, ids: np.ndarray, n_neighbors: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the candidates in order, every row proven."""
        ids, keys = sort_candidates(ids, keys, n_neighbors)
        return ids, np.sqrt(keys), np.ones(len(ids), dtype=bool)


class CallableTiles:
    """Distances from the user's own function, trusted as they are."""

    padding = 0
    # The function is not ours, so nothing says that two threads may share it.
    concurrent = False

    def __init__(self, items: Rows, metric: Metric):
        self.items = items
        self.metric = metric
        self.offsets = np.zeros(items.shape[0])

    def queries(self, Q: Rows, reach: np.ndarray) -> Rows:
        """Return the queries as they are."""
        return Q

    def tile(self, queries: Rows, items: slice, out: np.ndarray) -> np.ndarray:
        """Return the distances of one tile."""
        return self.metric.measure(queries, self.items[items])

    def rank(
        self, queries: Rows, keys: np.ndarray, ids: np.ndarray, n_neighbors: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the candidates in order, every row proven."""
        ids, keys = sort_candidates(ids, keys, n_neighbors)
        return ids, keys, np.ones(len(ids), dtype=bool)


def sort_candidates(
    ids: np.ndarray, keys: np.ndarray, n_neighbors: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sort each row by key, ties by id, and keep the first ones."""
    order = np.lexsort((ids, keys), axis=-1)[:, :n_neighbors]
    return np.take_along_axis(ids, order, 1), np.take_along_axis(keys, order, 1)
