"""The search among vectors in shards, here or by the workers of a cluster."""

import os
from typing import Any

import numpy as np

from linkspread.cluster.session import Session, alone
from linkspread.cluster.vector_shards import VectorShards
from linkspread.search.best import best_entries
from linkspread.search.index import most_barred, without_barred
from linkspread.search.rank import count_open, rank

Array = np.ndarray


class ShardIndex:
    """Find items by inner product among vectors in shards."""

    def __init__(
        self, shards: VectorShards, folder: str | os.PathLike[str], client: Any = None
    ) -> None:
        self.shards, self.folder, self.client = shards, str(folder), client
        self.method_, self.recall_ = "exact", 1.0

    def search(
        self,
        vectors: Array,
        *,
        n_results: int,
        only: Array | None = None,
        barred: Any = None,
        backend: str = "auto",
    ) -> tuple[Array, Array]:
        """Return the items with the largest inner products for each query."""
        n_found = min(n_results, count_open(self.shards.n_items, only, barred))
        n_tried = n_found + most_barred(barred)
        found = self._run(
            [
                (self.shards, k, self.folder, vectors, own, n_tried, backend)
                for k, own in self._open_of(only)
            ]
        )
        nothing = np.zeros((len(vectors), 0))
        positions = np.hstack([nothing.astype(int), *(own for own, _ in found)])
        scores = np.hstack([nothing.astype(vectors.dtype), *(own for _, own in found)])
        scores[without_barred(positions, barred) < 0] = -np.inf
        # In order, so that equal scores come in the order of the items.
        order = np.argsort(positions, axis=1)
        positions, scores = (
            np.take_along_axis(own, order, axis=1) for own in (positions, scores)
        )
        places, scores = best_entries(scores, n_found)
        return np.take_along_axis(positions, places, axis=1), scores

    def _open_of(self, only: Array | None) -> list[tuple[int, Array | None]]:
        """Return the shards that may be searched, and which of their items."""
        if only is None:
            return [(k, None) for k in range(len(self.shards.files))]
        cuts = np.searchsorted(only, self.shards.boundaries)
        return [
            (k, only[cuts[k] : cuts[k + 1]] - start)
            for k, start, _ in self.shards.ranges()
            if cuts[k + 1] > cuts[k]
        ]

    def _run(self, tasks: list[tuple[Any, ...]]) -> list[tuple[Array, Array]]:
        """Search shards, by the workers if there are any."""
        if self.client is None:
            return [_search_shard(*task) for task in tasks]
        session = Session(self.client)
        return session.fetch([session.submit(_search_shard, *task) for task in tasks])


@alone
def _search_shard(
    shards: VectorShards,
    k: int,
    folder: str,
    vectors: Array,
    only: Array | None,
    n_results: int,
    backend: str,
) -> tuple[Array, Array]:
    """Return the best items of one shard, by their positions in the view."""
    rows = shards.read(k, folder)
    found, scores = rank(vectors, rows, n_results=n_results, only=only, backend=backend)
    return found + shards.boundaries[k], scores
