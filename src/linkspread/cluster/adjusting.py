"""Weights of a graph in blocks, adjusted to links within its view (CWA)."""

from typing import Any

import numpy as np
from scipy import sparse

from linkspread.cluster.graph_blocks import (
    mean_with_mirror,
    normalize_blocks,
    symmetrize_blocks,
)
from linkspread.cluster.products import BlockGraph
from linkspread.cluster.row_blocks import RowBlocks
from linkspread.cluster.session import Session, alone
from linkspread.cluster.spreading import spread_blocks
from linkspread.cluster.view_graphs import BuiltGraph
from linkspread.graphs.adjust import (
    adjust_edges,
    largest_product,
    longest_vectors,
    values_on_edges,
)
from linkspread.propagation import Factored
from linkspread.propagation.filter import fitted_response

Array = np.ndarray


def adjust_blocks(
    base: BuiltGraph,
    Z: Any,
    *,
    alpha: float,
    beta: float,
    tol: float,
    rank: int | None,
) -> BuiltGraph:
    """Adjust the weights of a graph, as `graphs.adjust_weights` does."""
    near, session = base.near, base.near.session
    name, blocks = near.view.name, near.blocks
    each = len(blocks)
    tops = session.submit_each(blocks, _largest_weight, base.affinity)
    largest = max(session.fetch(tops))
    scaled = session.submit_each(blocks, _at_most_one, base.affinity, [largest] * each)
    parts = normalize_blocks(session, scaled, blocks)
    S = BlockGraph(session, name, blocks, parts, near.view.dtype)
    responses = (fitted_response((alpha, alpha), beta),)
    found = spread_blocks(S, Z, S, responses, tol=tol, rank=rank)
    cores = [found.cores[0]] * each
    left = session.submit_each(blocks, _turned, found.left, cores)
    right = session.submit_each(blocks, np.asarray, found.right)
    most = _largest_entry(session, blocks, scaled, left, right)
    shared = [right] * each, [most] * each
    edges = session.submit_each(blocks, _adjust_block, scaled, left, *shared)
    session.keep(*edges)
    adjusted = symmetrize_blocks(session, edges, blocks, join=mean_with_mirror)
    session.finish(adjusted, f"adjusting the graph of {name}")
    return BuiltGraph(near, adjusted, base=base)


def _largest_entry(
    session: Session,
    blocks: RowBlocks,
    graph: list[Any],
    left: list[Any],
    right: list[Any],
) -> float:
    """Return the largest entry of the spread links, as one machine finds it."""
    shared = [right] * len(blocks), range(len(blocks))
    tops = session.submit_each(blocks, _best_of_block, graph, left, *shared)
    best = max(session.fetch(tops))
    longest = [
        np.concatenate(session.fetch(session.submit_each(blocks, _longest, side)))
        for side in (left, right)
    ]
    return largest_product(longest[0], longest[1], best) or 1.0


def _largest_weight(W: sparse.csr_array) -> float:
    """Return the largest weight of a block, at least 1."""
    return max(float(W.data.max(initial=0)), 1.0)


def _at_most_one(W: sparse.csr_array, largest: float) -> sparse.csr_array:
    """Divide a block by the largest weight of all."""
    return sparse.csr_array((W.data / largest, W.indices, W.indptr), shape=W.shape)


def _turned(left: Array, core: Array) -> Array:
    """Return vectors whose inner products with the others are the spread links."""
    return left @ core


def _longest(vectors: Array) -> Array:
    """Return the longest vectors of a block."""
    return longest_vectors(vectors)[0]


@alone
def _best_of_block(
    W: sparse.csr_array, left: Array, right: list[Array], i: int
) -> float:
    """Return the largest entry at an edge or on the diagonal of a block."""
    F = Factored(left, np.concatenate(right))
    diagonal = np.einsum("ir,ir->i", left, right[i])
    return float(max(values_on_edges(F, W).max(initial=0), diagonal.max(initial=0)))


@alone
def _adjust_block(
    W: sparse.csr_array, left: Array, right: list[Array], largest: float
) -> sparse.csr_array:
    """Return the adjusted weights of a block."""
    return adjust_edges(W, Factored(left, np.concatenate(right)), largest)
