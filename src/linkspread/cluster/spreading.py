"""Propagate links along two graphs in blocks; only thin matrices are sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.cluster.block_graphs import SLAB_BYTES, BlockGraph
from linkspread.cluster.session import Session, alone
from linkspread.links import LinkMatrix, as_link_matrix
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
        is_here = isinstance(self.left[0], np.ndarray)
        sides = self.left, self.right
        left, right = sides if is_here else (session.fetch(own) for own in sides)
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

    def operate(dtype: Any, separable: SeparableFilter) -> BlockOperator:
        return BlockOperator(x.astype(dtype), links, y.astype(dtype), separable)

    left, right, cores, error = sketch_links(
        operate, dtype, responses, separable, tol=tol, rank=rank
    )
    parts = [left[a:b] for a, b in x.blocks], [right[a:b] for a, b in y.blocks]
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
    U, G, V = links.thin()
    left = x.filtered_sums(U, separable.left)
    right = y.filtered_sums(V, separable.right)
    R_left, R_right = (
        triangle(np.vstack(graph.results(_block_triangle, sums)))
        for graph, sums in ((x, left), (y, right))
    )
    cores = [np.kron(core, G) for core in separable.cores]
    to_left, to_right, small, error = shorten(
        R_left, cores, R_right, tol=tol, rank=rank
    )
    return BlockVectors(
        x.map(_block_vectors, left, to_short=to_left.astype(x.dtype)),
        y.map(_block_vectors, right, to_short=to_right.astype(y.dtype)),
        [core.astype(x.dtype) for core in small],
        error + separable.error,
    )


@alone
def _block_triangle(sums: Array) -> Array:
    """Return R of the QR factorisation of one block."""
    return triangle(sums.reshape(len(sums), -1))


@alone
def _block_vectors(sums: Array, *, to_short: Array) -> Array:
    """Return the short vectors of one block."""
    return sums.reshape(len(sums), -1) @ to_short


class BlockOperator:
    """Apply ``F_k = sum_rs cores[k][r, s] phi_r(S_x) Z psi_s(S_y)`` to thin blocks.

    As `propagation.chebyshev.FilterOperator` does. Between the two graphs, only the
    rows of items with links are sent.
    """

    def __init__(
        self, x: BlockGraph, Z: LinkMatrix, y: BlockGraph, separable: SeparableFilter
    ) -> None:
        self.x, self.Z, self.y, self.separable = x, Z, y, separable
        self.shape, self.dtype = Z.shape, x.dtype

    @property
    def T(self) -> "BlockOperator":
        """The operator of the transposed matrices."""
        f = self.separable
        cores = tuple(core.T for core in f.cores)
        turned = SeparableFilter(f.right, f.left, cores, f.error)
        return BlockOperator(self.y, self.Z.T, self.x, turned)

    def apply(self, block: Array, n_responses: int | None = None) -> list[Array]:
        """Return ``F_k @ block`` for the first responses, or for all."""
        linked = self._linked(self.y.filtered_sums(block, self.separable.right))
        cores = self.separable.cores[:n_responses]
        n_bytes = self.x.n_items * block.shape[1] * self.dtype.itemsize
        step = max(SLAB_BYTES // n_bytes, 1)
        products = []
        for i in range(0, len(cores), step):
            # The products of a few responses, side by side in one recurrence.
            own = cores[i : i + step]
            sources = self.x.map(_mix, linked, cores=own)
            total = self.x.filtered_sum(sources, self.separable.left)
            whole = np.concatenate(self.x.session.fetch(total))
            products += np.hsplit(whole, len(own))
        return products

    def _linked(self, smoothed: list[Any]) -> list[Any]:
        """Return ``Z @ smoothed`` in blocks of the rows of x."""
        used = np.flatnonzero(np.diff(self.Z.pairs.tocsc().indptr))
        own = [used[(a <= used) & (used < b)] - a for a, b in self.y.blocks]
        parts = self.y.results(_gather, smoothed, self.y.cut(self.Z.right), own)
        sums, rows = zip(*parts, strict=True)
        by_class = self.Z.core @ np.sum(sums, axis=0)
        values = np.concatenate(rows)
        pairs = self.Z.pairs.tocsr()[:, used]
        flat = values.reshape(len(used), -1)
        reached = [_reached(pairs[a:b], flat) for a, b in self.x.blocks]
        shape, left = values.shape[1:], self.x.cut(self.Z.left)
        shared = {"by_class": by_class, "shape": shape, "dtype": self.dtype}
        return self.x.map(_link, left, reached, **shared)


def _reached(pairs: sparse.csr_array, values: Array) -> tuple[Array, Array]:
    """Return the rows that have pairs, and their sums over pairs."""
    rows = np.flatnonzero(np.diff(pairs.indptr))
    return rows, pairs[rows] @ values


@alone
def _gather(smoothed: Array, right: Any, used: Array) -> tuple[Array, Array]:
    """Return the sums over the classes of a block, and the rows of linked items."""
    flat = smoothed.reshape(len(smoothed), -1)
    return np.asarray(right.T @ flat), smoothed[used]


@alone
def _link(
    left: Any,
    reached: tuple[Array, Array],
    *,
    by_class: Array,
    shape: tuple[int, int],
    dtype: Any,
) -> Array:
    """Return a block of rows of ``Z @ smoothed``."""
    rows, values = reached
    linked = np.asarray(left @ by_class)
    linked[rows] += values
    return linked.reshape(len(linked), *shape).astype(dtype)


@alone
def _mix(linked: Array, *, cores: Sequence[Array]) -> Array:
    """Return the products with cores, to which the polynomials of x are applied."""
    mixed = np.concatenate([np.matmul(core, linked) for core in cores], axis=2)
    return np.ascontiguousarray(mixed, dtype=linked.dtype)
