"""Neighbours that are searched once, for graphs that differ in other parameters."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.graphs.neighbors import NeighborIndex

__all__ = ["known_index", "known_neighbors", "remember_searches", "same_table"]

Array = np.ndarray
# Ids, distances and recall, as a search for so many neighbours returns them.
Found = tuple[Array, Array, float | None]
Search = Callable[[int], Found]

# Where searches are remembered, so many neighbours are found at once for graphs to
# come: the products take longer than the selection. Not for views whose wider lists
# would fill the memory.
WIDE = 90
WIDE_ITEMS = 50_000


class _Memory:
    """Indexes by table and metric, and what was found by each."""

    def __init__(self) -> None:
        self.indexes: list[tuple[Any, Any, NeighborIndex]] = []
        self.found: list[tuple[NeighborIndex, str, Found]] = []


_MEMORY: ContextVar[_Memory | None] = ContextVar("remembered searches", default=None)


@contextmanager
def remember_searches() -> Iterator[None]:
    """Search the neighbours of no table twice within this context."""
    token = _MEMORY.set(_Memory())
    try:
        yield
    finally:
        _MEMORY.reset(token)


def known_index(X: Any, metric: Any) -> NeighborIndex:
    """Return the items ready to be searched, made now if not remembered.

    Parameters
    ----------
    X : array-like or sparse of shape (n_items, n_features)
    metric : str or callable

    Returns
    -------
    index : NeighborIndex
    """
    memory = _MEMORY.get()
    if memory is None:
        return NeighborIndex(X, metric=metric)
    for table, known, index in memory.indexes:
        if known == metric and same_table(table, X):
            return index
    index = NeighborIndex(X, metric=metric)
    memory.indexes.append((X, metric, index))
    return index


def known_neighbors(
    index: NeighborIndex, n_neighbors: int, search: Search, *, method: str
) -> Found:
    """Return the neighbours of all items, searched now if not remembered.

    Parameters
    ----------
    index : NeighborIndex
    n_neighbors : int
    search : callable
        From a number of neighbours to (ids, distances, recall).
    method : str
        Of the search.

    Returns
    -------
    ids, distances : ndarray of shape (n_items, n_neighbors)
    recall : float or None
    """
    memory, n_items = _MEMORY.get(), index.items.shape[0]
    if memory is None:
        return search(n_neighbors)
    for own, how, (ids, distances, recall) in memory.found:
        if own is index and how == method and ids.shape[1] >= n_neighbors:
            return ids[:, :n_neighbors], distances[:, :n_neighbors], recall
    wide = min(WIDE, n_items - 1) if n_items <= WIDE_ITEMS else 0
    found = search(max(n_neighbors, wide))
    memory.found.append((index, method, found))
    return found[0][:, :n_neighbors], found[1][:, :n_neighbors], found[2]


def same_table(one: Any, other: Any) -> bool:
    """Tell whether two tables are one, or two names for the same memory.

    Parameters
    ----------
    one, other : table

    Returns
    -------
    same : bool
    """
    if one is other:
        return True
    if type(one) is not type(other) or np.shape(one) != np.shape(other):
        return False
    parts = [part.data if sparse.issparse(part) else part for part in (one, other)]
    if not all(isinstance(part, np.ndarray) for part in parts):
        return False
    places = [part.__array_interface__ for part in parts]
    return all(
        places[0][key] == places[1][key] for key in ("data", "strides", "typestr")
    )
