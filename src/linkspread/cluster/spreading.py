"""Links spread over two graphs in blocks; only thin matrices travel."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkspread.cluster.operator import BlockOperator
from linkspread.cluster.products import BlockGraph
from linkspread.cluster.session import alone
from linkspread.links import LinkMatrix, as_link_matrix
from linkspread.propagation import Spread
from linkspread.propagation.exact import (
    has_thin_factors,
    sketch_links,
    spread_responses,
    warn_of_error,
)
from linkspread.propagation.filter import Response, SeparableFilter, separate
from linkspread.propagation.spread import shorten, triangle

Array = np.ndarray


@dataclass(frozen=True)
class BlockVectors:
    """Spread links, the vectors of the items still with the workers."""

    left: list[Any]
    right: list[Any]
    cores: list[Array] = field(repr=False)
    error: float


def spread_over_blocks(
    x: BlockGraph,
    Z: Any,
    y: BlockGraph,
    *,
    alpha: tuple[float, float],
    beta: float,
    tol: float,
    rank: int | None,
) -> Spread:
    """Propagate links, as `propagation.spread_links` does."""
    responses = spread_responses(alpha, beta)
    found = spread_blocks(x, Z, y, responses, tol=tol, rank=rank)
    left, right = (np.concatenate(_fetch(x, own)) for own in (found.left, found.right))
    if rank is None:
        warn_of_error(found.error, tol, left)
    core, unseen_left, unseen_right = found.cores
    return Spread(left, right, core, unseen_left, unseen_right, found.error)


def spread_blocks(
    x: BlockGraph,
    Z: Any,
    y: BlockGraph,
    responses: tuple[Response, ...],
    *,
    tol: float,
    rank: int | None,
) -> BlockVectors:
    """Apply responses to links by thin factors, or by a sketch if they are wide."""
    links = as_link_matrix(Z)
    single = x.dtype == y.dtype == np.float32
    dtype = np.dtype(np.float32 if single else np.float64)
    x, y = x.astype(dtype), y.astype(dtype)
    # Half of the error may come from the filter, half from dropped directions.
    separable = separate(responses, tol=tol / 2)
    if has_thin_factors(links, separable, rank):
        return _from_thin(x, links, y, separable, tol, rank)

    def operate(dtype: Any, separable: SeparableFilter) -> BlockOperator:
        return BlockOperator(x.astype(dtype), links, y.astype(dtype), separable)

    left, right, cores, error = sketch_links(
        operate, dtype, responses, separable, tol=tol, rank=rank
    )
    parts = [left[a:b] for a, b in x.blocks], [right[a:b] for a, b in y.blocks]
    return BlockVectors(*parts, cores, error + separable.error)


def _from_thin(
    x: BlockGraph,
    links: LinkMatrix,
    y: BlockGraph,
    separable: SeparableFilter,
    tol: float,
    rank: int | None,
) -> BlockVectors:
    """Filter the memberships of each view and shorten what comes out."""
    U, G, V = links.thin()
    left = x.filtered_sums(U, separable.left)
    right = y.filtered_sums(V, separable.right)
    cores = [np.kron(core, G) for core in separable.cores]
    triangles = _triangle(x, left), _triangle(y, right)
    maps = shorten(triangles[0], cores, triangles[1], tol=tol, rank=rank)
    to_left, to_right, small, error = maps
    small = [core.astype(x.dtype) for core in small]
    vectors = _turn(x, left, to_left), _turn(y, right, to_right)
    return BlockVectors(*vectors, small, error + separable.error)


def _triangle(graph: BlockGraph, sums: list[Any]) -> Array:
    """Return R of the QR factorisation of a tall matrix in blocks of rows."""
    session = graph.session
    parts = session.fetch(session.submit_each(graph.blocks, _block_triangle, sums))
    return triangle(np.vstack(parts))


def _turn(graph: BlockGraph, sums: list[Any], turn: Array) -> list[Any]:
    """Return the short vectors of each block."""
    turns = [turn.astype(graph.dtype)] * len(sums)
    return graph.session.submit_each(graph.blocks, _block_vectors, sums, turns)


@alone
def _block_triangle(sums: Array) -> Array:
    """Return R of one block."""
    return triangle(sums.reshape(len(sums), -1))


@alone
def _block_vectors(sums: Array, turn: Array) -> Array:
    """Return the short vectors of one block."""
    return sums.reshape(len(sums), -1) @ turn


def _fetch(graph: BlockGraph, parts: list[Any]) -> list[Array]:
    """Return the parts, from the workers where they are there."""
    is_here = isinstance(parts[0], np.ndarray)
    return parts if is_here else graph.session.fetch(parts)
