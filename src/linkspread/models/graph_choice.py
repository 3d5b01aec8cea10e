"""The graph of each view, by name, by function or as it is given."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.graphs import check_graph, normalize_rows
from linkspread.graphs.distances import resolve_metric
from linkspread.graphs.memory import known
from linkspread.graphs.neighbors import check_n_neighbors
from linkspread.graphs.weights import check_bandwidth, check_weights
from linkspread.ground.checks import naming
from linkspread.ground.errors import GraphError
from linkspread.links import Links
from linkspread.models.fit_report import GraphReport
from linkspread.models.graph_kinds import CONSTRAINED, GRAPHS, GraphContext
from linkspread.tables.validation import check_table, check_varied, per_view

# As many as `LinkSpreading` has by default.
N_NEIGHBORS = 30
PER_VIEW = ("graph", "n_neighbors", "metric", "bandwidth", "weights")


class GivenGraph:
    """A graph that someone else built."""

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


def choose_graphs(
    model: Any, tables: Mapping[str, Any], links: Links
) -> dict[str, dict[str, Any]]:
    """Return the parameters of each view's graph, all checked before any is built."""
    values = {name: per_view(getattr(model, name), tables, name=name)
              for name in PER_VIEW}  # fmt: skip
    choices = {view: {name: values[name][view] for name in PER_VIEW} for view in tables}
    for view, chosen in choices.items():
        with naming(view):
            _check_choice(n_items=tables[view].shape[0], **chosen)
            _check_links(chosen["graph"], links, view)
        if _is_named(chosen["graph"]) and _is_at_hand(tables[view]):
            check_varied(tables[view], view=view)
    return choices


def fitting_neighbors(tables: Mapping[str, Any]) -> dict[str, int]:
    """Return the usual number of neighbours, less where a view has few items."""
    return {view: min(N_NEIGHBORS, X.shape[0] - 1) for view, X in tables.items()}


def build_graphs(
    tables: Mapping[str, Any],
    choices: Mapping[str, Any],
    adjustments: Mapping[str, Any],
    **common: Any,
) -> tuple[dict[str, Any], dict[str, GraphReport]]:
    """Build the graph of every view, and report on each."""
    graphs, reports = {}, {}
    for view, X in tables.items():
        start = time.perf_counter()
        context = GraphContext(view=view, **adjustments[view], **common)
        graphs[view] = build_graph(X=X, context=context, **choices[view])
        seconds = time.perf_counter() - start
        reports[view] = GraphReport.of(graphs[view].affinity_, seconds)
    return graphs, reports


def build_graph(graph: Any, X: Any, *, context: GraphContext, **parameters: Any) -> Any:
    """Build the graph of one view."""

    def build() -> Any:
        with naming(context.view):
            return _build(graph, X, context, parameters)

    return (
        known(X, ("graph", graph, parameters), build)
        if _is_repeatable(graph)
        else build()
    )


def similarities(fitted: Any, rows: Any, *, view: str) -> sparse.csr_array:
    """Return the normalised similarities of new items to the fitted ones."""
    given = isinstance(fitted, GivenGraph)
    n_features = None if given else fitted.n_features_in_
    rows = check_table(rows, view=view, n_features=n_features)
    degrees = fitted.affinity_.sum(axis=1, dtype=np.float64)
    with naming(view):
        return normalize_rows(fitted.extend(rows), degrees)


def _is_named(graph: Any) -> bool:
    """Tell whether a graph is built from the table of its view."""
    return isinstance(graph, str) and graph in GRAPHS


def _is_at_hand(table: Any) -> bool:
    """Tell a table from one of which only the shape is here."""
    return isinstance(table, np.ndarray) or sparse.issparse(table)


def _is_repeatable(graph: Any) -> bool:
    """Tell whether a graph depends on its table and parameters alone."""
    return _is_named(graph) and graph not in CONSTRAINED


def _check_choice(
    graph: Any,
    n_neighbors: Any,
    metric: Any,
    bandwidth: Any,
    weights: Any,
    n_items: int,
) -> None:
    """Refuse the name of an unknown graph, and wrong parameters of a known one."""
    if graph is None or (
        isinstance(graph, str) and graph not in (*GRAPHS, "precomputed")
    ):
        raise GraphError(
            f"`graph` must be one of {[*GRAPHS, 'precomputed']}, a function or a "
            f"matrix, got {graph!r}. Use 'knn' if in doubt."
        )
    if not isinstance(graph, str) or graph == "precomputed":
        return
    if n_items == 1:
        raise GraphError(
            "neighbours must be other items, and there are none, got 1 sample. "
            "Add items."
        )
    check_n_neighbors(n_neighbors, n_items, include_self=False)
    resolve_metric(metric)
    check_bandwidth(bandwidth)
    check_weights(weights)


def _check_links(graph: Any, links: Links, view: str) -> None:
    """Refuse a graph that needs links within its view where there are none."""
    if isinstance(graph, str) and graph in CONSTRAINED:
        if not links.connects(view, view):
            raise GraphError(
                f"graph={graph!r} must have links within the view, and there are none. "
                "Give labels, or pairs of its items, or use graph='knn' or 'sr'."
            )


def _build(
    graph: Any, X: Any, context: GraphContext, parameters: dict[str, Any]
) -> Any:
    """Choose by kind: a name, a function, a matrix."""
    if _is_named(graph):
        return GRAPHS[graph](X, context, **parameters)
    if isinstance(graph, str):
        return GivenGraph(X)
    given = GivenGraph(graph(X) if callable(graph) else graph)
    n_graph, n_items = given.affinity_.shape[0], np.shape(X)[0]
    if n_graph != n_items:
        raise GraphError(
            f"`graph` must have one row per item, {n_items:,}, got {n_graph:,}. "
            "Build it from the same table."
        )
    return given
