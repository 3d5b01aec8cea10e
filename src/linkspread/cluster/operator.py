"""The filtered links as an operator on thin blocks, over graphs in blocks of rows."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.cluster.products import SLAB_BYTES, BlockGraph
from linkspread.cluster.session import alone
from linkspread.links import LinkMatrix
from linkspread.propagation.filter import SeparableFilter

Array = np.ndarray


class BlockOperator:
    """Apply ``F_k = sum_rs cores[k][r, s] phi_r(S_x) Z psi_s(S_y)`` to thin blocks.

    What `propagation.chebyshev.FilterOperator` does. Between the two graphs, only the
    rows of items with links travel.
    """

    def __init__(
        self, x: BlockGraph, Z: LinkMatrix, y: BlockGraph, separable: SeparableFilter
    ) -> None:
        self.x, self.Z, self.y, self.separable = x, Z, y, separable

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of row items and of column items."""
        return self.Z.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the products."""
        return self.x.dtype

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
        at_once = max(SLAB_BYTES // n_bytes, 1)
        parts = [cores[i : i + at_once] for i in range(0, len(cores), at_once)]
        return [product for part in parts for product in self._finish(part, linked)]

    def _finish(self, cores: Sequence[Array], linked: list[Any]) -> list[Array]:
        """Return the products of a few responses, side by side in one recurrence."""
        columns = [cores] * len(linked), linked
        sources = self.x.session.submit_each(self.x.blocks, _mix, *columns)
        total = self.x.filtered_sum(sources, self.separable.left)
        whole = np.concatenate(self.x.session.fetch(total))
        return np.hsplit(whole, len(cores))

    def _linked(self, smoothed: list[Any]) -> list[Any]:
        """Return ``Z @ smoothed`` in blocks of the rows of x."""
        used = np.flatnonzero(np.diff(self.Z.pairs.tocsc().indptr))
        own = [used[(a <= used) & (used < b)] - a for a, b in self.y.blocks]
        met = self.y.session.submit_each(
            self.y.blocks, _meet, smoothed, self.y.cut(self.Z.right), own
        )
        sums, rows = zip(*self.y.session.fetch(met), strict=True)
        by_class = self.Z.core @ np.sum(sums, axis=0)
        values = np.concatenate(rows)
        pairs = self.Z.pairs.tocsr()[:, used]
        flat = values.reshape(len(used), -1)
        reached = [_reached(pairs[a:b], flat) for a, b in self.x.blocks]
        link = partial(_link, by_class, values.shape[1], self.dtype)
        columns = self.x.cut(self.Z.left), reached
        return self.x.session.submit_each(self.x.blocks, link, *columns)


def _reached(pairs: sparse.csr_array, values: Array) -> tuple[Array, Array]:
    """Return the rows that pairs reach, and what reaches them."""
    rows = np.flatnonzero(np.diff(pairs.indptr))
    return rows, pairs[rows] @ values


@alone
def _meet(smoothed: Array, right: Any, used: Array) -> tuple[Array, Array]:
    """Return what the classes of a block gather, and the rows of linked items."""
    flat = smoothed.reshape(len(smoothed), -1)
    return np.asarray(right.T @ flat), smoothed[used]


@alone
def _link(
    by_class: Array, n_right: int, dtype: Any, left: Any, reached: tuple[Array, Array]
) -> Array:
    """Return a block of rows of ``Z @ smoothed``."""
    rows, values = reached
    linked = np.asarray(left @ by_class)
    linked[rows] += values
    return linked.reshape(len(linked), n_right, -1).astype(dtype)


@alone
def _mix(cores: Sequence[Array], linked: Array) -> Array:
    """Return what each polynomial of the first graph is applied to."""
    mixed = np.concatenate([np.matmul(core, linked) for core in cores], axis=2)
    return np.ascontiguousarray(mixed, dtype=linked.dtype)
