"""The graphs of the views, and the propagation of links along them."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from linkspread.graphs import (
    L1Graph,
    NeighborGraph,
    adjust_weights,
    normalize,
    normalize_rows,
)
from linkspread.graphs.distances import resolve_metric
from linkspread.graphs.knn import WEIGHTS, check_bandwidth
from linkspread.graphs.neighbors import cached, check_n_neighbors
from linkspread.graphs.normalize import check_graph
from linkspread.ground.checks import check_count, check_name, naming
from linkspread.ground.errors import GraphError, LinkspreadError
from linkspread.ground.notebook import ShownAsText
from linkspread.ground.progress import format_seconds
from linkspread.links import Items, Links, as_link_matrix
from linkspread.links.collection import choose_links
from linkspread.links.matrix import Balance, check_balance
from linkspread.propagation import Spread, spread_links
from linkspread.propagation.exact import (
    check_alpha_pair,
    check_beta,
    check_tol,
    same_precision,
)
from linkspread.propagation.rows import (
    ChainedRows,
    ScoreRows,
    SpreadRows,
    has_short_vectors,
)
from linkspread.tables.validation import (
    Views,
    check_table,
    check_varied,
    check_views,
    per_view,
)

Array = np.ndarray
ViewPair = tuple[str, str]
Scores = Spread | ScoreRows

# The default of `LinkSpreading`.
N_NEIGHBORS = 30
# Graphs by name that need links within their view.
CONSTRAINED = ("cwa", "csr")
# Checks of the parameters of a graph by name, given the number of items.
CONSTRAINTS: Mapping[str, Callable[[Any, int], Any]] = {
    "n_neighbors": check_n_neighbors,
    "metric": lambda metric, n: resolve_metric(metric),
    "bandwidth": lambda bandwidth, n: check_bandwidth(bandwidth),
    "weights": lambda weights, n: check_name(
        weights, WEIGHTS, name="weights", error=GraphError
    ),
}
PER_VIEW = ("graph", *CONSTRAINTS)


@dataclass(frozen=True)
class GraphContext:
    """The input of a graph besides the table of its view."""

    view: str
    links: Links
    alpha: float
    beta: float
    balance: str | float
    rank: int | None
    tol: float
    n_jobs: int | None
    verbose: bool


class GivenGraph:
    """A graph that the user gave."""

    def __init__(self, W: Any) -> None:
        self.affinity_ = check_graph(W)
        self.n_features_in_ = self.affinity_.shape[0]

    def extend(self, rows: Any) -> sparse.csr_array:
        """Return the affinities of new items to the fitted ones, as given."""
        rows = sparse.csr_array(rows)
        if rows.shape[1] != self.n_features_in_:
            raise GraphError(
                "where the graph is given, new items must be rows of affinities to "
                f"the {self.n_features_in_:,} fitted items, got {rows.shape[1]:,} "
                "columns. Compute them as the graph was computed."
            )
        if rows.nnz and rows.data.min() < 0:
            raise GraphError(
                f"affinities of new items must be at least 0, got {rows.data.min()}. "
                "Give similarities, not distances."
            )
        return rows


class AdjustedGraph:
    """A graph of neighbours whose weights were adjusted to links (CWA)."""

    def __init__(self, neighbors: NeighborGraph, affinity: sparse.csr_array) -> None:
        self.neighbors = neighbors
        self.affinity_ = affinity
        self.n_features_in_ = neighbors.n_features_in_

    def extend(self, Q: Any) -> sparse.csr_array:
        """Return the affinities of new items, which no link can have adjusted."""
        return self.neighbors.extend(Q)


FittedGraph = NeighborGraph | L1Graph | AdjustedGraph | GivenGraph


def _build_knn(X: Any, context: GraphContext, **parameters: Any) -> NeighborGraph:
    """Build the graph of nearest neighbours."""
    graph = NeighborGraph(**parameters, n_jobs=context.n_jobs, verbose=context.verbose)
    return graph.fit(X)


def _build_cwa(X: Any, context: GraphContext, **parameters: Any) -> AdjustedGraph:
    """Adjust the graph of nearest neighbours to the links within the view."""
    neighbors = _build_knn(X, context, **parameters)
    adjusted = adjust_weights(
        neighbors.affinity_,
        context.links.within(context.view, balance=context.balance),
        alpha=context.alpha,
        beta=context.beta,
        tol=context.tol,
        rank=context.rank,
    )
    return AdjustedGraph(neighbors, adjusted)


def _build_sr(
    X: Any, context: GraphContext, *, weights: str, links: Any = None, **parameters: Any
) -> L1Graph:
    """Build the graph of sparse codes."""
    graph = L1Graph(
        kernel=weights, **parameters, n_jobs=context.n_jobs, verbose=context.verbose
    )
    return graph.fit(X, links, view=context.view)


def _build_csr(X: Any, context: GraphContext, **parameters: Any) -> L1Graph:
    """Build the graph of sparse codes that the links constrain."""
    return _build_sr(X, context, links=context.links, **parameters)


GRAPHS: dict[str, Callable[..., Any]] = {
    "knn": _build_knn,
    "sr": _build_sr,
    "cwa": _build_cwa,
    "csr": _build_csr,
}


def is_named(graph: Any) -> bool:
    """Return whether a graph is built by name from the table of its view."""
    return isinstance(graph, str) and graph in GRAPHS


def choose_graphs(
    model: Any, tables: Mapping[str, Any], links: Links
) -> dict[str, dict[str, Any]]:
    """Return the parameters of each view's graph, all checked before any is built."""
    values = {n: per_view(getattr(model, n), tables, name=n) for n in PER_VIEW}
    choices = {view: {name: values[name][view] for name in PER_VIEW} for view in tables}
    for view, chosen in choices.items():
        X, graph = tables[view], chosen["graph"]
        with naming(view):
            _check_choice(chosen, X.shape[0])
            if is_named(graph) and graph in CONSTRAINED:
                _check_links_within(links, view, graph)
        # A view on a cluster has no table here.
        if is_named(graph) and (isinstance(X, np.ndarray) or sparse.issparse(X)):
            check_varied(X, view=view)
    return choices


def fitting_neighbors(tables: Mapping[str, Any]) -> dict[str, int]:
    """Return the usual number of neighbours, less where a view has few items."""
    return {view: min(N_NEIGHBORS, X.shape[0] - 1) for view, X in tables.items()}


def build_graphs(
    tables: Mapping[str, Any],
    choices: Mapping[str, Any],
    adjustments: Mapping[str, Any],
    **common: Any,
) -> tuple[dict[str, FittedGraph], dict[str, float]]:
    """Build the graph of every view, and return the seconds that each took."""
    graphs, seconds = {}, {}
    for view, X in tables.items():
        start = time.perf_counter()
        context = GraphContext(view=view, **adjustments[view], **common)
        graphs[view] = build_graph(X, context, **choices[view])
        seconds[view] = time.perf_counter() - start
    return graphs, seconds


def build_graph(X: Any, context: GraphContext, graph: Any, **parameters: Any) -> Any:
    """Build the graph of one view, or take the one in memory."""

    def build() -> FittedGraph:
        with naming(context.view):
            if is_named(graph):
                return GRAPHS[graph](X, context, **parameters)
            if isinstance(graph, str):  # precomputed
                return GivenGraph(X)
            given = GivenGraph(graph(X) if callable(graph) else graph)
            n_graph, n_items = given.affinity_.shape[0], np.shape(X)[0]
            if n_graph != n_items:
                raise GraphError(
                    f"`graph` must have one row per item, {n_items:,}, got "
                    f"{n_graph:,}. Build it from the same table."
                )
            return given

    # A graph that links constrain depends on more than its table and parameters.
    if is_named(graph) and graph not in CONSTRAINED:
        return cached(X, ("graph", graph, parameters), build)
    return build()


def similarities(fitted: Any, rows: Any, *, view: str) -> sparse.csr_array:
    """Return the normalised similarities of new items to the fitted ones."""
    given = isinstance(fitted, GivenGraph)
    n_features = None if given else fitted.n_features_in_
    rows = check_table(rows, view=view, n_features=n_features)
    degrees = fitted.affinity_.sum(axis=1, dtype=np.float64)
    with naming(view):
        return normalize_rows(fitted.extend(rows), degrees)


def fitted_table(graph: Any) -> Any:
    """Return the table that a graph was built from, or the graph that was given."""
    if isinstance(graph, GivenGraph):
        return graph.affinity_
    if isinstance(graph, AdjustedGraph):
        graph = graph.neighbors
    return graph._index.items


def changed_graph(graph: Any, X: Any, places: Array, *, view: str) -> FittedGraph:
    """Return the graph of a view with new or changed items, or without some.

    `places` has the earlier position of each item, -1 where it is new or changed.
    """
    changed = np.flatnonzero(places < 0)
    if len(changed):
        return graph.renew(X, changed)
    if isinstance(graph, GivenGraph):
        return GivenGraph(graph.affinity_[places][:, places])
    if not isinstance(graph, NeighborGraph):
        raise GraphError(
            "items can be removed only from a view with graph='knn' or a graph that "
            f"was given, and {view!r} has another. Fit again without them."
        )
    n_before = graph.affinity_.shape[0]
    return graph.without(np.setdiff1d(np.arange(n_before), places))


def _check_choice(chosen: Mapping[str, Any], n_items: int) -> None:
    """Refuse the name of an unknown graph, and wrong parameters of a known one."""
    graph = chosen["graph"]
    if graph is None or (
        isinstance(graph, str) and graph not in (*GRAPHS, "precomputed")
    ):
        raise GraphError(
            f"`graph` must be one of {[*GRAPHS, 'precomputed']}, a function or a "
            f"matrix, got {graph!r}. Use 'knn' if in doubt."
        )
    if not is_named(graph):
        return
    if n_items == 1:
        raise GraphError(
            "a view must have two items or more to have neighbours, got 1 sample. "
            "Add items."
        )
    for name, check in CONSTRAINTS.items():
        check(chosen[name], n_items)


def _check_links_within(links: Links, view: str, graph: str) -> None:
    """Refuse a graph that needs links within its view where there are none."""
    if not links.connects(view, view):
        raise GraphError(
            f"graph={graph!r} must have links within the view, got none. Give labels, "
            "or pairs of its items, or use graph='knn' or 'sr'."
        )


# Relative error that single precision alone causes.
ROUNDING = 1e-5


def _check_rank(rank: Any) -> None:
    """Refuse a `rank` that is neither None nor a positive integer."""
    if rank is not None:
        check_count(rank, name="rank", remedy="None keeps what `tol` needs.")


# Checks of the parameters that all views share; `alpha` is given by view.
SHARED: Mapping[str, Callable[[Any], Any]] = {
    "beta": check_beta,
    "tol": check_tol,
    "balance": check_balance,
    "rank": _check_rank,
}


def check_parameters(model: Any) -> None:
    """Refuse wrong values of the parameters that all views share."""
    for name, check in SHARED.items():
        check(getattr(model, name))


def check_alphas(alpha: Any, views: Mapping[str, Any]) -> dict[str, float]:
    """Return how far links spread in each view."""
    alphas = {}
    for view, value in per_view(alpha, views, name="alpha").items():
        with naming(view):
            alphas[view] = check_alpha_pair((value, value))[0]
    return alphas


def check_adjustment(
    adjustment: Any, alphas: Mapping[str, float], beta: float
) -> dict[str, dict[str, float]]:
    """Return how links spread within each view when they adjust its graph."""
    given = {} if adjustment is None else adjustment
    if not isinstance(given, Mapping) or given.keys() - {"alpha", "beta"}:
        raise LinkspreadError(
            "`adjustment` must be a dict with 'alpha' and 'beta' at most, got "
            f'{adjustment!r:.60}. Write {{"alpha": 0.1}} or leave it at None.'
        )
    own = check_alphas(given["alpha"], alphas) if "alpha" in given else alphas
    own_beta = check_beta(given.get("beta", beta))
    return {view: {"alpha": own[view], "beta": own_beta} for view in alphas}


class Prepared(NamedTuple):
    """The checked input of a fit."""

    read: Views
    items: dict[str, Items]
    links: Links
    choices: dict[str, Any]
    alphas: dict[str, float]


def prepare(
    model: Any,
    views: Any,
    links: Any,
    *,
    ids: Mapping[str, Any] | None = None,
    columns: Mapping[str, Any] | None = None,
    unknown: str = "raise",
) -> Prepared:
    """Read and check everything that a fit takes, before any work."""
    check_parameters(model)
    read = check_views(views, ids, columns)
    items = {view: Items(own, view=view) for view, own in read.ids.items()}
    resolved = choose_links(links, read.tables).resolve(items, unknown=unknown)
    choices = choose_graphs(model, read.tables, resolved)
    alphas = check_alphas(model.alpha, read.tables)
    return Prepared(read, items, resolved, choices, alphas)


@dataclass(frozen=True)
class GraphReport:
    """The graph of one view."""

    n_items: int
    n_edges: int
    n_isolated: int
    mean_degree: float
    seconds: float

    @classmethod
    def of(cls, W: Any, seconds: float) -> "GraphReport":
        """Count the edges of a graph."""
        degrees = np.diff(W.indptr) - (W.diagonal() != 0)
        return cls(
            n_items=W.shape[0],
            n_edges=int(degrees.sum()) // 2,
            n_isolated=int(np.sum(degrees == 0)),
            mean_degree=float(degrees.mean()),
            seconds=seconds,
        )


@dataclass(frozen=True)
class SpreadReport:
    """The propagation between two views; `rank` is None for exact rows."""

    rank: int | None
    error: float
    seconds: float

    @classmethod
    def of(cls, scores: Any, seconds: float) -> "SpreadReport":
        """Report on the scores of two views, a Spread or SpreadRows."""
        by_row = isinstance(scores, SpreadRows)
        rank = None if by_row else max(scores.core.shape)
        return cls(rank, scores.error, seconds)

    def __str__(self) -> str:
        size = "exact rows" if self.rank is None else f"{self.rank:,} dimensions"
        return f"{size}, error {self.error:.1e}"


@dataclass
class FitReport(ShownAsText):
    """Columns, graphs and propagations of a fit; print it."""

    graphs: dict[str, GraphReport] = field(default_factory=dict)
    spreads: dict[ViewPair, SpreadReport] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)

    def inexact(self, tol: float) -> list[str]:
        """Return sentences on the scores that are less exact than `tol`."""
        return [
            f"scores of {a} and {b} are cut to {s.rank:,} dimensions: their relative "
            f"error is {s.error:.2g}, more than tol={tol:g}."
            for (a, b), s in self.spreads.items()
            if s.rank is not None and s.error > max(2 * tol, ROUNDING)
        ]

    def __str__(self) -> str:
        lines = [f"{view}: {columns}" for view, columns in self.columns.items()]
        lines += [
            f"{view}: {g.n_items:,} items, {g.n_edges:,} edges, "
            f"{g.mean_degree:.1f} neighbours each, {g.n_isolated:,} isolated, "
            f"{format_seconds(g.seconds)}"
            for view, g in self.graphs.items()
        ]
        lines += [
            f"{a} and {b}: {s}, {format_seconds(s.seconds)}"
            for (a, b), s in self.spreads.items()
        ]
        return "\n".join(lines)


@dataclass(kw_only=True, frozen=True)
class Spreading:
    """Propagate the links between two views by the two-sided filter."""

    links: Links
    graphs: Mapping[str, Any]
    normalized: Mapping[str, sparse.csr_array]
    alphas: Mapping[str, float]
    beta: float
    balance: Balance
    rank: int | None
    tol: float

    @classmethod
    def of(
        cls,
        model: Any,
        links: Links,
        graphs: Mapping[str, Any],
        alphas: Mapping[str, float],
        *,
        normalized: Mapping[str, sparse.csr_array] | None = None,
    ) -> "Spreading":
        """Return the propagation with the parameters of a model."""
        if normalized is None:
            normalized = {
                view: normalize(own.affinity_) for view, own in graphs.items()
            }
        shared = {name: getattr(model, name) for name in SHARED}
        return cls(
            links=links, graphs=graphs, normalized=normalized, alphas=alphas, **shared
        )

    def scores(self, source: str, target: str) -> Spread | SpreadRows:
        """Return the propagated links of two views."""
        if not self.keeps_vectors(source, target):
            return self.rows(source, target)
        S_x, Z, S_y = self.operands(source, target)
        settings = self.settings(source, target)
        return spread_links(S_x, Z, S_y, rank=self.rank, **settings)

    def timed_scores(
        self, source: str, target: str
    ) -> tuple[Spread | SpreadRows, SpreadReport]:
        """Return the propagated links of two views, and a report about them."""
        start = time.perf_counter()
        scores = self.scores(source, target)
        return scores, SpreadReport.of(scores, time.perf_counter() - start)

    def keeps_vectors(self, source: str, target: str) -> bool:
        """Return whether scores come from vectors, not from rows on demand."""
        _, Z, _ = self.operands(source, target)
        settings = self.settings(source, target)
        return self.rank is not None or has_short_vectors(Z, **settings)

    def rows(self, source: str, target: str) -> SpreadRows:
        """Return the scores of two views as rows that are computed on demand."""
        S_x, Z, S_y = self.operands(source, target)
        # Here, so that it is not done again for every judgement.
        S_x, S_y = same_precision(S_x, S_y)
        settings = self.settings(source, target)
        return SpreadRows(S_x, as_link_matrix(Z), S_y, **settings)

    def similarities(self, rows: Any, view: str) -> sparse.csr_array:
        """Return the normalised similarities of new items to the fitted ones."""
        if self.alphas[view] == 0:
            raise LinkspreadError(
                f"`alpha` of view {view!r} must be above 0 for new items, which learn "
                "from their neighbours alone, got 0. Fit with a larger `alpha`."
            )
        return similarities(self.graphs[view], rows, view=view)

    def relink(
        self, links: Links, scores: Mapping[ViewPair, Any]
    ) -> tuple["Spreading", dict[ViewPair, SpreadRows]]:
        """Return the propagation with other links, and the scores that change."""
        after = replace(self, links=links)
        return after, {
            pair: after.rows(*pair)
            for pair in scores
            if (links.judged(*pair) - self.links.judged(*pair)).count_nonzero()
        }

    def operands(self, source: str, target: str) -> tuple[Any, Any, Any]:
        """Return (S_x, Z, S_y): both normalised graphs and the links between them."""
        Z = self.links.between(source, target, balance=self.balance)
        return self.normalized[source], Z, self.normalized[target]

    def settings(self, source: str, target: str) -> dict[str, Any]:
        """Return the parameters of the propagation between two views."""
        alpha = (self.alphas[source], self.alphas[target])
        return {"alpha": alpha, "beta": self.beta, "tol": self.tol}


def chain_scores(steps: list[Scores]) -> Scores:
    """Return the scores of two views without links, through views in between.

    Such as ``F[audio, image] = F[audio, text] @ F[text, image]``.
    """

    def multiply(first: Scores, second: Scores) -> Scores:
        if isinstance(first, Spread) and isinstance(second, Spread):
            return first.times(second)
        return ChainedRows(first, second)

    return reduce(multiply, steps)
