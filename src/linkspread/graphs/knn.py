"""The graph of nearest neighbours, and the edges of items that come later.

>>> from linkspread.graphs import NeighborGraph
>>> graph = NeighborGraph(n_neighbors=1, weights="binary").fit([[0.0], [1.0], [5.0]])
>>> graph.affinity_.toarray().tolist()
[[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
>>> graph.extend([[4.0]]).toarray().tolist()
[[0.0, 0.0, 1.0]]
"""

import logging
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from linkspread.compiled.threads import on_own_threads
from linkspread.graphs.approximate import (
    approximate_neighbors,
    check_method,
    choose_method,
)
from linkspread.graphs.cost import knn_cost
from linkspread.graphs.device import device_for_search, symmetric_graph
from linkspread.graphs.distances import Pairwise
from linkspread.graphs.edge_weights import weigh_new, widths_of_ends
from linkspread.graphs.neighbors import NeighborIndex, check_n_neighbors
from linkspread.graphs.renewal import renewed, search_some, without_items
from linkspread.graphs.search_memory import known_index, known_neighbors
from linkspread.graphs.weights import (
    WEIGHTS,
    check_bandwidth,
    check_weights,
    exponents,
    fixed_bandwidth,
    local_bandwidths,
)
from linkspread.ground.progress import format_bytes, format_seconds

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
        "approximate" has faiss search the neighbours of a thousand items or more, for
        dense items and euclidean, cosine or hellinger, and misses a few per cent of
        them. "auto" does so where an exact search would take more than a minute and
        faiss is installed.
    n_jobs : int, default=None
        Threads; None takes every core.
    verbose : bool, default=False
        Show the progress.
    backend : {"auto", "cpu", "cuda", "torch"}, default="auto"
        What builds the graph: "auto" takes a GPU for large dense tables where there
        is one, and searches exactly there.

    Attributes
    ----------
    affinity_ : csr_array of shape (n_items, n_items)
        Symmetric, non-negative, zero diagonal, in the precision of the items. An item
        all of whose weights underflow to 0 is isolated.
    bandwidths_ : ndarray of shape (n_items,) or float
    recall_ : float or None
        Share of the true neighbours that an approximate search found, measured on a
        sample; None after an exact search.
    n_features_in_ : int

    Examples
    --------
    >>> from linkspread.graphs import NeighborGraph
    >>> graph = NeighborGraph(n_neighbors=1).fit([[0.0], [1.0], [5.0]])
    >>> graph.bandwidths_.tolist()
    [1.0, 1.0, 4.0]
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

        Returns
        -------
        self : NeighborGraph
        """
        index = self._index_items(X)
        ids, distances, recall = self._search_items(index)
        widths = self._widths(distances, index)
        exponent = exponents(distances, *widths_of_ends(widths, widths, ids))
        weights = WEIGHTS[self.weights](distances, exponent, index.metric)
        dtype = index.items.dtype
        W = symmetric_graph(ids, weights, dtype, backend=self.backend)
        return self._keep(index, W, widths, recall)

    def resume(
        self, X: Any, affinity: sp.csr_array, bandwidths: np.ndarray | float
    ) -> "NeighborGraph":
        """Take up a graph that was fitted before, without a new search.

        Parameters
        ----------
        X : array-like or sparse of shape (n_items, n_features)
            The items it was fitted to.
        affinity : csr_array of shape (n_items, n_items)
            Its `affinity_`.
        bandwidths : ndarray of shape (n_items,) or float
            Its `bandwidths_`.

        Returns
        -------
        self : NeighborGraph
        """
        return self._keep(self._index_items(X), affinity, bandwidths)

    def renew(self, X: Any, changed: np.ndarray) -> "NeighborGraph":
        """Return the graph after items were added at the end, or changed.

        Only the neighbours of these items are searched, among all. The others keep
        the edges they have among each other: `staleness` tells what that costs.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_items, n_features)
            All items, those of the fit first and in their order.
        changed : ndarray of int of shape (n_changed,)
            Positions of the items that are new or other than they were.

        Returns
        -------
        graph : NeighborGraph
        """
        return clone(self)._keep(*renewed(self, X, changed), self.recall_)

    def without(self, removed: np.ndarray) -> "NeighborGraph":
        """Return the graph of the items that are left when some go.

        Items that lost a neighbour find another, so that a fresh graph stays one: that
        of a fit to the items left.

        Parameters
        ----------
        removed : ndarray of int of shape (n_removed,)
            Positions of the items that go.

        Returns
        -------
        graph : NeighborGraph
        """
        return clone(self)._keep(*without_items(self, removed), self.recall_)

    def staleness(self, *, n_sampled: int = 200) -> float:
        """Return the share of true neighbours that are no edges, on a sample of items.

        Parameters
        ----------
        n_sampled : int, default=200

        Returns
        -------
        share : float
            0 for a graph that was just fitted, but for what an approximate search
            misses and for weights that vanish.
        """
        n_items = self.affinity_.shape[0]
        rng = np.random.default_rng(0)
        sample = np.sort(rng.choice(n_items, min(n_sampled, n_items), replace=False))
        ids, _ = search_some(self, self._index, sample)
        rows = np.repeat(sample, ids.shape[1])
        is_edge = np.asarray(self.affinity_[rows, ids.ravel()]).ravel() > 0
        return float(1 - is_edge.mean())

    def extend(self, Q: Any) -> sp.csr_array:
        """Return the affinities of new items to their nearest fitted items.

        The search is exact, whichever `method` built the graph, so that a graph gives
        the same answers after it was stored. A new item's own width is its distance to
        its seventh nearest fitted item. A new item so far away that all its Gaussian
        weights would vanish keeps their ratios.

        Parameters
        ----------
        Q : array-like or sparse of shape (n_queries, n_features)

        Returns
        -------
        rows : csr_array of shape (n_queries, n_items)
        """
        if not hasattr(self, "affinity_"):
            raise NotFittedError(
                "This NeighborGraph must be fitted before `extend`, got one that is "
                "not. Call `fit(X)` first."
            )
        ids, distances = self._index.search(
            Q, n_neighbors=self.n_neighbors, n_jobs=self.n_jobs, verbose=self.verbose
        )
        return weigh_new(
            ids,
            distances,
            self.bandwidths_,
            local=self.bandwidth == "local",
            weights=self.weights,
            metric=self.metric,
            dtype=self._index.items.dtype,
            n_items=self.affinity_.shape[0],
        )

    def _index_items(self, X: Any) -> NeighborIndex:
        """Check the parameters and return the items ready to be searched."""
        check_bandwidth(self.bandwidth)
        check_weights(self.weights)
        check_method(self.method)
        index = known_index(X, self.metric)
        check_n_neighbors(self.n_neighbors, index.items.shape[0], include_self=False)
        return index

    def _search_items(
        self, index: NeighborIndex
    ) -> tuple[np.ndarray, np.ndarray, float | None]:
        """Return the neighbours of the items, and the recall if it is not perfect."""
        common: dict[str, Any] = {"n_jobs": self.n_jobs, "verbose": self.verbose}
        method = self._choose_method(index)

        def search(k: int) -> tuple[np.ndarray, np.ndarray, float | None]:
            self._log_cost(index.items.shape, method)
            if method == "approximate":
                return approximate_neighbors(index, n_neighbors=k, **common)
            return *index.search(n_neighbors=k, backend=self.backend, **common), None

        return known_neighbors(index, self.n_neighbors, search, method=method)

    def _choose_method(self, index: NeighborIndex) -> str:
        """Return "exact" or "approximate"; a device is fast enough to be exact."""
        rows = index.embedded
        if self.method == "auto" and device_for_search(
            self.backend, index.metric, rows, rows.shape[0]
        ):
            return "exact"
        return choose_method(self.method, index, self.n_neighbors)

    def _widths(
        self, distances: np.ndarray, index: NeighborIndex
    ) -> np.ndarray | float:
        """Return the local widths, or the one width for all."""
        if self.bandwidth == "local":
            return local_bandwidths(distances)
        return fixed_bandwidth(self.bandwidth, index.items, metric=self.metric)

    def _keep(
        self,
        index: NeighborIndex,
        W: sp.csr_array,
        widths: np.ndarray | float,
        recall: float | None = None,
    ) -> "NeighborGraph":
        """Store what was fitted."""
        self._index = index
        self.affinity_ = W
        self.bandwidths_ = widths
        self.recall_ = recall
        self.n_features_in_ = index.items.shape[1]
        return self

    def _log_cost(self, shape: tuple[int, int], method: str) -> None:
        """Say what the search will take, before it takes it."""
        seconds, n_bytes = knn_cost(*shape, self.n_neighbors)
        logger.log(
            logging.INFO if self.verbose else logging.DEBUG,
            "neighbours of %d items%s: about %s and %s",
            shape[0],
            ", approximate; an exact search" if method == "approximate" else "",
            format_seconds(seconds),
            format_bytes(n_bytes),
        )


def knn_graph(
    X: Any,
    *,
    n_neighbors: int = 30,
    metric: str | Pairwise = "euclidean",
    bandwidth: str | float = "local",
    weights: str = "gaussian",
    method: str = "auto",
    n_jobs: int | None = None,
    verbose: bool = False,
    backend: str = "auto",
) -> sp.csr_array:
    """Return the symmetric graph of each item's nearest neighbours.

    Parameters
    ----------
    X : array-like or sparse of shape (n_items, n_features)
    n_neighbors : int, default=30
    metric : {"euclidean", "cosine", "hellinger", "chi2"} or callable, \
default="euclidean"
    bandwidth : "local", float or str, default="local"
    weights : {"gaussian", "binary", "similarity"}, default="gaussian"
    method : {"exact", "approximate", "auto"}, default="auto"
    n_jobs : int, default=None
    verbose : bool, default=False
    backend : {"auto", "cpu", "cuda", "torch"}, default="auto"
        All as in `NeighborGraph`.

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
    graph = NeighborGraph(
        n_neighbors, metric, bandwidth, weights, method, n_jobs, verbose, backend
    )
    return graph.fit(X).affinity_
