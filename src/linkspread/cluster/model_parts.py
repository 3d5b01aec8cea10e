"""The parts of an ordinary model, made of what the workers hold."""

from collections.abc import Mapping
from typing import Any

from linkspread.cluster.adjusting import adjust_blocks
from linkspread.cluster.coding import build_codes, join_reports
from linkspread.cluster.products import BlockGraph
from linkspread.cluster.spreading import spread_over_blocks
from linkspread.cluster.view_graphs import BuiltGraph, Neighborhoods, build_knn
from linkspread.graphs import L1Graph, NeighborGraph
from linkspread.graphs.adjust import links_within
from linkspread.links import as_link_matrix
from linkspread.models.spreading import Spreading
from linkspread.models.view_graphs import AdjustedGraph, GraphContext


def build_view_graph(
    near: Neighborhoods, context: GraphContext
) -> tuple[BuiltGraph, Any]:
    """Build the graph of a view by its name."""
    name, view, n_items = near.chosen["graph"], context.view, near.blocks.n_items
    if name in ("sr", "csr"):
        Z = None
        if name == "csr":
            Z = as_link_matrix(
                links_within(
                    context.links, view=view, balance="literal", n_items=n_items
                )
            )
        return build_codes(near, Z), Z
    built = build_knn(near)
    if name == "cwa":
        Z = context.links.within(view, balance=context.balance)
        spreading = {"alpha": context.alpha, "beta": context.beta, "tol": context.tol}
        built = adjust_blocks(built, Z, rank=context.rank, **spreading)
    return built, None


def model_graph(built: BuiltGraph, links: Any, X: Any, context: GraphContext) -> Any:
    """Return the graph of a view as a model keeps it."""
    near, session = built.near, built.near.session
    chosen = {n: near.chosen[n] for n in ("n_neighbors", "metric", "bandwidth")}
    common = {**chosen, "n_jobs": context.n_jobs, "verbose": context.verbose}
    widths, weights = near.widths, near.chosen["weights"]
    affinity = built.fetch()
    if built.told:
        report = join_reports(session.fetch(built.told), near.blocks.n_items)
        graph = L1Graph(kernel=weights, **common)
        return graph.resume(X, affinity, widths, links=links, report=report)
    base = affinity if built.base is None else built.base.fetch()
    neighbors = NeighborGraph(weights=weights, **common).resume(X, base, widths)
    neighbors.recall_ = near.recall
    return neighbors if built.base is None else AdjustedGraph(neighbors, affinity)


def fit_spread(
    spreading: Spreading, graphs: Mapping[str, BlockGraph], pair: tuple[str, str]
) -> Any:
    """Spread the links of two views, as `Spreading` does by itself."""
    if not spreading.keeps_vectors(*pair):
        return spreading.rows(*pair)
    _, Z, _ = spreading.arrows(*pair)
    blocks = graphs[pair[0]], Z, graphs[pair[1]]
    settings = spreading.settings(*pair)
    return spread_over_blocks(*blocks, rank=spreading.rank, **settings)
