"""The graph of each view: by name, by a function, or as it is given."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.graphs import (
    L1Graph,
    NeighborGraph,
    adjust_weights,
    normalize_rows,
)
from linkspread.graphs.distances import resolve_metric
from linkspread.graphs.memory import cached
from linkspread.graphs.neighbors import check_n_neighbors
from linkspread.graphs.normalize import check_graph
from linkspread.graphs.weights import WEIGHTS, check_bandwidth
from linkspread.ground.checks import check_name, naming
from linkspread.ground.errors import GraphError
from linkspread.links import Links
from linkspread.tables.validation import check_table, check_varied, per_view

Array = np.ndarray

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
