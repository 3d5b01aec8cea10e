"""What a fit expects to need, said before it starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.compiled.threads import few_cores
from linkspread.graphs.cost import code_cost, knn_cost
from linkspread.ground.cores import count_threads
from linkspread.ground.progress import announce, format_bytes, format_seconds
from linkspread.links import Items, LinkMatrix, Links, as_link_matrix
from linkspread.models.graph_choice import choose_graphs
from linkspread.models.graph_kinds import GRAPHS
from linkspread.models.link_choice import (
    choose_links,
    linked_pairs,
)
from linkspread.models.parameters import check_alphas, check_parameters
from linkspread.propagation.cost import propagation_cost
from linkspread.propagation.lowrank import OVERSAMPLING
from linkspread.propagation.rows import has_short_vectors
from linkspread.tables.validation import check_views

# Edges per item of a graph in which neighbours need not be mutual, per neighbour.
EDGES_PER_NEIGHBOR = 1.5
# Links of high rank are propagated there and back twice, then once for new items.
SKETCH_ROUNDS = 5


@dataclass(frozen=True)
class FitPlan:
    """What a fit is expected to take."""

    sizes: dict[str, tuple[int, int]]
    links: Links
    seconds: float
    n_bytes: int
    query_seconds: float

    def __str__(self) -> str:
        sizes = ", ".join(f"{v} {n:,} x {d:,}" for v, (n, d) in self.sizes.items())
        return f"fit of {sizes}: {self.cost}"

    @property
    def cost(self) -> str:
        """Time and memory in words."""
        exact = f", then about {format_seconds(self.query_seconds)} a query, exactly"
        return (
            f"about {format_seconds(self.seconds)} and {format_bytes(self.n_bytes)} "
            f"beyond the tables{exact if self.query_seconds else ''}"
        )


def plan_fit(
    model: Any,
    views: Any,
    links: Any,
    *,
    ids: Mapping[str, Any] | None = None,
    columns: Mapping[str, Any] | None = None,
) -> FitPlan:
    """Return what a fit would take, without fitting; input is checked as by a fit."""
    check_parameters(model)
    read = check_views(views, ids, columns)
    tables = read.tables
    items = {view: Items(own, view=view) for view, own in read.ids.items()}
    resolved = choose_links(links, tables).resolve(items)
    choices = choose_graphs(model, tables, resolved)
    alphas = check_alphas(model.alpha, tables)
    with few_cores(count_threads(model.n_jobs)):
        return _plan(model, tables, choices, resolved, alphas)


def announce_plan(
    model: Any,
    tables: Mapping[str, Any],
    choices: Mapping[str, Any],
    links: Links,
    alphas: Mapping[str, float],
) -> None:
    """Log the time and the memory that a fit will take."""
    plan = _plan(model, tables, choices, links, alphas)
    announce(str(plan), verbose=model.verbose)


def _plan(
    model: Any,
    tables: Mapping[str, Any],
    choices: Mapping[str, Any],
    links: Links,
    alphas: Mapping[str, float],
) -> FitPlan:
    """Add up what the graphs and the propagation cost."""
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
    spreading = _spread_costs(model, tables, choices, links, alphas)
    costs += [(fit, n_bytes) for fit, n_bytes, _ in spreading]
    seconds = sum(cost[0] for cost in costs)
    # Graphs are built one after another; what each leaves behind is small beside it.
    n_bytes = max((cost[1] for cost in costs), default=0)
    sizes = {view: (X.shape[0], X.shape[1]) for view, X in tables.items()}
    query = max((query for _, _, query in spreading), default=0.0)
    return FitPlan(sizes, links, seconds, int(n_bytes), query)


def _spread_costs(
    model: Any,
    tables: Mapping[str, Any],
    choices: Mapping[str, Any],
    links: Links,
    alphas: Mapping[str, float],
) -> list[tuple[float, int, float]]:
    """Return seconds and bytes of each propagation, and seconds of an exact query."""
    edges = {v: _edges_per_item(choices[v], X) for v, X in tables.items()}
    costs = []
    for a, b in linked_pairs(links, tables):
        Z = as_link_matrix(links.between(a, b, balance=model.balance))
        single = tables[a].dtype == tables[b].dtype == np.float32
        settings: dict[str, Any] = {
            "alpha": (alphas[a], alphas[b]),
            "beta": model.beta,
            "tol": model.tol,
        }
        by_row = model.rank is None and not has_short_vectors(Z, **settings)
        width, n_rounds = (1, 1) if by_row else working_width(Z, model.rank)
        seconds, n_bytes = propagation_cost(
            Z.shape,
            (edges[a], edges[b]),
            width,
            **settings,
            itemsize=4 if single and n_rounds == 1 else 8,
        )
        fitting = (0.0, 0) if by_row else (n_rounds * seconds, n_bytes)
        costs.append((*fitting, seconds if by_row else 0.0))
    return costs


def working_width(Z: LinkMatrix, rank: int | None) -> tuple[int, int]:
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
