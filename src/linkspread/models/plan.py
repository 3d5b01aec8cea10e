"""The expected time and memory of a fit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.compiled.threads import few_cores
from linkspread.graphs.cost import code_cost, knn_cost
from linkspread.ground.cores import count_threads
from linkspread.ground.progress import format_bytes, format_seconds
from linkspread.learning.maps import N_COMPONENTS, landmark_count
from linkspread.links import Items, LinkMatrix, Links, as_link_matrix
from linkspread.models.link_choice import choose_links, linked_pairs
from linkspread.models.spreading import check_alphas, check_parameters
from linkspread.models.view_graphs import N_NEIGHBORS, choose_graphs, is_named
from linkspread.propagation.exact import propagation_cost
from linkspread.propagation.rows import has_short_vectors
from linkspread.propagation.spread import OVERSAMPLING
from linkspread.tables.validation import check_views

# Edges per item of a graph in which neighbours need not be mutual, per neighbour.
EDGES_PER_NEIGHBOR = 1.5
# Links of high rank are propagated there and back twice, then once for new items.
SKETCH_ROUNDS = 5
# Measured on two views of 10,000 to 40,000 items and 128 to 1,024 columns: the largest
# memory of a fit of `CrossViewSearch` is 0.9 to 1.05 times the sum of so many times its
# maps and so many times its tables; 0.6 times without links.
TIMES_MAPS, TIMES_TABLES = 3, 8


@dataclass(frozen=True)
class FitPlan:
    """The expected cost of a fit of `LinkSpreading`."""

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
        exact = f", then about {format_seconds(self.query_seconds)} per exact query"
        return (
            f"about {format_seconds(self.seconds)} and {format_bytes(self.n_bytes)} "
            f"beyond the tables{exact if self.query_seconds else ''}"
        )


def plan_fit(
    model: Any, views: Any, links: Any, *, ids: Mapping[str, Any] | None = None
) -> FitPlan:
    """Return the expected cost of a fit; input is checked as by a fit."""
    check_parameters(model)
    tables, resolved = _resolved(views, ids, lambda own: choose_links(links, own))
    choices = choose_graphs(model, tables, resolved)
    alphas = check_alphas(model.alpha, tables)
    with few_cores(count_threads(model.n_jobs)):
        return plan_of(model, tables, choices, resolved, alphas)


def plan_of(
    model: Any,
    tables: Mapping[str, Any],
    choices: Mapping[str, Any],
    links: Links,
    alphas: Mapping[str, float],
) -> FitPlan:
    """Add up what the graphs and the propagation cost."""
    costs = []
    for view, X in tables.items():
        graph, n_neighbors = choices[view]["graph"], choices[view]["n_neighbors"]
        if is_named(graph):
            n, d = X.shape
            costs.append(knn_cost(n, d, n_neighbors))
            if graph in ("sr", "csr"):
                is_linked = graph == "csr"
                costs.append(code_cost(n, d, n_neighbors, constrained=is_linked))
    edges = {v: _edges_per_item(choices[v], X) for v, X in tables.items()}
    query = 0.0
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
        if by_row:
            query = max(query, seconds)
        else:
            costs.append((n_rounds * seconds, n_bytes))
    seconds = sum(cost[0] for cost in costs)
    # Graphs are built one after another, and what remains of each is small.
    n_bytes = max((cost[1] for cost in costs), default=0)
    sizes = {view: (X.shape[0], X.shape[1]) for view, X in tables.items()}
    return FitPlan(sizes, links, seconds, int(n_bytes), query)


def working_width(Z: LinkMatrix, rank: int | None) -> tuple[int, int]:
    """Return the width of the blocks of a propagation, and its number of passes."""
    width = Z.thin_width()
    if rank is None:
        return width, 1
    # Random vectors with which links of high rank are probed.
    sketched = rank + max(OVERSAMPLING, rank // 2)
    return (width, 1) if width <= sketched else (sketched, SKETCH_ROUNDS)


def _edges_per_item(chosen: Mapping[str, Any], X: Any) -> float:
    """Return the mean number of edges of an item, or a guess before they are known."""
    graph = chosen["graph"]
    if is_named(graph):
        return EDGES_PER_NEIGHBOR * chosen["n_neighbors"]
    if callable(graph):
        return EDGES_PER_NEIGHBOR * N_NEIGHBORS
    W = X if isinstance(graph, str) else graph
    n_edges = W.nnz if sparse.issparse(W) else np.count_nonzero(W)
    return n_edges / X.shape[0]


@dataclass(frozen=True)
class SearchPlan:
    """The expected cost of a fit of `CrossViewSearch`.

    Attributes
    ----------
    links : Links
        Resolved.
    widths : dict from str to int
        Features of the map of each view.
    n_bytes : int
        Beyond the tables.
    shares : bool
        Whether two views have as many columns.
    """

    links: Links
    widths: dict[str, int]
    n_bytes: int
    shares: bool

    @property
    def cost(self) -> str:
        """Memory and steps in words."""
        maps = ", ".join(f"{view} {width:,}" for view, width in self.widths.items())
        how = "terms are chosen on held-out judgements"
        if not self.links.views:
            how = "the cosine alone, as there are no links"
        if not self.links.views and not self.shares:
            how = "nothing, as there are no links and no two views share a space"
        return (
            f"about {format_bytes(self.n_bytes)} beyond the tables: features of "
            f"each item ({maps}), then {how}"
        )


def plan_search(
    views: Any, links: Links, *, ids: Mapping[str, Any] | None = None
) -> SearchPlan:
    """Return the expected cost of a fit of `CrossViewSearch`.

    Parameters
    ----------
    views : mapping from str to table of shape (n_items, n_features)
    links : Links
        May be empty.
    ids : mapping from str to array-like of shape (n_items,), default=None

    Returns
    -------
    plan : SearchPlan

    Examples
    --------
    >>> import linkspread as ls
    >>> data = ls.datasets.make_views(90, n_classes=3, random_state=0)
    >>> links = ls.Links.from_labels(data.labels)
    >>> ls.selection.plan_search(data.views(), links).widths["text"]
    212
    """
    tables, resolved = _resolved(views, ids, lambda tables: links)
    widths = {view: _map_width(X, resolved, view) for view, X in tables.items()}
    maps = sum(4 * tables[view].shape[0] * width for view, width in widths.items())
    n_bytes = TIMES_MAPS * maps + TIMES_TABLES * sum(map(_table_bytes, tables.values()))
    shares = len({X.shape[1] for X in tables.values()}) < len(tables)
    return SearchPlan(resolved, widths, n_bytes, shares)


def _resolved(
    views: Any, ids: Any, choose: Callable[[Mapping[str, Any]], Links]
) -> tuple[Mapping[str, Any], Links]:
    """Return checked tables, and the links of their items."""
    read = check_views(views, ids)
    items = {view: Items(own, view=view) for view, own in read.ids.items()}
    return read.tables, choose(read.tables).resolve(items)


def _map_width(X: Any, links: Links, view: str) -> int:
    """Return the number of features of a map: columns, and landmarks of kernels."""
    n_items, width = X.shape
    n_linear = N_COMPONENTS if min(X.shape) > N_COMPONENTS else width
    memberships = links.memberships(view) if view in links.views else None
    n_labelled = 0
    if memberships is not None:
        n_labelled = int(np.count_nonzero(memberships.sum(axis=1)))
    n_landmarks = landmark_count(n_items, n_labelled)
    return n_linear + n_landmarks * (2 if view in links.views else 1)


def _table_bytes(X: Any) -> int:
    """Return the bytes of a table."""
    if sparse.issparse(X):
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return X.nbytes
