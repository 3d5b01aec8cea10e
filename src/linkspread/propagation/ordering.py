"""An order of the nodes in which neighbours are near in memory.

A product of a graph with a thin block reads a row of the block for every edge. Once
the block outgrows the cache, and items stand in the order of their arrival, almost
every such row comes from main memory. Numbered so that neighbours are near each other,
most of them come from the cache.
"""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from linkspread.compiled import grow_order, renumber_rows, small_loops

Array = np.ndarray

logger = logging.getLogger("linkspread")

# A block below this size stays in the last cache whatever the order of its rows.
CACHE_BYTES = 8e6
# Rows of a block within these distances of each other share the cache of one core,
# and the cache of all cores.
NEAR_BYTES = (2**18, 2**22)
# An order costs about as much as two products, and halves the time of each where it
# helps.
LEAST_STEPS = 6
# The share of edges between near nodes that has to be gained for that.
LEAST_GAIN = 0.2
N_SAMPLED = 1000
# Parameters of `grow_order`. A share of common neighbours distinguishes a neighbourhood
# from single edges that lead far away. More than so many are not needed; with fewer, or
# after fewer nodes, the walk scatters over clusters of many dimensions.
NEEDED_SHARE, MOST_NEEDED, SPAN = 0.25, 5, 5000


class Numbering(NamedTuple):
    """A graph with the number that each of its nodes had before."""

    S: sparse.csr_array
    order: Array | None

    @property
    def places(self) -> Array:
        """Where each node of the old order stands in that of the graph."""
        return np.arange(self.S.shape[0]) if self.order is None else _places(self.order)

    def inwards(self, rows: Any) -> Any:
        """Return rows that stand in the old order in that of the graph."""
        if self.order is None:
            return rows
        return (rows.tocsr() if sparse.issparse(rows) else rows)[self.order]

    def outwards(self, rows: Array) -> Array:
        """Return rows that stand in the order of the graph in the old one."""
        if self.order is None:
            return rows
        restored = np.empty_like(rows)
        restored[self.order] = rows
        return restored


def renumber(S: sparse.csr_array, *, width: int, n_steps: int) -> Numbering:
    """Renumber the nodes of a graph, where products with it gain by that."""
    return reorder(S, find_order(S, width=width, n_steps=n_steps))


def reorder(S: sparse.csr_array, order: Array | None) -> Numbering:
    """Give the nodes of a graph the numbers of an order."""
    if order is None:
        return Numbering(S, None)
    indptr = np.zeros_like(S.indptr)
    np.cumsum(np.diff(S.indptr)[order], out=indptr[1:])
    data, indices = np.empty_like(S.data), np.empty_like(S.indices)
    places = _places(order)
    with small_loops(S.nnz):
        renumber_rows(S.data, S.indices, S.indptr, order, places, data, indices, indptr)
    return Numbering(sparse.csr_array((data, indices, indptr), shape=S.shape), order)


def find_order(S: sparse.csr_array, *, width: int, n_steps: int) -> Array | None:
    """Return an order of the nodes in which neighbours are near in memory.

    Holds the interpreter for a moment only, so that two graphs can have two threads.
    """
    row_bytes = max(width * S.dtype.itemsize, 1)
    if S.shape[0] * row_bytes < CACHE_BYTES or n_steps < LEAST_STEPS:
        return None
    reaches = [max(n_bytes // row_bytes, 1) for n_bytes in NEAR_BYTES]
    order = np.arange(S.shape[0], dtype=S.indices.dtype)
    before = _near_share(S, order, reaches)
    if before > 1 - LEAST_GAIN:
        return None
    n_common = round(NEEDED_SHARE * S.nnz / S.shape[0])
    needed = min(max(n_common, 2), MOST_NEEDED)
    grow_order(S.indices, S.indptr, needed, SPAN, order)
    after = _near_share(S, _places(order), reaches)
    logger.debug(
        "edges between nodes near in memory: %.0f %% as numbered, %.0f %% renumbered",
        100 * before,
        100 * after,
    )
    return order if after >= before + LEAST_GAIN else None


def _places(order: Array) -> Array:
    """Return where each node stands in an order."""
    places = np.empty_like(order)
    places[order] = np.arange(len(order), dtype=order.dtype)
    return places


def _near_share(S: sparse.csr_array, places: Array, reaches: Sequence[int]) -> float:
    """Return the share of edges within reach, in a sample of rows; the mean of all."""
    step = max(S.shape[0] // N_SAMPLED, 1)
    rows = np.arange(0, S.shape[0], step)
    sample = S[rows]
    if not sample.nnz:
        return 1.0  # nothing to bring nearer
    ends = places[rows].astype(np.int64).repeat(np.diff(sample.indptr))
    distances = np.abs(ends - places[sample.indices])
    return float(np.mean([np.mean(distances <= reach) for reach in reaches]))
