"""Neighbours that are searched once, for graphs that differ in other parameters."""

from collections.abc import Callable
from typing import Any

import numpy as np

from linkspread.graphs.neighbors import NeighborIndex
from linkspread.graphs.table_memory import is_remembering, known

Array = np.ndarray
# Ids, distances and recall, as a search for so many neighbours returns them.
Found = tuple[Array, Array, float | None]
Search = Callable[[int], Found]

# Where searches are remembered, so many neighbours are found at once for graphs to
# come: the products take longer than the selection. Not for views whose wider lists
# would fill the memory.
WIDE = 90
WIDE_ITEMS = 50_000


def known_index(X: Any, metric: Any) -> NeighborIndex:
    """Return the items ready to be searched, made now if not remembered."""
    return known(X, ("index", metric), lambda: NeighborIndex(X, metric=metric))


def known_neighbors(
    index: NeighborIndex, n_neighbors: int, search: Search, *, method: str
) -> Found:
    """Return the neighbours of all items, searched now if not remembered."""
    if not is_remembering():
        return search(n_neighbors)
    n_items = index.items.shape[0]
    wide = min(WIDE, n_items - 1) if n_items <= WIDE_ITEMS else 0
    key = "neighbors", index, method
    widest = known(index.items, key, list[Found])
    if not widest or widest[0][0].shape[1] < n_neighbors:
        widest[:] = [search(max(n_neighbors, wide))]
    ids, distances, recall = widest[0]
    return ids[:, :n_neighbors], distances[:, :n_neighbors], recall
