"""Baselines on the graphs of `LinkSpreading`: propagation view by view."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from linkspread.graphs import normalize
from linkspread.ground.checks import check_count, check_name
from linkspread.ground.errors import LinkspreadError
from linkspread.links import LinkMatrix, Links
from linkspread.models.spreading import check_adjustment, check_alphas
from linkspread.models.view_graphs import (
    PER_VIEW,
    build_graphs,
    choose_graphs,
    similarities,
)
from linkspread.propagation.chebyshev import (
    FilterOperator,
    smooth_over_graph,
    smoothing_polynomial,
)
from linkspread.propagation.exact import check_tol
from linkspread.propagation.filter import SeparableFilter
from linkspread.propagation.spread import sketch
from linkspread.studies.baselines.correspondences import (
    balanced_links,
    class_memberships,
)
from linkspread.studies.baselines.matching import Chosen, PairMatching, ViewMatching
from linkspread.studies.baselines.side import SCORES, Side, Steps, share_rows

Array = np.ndarray

# Beta of the links within a view for graph="cwa"; baselines have no such parameter.
ADJUSTMENT_BETA = 0.95
# Most dimensions of vectors.
MAX_RANK = 256


def _fit_graphs(
    model: Any, tables: dict[str, Any], links: Links, chosen: Chosen
) -> dict[str, Any]:
    """Build the graphs of all views, as `LinkSpreading` builds them."""
    alphas = {view: own["alpha"] for view, own in chosen.items()}
    graphs, _ = build_graphs(
        tables,
        choose_graphs(model, tables, links),
        check_adjustment(None, alphas, ADJUSTMENT_BETA),
        links=links,
        balance="auto",
        rank=None,
        tol=model.tol,
        n_jobs=model.n_jobs,
        verbose=False,
    )
    return graphs


@dataclass(kw_only=True, eq=False, repr=False)
class LabelSpreadingMatching(ViewMatching):
    """Match by labels propagated within each view [Zhou2004].

    Labels are propagated by ``(1 - alpha) (I - alpha S)^-1 U`` in each view. The
    rows are scaled to sum 1 and compared by their inner product, the probability that
    two items are of the same class. This is scikit-learn's `LabelSpreading` on the
    graphs of `LinkSpreading`, in closed form. A new item has the mean distribution of
    its neighbours, weighted by affinity.
    """

    BEFORE: ClassVar[tuple[str, ...]] = (*PER_VIEW, "n_jobs", "alpha")

    graph: Any = "knn"
    n_neighbors: Any = 30
    metric: Any = "euclidean"
    bandwidth: Any = "local"
    weights: Any = "gaussian"
    alpha: Any = 0.2
    score: str = "dot"
    tol: float = 1e-8
    n_jobs: int | None = None

    def _choose(self, tables: Any) -> Chosen:
        check_name(self.score, SCORES, name="score")
        check_tol(self.tol)
        alphas = check_alphas(self.alpha, tables)
        return {view: {"alpha": alphas[view]} for view in tables}

    def _learn(self, tables: dict[str, Any], links: Links) -> dict[Any, Any]:
        graphs = _fit_graphs(self, tables, links, self._choose(tables))
        return super()._learn(graphs, links)

    def _learn_view(self, X: Any, links: Links, view: str, **chosen: Any) -> Side:
        # X is the graph of the view here.
        compare = SCORES[self.score]
        labels = class_memberships(links, view)
        S = normalize(X.affinity_)
        distributions = share_rows(smooth_over_graph(S, labels, tol=self.tol, **chosen))
        embed = Steps(_NeighborAverage(X, distributions), share_rows, compare)
        return Side(compare(distributions), embed, X.n_features_in_)


class _NeighborAverage:
    """Distributions of new items: sums over fitted neighbours, by affinity."""

    def __init__(self, graph: Any, distributions: Array) -> None:
        self.graph, self.distributions = graph, distributions

    def __call__(self, rows: Any) -> Array:
        return self.graph.extend(rows) @ self.distributions


@dataclass(kw_only=True, eq=False, repr=False)
class RowThenColumn(PairMatching):
    """Match by links propagated row by row, then column by column.

    ``F = P_x Z P_y`` with ``P = (1 - alpha) (I - alpha S)^-1`` for each view: each of
    the two steps is label spreading [Zhou2004] with links in place of labels. The
    scheme is that of constraint propagation within one view [Lu2010] and of CMCP
    between two [Zhai2012]; unlike in [Lu2015], the second step does not influence the
    first. A new item is smoothed like a fitted one that influences no other.
    """

    graph: Any = "knn"
    n_neighbors: Any = 30
    metric: Any = "euclidean"
    bandwidth: Any = "local"
    weights: Any = "gaussian"
    alpha: Any = 0.2
    balance: str | float = "auto"
    rank: int | None = None
    tol: float = 1e-6
    n_jobs: int | None = None

    def _choose(self, tables: Any) -> Chosen:
        check_tol(self.tol)
        if self.rank is not None:
            check_count(self.rank, name="rank", remedy="None keeps what `tol` needs.")
        alphas = check_alphas(self.alpha, tables)
        return {view: {"alpha": alphas[view]} for view in tables}

    def _learn(self, tables: dict[str, Any], links: Links) -> dict[Any, Any]:
        graphs = _fit_graphs(self, tables, links, self._choose(tables))
        return super()._learn(graphs, links)

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> Sequence[Side]:
        # The tables are the graphs of the views here.
        alpha = chosen[a]["alpha"], chosen[b]["alpha"]
        Z = balanced_links(links, a, b, balance=self.balance)
        rank = self.rank
        if rank is None and Z.pairs.nnz > 0 and min(Z.shape) > MAX_RANK:
            rank = MAX_RANK
        if rank is None or Z.thin_width() <= rank:
            U, G, V = Z.thin()
            left = self._smooth(tables[a], U, alpha[0], key=(a, b)) @ G
            right = self._smooth(tables[b], V, alpha[1], key=(b, a))
        else:
            S_x, S_y = (normalize(tables[view].affinity_) for view in (a, b))
            left, right = propagate_few_directions(
                S_x, Z, S_y, alpha=alpha, tol=self.tol, rank=rank
            )
        return tuple(
            Side(vectors, _Neighbors(graph, vectors, view, own), graph.n_features_in_)
            for graph, vectors, view, own in (
                (tables[a], left, a, alpha[0]),
                (tables[b], right, b, alpha[1]),
            )
        )

    def _smooth(self, graph: Any, block: Any, alpha: float, *, key: Any) -> Array:
        """Return ``P @ block``, from the memory if possible."""

        def smooth() -> tuple[Array, Any]:
            S = normalize(graph.affinity_)
            return smooth_over_graph(S, block, alpha=alpha, tol=self.tol / 4), graph

        # The graph is kept alive, so that its `id` stays unique.
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
    """Return two thin factors of ``P_x Z P_y`` for links of high rank."""
    dtype = np.result_type(S_x.dtype, S_y.dtype)
    # The response p(l) q(m) is one product of polynomials, so there is no core.
    p, q = (smoothing_polynomial(value, tol=tol / 4)[None] for value in alpha)
    separable = SeparableFilter(p, q, (np.ones((1, 1), dtype),), tol / 2)
    operator = FilterOperator(S_x.astype(dtype), Z, S_y.astype(dtype), separable)
    left, right, cores, _ = sketch(operator, tol=tol / 2, rank=rank)
    return left @ cores[0], right


class _Neighbors:
    """Smooth new items by their neighbours."""

    def __init__(self, graph: Any, vectors: Array, view: str, alpha: float) -> None:
        self.graph, self.vectors = graph, vectors
        self.view, self.alpha = view, alpha

    def __call__(self, rows: Any) -> Array:
        if self.alpha == 0:
            raise LinkspreadError(
                f"`alpha` of view {self.view!r} must be above 0 for new items, which "
                "learn from their neighbours alone, got 0. Fit with a larger `alpha`."
            )
        S = similarities(self.graph, rows, view=self.view)
        return self.alpha * (S @ self.vectors)
