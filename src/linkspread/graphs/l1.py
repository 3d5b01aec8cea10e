"""Graphs of sparse codes (SR, and CSR with links).

Item i with affinities x to its neighbours, and C among them, has the code

    SR:   min_a |a|_1 + |x - C a|_1
    CSR:  min_a |a|_1 + |x - C a|_1 + |L^1/2 a|_1

with L the Laplacian of the links of the neighbourhood: its items, joined by ``1 + Z``
(2 for must, 1 for unknown, 0 for cannot), have ``L = I - D^-1/2 (1 + Z) D^-1/2``. Both
are least absolute deviations, with the dictionary C, or ``[C; L^1/2]`` and ``[x; 0]``.

>>> import numpy as np
>>> from linkspread.graphs import l1_graph
>>> X = np.array([[0.0], [1.0], [2.0], [3.0], [9.0]])
>>> W = l1_graph(X, n_neighbors=3, bandwidth=1.0)
>>> W.shape, bool((W != W.T).nnz)
((5, 5), False)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from linkspread.compiled.backends import on_own_threads
from linkspread.compiled.gpu import load_torch
from linkspread.compiled.lad import Report, solve_many, solve_on_device
from linkspread.graphs.adjust import links_within
from linkspread.graphs.distances import Pairwise, exact_sums
from linkspread.graphs.knn import (
    WEIGHTS,
    Widths,
    check_bandwidth,
    choose_widths,
    exponents,
    neighbor_matrix,
    weigh_edges,
)
from linkspread.graphs.neighbors import NeighborIndex, check_n_neighbors, device_for
from linkspread.ground.checks import check_name
from linkspread.ground.errors import GraphError, warn_caller
from linkspread.links import LinkMatrix, as_link_matrix

Array = np.ndarray
# A function that builds the dictionaries and targets of some rows.
Problems = Callable[[slice], tuple[Any, Any]]

KERNELS = ("gaussian", "similarity")
# Work n k^3 from which a GPU is used: a CPU takes several seconds.
MIN_CODES = 2e10


@dataclass(frozen=True)
class L1Report:
    """Statistics of the sparse codes of a graph."""

    solver: Report
    n_duplicated: int  # items with an exact duplicate
    n_empty: int
    mean_length: float  # coefficients that are not 0


class L1Graph(BaseEstimator):
    """The graph of sparse codes over each item's nearest neighbours.

    ``W[i, j] = (|a_ij| + |a_ji|) / 2``, a_i the code of item i over its neighbours:
    ``min_a |a|_1 + |x - C a|_1`` (sparse representation, SR), with ``+ |L^1/2 a|_1``
    where links within the view are given (constrained sparse representation, CSR).

    Parameters
    ----------
    n_neighbors : int, default=90
    metric : str or callable, default="euclidean"
    bandwidth : "local", float or str, default="local"
        Of the Gaussian affinities. These three are as in `NeighborGraph`.
    kernel : {"gaussian", "similarity"}, default="gaussian"
    root : {"symmetric", "literal"}, default="symmetric"
        Root of the Laplacian. "literal" is the paper's, which depends on an arbitrary
        choice of eigenvectors and gives a warning.
    tol : float, default=1e-7
        Relative duality gap allowed for each code.
    n_jobs : int, default=None
    verbose : bool, default=False
    backend : {"auto", "cpu", "cuda", "torch"}, default="auto"
        What solves for the codes: "auto" uses a GPU, if there is one, for many codes
        of dense items.

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
        self.root = root
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.backend = backend

    @on_own_threads
    def fit(self, X: Any, links: Any = None, *, view: str | None = None) -> "L1Graph":
        """Compute the sparse code of every item over its neighbours.

        Parameters
        ----------
        X : array-like or sparse of shape (n_items, n_features)
            Kept by reference for `extend`: do not change it afterwards.
        links : Links, sparse, ndarray or LinkMatrix, default=None
            Links within the view, for CSR; None gives SR.
        view : str, default=None
            Which view of the Links; may be left out if they are of one view only.
        """
        self._check_parameters()
        index = NeighborIndex(X, metric=self.metric)
        n_items = index.items.shape[0]
        check_n_neighbors(self.n_neighbors, n_items)
        if links is not None:
            balance = "literal"
            links = links_within(links, view=view, balance=balance, n_items=n_items)
            if self.root == "literal":
                message = (
                    "root='literal' depends on an arbitrary choice among eigenvectors "
                    "of equal eigenvalues: weights may change by more than half with "
                    "the order of the items or the library. Use root='symmetric'."
                )
                warn_caller(message)
        how: dict[str, Any] = {"n_jobs": self.n_jobs, "verbose": self.verbose}
        how |= {"n_neighbors": self.n_neighbors, "backend": self.backend}
        ids, distances = index.search(**how)
        widths = choose_widths(self.bandwidth, distances, index.items, self.metric)
        self._prepare(index, widths, links)
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
        """Return the codes of new items, as rows, over their nearest fitted items."""
        check_is_fitted(self)
        ids, distances = self._index.search(
            Q, n_neighbors=self.n_neighbors, n_jobs=self.n_jobs, verbose=self.verbose
        )
        items = self._index.items
        widths = choose_widths(self.bandwidth, distances, items, self.metric)
        return self.encode(ids, distances, widths)[0]

    def resume(
        self, X: Any, affinity: Any, widths: Widths, *, links: Any, report: Any
    ) -> "L1Graph":
        """Restore a graph that was fitted to these items, without new codes."""
        self._check_parameters()
        self._prepare(NeighborIndex(X, metric=self.metric), widths, links)
        self.affinity_, self.report_ = affinity, report
        return self

    def encode(
        self, ids: Array, distances: Array, widths: Widths, *, backend: str = "auto"
    ) -> tuple[sp.csr_array, Report]:
        """Return the codes of items, fitted or new, over their neighbours."""
        n_rows, k = ids.shape
        kernels, roots = self._kernels, self._roots_
        how: dict[str, Any] = {"weights": self.kernel, "metric": self.metric}
        own = np.broadcast_to(np.asarray(widths, dtype=float), (n_rows,))
        targets = weigh_edges(ids, distances, own, kernels.widths, **how)
        device = device_for(backend, float(n_rows) * k**3, MIN_CODES, self._index)
        problems = kernels.problems(ids, targets, roots, device)
        how = {"tol": self.tol, "n_jobs": self.n_jobs}
        if device is None:
            found = solve_many(problems, n_rows, verbose=self.verbose, **how)
        else:
            shape = (k if roots is None else 2 * k, k)
            found = solve_on_device(device, problems, n_rows, shape=shape, **how)
        codes, _, solved = found
        items = self._index.items
        return neighbor_matrix(ids, np.abs(codes), items.dtype, items.shape[0]), solved

    def _prepare(self, index: NeighborIndex, widths: Widths, links: Any) -> None:
        """Store what `encode` needs."""
        self._index = index
        self._kernels = NeighborhoodKernels(index, widths, self.kernel)
        self._roots_ = None
        if links is not None:
            self._roots_ = LinkedNeighborhoods(links, root=self.root)
        self.n_features_in_ = index.items.shape[1]

    def _check_parameters(self) -> None:
        """Refuse invalid parameters."""
        check_bandwidth(self.bandwidth)
        for name, known in (("kernel", KERNELS), ("root", ROOTS)):
            check_name(getattr(self, name), known, name=name, error=GraphError)


def l1_graph(
    X: Any, *, links: Any = None, view: str | None = None, **parameters: Any
) -> sp.csr_array:
    """Return the graph of sparse codes: SR, or CSR with links.

    Parameters
    ----------
    X : array-like or sparse of shape (n_items, n_features)
    links : Links, sparse, ndarray or LinkMatrix, default=None
    view : str, default=None
        Both as in `L1Graph.fit`.
    **parameters
        Those of `L1Graph`, such as ``n_neighbors=90`` and ``kernel="gaussian"``.

    Returns
    -------
    W : csr_array of shape (n_items, n_items)
        Symmetric, non-negative, zero diagonal.
    """
    return L1Graph(**parameters).fit(X, links, view=view).affinity_


class NeighborhoodKernels:
    """Affinities among the neighbours of an item, and of the item to them."""

    def __init__(self, index: NeighborIndex, widths: Widths, kernel: str) -> None:
        self.items, self.metric, self.kernel = index.items, index.metric, kernel
        widths = np.asarray(widths, dtype=float)
        self.widths = np.broadcast_to(widths, index.items.shape[:1])
        # Some metrics embed queries differently from items.
        self.queries = self.metric.embed(self.items, True)
        self.embedded = index.embedded

    def among(self, ids: Array) -> Array:
        """Return the affinities among the neighbours of each row."""
        n_rows, k = ids.shape
        if self.metric.pairwise is not None:
            blocks = [self.metric.measure(self.items[i], self.items[i]) for i in ids]
            distances = np.concatenate(blocks)
        else:
            queries, others = self.queries[ids.ravel()], np.repeat(ids, k, axis=0)
            distances = np.sqrt(exact_sums(self.metric, queries, self.embedded, others))
        distances, widths = distances.reshape(n_rows, k, k), self.widths[ids]
        exponent = exponents(distances, widths[:, :, None], widths[:, None, :])
        return WEIGHTS[self.kernel](distances, exponent, self.metric)

    def problems(
        self, ids: Array, targets: Array, roots: Any, device: Any = None
    ) -> Problems:
        """Return a function that builds the problems of some rows, or tensors of it."""
        among = self.among if device is None else self._among_on(device)
        put = np.asarray if device is None else device.put
        join: Any = np.concatenate if device is None else load_torch().cat

        def build(rows: slice) -> tuple[Any, Any]:
            blocks, wanted = among(ids[rows]), put(targets[rows])
            if roots is None:
                return blocks, wanted
            own = put(roots.roots(ids[rows]))
            return join([blocks, own], 1), join([wanted, 0 * wanted], 1)

        return build

    def _among_on(self, device: Any) -> Callable[[Array], Any]:
        """Return `among` with tensors on a device."""
        from linkspread.compiled.gpu.codes import affinities, distances_within

        items = device.put(self.embedded)
        # Most metrics embed queries and items alike.
        is_same = self.queries is self.embedded
        queries = items if is_same else device.put(self.queries)
        widths = device.put(self.widths.copy())

        def among(ids: Array) -> Any:
            near = device.put(ids).long()
            distances = distances_within(queries[near], items[near])
            return affinities(distances, widths[near], self.kernel, self.metric.name)

        return among


class LinkedNeighborhoods:
    """Roots of the Laplacians of the links of neighbourhoods, in batches."""

    def __init__(self, Z: Any, *, root: str = "symmetric") -> None:
        self.Z = as_link_matrix(Z)
        self.root = root
        self._groups = _hard_groups(self.Z)

    def roots(self, ids: Array) -> Array:
        """Return the root of each neighbourhood's Laplacian."""
        if self._groups is not None and self.root == "symmetric":
            return _group_roots(self._groups[ids], self.Z.left.shape[1])
        affinities = self.affinities(ids)
        degrees = affinities.sum(axis=2)
        # With soft labels all affinities of an item may be 0.
        scale = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0)
        scaled = scale[:, :, None] * affinities * scale[:, None, :]
        return ROOTS[self.root](np.eye(ids.shape[1]) - scaled)

    def affinities(self, ids: Array) -> Array:
        """Return ``1 + Z`` among the items of each neighbourhood."""
        left, right = _dense_rows(self.Z.left, ids), _dense_rows(self.Z.right, ids)
        links = left @ self.Z.core @ right.transpose(0, 2, 1)
        if self.Z.pairs.nnz:
            k = ids.shape[1]
            rows = np.repeat(ids, k, axis=1).ravel()
            columns = np.tile(ids, (1, k)).ravel()
            links += np.asarray(self.Z.pairs[rows, columns]).reshape(links.shape)
        return 1 + np.clip(links, -1, 1)


def _dense_rows(memberships: Any, ids: Array) -> Array:
    """Return memberships of the items of each neighbourhood, (n_rows, k, c)."""
    rows = memberships[ids.ravel()]
    rows = rows.toarray() if sp.issparse(rows) else rows
    return rows.reshape(*ids.shape, memberships.shape[1])


def _hard_groups(Z: LinkMatrix) -> Array | None:
    """Return the class of each item, n_classes if unknown; None without hard labels."""
    n_items, n_classes = Z.left.shape
    literal = 2 * np.eye(n_classes) - 1
    if Z.pairs.nnz or Z.core.shape != literal.shape or not np.allclose(Z.core, literal):
        return None
    memberships = sp.csr_array(Z.left)
    counts = np.diff(memberships.indptr)
    if counts.max(initial=0) > 1 or not np.all(memberships.data == 1):
        return None
    groups = np.full(n_items, n_classes)
    groups[counts == 1] = memberships.indices
    return groups


def _group_roots(groups: Array, n_classes: int) -> Array:
    """Return symmetric roots in closed form, through one small matrix per row.

    Neighbours of one class are exchangeable: with E the unit-norm indicators of the
    groups, ``L = I - E A E'``, and ``L^1/2 = I - E (I - (I - A)^1/2) E'``.
    """
    n_rows, k = groups.shape
    n_groups = n_classes + 1
    counts = np.zeros((n_rows, n_groups))
    np.add.at(counts, (np.arange(n_rows)[:, None], groups), 1)
    between = 2 * np.eye(n_groups)
    between[-1] = between[:, -1] = 1  # nothing is known about the last group
    degrees = counts @ between
    scale = np.sqrt(counts / np.maximum(degrees, 1))
    inner = np.eye(n_groups) - scale[:, :, None] * between * scale[:, None, :]
    change = _symmetric_roots(inner) - np.eye(n_groups)
    norms = np.sqrt(np.maximum(counts, 1))
    change /= norms[:, :, None] * norms[:, None, :]
    row = np.arange(n_rows)[:, None, None]
    roots = change[row, groups[:, :, None], groups[:, None, :]]
    roots[:, np.arange(k), np.arange(k)] += 1
    return roots


def _symmetric_roots(matrices: Array) -> Array:
    """Return ``V s^1/2 V'`` of each positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrices)
    scaled = vectors * np.sqrt(np.maximum(values, 0))[:, None, :]
    return scaled @ vectors.transpose(0, 2, 1)


def _literal_roots(matrices: Array) -> Array:
    """Return ``s^1/2 V'`` of each positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.sqrt(np.maximum(values, 0))[:, None, :]).transpose(0, 2, 1)


ROOTS = {"symmetric": _symmetric_roots, "literal": _literal_roots}
