"""The graph of one view, built and kept by the workers."""

from dataclasses import dataclass, replace
from operator import getitem
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.cluster.block_graphs import (
    BlockGraph,
    larger_of_both,
    mean_with_mirror,
)
from linkspread.cluster.neighbors import Found, search_blocks
from linkspread.cluster.session import Range, Session, cut_rows
from linkspread.cluster.spreading import spread_blocks
from linkspread.cluster.views import ChunkedView
from linkspread.compiled.lad import Report
from linkspread.graphs import L1Graph, NeighborGraph
from linkspread.graphs.adjust import (
    adjust_edges,
    largest_product,
    links_within,
    longest_vectors,
    values_on_edges,
)
from linkspread.graphs.distances import sample_items
from linkspread.graphs.knn import (
    LOCAL_NEIGHBOR,
    fixed_bandwidth,
    local_bandwidths,
    neighbor_matrix,
    weigh_edges,
)
from linkspread.graphs.l1 import L1Report
from linkspread.links import LinkMatrix, as_link_matrix
from linkspread.models.spreading import AdjustedGraph, GraphContext
from linkspread.propagation import Factored
from linkspread.propagation.filter import fitted_response

Array = np.ndarray
# Graphs of sparse codes.
CODED = ("sr", "csr")


@dataclass(frozen=True)
class Neighborhoods:
    """The neighbours of all items of a view, in blocks of rows."""

    session: Session
    view: ChunkedView
    ranges: list[Range]
    found: list[Any]  # ids and distances of each block
    widths: Any  # of all neighbourhoods, or one for all
    chosen: dict[str, Any]
    recall: float | None

    def edges(self, task: Any, **shared: Any) -> list[Any]:
        """Send a task for each block with its neighbours, rows and shared arguments."""
        shared |= {"view": self.view, "chosen": self.chosen}
        shared["widths"] = self.session.hold(self.widths)
        return self.session.map(task, self.found, self.ranges, **shared)

    def graph(self, edges: list[Any], join: Any, label: str) -> BlockGraph:
        """Return the symmetric graph of edges from items to their neighbours."""
        self.session.keep(*edges)
        name, dtype = self.view.name, self.view.dtype
        built = BlockGraph(self.session, name, self.ranges, edges, dtype)
        built = built.symmetrized(join)
        self.session.finish(built.parts, f"{label} {name}")
        return built


@dataclass(frozen=True)
class ViewGraph:
    """The graph of a view, and what it was built from."""

    near: Neighborhoods
    affinity: BlockGraph
    base: BlockGraph | None = None  # before its weights were adjusted
    reports: tuple[Any, ...] = ()  # of the sparse codes of each block
    links: LinkMatrix | None = None  # within the view, of constrained codes

    def in_model(self, X: Any, context: GraphContext) -> Any:
        """Return the fitted graph for a model."""
        near = self.near
        chosen = {n: near.chosen[n] for n in ("n_neighbors", "metric", "bandwidth")}
        common = {**chosen, "n_jobs": context.n_jobs, "verbose": context.verbose}
        weights, affinity = near.chosen["weights"], self.affinity.fetch()
        if self.reports:
            parts = near.session.fetch(list(self.reports))
            found = {"links": self.links, "report": _join_reports(parts, len(X))}
            graph = L1Graph(kernel=weights, **common)
            return graph.resume(X, affinity, near.widths, **found)
        base = affinity if self.base is None else self.base.fetch()
        neighbors = NeighborGraph(weights=weights, **common)
        neighbors.resume(X, base, near.widths)
        neighbors.recall_ = near.recall
        return neighbors if self.base is None else AdjustedGraph(neighbors, affinity)


def find_neighborhoods(
    session: Session, view: ChunkedView, chosen: dict[str, Any]
) -> Neighborhoods:
    """Search the neighbours of all items and compute bandwidths."""
    row_bytes = view.shape[1] * view.dtype.itemsize
    ranges = cut_rows(view.shape[0], row_bytes, n_workers=session.n_workers)
    found, recall = search_blocks(session, view, ranges, chosen)
    if chosen["bandwidth"] == "local":
        own = np.concatenate(session.results(_own_widths, found))
        widths: Any = local_bandwidths(own[:, None])
    else:
        widths = _fixed_width(view, chosen)
    return Neighborhoods(session, view, ranges, found, widths, chosen, recall)


def build_view_graph(near: Neighborhoods, context: GraphContext) -> ViewGraph:
    """Build the graph of a view by its name."""
    name, view = near.chosen["graph"], context.view
    if name in CODED:
        Z = None
        if name == "csr":
            n_items, links = near.view.shape[0], context.links
            Z = links_within(links, view=view, balance="literal", n_items=n_items)
            Z = as_link_matrix(Z)
        return _build_codes(near, Z)
    built = build_knn(near)
    return _adjust_blocks(built, context) if name == "cwa" else built


def build_knn(near: Neighborhoods) -> ViewGraph:
    """Build the graph of nearest neighbours."""
    edges = near.edges(_weigh_block)
    return ViewGraph(near, near.graph(edges, larger_of_both, "edges of"))


def _build_codes(near: Neighborhoods, Z: LinkMatrix | None) -> ViewGraph:
    """Code every item by its neighbours, as `graphs.l1_graph` does."""
    session = near.session
    coded = near.edges(_code_block, links=None if Z is None else session.hold(Z))
    session.finish(coded, f"sparse codes of {near.view.name}")
    edges, reports = (session.map(getitem, coded, [i] * len(coded)) for i in (0, 1))
    session.keep(*reports)
    affinity = near.graph(edges, mean_with_mirror, "edges of")
    return ViewGraph(near, affinity, reports=tuple(reports), links=Z)


def _adjust_blocks(built: ViewGraph, context: GraphContext) -> ViewGraph:
    """Adjust the weights to links within the view, as `graphs.adjust_weights` does."""
    near, W, send = built.near, built.affinity, built.near.session.map
    fetch = near.session.fetch
    Z = context.links.within(context.view, balance=context.balance)
    S, alphas = W.normalized(), (context.alpha, context.alpha)
    responses = (fitted_response(alphas, context.beta),)
    found = spread_blocks(S, Z, S, responses, tol=context.tol, rank=context.rank)
    left = send(np.matmul, found.left, [found.cores[0]] * len(found.left))
    right = send(np.asarray, found.right)
    best = fetch(send(_best_of_block, W.parts, left, range(len(left)), right=right))
    ends = [np.concatenate(fetch(send(_longest, own))) for own in (left, right)]
    largest = largest_product(ends[0], ends[1], max(best)) or 1.0
    edges = send(_adjust_block, W.parts, left, right=right, largest=largest)
    affinity = near.graph(edges, mean_with_mirror, "adjusting the graph of")
    return replace(built, affinity=affinity, base=W)


def _own_widths(found: Found) -> Array:
    """Return the distances that serve as local bandwidths."""
    distances = found[1]
    return distances[:, min(LOCAL_NEIGHBOR, distances.shape[1]) - 1].copy()


def _fixed_width(view: ChunkedView, chosen: dict[str, Any]) -> float:
    """Return the bandwidth for all items, from the sample that one machine takes."""
    bandwidth, n_items = chosen["bandwidth"], view.shape[0]
    if not isinstance(bandwidth, str):
        return float(bandwidth)
    sample = view.take(sample_items(n_items))
    return fixed_bandwidth(bandwidth, sample, metric=chosen["metric"])


def _weigh_block(
    found: Found,
    own: Range,
    *,
    view: ChunkedView,
    chosen: dict[str, Any],
    widths: Any,
) -> sparse.csr_array:
    """Return the edges of a block of rows to their neighbours."""
    ids, distances = found
    mine = widths[slice(*own)] if np.ndim(widths) else widths
    how = {name: chosen[name] for name in ("weights", "metric")}
    values = weigh_edges(ids, distances, mine, widths, **how)
    return neighbor_matrix(ids, values, view.dtype, view.shape[0])


def _code_block(
    found: Found,
    own: Range,
    *,
    view: ChunkedView,
    chosen: dict[str, Any],
    widths: Any,
    links: LinkMatrix | None,
) -> tuple[sparse.csr_array, L1Report]:
    """Return the codes of a block of rows; only rows of their neighbours are read."""
    ids, distances = found
    used, places = np.unique(ids, return_inverse=True)
    is_local = np.ndim(widths) > 0
    common = {name: chosen[name] for name in ("n_neighbors", "metric", "bandwidth")}
    Z = None if links is None else _among(links, used)
    near_widths = widths[used] if is_local else widths
    graph = L1Graph(kernel=chosen["weights"], **common)
    graph.resume(view.take(used), None, near_widths, links=Z, report=None)
    own_widths = widths[slice(*own)] if is_local else widths
    given = places.reshape(ids.shape), distances, own_widths
    codes, solved = graph.encode(*given, backend=chosen["backend"])
    # Positions are sorted, so their order within a row stays.
    arrays = codes.data, used[codes.indices], codes.indptr
    edges = sparse.csr_array(arrays, shape=(len(ids), view.shape[0]))
    n_empty = int(np.sum(np.diff(codes.indptr) == 0))
    n_duplicated = int(np.sum(distances[:, 0] == 0))
    return edges, L1Report(solved, n_duplicated, n_empty, codes.nnz / len(ids))


def _among(Z: LinkMatrix, used: Array) -> LinkMatrix:
    """Return the links among some items."""
    pairs = sparse.csr_array(Z.pairs[used][:, used])
    return LinkMatrix(Z.left[used], Z.core, Z.right[used], pairs)


def _join_reports(parts: list[L1Report], n_items: int) -> L1Report:
    """Return the sum of the reports of all blocks."""
    solvers = [own.solver for own in parts]
    sums = {
        name: sum(getattr(own, name) for own in solvers)
        for name in ("n_rows", "n_retried", "n_fallback", "n_pivots", "seconds")
    }
    gap = max(own.largest_gap for own in solvers)
    lengths = sum(round(own.mean_length * own.solver.n_rows) for own in parts)
    return L1Report(
        Report(**sums, largest_gap=gap),
        n_duplicated=sum(own.n_duplicated for own in parts),
        n_empty=sum(own.n_empty for own in parts),
        mean_length=lengths / n_items,
    )


def _longest(vectors: Array) -> Array:
    """Return the longest vectors of a block."""
    return longest_vectors(vectors)[0]


def _best_of_block(
    W: sparse.csr_array, left: Array, i: int, *, right: list[Array]
) -> float:
    """Return the largest propagated link at an edge or on the diagonal of a block."""
    F = Factored(left, np.concatenate(right))
    diagonal = np.einsum("ir,ir->i", left, right[i])
    return float(max(values_on_edges(F, W).max(initial=0), diagonal.max(initial=0)))


def _adjust_block(
    W: sparse.csr_array, left: Array, *, right: list[Array], largest: float
) -> sparse.csr_array:
    """Return the adjusted weights of a block."""
    return adjust_edges(W, Factored(left, np.concatenate(right)), largest)
