"""Graphs of sparse codes: each item rebuilt from its neighbours (SR, and CSR).

>>> import numpy as np
>>> from linkspread.graphs import l1_graph
>>> X = np.array([[0.0], [1.0], [2.0], [3.0], [9.0]])
>>> W = l1_graph(X, n_neighbors=3, bandwidth=1.0)
>>> W.shape, bool((W != W.T).nnz)
((5, 5), False)
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from linkspread.compiled.lad import Report, solve_many, solve_on_device
from linkspread.compiled.threads import on_own_threads
from linkspread.graphs.device import DeviceKernels, device_for_codes
from linkspread.graphs.distances import Pairwise
from linkspread.graphs.edges import neighbor_matrix
from linkspread.graphs.laplacian import ROOTS, LinkedNeighborhoods
from linkspread.graphs.neighborhoods import NeighborhoodKernels
from linkspread.graphs.neighbors import NeighborIndex, check_n_neighbors
from linkspread.graphs.weights import (
    check_bandwidth,
    fixed_bandwidth,
    local_bandwidths,
)
from linkspread.graphs.within import links_within
from linkspread.ground.errors import GraphError

Array = np.ndarray
KERNELS = ("gaussian", "similarity")
CODES: dict[str, Callable[[Array], Array]] = {
    "absolute": np.abs,
    "clipped": lambda codes: np.maximum(codes, 0),
}


@dataclass(frozen=True)
class L1Report:
    """How the sparse codes of a graph came out."""

    solver: Report
    n_duplicated: int
    n_empty: int
    mean_length: float


class L1Graph(BaseEstimator):
    """The graph of sparse codes over each item's nearest neighbours.

    Item i with affinities x to its neighbours, whose own are C, has the code
    ``min_a |a|_1 + |x - C a|_1`` (sparse representation, SR). With links within the
    view, ``|L^1/2 a|_1`` is added, L the Laplacian that the links give the
    neighbourhood (constrained sparse representation, CSR). The graph is
    ``(|A| + |A|') / 2``.

    Parameters
    ----------
    n_neighbors : int, default=90
    metric : {"euclidean", "cosine", "hellinger", "chi2"} or callable, \
default="euclidean"
    bandwidth : "local", float or str, default="local"
        Of the Gaussian affinities, as in `NeighborGraph`.
    kernel : {"gaussian", "similarity"}, default="gaussian"
    codes : {"absolute", "clipped"}, default="absolute"
        What becomes of negative coefficients.
    root : {"symmetric", "literal"}, default="symmetric"
        Of the Laplacian. "literal" is the paper's, which depends on an arbitrary choice
        of eigenvectors and warns of it.
    tol : float, default=1e-7
        Relative duality gap allowed for each code.
    n_jobs : int, default=None
        Threads; None takes every core.
    verbose : bool, default=False
        Show the progress.
    backend : {"auto", "cpu", "cuda", "torch"}, default="auto"
        What finds the codes: "auto" takes a GPU for many codes of dense items where
        there is one.

    Attributes
    ----------
    affinity_ : csr_array of shape (n_items, n_items)
        Symmetric, non-negative, zero diagonal.
    report_ : L1Report
    n_features_in_ : int

    Examples
    --------
    >>> from linkspread.graphs import L1Graph
    >>> graph = L1Graph(n_neighbors=2, bandwidth=1.0).fit([[0.0], [1.0], [2.0], [3.0]])
    >>> graph.report_.n_empty
    0
    """

    def __init__(
        self,
        n_neighbors: int = 90,
        metric: str | Pairwise = "euclidean",
        bandwidth: str | float = "local",
        kernel: str = "gaussian",
        codes: str = "absolute",
        root: str = "symmetric",
        tol: float = 1e-7,
        n_jobs: int | None = None,
        verbose: bool = False,
        backend: str = "auto",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.bandwidth = bandwidth
        self.kernel = kernel
        self.codes = codes
        self.root = root
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.backend = backend

    @on_own_threads
    def fit(self, X: Any, links: Any = None, *, view: str | None = None) -> "L1Graph":
        """Code every item by its neighbours.

        Parameters
        ----------
        X : array-like or sparse of shape (n_items, n_features)
            Kept by reference for `extend`: do not change it afterwards.
        links : Links, sparse, ndarray or LinkMatrix, default=None
            Links within the view, for CSR; None gives SR.
        view : str, default=None
            Which view of the Links; may be left out if they are of one view only.

        Returns
        -------
        self : L1Graph
        """
        self._check_parameters()
        index = NeighborIndex(X, metric=self.metric)
        check_n_neighbors(self.n_neighbors, index.items.shape[0], include_self=False)
        roots = self._roots(links, view, index.items.shape[0])
        ids, distances = index.search(
            n_neighbors=self.n_neighbors,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            backend=self.backend,
        )
        widths = self._widths(distances, index)
        self._index, self._roots_ = index, roots
        self._kernels = NeighborhoodKernels(
            index.items, index.metric, widths, self.kernel
        )
        self.n_features_in_ = index.items.shape[1]
        W, solved = self.encode(ids, distances, widths, backend=self.backend)
        self.affinity_ = sp.csr_array((W + W.T) * W.dtype.type(0.5))
        self.report_ = L1Report(
            solver=solved,
            n_duplicated=int(np.sum(distances[:, 0] == 0)),
            n_empty=int(np.sum(np.diff(W.indptr) == 0)),
            mean_length=W.nnz / W.shape[0],
        )
        return self

    def extend(self, Q: Any) -> sp.csr_array:
        """Return the codes of new items over their nearest fitted items.

        Parameters
        ----------
        Q : array-like or sparse of shape (n_queries, n_features)

        Returns
        -------
        rows : csr_array of shape (n_queries, n_items)
        """
        if not hasattr(self, "affinity_"):
            raise NotFittedError(
                "This L1Graph must be fitted before `extend`, got one that is not. "
                "Call `fit(X)` first."
            )
        ids, distances = self._index.search(
            Q, n_neighbors=self.n_neighbors, n_jobs=self.n_jobs, verbose=self.verbose
        )
        return self.encode(ids, distances, self._widths(distances, self._index))[0]

    def resume(
        self, X: Any, affinity: Any, widths: Any, *, links: Any, report: Any
    ) -> "L1Graph":
        """Take up a graph that was fitted before, without coding any item anew.

        Parameters
        ----------
        X : array-like or sparse of shape (n_items, n_features)
        affinity : csr_array of shape (n_items, n_items)
        widths : ndarray of shape (n_items,) or float
        links : LinkMatrix or None
        report : L1Report

        Returns
        -------
        self : L1Graph
        """
        self._check_parameters()
        self._index = index = NeighborIndex(X, metric=self.metric)
        self._kernels = NeighborhoodKernels(
            index.items, index.metric, widths, self.kernel
        )
        self._roots_ = links and LinkedNeighborhoods(links, root=self.root)
        self.affinity_, self.report_ = affinity, report
        self.n_features_in_ = index.items.shape[1]
        return self

    def encode(
        self, ids: Array, distances: Array, widths: Any, *, backend: str = "auto"
    ) -> tuple[sp.csr_array, Report]:
        """Return the codes of items, fitted or new, over their neighbours.

        Parameters
        ----------
        ids, distances : ndarray of shape (n_rows, k)
        widths : ndarray of shape (n_rows,) or float
        backend : str, default="auto"

        Returns
        -------
        codes : csr_array of shape (n_rows, n_items)
        solved : Report
        """
        own = np.broadcast_to(np.asarray(widths, dtype=float), ids.shape[:1])
        targets = self._kernels.to_neighbors(distances, ids, own)
        metric, items = self._index.metric, self._index.items
        device = device_for_codes(backend, metric, items, *ids.shape)
        solve = self._solve if device is None else partial(self._solve_on, device)
        codes, solved = solve(ids, targets)
        weights, n_items = CODES[self.codes](codes), items.shape[0]
        return neighbor_matrix(ids, weights, items.dtype, n_items), solved

    def _solve_on(
        self, device: Any, ids: Array, targets: Array
    ) -> tuple[Array, Report]:
        """Return the codes of targets, found on a device."""
        kernels = DeviceKernels(device, self._kernels, self.kernel)
        n_rows, k = ids.shape
        codes, _, solved = solve_on_device(
            device,
            kernels.problems(ids, targets, self._roots_),
            n_rows,
            shape=(k if self._roots_ is None else 2 * k, k),
            tol=self.tol,
            n_jobs=self.n_jobs,
        )
        return codes, solved

    def _solve(self, ids: Array, targets: Array) -> tuple[Array, Report]:
        """Return the codes of targets."""

        def problems(rows: slice) -> tuple[Array, Array]:
            blocks, wanted = self._kernels.among(ids[rows]), targets[rows]
            if self._roots_ is None:
                return blocks, wanted
            blocks = np.concatenate([blocks, self._roots_.roots(ids[rows])], axis=1)
            return blocks, np.concatenate([wanted, np.zeros_like(wanted)], axis=1)

        codes, _, solved = solve_many(
            problems, len(ids), tol=self.tol, n_jobs=self.n_jobs, verbose=self.verbose
        )
        return codes, solved

    def _roots(
        self, links: Any, view: str | None, n_items: int
    ) -> LinkedNeighborhoods | None:
        """Return what the links say about neighbourhoods, or None without links."""
        if links is None:
            return None
        links = links_within(links, view=view, balance="literal", n_items=n_items)
        if self.root == "literal":
            message = (
                "root='literal' depends on an arbitrary choice among eigenvectors of "
                "equal eigenvalues: weights may change by more than half with the "
                "order of the items or the library. Use root='symmetric'."
            )
            warnings.warn(message, UserWarning, stacklevel=3)
        return LinkedNeighborhoods(links, root=self.root)

    def _widths(self, distances: Array, index: NeighborIndex) -> Any:
        """Return the local widths, or the one width for all."""
        if self.bandwidth == "local":
            return local_bandwidths(distances)
        return fixed_bandwidth(self.bandwidth, index.items, metric=self.metric)

    def _check_parameters(self) -> None:
        """Refuse names that are not known."""
        check_bandwidth(self.bandwidth)
        choices = {"kernel": KERNELS, "codes": tuple(CODES), "root": tuple(ROOTS)}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise GraphError(
                    f"`{name}` must be one of {', '.join(known)}, got "
                    f"{getattr(self, name)!r}. Use {known[0]!r} if in doubt."
                )


def l1_graph(
    X: Any,
    *,
    links: Any = None,
    view: str | None = None,
    n_neighbors: int = 90,
    metric: str | Pairwise = "euclidean",
    bandwidth: str | float = "local",
    kernel: str = "gaussian",
    codes: str = "absolute",
    root: str = "symmetric",
    tol: float = 1e-7,
    n_jobs: int | None = None,
    verbose: bool = False,
    backend: str = "auto",
) -> sp.csr_array:
    """Return the graph of sparse codes: SR, or CSR with links.

    Parameters
    ----------
    X : array-like or sparse of shape (n_items, n_features)
    links : Links, sparse, ndarray or LinkMatrix, default=None
        Links within the view, for CSR; None gives SR.
    view : str, default=None
        Which view of the Links; may be left out if they are of one view only.
    n_neighbors : int, default=90
    metric : {"euclidean", "cosine", "hellinger", "chi2"} or callable, \
default="euclidean"
    bandwidth : "local", float or str, default="local"
    kernel : {"gaussian", "similarity"}, default="gaussian"
    codes : {"absolute", "clipped"}, default="absolute"
    root : {"symmetric", "literal"}, default="symmetric"
    tol : float, default=1e-7
    n_jobs : int, default=None
    verbose : bool, default=False
    backend : {"auto", "cpu", "cuda", "torch"}, default="auto"
        All as in `L1Graph`.

    Returns
    -------
    W : csr_array of shape (n_items, n_items)
        Symmetric, non-negative, zero diagonal.
    """
    shape = n_neighbors, metric, bandwidth, kernel, codes, root, tol
    graph = L1Graph(*shape, n_jobs, verbose, backend)
    return graph.fit(X, links, view=view).affinity_
