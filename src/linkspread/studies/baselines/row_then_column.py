"""Links propagated along the rows, then along the columns."""

from typing import Any

import numpy as np

from linkspread.graphs import normalize
from linkspread.ground.checks import check_count
from linkspread.ground.errors import LinkspreadError
from linkspread.links import LinkMatrix, Links
from linkspread.models.spreading import check_alphas
from linkspread.models.view_graphs import similarities
from linkspread.propagation.chebyshev import FilterOperator
from linkspread.propagation.filter import SeparableFilter
from linkspread.propagation.lowrank import sketch
from linkspread.propagation.parameters import check_tol
from linkspread.propagation.smoothing import smooth_over_graph, smoothing_polynomial
from linkspread.studies.baselines.correspondences import balanced_links
from linkspread.studies.baselines.graph_fits import fit_graphs
from linkspread.studies.baselines.matching import Chosen, PairMatching
from linkspread.studies.baselines.side import Side

Array = np.ndarray

# Length of vectors beyond which memory and search cost more than they bring.
MAX_RANK = 256


class RowThenColumn(PairMatching):
    """Match by links propagated row by row, then column by column.

    ``F = P_x Z P_y`` with ``P = (1 - alpha) (I - alpha S)^-1`` for each view: each of
    the two steps is label spreading [Zhou2004] with links in place of labels. The
    scheme is that of constraint propagation within one view [Lu2010] and of CMCP
    between two [Zhai2012]; unlike [Lu2015] the views do not listen to each other
    again. A new item is smoothed like a fitted one that influences no other.
    """

    def __init__(
        self,
        *,
        graph: Any = "knn",
        n_neighbors: Any = 30,
        metric: Any = "euclidean",
        bandwidth: Any = "local",
        weights: Any = "gaussian",
        alpha: Any = 0.2,
        balance: str | float = "auto",
        rank: int | None = None,
        tol: float = 1e-6,
        n_jobs: int | None = None,
    ) -> None:
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.bandwidth = bandwidth
        self.weights = weights
        self.alpha = alpha
        self.balance = balance
        self.rank = rank
        self.tol = tol
        self.n_jobs = n_jobs

    def _choose(self, tables: Any) -> Chosen:
        check_tol(self.tol)
        if self.rank is not None:
            check_count(self.rank, name="rank", remedy="None keeps what `tol` needs.")
        alphas = check_alphas(self.alpha, tables)
        return {view: {"alpha": alphas[view]} for view in tables}

    def _learn(self, tables: dict[str, Any], links: Links) -> dict[Any, Any]:
        alphas = {view: own["alpha"] for view, own in self._choose(tables).items()}
        return super()._learn(fit_graphs(self, tables, links, alphas), links)

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> tuple[Side, Side]:
        alpha = chosen[a]["alpha"], chosen[b]["alpha"]
        Z = balanced_links(links, a, b, balance=self.balance)
        rank = _largest_rank(Z, self.rank)
        if rank is None or Z.thin_width() <= rank:
            U, G, V = Z.thin()
            left = self._smooth(tables[a], U, alpha[0], key=(a, b)) @ G
            right = self._smooth(tables[b], V, alpha[1], key=(b, a))
        else:
            S_x, S_y = (normalize(tables[view].affinity_) for view in (a, b))
            left, right = propagate_few_directions(
                S_x, Z, S_y, alpha=alpha, tol=self.tol, rank=rank
            )
        return (
            _side(tables[a], left, a, alpha[0]),
            _side(tables[b], right, b, alpha[1]),
        )

    def _smooth(self, graph: Any, block: Any, alpha: float, *, key: Any) -> Array:
        """Return ``P @ block``, from the memory if it is there."""

        def smooth() -> tuple[Array, Any]:
            S = normalize(graph.affinity_)
            return smooth_over_graph(S, block, alpha=alpha, tol=self.tol / 4), graph

        # The graph is kept, so that nothing else can have its identity.
        return self._once((key, id(graph), alpha, self.tol, self.balance), smooth)[0]


def propagate_few_directions(
    S_x: Any,
    Z: LinkMatrix,
    S_y: Any,
    *,
    alpha: tuple[float, float],
    tol: float,
    rank: int,
) -> tuple[Array, Array]:
    """Return two thin factors of ``P_x Z P_y`` for links of many directions."""
    dtype = np.result_type(S_x.dtype, S_y.dtype)
    # The response p(l) q(m) is one product of polynomials, so there is no core to mix.
    p, q = (smoothing_polynomial(value, tol=tol / 4)[None] for value in alpha)
    separable = SeparableFilter(p, q, (np.ones((1, 1), dtype),), tol / 2)
    operator = FilterOperator(S_x.astype(dtype), Z, S_y.astype(dtype), separable)
    left, right, cores, _ = sketch(operator, tol=tol / 2, rank=rank)
    return left @ cores[0], right


class _Neighbors:
    """Smooth new items like fitted ones, over their neighbours alone."""

    def __init__(self, graph: Any, vectors: Array, view: str, alpha: float) -> None:
        self.graph, self.vectors = graph, vectors
        self.view, self.alpha = view, alpha

    def __call__(self, rows: Any) -> Array:
        if self.alpha == 0:
            raise LinkspreadError(
                f"new items of view {self.view!r} learn from their neighbours, and "
                "`alpha` is 0 there, so that nothing reaches them. Fit with a larger "
                "`alpha`."
            )
        S = similarities(self.graph, rows, view=self.view)
        return self.alpha * (S @ self.vectors)


def _side(graph: Any, vectors: Array, view: str, alpha: float) -> Side:
    """Return the side of a view with a graph."""
    return Side(vectors, _Neighbors(graph, vectors, view, alpha), graph.n_features_in_)


def _largest_rank(Z: LinkMatrix, rank: int | None) -> int | None:
    """Return how long vectors may be: any length for labels and in small views."""
    is_wide = Z.pairs.nnz > 0 and min(Z.shape) > MAX_RANK
    return MAX_RANK if rank is None and is_wide else rank
