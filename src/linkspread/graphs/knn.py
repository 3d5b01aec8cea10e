"""The graph of nearest neighbours, and the edges of new items."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from linkspread.compiled.backends import choose_device, on_own_threads
from linkspread.graphs.approximate import approximate_neighbors, has_faiss
from linkspread.graphs.distances import Metric, Pairwise, mean_distance, resolve_metric
from linkspread.graphs.neighbors import (
    CONVERSION_BLOCK,
    ITEM_TILE,
    QUERY_TILE,
    Found,
    NeighborIndex,
    cached,
    check_n_neighbors,
    is_caching,
)
from linkspread.ground.checks import check_name, is_number
from linkspread.ground.cores import count_threads
from linkspread.ground.errors import GraphError
from linkspread.ground.progress import format_bytes, format_seconds

METHODS = ("exact", "approximate", "auto")
# Seconds of an exact search from which "auto" searches approximately.
SLOW_SECONDS = 60.0
# With fewer items some cells would be empty.
MIN_ITEMS = 1000
# Measured on one core of a 2-core server: single-precision products, and the
# comparison of one key with the worst one kept.
FLOPS_PER_SECOND = 7e10
SECONDS_PER_KEY = 1e-9


def knn_cost(n_items: int, n_features: int, n_neighbors: int) -> tuple[float, int]:
    """Estimate the time and the memory of a dense Euclidean `knn_graph`."""
    n_threads = count_threads(None)
    n_pairs = float(n_items) ** 2
    seconds = n_pairs * (2 * n_features / FLOPS_PER_SECOND + SECONDS_PER_KEY)
    converted = 4 * n_items * n_features
    tile = 4 * min(QUERY_TILE, n_items) * min(ITEM_TILE, n_items)
    block = 16 * n_features * min(QUERY_TILE, n_items)
    searching = n_threads * (tile + block) + 12 * n_items * n_neighbors
    # Per edge: the neighbours, their weights, and the graph beside its transpose.
    assembling = 56 * n_items * n_neighbors
    converting = 16 * n_features * min(CONVERSION_BLOCK, n_items)
    n_bytes = converted + max(searching, assembling, converting)
    return seconds / n_threads, n_bytes


Array = np.ndarray
Widths = Array | float

# The neighbour whose distance is an item's width; the choice of self-tuning spectral
# clustering, whose authors found it good in every dimension.
LOCAL_NEIGHBOR = 7

# Functions of distances, exponents and the metric.
WEIGHTS: dict[str, Callable[[Array, Array, Metric], Array]] = {
    "binary": lambda distances, exponent, metric: np.ones_like(distances),
    "gaussian": lambda distances, exponent, metric: np.exp(-exponent),
    "similarity": lambda distances, exponent, metric: metric.similarity(distances),
}


def check_bandwidth(bandwidth: Any) -> None:
    """Refuse a bandwidth that is neither "local" nor a width."""
    width = bandwidth
    if isinstance(bandwidth, str):
        width = 1.0 if bandwidth == "local" else _multiple(bandwidth)
    if not (is_number(width) and 0 < width < np.inf):
        raise GraphError(
            "`bandwidth` must be 'local', a positive number, or a multiple of the mean "
            f"distance such as '0.5 mean', got {bandwidth!r}. Use 'local' if in doubt."
        )


def choose_widths(
    bandwidth: str | float, distances: Array, X: Any, metric: str | Pairwise
) -> Widths:
    """Return the local widths of items, or the one width for all."""
    if bandwidth == "local":
        return local_bandwidths(distances)
    return fixed_bandwidth(bandwidth, X, metric=metric)


def fixed_bandwidth(bandwidth: Any, X: Any, *, metric: str | Pairwise) -> float:
    """Return the one width for all items."""
    if not isinstance(bandwidth, str):
        return float(bandwidth)
    return _multiple(bandwidth) * mean_distance(X, metric=metric)


def _multiple(bandwidth: str) -> float:
    """Return 0.5 of "0.5 mean", and 0 of anything else."""
    number, _, unit = bandwidth.partition(" ")
    try:
        return float(number) if unit == "mean" else 0.0
    except ValueError:
        return 0.0


def local_bandwidths(distances: Array, *, smallest: float = 0.0) -> Array:
    """Return the width of every item: the distance of its seventh neighbour."""
    widths = distances[:, min(LOCAL_NEIGHBOR, distances.shape[1]) - 1].copy()
    if not smallest:
        smallest = widths.min(where=widths > 0, initial=np.inf)
    widths[widths == 0] = smallest if np.isfinite(smallest) else 1.0
    return widths


def exponents(distances: Array, left: Widths, right: Widths) -> Array:
    """Return ``d^2 / (sigma_i sigma_j)``, in an order that does not overflow early."""
    with np.errstate(over="ignore"):  # an infinite exponent is a weight of 0
        return (distances / left) * (distances / right)


def weigh_edges(
    ids: Array,
    distances: Array,
    own: Widths,
    widths: Widths,
    *,
    weights: str,
    metric: str | Pairwise,
    lift: Any = None,
) -> Array:
    """Return the weights of edges from items, of own widths, to their neighbours.

    Given a dtype to `lift` to, not all weights of a row underflow in it.
    """
    if np.ndim(widths):
        own, widths = np.asarray(own)[:, None], np.asarray(widths)[ids]
    exponent = exponents(distances, own, widths)
    if lift is not None:
        exponent = lift_exponents(exponent, np.dtype(lift))
    return WEIGHTS[weights](distances, exponent, resolve_metric(metric))


def lift_exponents(exponent: Array, dtype: np.dtype) -> Array:
    """Shift the exponents of rows whose weights would all underflow."""
    # All weights of a query far from every item underflow to 0. A common factor does
    # not change the ranking, so the largest weight of such a row is set to the square
    # root of the smallest normal number, which leaves half of the range for the others.
    highest = -0.5 * np.log(float(np.finfo(dtype).tiny))
    exponent = np.minimum(exponent, np.finfo(np.float64).max)
    smallest = exponent.min(axis=1, keepdims=True)
    if smallest.max(initial=0.0) <= highest:
        return exponent
    return np.where(smallest > highest, exponent - smallest + highest, exponent)


def neighbor_matrix(
    ids: Array, weights: Array, dtype: np.dtype, n_items: int
) -> sp.csr_array:
    """Return the weights of neighbours as a matrix."""
    n_rows, n_neighbors = ids.shape
    small = ids.size <= np.iinfo(np.int32).max
    indptr = np.arange(n_rows + 1, dtype=np.int32 if small else np.int64) * n_neighbors
    # Copies, because sorting the indices would reorder the caller's arrays.
    arrays = (weights.astype(dtype).ravel(), ids.ravel().copy(), indptr)
    W = sp.csr_array(arrays, shape=(n_rows, n_items))
    W.sort_indices()
    W.eliminate_zeros()
    return W


def weigh_new(
    found: Found, graph: Any, widths: Widths, *, dtype: Any, n_items: int
) -> sp.csr_array:
    """Return the affinities of new items to their nearest items of a fitted graph."""
    (ids, distances), own = found, widths
    if np.ndim(widths):
        own = local_bandwidths(distances, smallest=float(np.min(widths)))
    how = {"weights": graph.weights, "metric": graph.metric, "lift": dtype}
    values = weigh_edges(ids, distances, own, widths, **how)
    return neighbor_matrix(ids, values, dtype, n_items)


# Number of neighbours from which a GPU assembles the graph faster.
MIN_EDGES = 2e6
# Where searches are cached, this many neighbours are found for later graphs, as
# products take longer than selection; only for views of up to WIDE_ITEMS items.
WIDE, WIDE_ITEMS = 90, 50_000

logger = logging.getLogger("linkspread")


class NeighborGraph(BaseEstimator):
    """The symmetric graph of each item's nearest neighbours.

    ``W[i, j] = exp(-d_ij^2 / (sigma_i sigma_j))`` where i is among the neighbours of j
    or j among those of i, else 0.

    Parameters
    ----------
    n_neighbors : int, default=30
        Neighbours per item, the item itself excluded.
    metric : {"euclidean", "cosine", "hellinger", "chi2"} or callable, \
default="euclidean"
        A callable takes two blocks of rows and returns all distances between them.
    bandwidth : "local", float or str, default="local"
        "local" takes as sigma_i the distance of item i to its seventh neighbour; a
        number is one width for all, as in ``exp(-d^2 / bandwidth^2)``; "0.5 mean" is
        half the mean distance.
    weights : {"gaussian", "binary", "similarity"}, default="gaussian"
        "similarity" is the cosine (at least 0) for cosine, ``1 - d^2`` (at least 0) for
        hellinger and chi2, and ``1 / (1 + d)`` otherwise.
    method : {"exact", "approximate", "auto"}, default="auto"
        "approximate" searches with faiss, from a thousand dense items on and for
        euclidean, cosine or hellinger, and misses a few per cent of the neighbours.
        "auto" does so if an exact search would take more than a minute and faiss is
        installed.
    n_jobs : int, default=None
        Threads; None or -1 takes every core.
    verbose : bool, default=False
        Show the progress.
    backend : {"auto", "cpu", "cuda", "torch"}, default="auto"
        What builds the graph: "auto" uses a GPU, if there is one, for large dense
        tables; its search is exact.

    Attributes
    ----------
    affinity_ : csr_array of shape (n_items, n_items)
        Symmetric, non-negative, zero diagonal, in the precision of the items. Items
        whose weights all underflow to 0 are isolated.
    bandwidths_ : ndarray of shape (n_items,) or float
    recall_ : float or None
        Share of the true neighbours found by an approximate search, measured on a
        sample; None after an exact search.
    n_features_in_ : int

    Examples
    --------
    >>> from linkspread.graphs import NeighborGraph
    >>> graph = NeighborGraph(1, weights="binary").fit([[0.0], [1.0], [5.0]])
    >>> graph.affinity_.toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    >>> graph.extend([[4.0]]).toarray().tolist()
    [[0.0, 0.0, 1.0]]
    """

    def __init__(
        self,
        n_neighbors: int = 30,
        metric: str | Pairwise = "euclidean",
        bandwidth: str | float = "local",
        weights: str = "gaussian",
        method: str = "auto",
        n_jobs: int | None = None,
        verbose: bool = False,
        backend: str = "auto",
    ):
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.bandwidth = bandwidth
        self.weights = weights
        self.method = method
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.backend = backend

    @on_own_threads
    def fit(self, X: Any, y: Any = None) -> "NeighborGraph":
        """Build the graph of the items.

        Parameters
        ----------
        X : array-like or sparse of shape (n_items, n_features)
            Kept by reference for `extend`: do not change it afterwards.
        y : None, default=None
            Ignored; present because scikit-learn passes it.
        """
        index = self._index_items(X)
        ids, distances, recall = self._search_items(index)
        widths = choose_widths(self.bandwidth, distances, index.items, self.metric)
        weights = self._weigh(ids, distances, widths, widths)
        W = symmetric_graph(ids, weights, index.items.dtype, backend=self.backend)
        return self._keep(index, W, widths, recall)

    def resume(
        self, X: Any, affinity: sp.csr_array, bandwidths: Widths
    ) -> "NeighborGraph":
        """Restore a graph that was fitted to these items, without a new search."""
        return self._keep(self._index_items(X), affinity, bandwidths, None)

    def renew(self, X: Any, changed: Array) -> "NeighborGraph":
        """Return the graph of all items after some were appended or changed.

        Only the neighbours of these items are searched. The others keep their edges
        among each other.
        """
        index = NeighborIndex(X, metric=self.metric)
        widths, changed = self.bandwidths_, np.sort(changed)
        if np.ndim(widths):
            n_new = index.items.shape[0] - len(widths)
            widths = np.concatenate([widths, np.ones(n_new, dtype=widths.dtype)])
        return self._rewired(index, self.affinity_, widths, changed, changed)

    def without(self, removed: Array) -> "NeighborGraph":
        """Return the graph without the items at some positions.

        Items that lost a neighbour are searched again, so the result equals the graph
        of a new fit.
        """
        kept = np.setdiff1d(np.arange(self.affinity_.shape[0]), removed)
        check_n_neighbors(self.n_neighbors, len(kept))
        index = NeighborIndex(self._index.items[kept], metric=self.metric)
        rows = sp.csr_array(self.affinity_[kept])
        W = sp.csr_array(rows[:, kept])
        lost = np.flatnonzero(np.diff(sp.csr_array(rows[:, removed]).indptr))
        # An item that lost a neighbour gets another width, which changes the edges of
        # items that have it as a neighbour; these are searched, too.
        near = np.union1d(lost, sp.csr_array(W[lost]).indices)
        widths = self.bandwidths_
        if np.ndim(widths):
            widths = widths[kept]
        if not len(near):
            return clone(self)._keep(index, W, widths, self.recall_)
        return self._rewired(index, W, widths, near, lost)

    def extend(self, Q: Any) -> sp.csr_array:
        """Return the affinities of new items, as rows, to their nearest fitted items.

        The search is always exact. The width of a new item is the distance to its
        seventh nearest fitted item. If all Gaussian weights of a new item would
        underflow, they are scaled and keep their ratios.
        """
        check_is_fitted(self)
        n_items, dtype = self.affinity_.shape[0], self._index.items.dtype
        found = self._index.search(
            Q, n_neighbors=self.n_neighbors, n_jobs=self.n_jobs, verbose=self.verbose
        )
        return weigh_new(found, self, self.bandwidths_, dtype=dtype, n_items=n_items)

    def _index_items(self, X: Any) -> NeighborIndex:
        """Check the parameters and return an index of the items."""
        check_bandwidth(self.bandwidth)
        check_name(self.weights, WEIGHTS, name="weights", error=GraphError)
        key = "index", self.metric
        index = cached(X, key, lambda: NeighborIndex(X, metric=self.metric))
        check_n_neighbors(self.n_neighbors, index.items.shape[0])
        return index

    def _search_items(self, index: NeighborIndex) -> tuple[Array, Array, float | None]:
        """Return the neighbours of all items, and the recall if approximate."""
        k, n_items = self.n_neighbors, index.items.shape[0]
        # A device is fast enough to be exact.
        on_device = self.method == "auto" and index.device(self.backend, n_items)
        asked = self.method, index.metric, index.items, k
        method = "exact" if on_device else choose_method(*asked)
        if not is_caching():
            return self._search(index, k, method)
        wide = min(WIDE, n_items - 1) if n_items <= WIDE_ITEMS else 0
        widest: list[Any] = cached(index.items, ("neighbors", index, method), list)
        if not widest or widest[0].shape[1] < k:
            widest[:] = self._search(index, max(k, wide), method)
        ids, distances, recall = widest
        return ids[:, :k], distances[:, :k], recall

    def _search(
        self, index: NeighborIndex, n_neighbors: int, method: str
    ) -> tuple[Array, Array, float | None]:
        """Log the estimated cost of a search, and search."""
        n_items, n_features = index.items.shape
        seconds, n_bytes = knn_cost(n_items, n_features, self.n_neighbors)
        logger.log(
            logging.INFO if self.verbose else logging.DEBUG,
            "neighbours of %d items%s: about %s and %s",
            n_items,
            ", approximate; an exact search" if method == "approximate" else "",
            format_seconds(seconds),
            format_bytes(n_bytes),
        )
        how: dict[str, Any] = {"n_jobs": self.n_jobs, "verbose": self.verbose}
        if method == "approximate":
            return approximate_neighbors(index, n_neighbors=n_neighbors, **how)
        how["backend"] = self.backend
        return *index.search(n_neighbors=n_neighbors, **how), None

    def _search_some(self, index: NeighborIndex, chosen: Array) -> Found:
        """Return the neighbours of some items among all of an index."""
        ids, distances = index.search(
            index.items[chosen], n_neighbors=self.n_neighbors + 1, n_jobs=self.n_jobs
        )
        is_own = ids == chosen[:, None]
        # An item with many duplicates may not find itself.
        is_own[~is_own.any(axis=1), -1] = True
        shape = len(chosen), self.n_neighbors
        return ids[~is_own].reshape(shape), distances[~is_own].reshape(shape)

    def _weigh(self, ids: Array, distances: Array, own: Any, widths: Any) -> Array:
        """Return the weights of edges."""
        how: dict[str, Any] = {"weights": self.weights, "metric": self.metric}
        return weigh_edges(ids, distances, own, widths, **how)

    def _rewired(
        self, index: NeighborIndex, W: Any, widths: Any, searched: Array, changed: Array
    ) -> "NeighborGraph":
        """Return the graph with new edges from the searched items, which are sorted.

        Changed items get new widths and lose their old edges.
        """
        ids, distances = self._search_some(index, searched)
        own = widths
        if np.ndim(widths):
            seen = distances[np.searchsorted(searched, changed)]
            smallest = float(self.bandwidths_.min())
            widths[changed] = local_bandwidths(seen, smallest=smallest)
            own = widths[searched]
        weights = self._weigh(ids, distances, own, widths)
        n_items, dtype = index.items.shape[0], W.dtype
        edges = neighbor_matrix(ids, weights, index.items.dtype, n_items)
        kept = np.ones(W.shape[0], dtype=dtype)
        kept[changed[changed < W.shape[0]]] = 0
        scale = sp.diags_array(kept, dtype=dtype)
        old = sp.csr_array(scale @ W @ scale)
        old.eliminate_zeros()
        old.resize((n_items, n_items))
        ones = np.ones(len(searched), dtype), (searched, np.arange(len(searched)))
        fresh = sp.csr_array(ones, shape=(n_items, len(searched))) @ edges
        W = sp.csr_array(old.maximum(fresh).maximum(sp.csr_array(fresh.T)))
        return clone(self)._keep(index, W, widths, self.recall_)

    def _keep(
        self, index: NeighborIndex, W: sp.csr_array, widths: Any, recall: Any
    ) -> "NeighborGraph":
        """Store what was fitted."""
        self._index, self.n_features_in_ = index, index.items.shape[1]
        self.affinity_, self.bandwidths_, self.recall_ = W, widths, recall
        return self


def knn_graph(X: Any, **parameters: Any) -> sp.csr_array:
    """Return the symmetric graph of each item's nearest neighbours.

    Parameters
    ----------
    X : array-like or sparse of shape (n_items, n_features)
    **parameters
        Those of `NeighborGraph`, such as ``n_neighbors=30`` and ``metric="cosine"``.

    Returns
    -------
    W : csr_array of shape (n_items, n_items)
        Symmetric, non-negative, zero diagonal.

    Examples
    --------
    >>> from linkspread.graphs import knn_graph
    >>> knn_graph([[0.0], [1.0], [5.0]], n_neighbors=1, weights="binary").nnz
    4
    """
    return NeighborGraph(**parameters).fit(X).affinity_


def symmetric_graph(
    ids: Array, weights: Array, dtype: np.dtype, *, backend: str = "auto"
) -> sp.csr_array:
    """Return the symmetric graph of neighbours and their weights."""
    device = choose_device(backend, work=ids.size, min_work=MIN_EDGES)
    if device is None:
        W = neighbor_matrix(ids, weights, dtype, len(ids))
        return W.maximum(sp.csr_array(W.T))
    from linkspread.compiled.gpu.graphs import symmetric_edges

    data, indices, indptr = symmetric_edges(
        device.put(ids).long(), device.put(weights.astype(dtype))
    )
    small = max(len(data), len(ids)) <= np.iinfo(np.int32).max
    integers = np.int32 if small else np.int64
    places = [tensor.cpu().numpy().astype(integers) for tensor in (indices, indptr)]
    shape = len(ids), len(ids)
    return sp.csr_array((data.cpu().numpy(), *places), shape=shape)


def choose_method(
    method: str, metric: Metric, items: Any, n_neighbors: int, *, n_machines: float = 1
) -> str:
    """Return the method to use, "exact" or "approximate"."""
    check_name(method, METHODS, name="method", error=GraphError)
    obstacle = ""
    if not metric.has_products:
        obstacle = (
            "`metric` must be euclidean, cosine or hellinger for method='approximate', "
            f"got {metric.name}. Use one of these, or method='exact'."
        )
    elif sp.issparse(items):
        obstacle = (
            "`X` must be dense for method='approximate', got a sparse matrix of shape "
            f"{items.shape}. Reduce it by TruncatedSVD, or use method='exact'."
        )
    if method == "approximate" and obstacle:
        raise GraphError(obstacle)
    n_items, n_features = items.shape
    seconds = knn_cost(n_items, n_features, n_neighbors)[0] / n_machines
    is_fast = method == "auto" and seconds <= SLOW_SECONDS
    if method == "exact" or obstacle or is_fast or not has_faiss(method):
        return "exact"
    return "approximate" if n_items >= MIN_ITEMS else "exact"
