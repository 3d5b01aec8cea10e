"""Propagate links along two graphs in blocks; only thin matrices are sent."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkspread.cluster.block_graphs import BlockGraph
from linkspread.cluster.session import Session
from linkspread.links import LinkMatrix, as_link_matrix
from linkspread.propagation.chebyshev import FilterOperator
from linkspread.propagation.exact import has_thin_factors, sketch_links
from linkspread.propagation.filter import Response, SeparableFilter, separate
from linkspread.propagation.spread import shorten, triangle

Array = np.ndarray


@dataclass(frozen=True)
class BlockVectors:
    """Propagated links ``left @ cores[k] @ right.T``, the vectors in blocks of rows."""

    left: list[Any]  # with the workers, or arrays
    right: list[Any]
    cores: list[Array]
    error: float

    def fetch(self, session: Session) -> tuple[Array, Array]:
        """Return the vectors of both sides."""
        left, right = session.fetch([self.left, self.right])
        return np.concatenate(left), np.concatenate(right)


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
        return _spread_thin(x, links, y, separable, tol, rank)

    def operate(dtype: Any, separable: SeparableFilter) -> FilterOperator:
        return FilterOperator(x.astype(dtype), links, y.astype(dtype), separable)

    left, right, cores, error = sketch_links(
        operate, dtype, responses, separable, tol=tol, rank=rank
    )
    parts = [left[a:b] for a, b in x.ranges], [right[a:b] for a, b in y.ranges]
    return BlockVectors(*parts, cores, error + separable.error)


def _spread_thin(
    x: BlockGraph,
    links: LinkMatrix,
    y: BlockGraph,
    separable: SeparableFilter,
    tol: float,
    rank: int | None,
) -> BlockVectors:
    """Filter the factors of the links along each graph, and shorten the vectors."""
    session, (U, G, V) = x.session, links.thin()
    left = x.filtered_sums(U, separable.left)
    right = y.filtered_sums(V, separable.right)
    triangles = [
        triangle(np.vstack(session.results(_block_triangle, sums)))
        for sums in (left, right)
    ]
    cores = [np.kron(core, G) for core in separable.cores]
    to_left, to_right, small, error = shorten(
        triangles[0], cores, triangles[1], tol=tol, rank=rank
    )
    return BlockVectors(
        session.map(_block_vectors, left, to_short=to_left.astype(x.dtype)),
        session.map(_block_vectors, right, to_short=to_right.astype(y.dtype)),
        [core.astype(x.dtype) for core in small],
        error + separable.error,
    )


def _block_triangle(sums: Array) -> Array:
    """Return R of the QR factorisation of one block."""
    return triangle(sums.reshape(len(sums), -1))


def _block_vectors(sums: Array, *, to_short: Array) -> Array:
    """Return the short vectors of one block."""
    return sums.reshape(len(sums), -1) @ to_short
