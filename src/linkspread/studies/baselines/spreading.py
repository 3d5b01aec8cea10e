"""Baselines on graphs: propagation view by view, and spectral embeddings."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh

from linkspread.graphs import NeighborGraph, normalize
from linkspread.graphs.neighbors import cached
from linkspread.graphs.normalize import row_sums
from linkspread.ground.checks import check_count, check_name, check_positive, naming
from linkspread.ground.errors import LinkspreadError
from linkspread.links import Links
from linkspread.models.spreading import (
    PER_VIEW,
    build_graphs,
    check_adjustment,
    check_alphas,
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
from linkspread.studies.baselines.correlation import (
    Projection,
    canonical_projections,
    linked_covariances,
)
from linkspread.studies.baselines.inputs import balanced_links, class_memberships
from linkspread.studies.baselines.matching import (
    Chosen,
    Matching,
    PairMatching,
    Side,
    Steps,
    ViewMatching,
    unit_rows,
)
from linkspread.studies.baselines.semantic_matching import SCORES

Array = np.ndarray

# Beta of the links within a view for graph="cwa"; baselines have no such parameter.
ADJUSTMENT_BETA = 0.95
# Most dimensions of vectors.
MAX_RANK = 256
# Smallest eigenvalue, as new items are divided by it.
LEAST_EIGENVALUE = 1e-3
# With fewer items per eigenvector, computing all eigenvectors is as fast.
FEW_ITEMS = 4


@dataclass(kw_only=True, eq=False, repr=False)
class GraphMatching(Matching):
    """A baseline that learns from the graphs of `LinkSpreading`, not from tables."""

    PER_VIEW: ClassVar[tuple[str, ...]] = (*PER_VIEW, "alpha")

    graph: Any = "knn"
    n_neighbors: Any = 30
    metric: Any = "euclidean"
    bandwidth: Any = "local"
    weights: Any = "gaussian"
    alpha: Any = 0.2
    tol: float = 1e-6
    n_jobs: int | None = None

    def _inputs(self, tables: dict[str, Any], links: Links) -> dict[str, Any]:
        check_tol(self.tol)
        alphas = check_alphas(self.alpha, tables)
        graphs, _ = build_graphs(
            tables,
            choose_graphs(self, tables, links),
            check_adjustment(None, alphas, ADJUSTMENT_BETA),
            links=links,
            balance="auto",
            rank=None,
            tol=self.tol,
            n_jobs=self.n_jobs,
            verbose=False,
        )
        return graphs


@dataclass(kw_only=True, eq=False, repr=False)
class LabelSpreadingMatching(GraphMatching, ViewMatching):
    """Match by labels propagated within each view [Zhou2004].

    Labels are propagated by ``(1 - alpha) (I - alpha S)^-1 U`` in each view. The
    rows are scaled to sum 1 and compared by their inner product, the probability that
    two items are of the same class. This is scikit-learn's `LabelSpreading` on the
    graphs of `LinkSpreading`, in closed form. A new item has the mean distribution of
    its neighbours, weighted by affinity.
    """

    score: str = "dot"
    tol: float = 1e-8

    def _learn_view(self, X: Any, links: Links, view: str, **chosen: Any) -> Side:
        compare = SCORES[check_name(self.score, SCORES, name="score")]
        labels, S = class_memberships(links, view), normalize(X.affinity_)
        spread = smooth_over_graph(S, labels, tol=self.tol, alpha=chosen["alpha"])
        shares = share_rows(spread)
        embed = Steps(partial(_neighbor_sums, X, shares), share_rows, compare)
        return Side(embed, vectors=compare(shares))


def share_rows(vectors: Array) -> Array:
    """Scale rows of at least 0 to sum 1; rows of zeros stay."""
    sums = vectors.sum(axis=1, keepdims=True)
    return vectors / np.where(sums > 0, sums, 1.0)


def _neighbor_sums(graph: Any, distributions: Array, rows: Any) -> Array:
    """Return sums over the fitted neighbours of new items, by affinity."""
    return graph.extend(rows) @ distributions


@dataclass(kw_only=True, eq=False, repr=False)
class RowThenColumn(GraphMatching, PairMatching):
    """Match by links propagated row by row, then column by column.

    ``F = P_x Z P_y`` with ``P = (1 - alpha) (I - alpha S)^-1`` for each view: each of
    the two steps is label spreading [Zhou2004] with links in place of labels. The
    scheme is that of constraint propagation within one view [Lu2010] and of CMCP
    between two [Zhai2012]; unlike in [Lu2015], the second step does not influence the
    first. A new item is smoothed like a fitted one that influences no other.
    """

    balance: str | float = "auto"
    rank: int | None = None

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> Sequence[Side]:
        rank = self.rank
        if rank is not None:
            check_count(rank, name="rank", remedy="None keeps what `tol` needs.")
        Z = balanced_links(links, a, b, balance=self.balance)
        if rank is None and Z.pairs.nnz > 0 and min(Z.shape) > MAX_RANK:
            rank = MAX_RANK
        S = {view: normalize(tables[view].affinity_) for view in (a, b)}
        alpha = {view: chosen[view]["alpha"] for view in (a, b)}

        def smooth(view: str, block: Any) -> Array:
            key = a, b, view, repr(chosen[view]), self.tol, self.balance
            make = partial(smooth_over_graph, alpha=alpha[view], tol=self.tol / 4)
            return self._once(key, lambda: make(S[view], block))

        if rank is None or Z.thin_width() <= rank:
            U, G, V = Z.thin()
            left, right = smooth(a, U) @ G, smooth(b, V)
        else:
            # The response p(l) q(m) is one product of polynomials: there is no core.
            p, q = (smoothing_polynomial(alpha[v], tol=self.tol / 4)[None] for v in S)
            dtype = np.result_type(*(own.dtype for own in S.values()))
            S_x, S_y = (own.astype(dtype) for own in S.values())
            product = SeparableFilter(p, q, (np.ones((1, 1), dtype),), self.tol / 2)
            operator = FilterOperator.of(S_x, Z, S_y, product, width=64)
            left, right, cores, _ = sketch(operator, tol=self.tol / 2, rank=rank)
            left = left @ cores[0]
        return tuple(
            Side(
                partial(_smoothed_like_neighbors, tables[view], own, view, alpha[view]),
                vectors=own,
            )
            for view, own in ((a, left), (b, right))
        )


def _smoothed_like_neighbors(
    graph: Any, vectors: Array, view: str, alpha: float, rows: Any
) -> Array:
    """Return the vectors of new items, smoothed by their neighbours."""
    if alpha == 0:
        raise LinkspreadError(
            f"`alpha` of view {view!r} must be above 0 for new items, which learn from "
            "their neighbours alone, got 0. Fit with a larger `alpha`."
        )
    return alpha * (similarities(graph, rows, view=view) @ vectors)


@dataclass(kw_only=True, eq=False, repr=False)
class SpectralMatching(PairMatching):
    """Match by correlation analysis of spectral embeddings, as SUE [Yacobi2025].

    Each view is embedded by the leading eigenvectors of the random walk on its graph
    of neighbours, with all its items, matched or not. Canonical correlation analysis
    of the must-links, as in `CorrelationMatching`, then joins both spaces. SUE trains
    a network for the embeddings and aligns distributions afterwards; here eigenvectors
    are exact and there is no alignment.
    """

    PER_VIEW: ClassVar[tuple[str, ...]] = ("n_components", "n_neighbors", "metric")

    n_components: Any = 30
    n_neighbors: Any = 10
    metric: Any = "euclidean"
    reg: float = 0.1

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> Sequence[Side]:
        remedy = "The default is 0.1."
        reg = check_positive(self.reg, name="reg", remedy=remedy, zero=True)
        left, right = (_embed_once(tables[v], v, chosen[v]) for v in (a, b))
        cov = linked_covariances(left.vectors, right.vectors, links, a, b)
        W, V, strengths = canonical_projections(cov, None, reg=reg)
        sides = []
        for own, mean, weights in ((left, cov.mean_x, W), (right, cov.mean_y, V)):
            embed = Projection(own, mean, weights, strengths).unit_vectors
            vectors = unit_rows((own.vectors - mean) @ weights)
            sides.append(Side(embed, vectors=vectors))
        return sides


class SpectralEmbedding:
    """Leading eigenvectors of the random walk on a view's graph of neighbours.

    ``D^-1 W vectors = vectors diag(values)``, of mean square 1 by degree; a new item
    gets the mean of its neighbours divided by the eigenvalue, as holds for fitted ones.
    """

    def __init__(
        self, X: Any, *, n_components: int, n_neighbors: int, metric: Any
    ) -> None:
        wanted = check_count(
            n_components, name="n_components", remedy="The default is 30."
        )
        self.graph = NeighborGraph(n_neighbors, metric).fit(X)
        W = self.graph.affinity_
        degrees = row_sums(W)
        values, vectors = _leading(normalize(W), degrees, wanted)
        kept = values > LEAST_EIGENVALUE
        self.values = values[kept]
        roots = np.sqrt(np.where(degrees > 0, degrees, np.inf) / degrees.mean())
        self.vectors = np.sqrt(len(degrees)) * vectors[:, kept] / roots[:, None]

    def transform(self, rows: Any) -> Array:
        """Return the embeddings of new rows, of shape (n_rows, n_components)."""
        near = sparse.csr_array(self.graph.extend(rows))
        sums = row_sums(near)
        means = near @ self.vectors / np.where(sums > 0, sums, 1.0)[:, None]
        return means / self.values


def _embed_once(X: Any, view: str, own: dict[str, Any]) -> SpectralEmbedding:
    """Return the embedding of a view, which does not depend on links."""
    with naming(view):
        return cached(X, ("spectral", repr(own)), lambda: SpectralEmbedding(X, **own))


def _leading(
    S: sparse.csr_array, degrees: Array, n_components: int
) -> tuple[Array, Array]:
    """Return the largest eigenvalues and their vectors, largest first."""
    n_items = S.shape[0]
    S = S.astype(np.float64)
    if n_items <= FEW_ITEMS * n_components:
        values, vectors = np.linalg.eigh(S.toarray())
        return values[::-1][:n_components], vectors[:, ::-1][:, :n_components]
    # Each connected component has the eigenvalue 1. Iterations would miss some of equal
    # eigenvalues, so these eigenvectors are given explicitly and deflated.
    ones = _parts(S, degrees)[:, :n_components]
    n_left = n_components - ones.shape[1]
    if n_left == 0:
        return np.ones(n_components), ones
    rest = LinearOperator(
        S.shape, matvec=lambda x: S @ x - ones @ (ones.T @ x), dtype=np.float64
    )
    # A fixed start gives the same vectors each time.
    start = np.random.default_rng(0).standard_normal(n_items)
    values, vectors = eigsh(rest, n_left, which="LA", v0=start)
    order = np.argsort(-values)
    return (
        np.concatenate([np.ones(ones.shape[1]), values[order]]),
        np.hstack([ones, vectors[:, order]]),
    )


def _parts(S: sparse.csr_array, degrees: Array) -> Array:
    """Return the eigenvector of each connected component, the largest first."""
    part = connected_components(S, directed=False)[1]
    sizes = np.bincount(part)
    members = part[:, None] == np.argsort(-sizes, kind="stable")
    return unit_rows((members * np.sqrt(degrees)[:, None]).T).T
