"""An order of the items in which neighbours are near in memory.

A product of a graph with a thin block reads a row of the block for every edge. If the
block is larger than the cache and the items are in arbitrary order, almost every row
comes from main memory; with neighbours numbered near each other, most come from cache.
"""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from linkspread.compiled.cpu import grow_order, renumber_rows
from linkspread.compiled.threads import small_loops

Array = np.ndarray

logger = logging.getLogger("linkspread")

# A block below this size stays in the last-level cache in any order.
CACHE_BYTES = 8e6
# Rows within these distances share the cache of one core, and of all cores.
NEAR_BYTES = (2**18, 2**22)
# Finding an order costs about two products, and halves the time of each if it helps.
MIN_STEPS = 6
# Least gain in the share of edges between near items.
MIN_GAIN = 0.2
N_SAMPLED = 1000
# Parameters of `grow_order`: the share of common neighbours, which distinguishes a
# neighbourhood from single edges that lead far away; the most that are needed; and a
# number of items. With less, the order scatters over high-dimensional clusters.
NEEDED_SHARE, MAX_NEEDED, SPAN = 0.25, 5, 5000


class Numbering(NamedTuple):
    """A renumbered graph, with the old number of each item."""

    S: sparse.csr_array
    order: Array | None

    @property
    def places(self) -> Array:
        """New number of each old one."""
        return (
            np.arange(self.S.shape[0])
            if self.order is None
            else inverse_order(self.order)
        )

    def inwards(self, rows: Any) -> Any:
        """Return rows in the new order."""
        if self.order is None:
            return rows
        return (rows.tocsr() if sparse.issparse(rows) else rows)[self.order]

    def outwards(self, rows: Array) -> Array:
        """Return rows in the old order."""
        if self.order is None:
            return rows
        restored = np.empty_like(rows)
        restored[self.order] = rows
        return restored


def renumber(S: sparse.csr_array, *, width: int, n_steps: int) -> Numbering:
    """Renumber the items of a graph if that makes products faster."""
    return reorder(S, find_order(S, width=width, n_steps=n_steps))


def reorder(S: sparse.csr_array, order: Array | None) -> Numbering:
    """Renumber the items of a graph by an order."""
    if order is None:
        return Numbering(S, None)
    indptr = np.zeros_like(S.indptr)
    np.cumsum(np.diff(S.indptr)[order], out=indptr[1:])
    data, indices = np.empty_like(S.data), np.empty_like(S.indices)
    places = inverse_order(order)
    with small_loops(S.nnz):
        renumber_rows(S.data, S.indices, S.indptr, order, places, data, indices, indptr)
    return Numbering(sparse.csr_array((data, indices, indptr), shape=S.shape), order)


def find_order(S: sparse.csr_array, *, width: int, n_steps: int) -> Array | None:
    """Return an order with neighbours near in memory, or None if not worth it.

    Releases the GIL, so that two graphs can use two threads.
    """
    row_bytes = max(width * S.dtype.itemsize, 1)
    if S.shape[0] * row_bytes < CACHE_BYTES or n_steps < MIN_STEPS:
        return None
    reaches = [max(n_bytes // row_bytes, 1) for n_bytes in NEAR_BYTES]
    order = np.arange(S.shape[0], dtype=S.indices.dtype)
    before = _near_share(S, order, reaches)
    if before > 1 - MIN_GAIN:
        return None
    n_common = round(NEEDED_SHARE * S.nnz / S.shape[0])
    needed = min(max(n_common, 2), MAX_NEEDED)
    grow_order(S.indices, S.indptr, needed, SPAN, order)
    after = _near_share(S, inverse_order(order), reaches)
    logger.debug(
        "edges between items near in memory: %.0f %% as numbered, %.0f %% renumbered",
        100 * before,
        100 * after,
    )
    return order if after >= before + MIN_GAIN else None


def inverse_order(order: Array) -> Array:
    """Return the place of each item in an order."""
    places = np.empty_like(order)
    places[order] = np.arange(len(order), dtype=order.dtype)
    return places


def _near_share(S: sparse.csr_array, places: Array, reaches: Sequence[int]) -> float:
    """Return the mean share of edges within each reach, from a sample of rows."""
    step = max(S.shape[0] // N_SAMPLED, 1)
    rows = np.arange(0, S.shape[0], step)
    sample = S[rows]
    if not sample.nnz:
        return 1.0  # no edges
    ends = places[rows].astype(np.int64).repeat(np.diff(sample.indptr))
    distances = np.abs(ends - places[sample.indices])
    return float(np.mean([np.mean(distances <= reach) for reach in reaches]))
