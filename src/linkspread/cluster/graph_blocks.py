"""Graphs as blocks of rows that stay with the workers which made them."""

from collections.abc import Callable
from operator import getitem
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.cluster.row_blocks import RowBlocks
from linkspread.cluster.session import Session, alone
from linkspread.graphs.normalize import row_sums, scale_edges

Array = np.ndarray
Join = Callable[[sparse.csr_array, sparse.csr_array], sparse.csr_array]


def larger_of_both(A: sparse.csr_array, mirrored: sparse.csr_array) -> sparse.csr_array:
    """Return the larger weight of each edge and its mirror image."""
    return sparse.csr_array(A.maximum(mirrored))


def mean_with_mirror(
    A: sparse.csr_array, mirrored: sparse.csr_array
) -> sparse.csr_array:
    """Return the mean weight of each edge and its mirror image."""
    W = sparse.csr_array((A + mirrored) * A.dtype.type(0.5))
    W.eliminate_zeros()
    W.sort_indices()
    return W


def symmetrize_blocks(
    session: Session, edges: list[Any], blocks: RowBlocks, *, join: Join
) -> list[Any]:
    """Join each block of a graph with the same rows of its transpose.

    Every block sends to every other the edges that end there, once.
    """
    cut = session.submit_each(blocks, _mirror, edges, [blocks] * len(edges))
    pieces = [
        [
            session.submit(getitem, own, i, home=blocks.home(j))
            for j, own in enumerate(cut)
        ]
        for i in range(len(blocks))
    ]
    joins = [join] * len(edges)
    return session.submit_each(blocks, _join_mirrored, edges, pieces, joins)


def normalize_blocks(
    session: Session, graph: list[Any], blocks: RowBlocks, *, rescale: bool = True
) -> list[Any]:
    """Normalise a symmetric graph, as `graphs.normalize` does.

    Only the row sums travel.
    """
    each = len(graph)
    largest = 1.0
    if rescale:
        largest = max(session.fetch(session.submit_each(blocks, _largest, graph)))
    sums = session.submit_each(blocks, _scaled_sums, graph, [largest] * each)
    degrees = session.hold(np.concatenate(session.fetch(sums)))
    shared = [largest] * each, [degrees] * each
    starts = blocks.boundaries[:-1]
    return session.submit_each(blocks, _normalize_block, graph, *shared, starts)


def assemble(session: Session, graph: list[Any], n_items: int) -> sparse.csr_array:
    """Fetch a graph, a block at a time."""
    counts = session.fetch([session.submit(_count_edges, W) for W in graph])
    small = max(sum(counts), n_items) <= np.iinfo(np.int32).max
    integers = np.int32 if small else np.int64
    indptr = np.zeros(n_items + 1, integers)
    indices = np.empty(sum(counts), integers)
    data: Array | None = None
    row = edge = 0
    for W in session.each(graph):
        data = np.empty(len(indices), W.dtype) if data is None else data
        own = slice(edge, edge + W.nnz)
        data[own], indices[own] = W.data, W.indices
        indptr[row + 1 : row + 1 + W.shape[0]] = W.indptr[1:] + integers(edge)
        row, edge = row + W.shape[0], own.stop
    return sparse.csr_array((data, indices, indptr), shape=(n_items, n_items))


@alone
def _mirror(A: sparse.csr_array, blocks: RowBlocks) -> list[sparse.csr_array]:
    """Cut a block by columns and turn the pieces."""
    columns = sparse.csr_array(A.T)  # rows of it are columns of the block
    return [columns[start:stop] for start, stop in blocks]


@alone
def _join_mirrored(
    A: sparse.csr_array, pieces: list[sparse.csr_array], join: Join
) -> sparse.csr_array:
    """Join a block with the pieces that the others have sent."""
    mirrored = sparse.csr_array(sparse.hstack(pieces, format="csr"))
    return join(A, mirrored)


def _largest(W: sparse.csr_array) -> float:
    """Return the largest weight, in the precision of the weights."""
    return W.data.max(initial=np.finfo(W.dtype).tiny)


def _scaled(W: sparse.csr_array, largest: Any) -> sparse.csr_array:
    """Divide a block by the largest weight of all."""
    data = W.data / W.dtype.type(largest)
    return sparse.csr_array((data, W.indices, W.indptr), shape=W.shape)


@alone
def _scaled_sums(W: sparse.csr_array, largest: Any) -> Array:
    """Return the row sums of a block after scaling."""
    return row_sums(_scaled(W, largest))


@alone
def _normalize_block(
    W: sparse.csr_array, largest: Any, degrees: Array, start: int
) -> sparse.csr_array:
    """Return the normalised rows of a block."""
    return scale_edges(_scaled(W, largest), degrees, start=start)


def _count_edges(W: sparse.csr_array) -> int:
    """Return the number of stored weights."""
    return int(W.nnz)
