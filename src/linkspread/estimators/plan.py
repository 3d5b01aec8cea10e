"""What a fit expects to need, said before it starts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.estimators.graph_kinds import GRAPHS
from linkspread.estimators.link_choice import largest_rank, linked_pairs
from linkspread.graphs.cost import code_cost, knn_cost
from linkspread.links import LinkMatrix, Links, as_link_matrix
from linkspread.progress import announce, format_bytes, format_seconds
from linkspread.propagation.cost import propagation_cost
from linkspread.propagation.lowrank import OVERSAMPLING

__all__ = ["announce_plan"]

# Edges per item of a graph in which neighbours need not be mutual, per neighbour.
EDGES_PER_NEIGHBOR = 1.5
# Links of high rank are propagated there and back twice, then once for new items.
SKETCH_ROUNDS = 5


def announce_plan(
    model: Any,
    tables: Mapping[str, Any],
    choices: Mapping[str, Any],
    links: Links,
    alphas: Mapping[str, float],
) -> None:
    """Log the time and the memory that a fit will take.

    Parameters
    ----------
    model : LinkSpreading
        Its parameters are read.
    tables : mapping from str to ndarray or csr_array of shape (n, n_features)
    choices : mapping from str to dict
        Parameters of each view's graph.
    links : Links
        Resolved.
    alphas : mapping from str to float
    """
    costs = [
        knn_cost(X.shape[0], X.shape[1], choices[view]["n_neighbors"])
        for view, X in tables.items()
        if _is_named(choices[view]["graph"])
    ]
    costs += [
        code_cost(
            X.shape[0],
            X.shape[1],
            choices[view]["n_neighbors"],
            constrained=graph == "csr",
        )
        for view, X in tables.items()
        if _is_coded(graph := choices[view]["graph"])
    ]
    costs += _spread_costs(model, tables, choices, links, alphas)
    seconds = sum(cost[0] for cost in costs)
    # Graphs are built one after another; what each leaves behind is small beside it.
    n_bytes = max((cost[1] for cost in costs), default=0)
    sizes = ", ".join(f"{view} {X.shape[0]:,} x {X.shape[1]:,}"
                      for view, X in tables.items())  # fmt: skip
    announce(
        f"fit of {sizes}: about {format_seconds(seconds)} and "
        f"{format_bytes(n_bytes)} beyond the tables",
        verbose=model.verbose,
    )


def _spread_costs(
    model: Any,
    tables: Mapping[str, Any],
    choices: Mapping[str, Any],
    links: Links,
    alphas: Mapping[str, float],
) -> list[tuple[float, int]]:
    """Return the cost of the propagation between each two views with links."""
    edges = {v: _edges_per_item(choices[v], X) for v, X in tables.items()}
    costs = []
    for a, b in linked_pairs(links, tables):
        Z = as_link_matrix(links.between(a, b, balance=model.balance))
        width, n_rounds = _working_width(Z, largest_rank(Z, model.rank))
        single = tables[a].dtype == tables[b].dtype == np.float32
        seconds, n_bytes = propagation_cost(
            Z.shape,
            (edges[a], edges[b]),
            width,
            alpha=(alphas[a], alphas[b]),
            beta=model.beta,
            tol=model.tol,
            itemsize=4 if single and n_rounds == 1 else 8,
        )
        costs.append((n_rounds * seconds, n_bytes))
    return costs


def _working_width(Z: LinkMatrix, rank: int | None) -> tuple[int, int]:
    """Return the width of the blocks of a propagation, and how often they pass."""
    width = Z.thin_width()
    if rank is None or width <= _sketch_width(rank):
        return width, 1
    return _sketch_width(rank), SKETCH_ROUNDS


def _sketch_width(rank: int) -> int:
    """Return the number of random vectors with which links of high rank are probed."""
    return rank + max(OVERSAMPLING, rank // 2)


def _is_named(graph: Any) -> bool:
    """Tell whether the neighbours of a view are still to be searched."""
    return isinstance(graph, str) and graph in GRAPHS


def _is_coded(graph: Any) -> bool:
    """Tell whether the items of a view are to be coded by their neighbours."""
    return isinstance(graph, str) and graph in ("sr", "csr")


def _edges_per_item(chosen: Mapping[str, Any], X: Any) -> float:
    """Return the mean number of edges of an item, or a guess before they are known."""
    graph = chosen["graph"]
    if _is_named(graph):
        return EDGES_PER_NEIGHBOR * chosen["n_neighbors"]
    if callable(graph):  # which will tell only when it is called
        return EDGES_PER_NEIGHBOR * 30
    W = X if isinstance(graph, str) else graph
    n_edges = W.nnz if sparse.issparse(W) else np.count_nonzero(W)
    return n_edges / X.shape[0]
