"""The neighbours of a graph whose items have changed, where they have."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from linkspread.graphs.edge_weights import widths_of_ends
from linkspread.graphs.edges import neighbor_matrix, replace_edges, without_own
from linkspread.graphs.neighbors import NeighborIndex, check_n_neighbors
from linkspread.graphs.weights import WEIGHTS, exponents, local_bandwidths

Widths = np.ndarray | float
# The items ready to be searched, the affinities and the widths.
Parts = tuple[NeighborIndex, sp.csr_array, Widths]


def renewed(graph: Any, X: Any, changed: np.ndarray) -> Parts:
    """Return the parts of a NeighborGraph after items were added, or changed."""
    index = NeighborIndex(X, metric=graph.metric)
    ids, distances = search_some(graph, index, changed)
    widths = graph.bandwidths_
    if np.ndim(widths):
        widths = np.ones(index.items.shape[0], dtype=graph.bandwidths_.dtype)
        widths[: len(graph.bandwidths_)] = graph.bandwidths_
        smallest = float(graph.bandwidths_.min())
        widths[changed] = local_bandwidths(distances, smallest=smallest)
    edges = _edges(graph, index, changed, ids, distances, widths)
    return index, replace_edges(graph.affinity_, edges, changed), widths


def without_items(graph: Any, removed: np.ndarray) -> Parts:
    """Return the parts of a NeighborGraph whose items lose some, as if fitted anew."""
    kept = np.setdiff1d(np.arange(graph.affinity_.shape[0]), removed)
    check_n_neighbors(graph.n_neighbors, len(kept), include_self=False)
    index = NeighborIndex(graph._index.items[kept], metric=graph.metric)
    rows = sp.csr_array(graph.affinity_[kept])
    W = sp.csr_array(rows[:, kept])
    lost = np.flatnonzero(np.diff(sp.csr_array(rows[:, removed]).indptr))
    # An item that lost a neighbour has another width, and so have the edges of those
    # who chose it: theirs are searched too, and no edge between others changes.
    near = np.union1d(lost, sp.csr_array(W[lost]).indices)
    widths = (
        graph.bandwidths_[kept] if np.ndim(graph.bandwidths_) else graph.bandwidths_
    )
    if not len(near):
        return index, W, widths
    ids, distances = search_some(graph, index, near)
    if np.ndim(widths):
        own = distances[np.searchsorted(near, lost)]
        smallest = float(graph.bandwidths_.min())
        widths[lost] = local_bandwidths(own, smallest=smallest)
    edges = _edges(graph, index, near, ids, distances, widths)
    return index, replace_edges(W, edges, near, dropped=lost), widths


def search_some(
    graph: Any, index: NeighborIndex, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the neighbours of some items among all of an index."""
    found = index.search(
        index.items[chosen], n_neighbors=graph.n_neighbors + 1, n_jobs=graph.n_jobs
    )
    return without_own(chosen, *found)


def _edges(
    graph: Any,
    index: NeighborIndex,
    chosen: np.ndarray,
    ids: np.ndarray,
    distances: np.ndarray,
    widths: Widths,
) -> sp.csr_array:
    """Return the edges from some items to their neighbours."""
    own = np.asarray(widths)[chosen] if np.ndim(widths) else widths
    exponent = exponents(distances, *widths_of_ends(own, widths, ids))
    weights = WEIGHTS[graph.weights](distances, exponent, index.metric)
    return neighbor_matrix(ids, weights, index.items.dtype, index.items.shape[0])
