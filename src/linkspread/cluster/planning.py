"""The expected traffic and memory of a fit on a cluster.

The formulas stand in docs/cluster.md.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkspread.cluster.block_graphs import SLAB_BYTES
from linkspread.cluster.neighbors import choose_search
from linkspread.cluster.session import cut_rows
from linkspread.cluster.view_graphs import CODED
from linkspread.cluster.views import ChunkedView, open_view
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
from linkspread.tables.frames import is_frame
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
    tables = {view: _shaped(own, view) for view, own in as_mapping(views).items()}
    items = {}
    for view, own in tables.items():
        known = (ids or {}).get(view)
        known = getattr(own, "ids", None) if known is None else known
        items[view] = Items(own.shape[0] if known is None else known, view=view)
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
    held += CELL_SEARCH_BYTES * any(own.has_cells for own in costs)
    rounds, moved, vectors = 0, sum(own.moved_bytes for own in costs), 0
    peaks = [held + own.building_bytes for own in costs]
    for a, b in linked_pairs(links, tables):
        Z = as_link_matrix(links.between(a, b, balance=model.balance))
        responses = spread_responses((alphas[a], alphas[b]), model.beta)
        separable = separate(responses, tol=model.tol / 2)
        rank = model.rank
        if rank is None and not has_thin_factors(Z, separable, rank):
            # An upper bound: a model that keeps its graphs computes rows on demand.
            rank = widest_basis(Z.shape, views[a].itemsize)
        width, n_passes = working_width(Z, rank)
        functions = len(separable.left), len(separable.right)
        degrees = separable.degrees
        for own, f, degree in zip(
            (views[a], views[b]), functions, degrees, strict=True
        ):
            rounds += n_passes * degree * -(-width // own.slab(width))
            moved += n_passes * degree * own.round_bytes(width)
            peaks.append(held + own.spreading_bytes(width, f))
            # Vectors for new items too, and the triangles of all blocks.
            vectors += own.n_items * own.itemsize * 3 * width
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
        self.n_items, n_features = X.shape
        self.itemsize, self.n_workers = X.dtype.itemsize, n_workers
        n_items, n_neighbors = self.n_items, chosen["n_neighbors"]
        row_bytes = n_features * self.itemsize
        blocks = cut_rows(n_items, row_bytes, n_workers=n_workers)
        self.n_blocks = len(blocks)
        # Every block of rows is compared with the whole table.
        self.read_bytes = (self.n_blocks + 1) * n_items * row_bytes
        # A fit with method="auto" searches the neighbours of codes exactly.
        searched = X, n_neighbors, chosen["metric"], n_workers
        is_coded = chosen["graph"] in CODED
        self.has_cells = not is_coded and choose_search("auto", *searched) != "exact"
        # The cells of all blocks, which every worker gets.
        cells = self.has_cells * n_items * (n_features / 4 + 8)
        # From each item to its neighbours, and the symmetric graph.
        edges = n_items * n_neighbors * (self.itemsize + INDEX_BYTES)
        self.graph_bytes = EDGES_PER_NEIGHBOR * edges
        # Edges go to their other end, vectors to all workers, the graph to the client.
        pieces = edges + INDEX_BYTES * self.n_blocks * n_items
        self.moved_bytes = (n_workers - 1) * (pieces / n_workers + cells)
        self.moved_bytes += 2 * 8 * n_items * n_workers + 2 * self.graph_bytes
        # A worker holds edges and the normalised graph until the end,
        share = (edges + self.graph_bytes) / n_workers
        self.held_bytes = share + 2 * 8 * n_items + cells
        # and more while a graph is built.
        n_rows = max(stop - start for start, stop in blocks)
        searching = n_rows * n_features * (3 * self.itemsize + 4)
        searching += 2 * FOUND_BYTES * n_rows * n_neighbors
        found = FOUND_BYTES * n_items * n_neighbors / n_workers
        # The mirrored pieces of all blocks, the graph, and a block being joined.
        joining = (2 * edges + self.graph_bytes) / n_workers
        joining += n_rows / n_items * (edges + 2 * self.graph_bytes)
        self.building_bytes = found + max(searching, joining)

    def slab(self, width: int) -> int:
        """Return the columns of a slab of a thin matrix."""
        return min(max(SLAB_BYTES // (self.n_items * self.itemsize), 1), width)

    def round_bytes(self, width: int) -> float:
        """Return the bytes that all workers receive in a round of all slabs."""
        return (self.n_workers - 1) * self.n_items * width * self.itemsize

    def spreading_bytes(self, width: int, n_functions: int) -> float:
        """Return the bytes that a worker holds in a round."""
        whole = self.n_items * self.slab(width) * self.itemsize
        own = self.n_items * width * self.itemsize / self.n_workers
        # Received and joined; the terms of a few rounds; the sums and one copy of them.
        copied = 1 + 1 / max(self.n_blocks / self.n_workers, 1)
        return 2 * whole + (N_TERMS + 2) * own + copied * n_functions * own


def _shaped(view: Any, name: str) -> Any:
    """Return a view as an object with `shape` and `dtype`."""
    if isinstance(view, str | os.PathLike):
        return open_view(view, name=name)
    if is_frame(view):
        return check_views({name: view}).read[name]
    if isinstance(view, ChunkedView) or hasattr(view, "dtype"):
        return view
    return np.asarray(view, float)
