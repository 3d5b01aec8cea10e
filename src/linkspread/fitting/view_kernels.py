"""How alike the items of a view are, as matrices that are multiplied and rarely formed.

A kernel K is symmetric with eigenvalues of at least 0. Fitting needs its products with
thin blocks, some of its entries, and its values for items that are not in it yet:

>>> import numpy as np
>>> from linkspread.fitting.view_kernels import FeatureKernel
>>> K = FeatureKernel(np.array([[1.0, 0.0], [1.0, 1.0]]), embed=lambda rows: rows)
>>> (K @ np.eye(2)).tolist()
[[1.0, 1.0], [1.0, 2.0]]
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from linkspread.fitting.embeddings import Added
from linkspread.fitting.extensions import (
    DenseExtension,
    FeatureExtension,
    GraphExtension,
    KernelExtension,
)
from linkspread.propagation.smoothing import smooth_over_graph

__all__ = [
    "DenseKernel",
    "FeatureKernel",
    "GraphKernel",
    "MixedKernel",
    "StoredKernel",
    "ViewKernel",
    "precision",
]

Array = np.ndarray

# Items up to which all entries of a kernel are kept: 256 MB at most.
DENSE_ITEMS = 8000
# Columns of a kernel that are computed at a time.
COLUMN_TILE = 256
# Random signs by which the diagonal of a large kernel is estimated.
N_PROBES = 64
# Kernels of more items than this are kept in single precision.
DOUBLE_ITEMS = 2000


class ViewKernel(ABC):
    """The similarities among the items of a view; a kernel has their number, n_items.

    A kernel of your own derives from this class.
    """

    n_items: int

    @abstractmethod
    def __matmul__(self, block: Array) -> Array:
        """Return ``K @ block`` for a block of shape (n_items, c)."""

    @abstractmethod
    def diagonal(self) -> Array:
        """Return the similarity of each item to itself."""

    @abstractmethod
    def extend(self, rows: Any, coefficients: Array, fitted: Array) -> Array:
        """Return ``k(rows, items) @ coefficients`` for items that are new.

        Parameters
        ----------
        rows : table of shape (q, n_features)
        coefficients : ndarray of shape (n_items, c)
        fitted : ndarray of shape (n_items, c)
            ``K @ coefficients``, which some kernels start from.

        Returns
        -------
        values : ndarray of shape (q, c)
        """

    def extension(self, coefficients: Array, fitted: Array) -> Any:
        """Return what makes values of new rows, and holds no more than that needs.

        Parameters
        ----------
        coefficients, fitted : ndarray of shape (n_items, c)
            As for `extend`.

        Returns
        -------
        extension : callable
        """
        return KernelExtension(self, coefficients, fitted)

    def release(self) -> None:  # noqa: B027 - most kernels have nothing to forget
        """Forget what only products need, when nothing but `extend` is to come."""

    def block(self, rows: Array, columns: Array) -> Array:
        """Return the entries of K at these rows and columns.

        Parameters
        ----------
        rows, columns : ndarray of int

        Returns
        -------
        block : ndarray of shape (n_rows, n_columns)
        """
        parts = [np.zeros((len(rows), 0))]
        for start in range(0, len(columns), COLUMN_TILE):
            chosen = columns[start : start + COLUMN_TILE]
            units = np.zeros((self.n_items, len(chosen)))
            units[chosen, np.arange(len(chosen))] = 1
            parts.append((self @ units)[rows])
        return np.hstack(parts)


class StoredKernel(ViewKernel):
    """A kernel of this package: what new rows get from it is plain data."""

    @abstractmethod
    def extension(self, coefficients: Array, fitted: Array) -> Any:
        """Return what makes values of new rows, and holds no more than that needs.

        Parameters
        ----------
        coefficients, fitted : ndarray of shape (n_items, c)
            As for `extend`.

        Returns
        -------
        extension : callable
        """

    def extend(self, rows: Any, coefficients: Array, fitted: Array) -> Array:
        return self.extension(coefficients, fitted)(rows)


class DenseKernel(StoredKernel):
    """A kernel whose entries are all kept: for views that are not large.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
    compare : callable
        Returns the similarities of new rows to all items.
    """

    def __init__(self, matrix: Array, compare: Callable[[Any], Array]) -> None:
        self._matrix = matrix.astype(precision(len(matrix)), copy=False)
        self.compare = compare
        self.n_items = len(matrix)

    @property
    def matrix(self) -> Array:
        """All entries."""
        return self._matrix

    def __matmul__(self, block: Array) -> Array:
        return self.matrix @ block

    def diagonal(self) -> Array:
        return np.diagonal(self.matrix)

    def block(self, rows: Array, columns: Array) -> Array:
        return self.matrix[np.ix_(rows, columns)]

    def release(self) -> None:
        self._matrix = np.zeros((0, 0))

    def extension(self, coefficients: Array, fitted: Array) -> DenseExtension:
        used = np.flatnonzero(coefficients.any(axis=1))
        return DenseExtension(self.compare, used, coefficients[used])


class FeatureKernel(StoredKernel):
    """Inner products of features, linear or by landmarks.

    Parameters
    ----------
    features : ndarray of shape (n, r)
    embed : callable
        Makes the features of new rows.
    """

    def __init__(self, features: Array, embed: Callable[[Any], Array]) -> None:
        self.features = features
        self.embed = embed
        self.n_items = len(features)

    def __matmul__(self, block: Array) -> Array:
        return self.features @ (self.features.T @ block)

    def diagonal(self) -> Array:
        return np.einsum("ir,ir->i", self.features, self.features)

    def block(self, rows: Array, columns: Array) -> Array:
        return self.features[rows] @ self.features[columns].T

    def extension(self, coefficients: Array, fitted: Array) -> FeatureExtension:
        return FeatureExtension(self.embed, self.features.T @ coefficients)


class GraphKernel(StoredKernel):
    """How easily items are reached from each other on a graph.

    ``P = (1 - alpha) (I - alpha S)^-1``, scaled to a diagonal of 1 if asked, so that
    items in crowded places are no more alike than others.

    Parameters
    ----------
    S : csr_array of shape (n, n)
        Normalised affinity.
    alpha : float
        How far similarity reaches, in [0, 1).
    similar : callable, default=None
        Returns the normalised similarities of new rows to all items, sparse.
    unit_diagonal : bool, default=True
        On large graphs the diagonal is estimated.
    tol : float, default=1e-9
        Relative error of products.
    """

    def __init__(
        self,
        S: sparse.csr_array,
        alpha: float,
        *,
        similar: Callable[[Any], Any] | None = None,
        unit_diagonal: bool = True,
        tol: float = 1e-9,
    ) -> None:
        self._keep(S, alpha, similar, tol)
        # Items are divided by these lengths.
        self.lengths = np.ones(self.n_items)
        plain = self._invert() if self._is_small else None
        self.plain_diagonal = self._find_diagonal(plain).astype(np.float64)
        if unit_diagonal:
            self.lengths = np.sqrt(self.plain_diagonal)
        self._whole = None if plain is None else self._scale(plain)

    @classmethod
    def resume(
        cls,
        S: sparse.csr_array,
        alpha: float,
        *,
        similar: Callable[[Any], Any] | None,
        tol: float,
        lengths: Array,
        plain_diagonal: Array,
    ) -> "GraphKernel":
        """Take up a kernel that was made before; its entries are made when needed.

        Parameters
        ----------
        S : csr_array of shape (n, n)
        alpha : float
        similar : callable or None
        tol : float
        lengths, plain_diagonal : ndarray of shape (n,)
            All as the attributes of the kernel are.

        Returns
        -------
        kernel : GraphKernel
        """
        kernel = cls.__new__(cls)
        kernel._keep(S, alpha, similar, tol)
        kernel.lengths, kernel.plain_diagonal = lengths, plain_diagonal
        kernel._whole = None
        return kernel

    def __matmul__(self, block: Array) -> Array:
        if self._is_small:
            return self._entries() @ block
        divisors = self.lengths[:, None]
        smooth = smooth_over_graph(
            self.S, block / divisors, alpha=self.alpha, tol=self.tol
        )
        return smooth / divisors

    def diagonal(self) -> Array:
        return self.plain_diagonal / self.lengths**2

    def block(self, rows: Array, columns: Array) -> Array:
        if self._is_small:
            return self._entries()[np.ix_(rows, columns)]
        return super().block(rows, columns)

    def release(self) -> None:
        self._whole = None

    def extension(self, coefficients: Array, fitted: Array) -> GraphExtension:
        reached = self.lengths[:, None] * fitted
        return GraphExtension(self.similar, self.alpha, self.plain_diagonal, reached)

    def _keep(
        self, S: sparse.csr_array, alpha: float, similar: Any, tol: float
    ) -> None:
        """Store what the kernel is made of."""
        self.n_items = S.shape[0]
        self._is_small = self.n_items <= DENSE_ITEMS
        # Products of a large graph are as precise as the graph, and as fast.
        self.S = S.astype(np.float64, copy=False) if self._is_small else S
        self.alpha, self.similar, self.tol = alpha, similar, tol

    def _entries(self) -> Array:
        """Return all entries, made anew if they were forgotten."""
        if self._whole is None:
            self._whole = self._scale(self._invert())
        return self._whole

    def _scale(self, plain: Array) -> Array:
        """Divide the entries by the lengths of both items, in place."""
        plain /= self.lengths[:, None]
        plain /= self.lengths
        return plain

    def _invert(self) -> Array:
        """Return all entries, before any scaling."""
        dtype = precision(self.n_items)
        matrix = -self.alpha * self.S.toarray(order="F").astype(dtype)
        matrix[np.diag_indices(self.n_items)] += 1
        single = dtype == np.float32
        factorise = lapack.spotrf if single else lapack.dpotrf
        invert = lapack.spotri if single else lapack.dpotri
        triangle, _ = factorise(matrix, lower=1, overwrite_a=1)
        inverse, _ = invert(triangle, lower=1, overwrite_c=1)
        inverse = np.tril(inverse)
        inverse += np.tril(inverse, -1).T
        inverse *= 1 - self.alpha
        return inverse

    def _find_diagonal(self, plain: Array | None) -> Array:
        """Return the diagonal before any scaling, estimated on a large graph."""
        if plain is not None:
            return np.diagonal(plain).copy()
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (self.n_items, N_PROBES))
        estimate = np.mean(signs * (self @ signs), axis=1)
        # No diagonal of this inverse is smaller.
        return np.maximum(estimate, 1 - self.alpha)


class MixedKernel(StoredKernel):
    """A sum of kernels.

    Parameters
    ----------
    kernels : sequence of ViewKernel
    weights : sequence of float
        At least 0.
    """

    def __init__(self, kernels: Sequence[ViewKernel], weights: Sequence[float]) -> None:
        self.kernels, self.weights = tuple(kernels), tuple(weights)
        self.n_items = kernels[0].n_items

    def __matmul__(self, block: Array) -> Array:
        return self._sum(lambda kernel: kernel @ block)

    def diagonal(self) -> Array:
        return self._sum(lambda kernel: kernel.diagonal())

    def block(self, rows: Array, columns: Array) -> Array:
        return self._sum(lambda kernel: kernel.block(rows, columns))

    def extension(self, coefficients: Array, fitted: Array) -> Added:
        parts = [k.extension(coefficients, k @ coefficients) for k in self.kernels]
        return Added(tuple(parts), self.weights)

    def _sum(self, part: Callable[[ViewKernel], Array]) -> Array:
        """Return the weighed sum of what each kernel gives."""
        pairs = zip(self.weights, self.kernels, strict=True)
        return sum((weight * part(kernel) for weight, kernel in pairs), np.zeros(()))


def precision(n_items: int) -> type[np.floating[Any]]:
    """Return the precision in which all entries of a kernel are kept.

    Parameters
    ----------
    n_items : int

    Returns
    -------
    dtype : type
    """
    return np.float64 if n_items <= DOUBLE_ITEMS else np.float32
