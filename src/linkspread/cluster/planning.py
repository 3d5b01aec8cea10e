"""The expected traffic and memory of a fit on a cluster.

The formulas stand in docs/cluster.md.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from linkspread.cluster.block_graphs import SLAB_BYTES
from linkspread.cluster.neighbors import choose_search
from linkspread.cluster.session import cut_rows
from linkspread.cluster.view_graphs import CODED
from linkspread.cluster.views import open_view
from linkspread.ground.checks import check_count
from linkspread.ground.errors import LinkspreadError
from linkspread.ground.progress import format_bytes
from linkspread.links import Items, Links, as_link_matrix
from linkspread.models import LinkSpreading
from linkspread.models.link_choice import choose_links, linked_pairs
from linkspread.models.plan import EDGES_PER_NEIGHBOR, working_width
from linkspread.models.spreading import check_alphas, check_parameters
from linkspread.models.view_graphs import choose_graphs
from linkspread.propagation.chebyshev import N_TERMS
from linkspread.propagation.exact import has_thin_factors, spread_responses
from linkspread.propagation.filter import separate
from linkspread.propagation.spread import widest_basis
from linkspread.tables.validation import as_mapping, check_views

INDEX_BYTES = 4
# Ids and distances of neighbours, as a search returns them.
FOUND_BYTES = 12
# Memory of a search through cells that does not depend on its blocks: faiss, compiled
# loops, tiles, candidates of the current rows.
CELL_SEARCH_BYTES = 140e6


@dataclass(frozen=True)
class ClusterPlan:
    """The expected cost of a fit on a cluster.

    Attributes
    ----------
    n_workers : int
    n_rounds : int
        Rounds in which all workers get a thin matrix.
    read_bytes : int
        Read from the disk by all workers.
    moved_bytes : int
        Sent by workers, to each other and to the client.
    worker_bytes : int
        Largest memory of a worker, beyond that of an idle one.
    client_bytes : int
        Memory of the model on the client, beyond mapped tables.
    """

    n_workers: int
    n_rounds: int
    read_bytes: int
    moved_bytes: int
    worker_bytes: int
    client_bytes: int

    def __str__(self) -> str:
        return (
            f"fit by {self.n_workers} workers: {self.n_rounds} rounds, about "
            f"{format_bytes(self.read_bytes)} read, {format_bytes(self.moved_bytes)} "
            f"moved, {format_bytes(self.worker_bytes)} in each worker and "
            f"{format_bytes(self.client_bytes)} in the client"
        )


def plan(
    model: Any,
    views: Any,
    links: Any,
    *,
    n_workers: int,
    ids: Mapping[str, Any] | None = None,
) -> ClusterPlan:
    """Return the expected cost of a fit on a cluster.

    Parameters
    ----------
    model : LinkSpreading
        Its parameters are read.
    views : mapping from str to path, ChunkedView or table
    links : Links, or mapping from str to labels
    n_workers : int
    ids : mapping from str to array-like of shape (n_items,), default=None

    Returns
    -------
    plan : ClusterPlan

    Examples
    --------
    >>> import linkspread as ls
    >>> from linkspread import cluster
    >>> data = ls.datasets.make_views(90, n_classes=3, random_state=0)
    >>> model = ls.LinkSpreading(n_neighbors=10)
    >>> cluster.plan(model, data.views(), data.labels, n_workers=2).n_rounds > 10
    True
    """
    check_spreading(model)
    n_workers = check_count(n_workers, name="n_workers", remedy="One is enough.")
    tables: dict[str, Any] = {}
    items = {}
    for view, own in as_mapping(views).items():
        if isinstance(own, str | os.PathLike):
            own = open_view(own, name=view)
        has_type = hasattr(own, "shape") and hasattr(own, "dtype")
        tables[view] = own if has_type else check_views({view: own}).read[view]
        known = (ids or {}).get(view)
        known = getattr(tables[view], "ids", None) if known is None else known
        items[view] = Items(
            tables[view].shape[0] if known is None else known, view=view
        )
    return plan_of(model, tables, choose_links(links, tables).resolve(items), n_workers)


def check_spreading(model: Any) -> None:
    """Refuse models that cannot be planned or written in shards."""
    if not isinstance(model, LinkSpreading):
        raise LinkspreadError(
            "`model` must be a LinkSpreading to be planned or written in shards, got "
            f"{type(model).__name__}. `cluster.fit` fits both models."
        )
    check_parameters(model)


def plan_of(
    model: Any, tables: Mapping[str, Any], links: Links, n_workers: int
) -> ClusterPlan:
    """Add up the costs of graphs and rounds."""
    choices = choose_graphs(model, tables, links)
    alphas = check_alphas(model.alpha, tables)
    views = {v: _ViewCost(X, choices[v], n_workers) for v, X in tables.items()}
    costs = views.values()
    held = sum(own.held_bytes for own in costs)
    held += CELL_SEARCH_BYTES * any(own.cell_bytes for own in costs)
    rounds, moved, vectors = 0, sum(own.moved_bytes for own in costs), 0
    peaks = [held + own.building_bytes for own in costs]
    for a, b in linked_pairs(links, tables):
        Z = as_link_matrix(links.between(a, b, balance=model.balance))
        responses = spread_responses((alphas[a], alphas[b]), model.beta)
        separable, rank = separate(responses, tol=model.tol / 2), model.rank
        if rank is None and not has_thin_factors(Z, separable, rank):
            # An upper bound: a model that keeps its graphs computes rows on demand.
            rank = widest_basis(Z.shape, views[a].itemsize)
        width, n_passes = working_width(Z, rank)
        sides = (a, separable.left), (b, separable.right)
        for (view, functions), degree in zip(sides, separable.degrees, strict=True):
            own, f = views[view], len(functions)
            thin = own.n_items * width * own.itemsize
            slab = min(max(SLAB_BYTES // (own.n_items * own.itemsize), 1), width)
            rounds += n_passes * degree * -(-width // slab)
            moved += n_passes * degree * (n_workers - 1) * thin
            # A worker receives and joins slabs, keeps terms of a few rounds, and the
            # sums with a copy of one block's.
            copied = 1 + 1 / max(own.n_blocks / n_workers, 1)
            kept = (N_TERMS + 2 + copied * f) * thin / n_workers
            peaks.append(held + 2 * thin * slab / width + kept)
            # Vectors for new items too, and the triangles of all blocks.
            vectors += 3 * thin
            moved += own.n_blocks * 8 * (f * width) ** 2
    return ClusterPlan(
        n_workers=n_workers,
        n_rounds=rounds,
        read_bytes=int(sum(own.read_bytes for own in costs)),
        moved_bytes=int(moved + vectors),
        worker_bytes=int(max(peaks)),
        client_bytes=int(sum(2 * own.graph_bytes for own in costs) + vectors),
    )


class _ViewCost:
    """Bytes of one view in each step."""

    def __init__(self, X: Any, chosen: Mapping[str, Any], n_workers: int) -> None:
        self.itemsize, (n_items, n_features) = X.dtype.itemsize, X.shape
        self.n_items, n_neighbors = n_items, chosen["n_neighbors"]
        row_bytes = n_features * self.itemsize
        ranges = cut_rows(n_items, row_bytes, n_workers=n_workers)
        self.n_blocks = len(ranges)
        # Every block of rows is compared with the whole table.
        self.read_bytes = (self.n_blocks + 1) * n_items * row_bytes
        # The cells of all blocks go to every worker. Neighbours of codes are exact.
        asked = X, n_neighbors, chosen["metric"], n_workers
        has_cells = chosen["graph"] not in CODED
        has_cells = has_cells and choose_search("auto", *asked) != "exact"
        self.cell_bytes = has_cells * n_items * (n_features / 4 + 8)
        # From each item to its neighbours, and the symmetric graph.
        edges = n_items * n_neighbors * (self.itemsize + INDEX_BYTES)
        self.graph_bytes = EDGES_PER_NEIGHBOR * edges
        # Edges go to their other end, vectors to all workers, the graph to the client.
        pieces = edges + INDEX_BYTES * self.n_blocks * n_items
        self.moved_bytes = (n_workers - 1) * (pieces / n_workers + self.cell_bytes)
        self.moved_bytes += 2 * 8 * n_items * n_workers + 2 * self.graph_bytes
        # A worker holds edges and the normalised graph until the end,
        share = (edges + self.graph_bytes) / n_workers
        self.held_bytes = share + 2 * 8 * n_items + self.cell_bytes
        # and while a graph is built what it searches and finds, or the mirrored pieces
        # of all blocks, the graph, and a block being joined.
        n_rows = ranges[0][1]
        searching = n_rows * n_features * (3 * self.itemsize + 4)
        searching += 2 * FOUND_BYTES * n_rows * n_neighbors
        joining = (2 * edges + self.graph_bytes) / n_workers
        joining += n_rows / n_items * (edges + 2 * self.graph_bytes)
        found = FOUND_BYTES * n_items * n_neighbors / n_workers
        self.building_bytes = found + max(searching, joining)
