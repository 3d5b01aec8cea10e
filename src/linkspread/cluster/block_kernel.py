"""The kernel of a graph whose products the workers of a cluster make."""

from typing import Any

import numpy as np
from scipy import sparse

from linkspread.cluster.products import BlockGraph
from linkspread.fitting.view_kernels import GraphKernel
from linkspread.propagation.smoothing import smoothing_polynomial

__all__ = ["BlockKernel"]

Array = np.ndarray


class BlockKernel(GraphKernel):
    """How easily items are reached from each other on a graph in blocks.

    Views whose kernel one machine would keep whole stay with the client.

    Parameters
    ----------
    graph : BlockGraph
    S : csr_array of shape (n, n)
        The same graph whole.
    alpha : float
    similar : callable
    unit_diagonal : bool
        All as in `GraphKernel`.
    """

    def __init__(
        self,
        graph: BlockGraph,
        S: sparse.csr_array,
        alpha: float,
        *,
        similar: Any,
        unit_diagonal: bool,
    ) -> None:
        self.graph = graph
        super().__init__(S, alpha, similar=similar, unit_diagonal=unit_diagonal)

    def __matmul__(self, block: Array) -> Array:
        """Return ``K @ block`` for a block of shape (n_items, c)."""
        if self._is_small:
            return super().__matmul__(block)
        divisors = self.lengths[:, None]
        polynomial = smoothing_polynomial(self.alpha, tol=self.tol)[None]
        sums = self.graph.filtered_sums(block / divisors, polynomial)
        smooth = np.concatenate(self.graph.session.fetch(sums))[:, 0]
        return smooth / divisors

    def plain(self) -> GraphKernel:
        """Return the same kernel without the cluster, as a model keeps it."""
        return GraphKernel.resume(
            self.S,
            self.alpha,
            similar=self.similar,
            tol=self.tol,
            lengths=self.lengths,
            plain_diagonal=self.plain_diagonal,
        )
