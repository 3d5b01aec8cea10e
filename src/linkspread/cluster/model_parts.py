"""The parts of an ordinary model, made of what the workers hold."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from scipy import sparse

from linkspread.cluster.adjusting import adjust_blocks
from linkspread.cluster.block_kernel import BlockKernel
from linkspread.cluster.coding import build_codes, join_reports
from linkspread.cluster.products import BlockGraph
from linkspread.cluster.spreading import spread_over_blocks
from linkspread.cluster.view_graphs import BuiltGraph, Neighborhoods, build_knn
from linkspread.estimators.graph_kinds import AdjustedGraph, GraphContext
from linkspread.estimators.objective import Objective
from linkspread.estimators.ridge_objective import RidgeObjective
from linkspread.estimators.similar_items import SimilarItems
from linkspread.estimators.spread_objective import SpreadObjective
from linkspread.graphs import L1Graph, NeighborGraph
from linkspread.graphs.within import links_within
from linkspread.links import Links, as_link_matrix

__all__ = [
    "build_view_graph",
    "fit_spread",
    "model_graph",
    "ridge_objective",
    "without_cluster",
]


def build_view_graph(
    near: Neighborhoods, context: GraphContext
) -> tuple[BuiltGraph, Any]:
    """Build the graph of a view by its name.

    Parameters
    ----------
    near : Neighborhoods
    context : GraphContext

    Returns
    -------
    built : BuiltGraph
    links : LinkMatrix or None
        Those within the view that took part in the codes.
    """
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
    """Return the graph of a view as a model keeps it.

    Parameters
    ----------
    built : BuiltGraph
    links : LinkMatrix or None
    X : ndarray of shape (n_items, n_features)
    context : GraphContext

    Returns
    -------
    graph : NeighborGraph, AdjustedGraph or L1Graph
    """
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
    objective: SpreadObjective, graphs: Mapping[str, BlockGraph], pair: tuple[str, str]
) -> Any:
    """Spread the links of two views, as the objective does by itself.

    Parameters
    ----------
    objective : SpreadObjective
    graphs : mapping from str to BlockGraph
    pair : tuple of two str

    Returns
    -------
    spread : Spread or SpreadRows
    """
    if not objective.keeps_vectors(*pair):
        return objective.rows(*pair)
    Z = objective.links.between(*pair, balance=objective.balance)
    return spread_over_blocks(
        graphs[pair[0]],
        Z,
        graphs[pair[1]],
        alpha=(objective.alphas[pair[0]], objective.alphas[pair[1]]),
        beta=objective.beta,
        tol=objective.tol,
        rank=objective.rank,
    )


def ridge_objective(
    model: Any,
    links: Links,
    graphs: Mapping[str, Any],
    normalized: Mapping[str, sparse.csr_array],
    blocks: Mapping[str, BlockGraph],
    alphas: Mapping[str, float],
) -> RidgeObjective:
    """Return an objective whose kernels are multiplied by the workers.

    Parameters
    ----------
    model : LinkSpreading
    links : Links
    graphs : mapping from str to graph
    normalized : mapping from str to csr_array
    blocks : mapping from str to BlockGraph
    alphas : mapping from str to float

    Returns
    -------
    objective : RidgeObjective
    """
    kernels = {
        view: BlockKernel(
            blocks[view],
            normalized[view],
            alphas[view],
            similar=SimilarItems(graph, view),
            unit_diagonal=model.unit_diagonal,
        )
        for view, graph in graphs.items()
    }
    return RidgeObjective(
        links=links,
        balance=model.balance,
        rank=model.rank,
        tol=model.tol,
        n_features={view: graph.n_features_in_ for view, graph in graphs.items()},
        kernels=kernels,
        ridge=model.ridge,
        mass=model.mass,
    )


def without_cluster(objective: Objective) -> Objective:
    """Return an objective that needs no cluster any more.

    Parameters
    ----------
    objective : Objective

    Returns
    -------
    objective : Objective
        The same, with kernels of one machine.
    """
    if not isinstance(objective, RidgeObjective):
        return objective
    kernels = {id(kernel): kernel.plain() for kernel in objective.kernels.values()}  # type: ignore[attr-defined]
    objective.kernels = {v: kernels[id(own)] for v, own in objective.kernels.items()}
    for name, fit in objective.labels.items():
        objective.labels[name] = replace(fit, kernel=kernels[id(fit.kernel)])
    for pair, pair_fit in objective.pairs.items():
        plain = tuple(kernels[id(own)] for own in pair_fit.kernels)
        objective.pairs[pair] = replace(pair_fit, kernels=plain)
    return objective
