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

from linkspread.propagation.smoothing import smooth_over_graph

__all__ = ["DenseKernel", "FeatureKernel", "GraphKernel", "MixedKernel", "ViewKernel"]

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


class DenseKernel(ViewKernel):
    """A kernel whose entries are all kept: for views that are not large.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
    compare : callable
        Returns the similarities of new rows to all items.
    """

    def __init__(self, matrix: Array, compare: Callable[[Any], Array]) -> None:
        self.matrix = matrix.astype(_precision(len(matrix)), copy=False)
        self.compare = compare
        self.n_items = len(matrix)

    def __matmul__(self, block: Array) -> Array:
        return self.matrix @ block

    def diagonal(self) -> Array:
        return np.diagonal(self.matrix)

    def block(self, rows: Array, columns: Array) -> Array:
        return self.matrix[np.ix_(rows, columns)]

    def release(self) -> None:
        self.matrix = np.zeros((0, 0))

    def extend(self, rows: Any, coefficients: Array, fitted: Array) -> Array:
        used = np.flatnonzero(coefficients.any(axis=1))
        return self.compare(rows)[:, used] @ coefficients[used]


class FeatureKernel(ViewKernel):
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

    def extend(self, rows: Any, coefficients: Array, fitted: Array) -> Array:
        return self.embed(rows) @ (self.features.T @ coefficients)


class GraphKernel(ViewKernel):
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
        self.n_items = S.shape[0]
        # Products of a large graph are as precise as the graph, and as fast.
        self.S = S.astype(np.float64) if self.n_items <= DENSE_ITEMS else S
        self.alpha, self.tol = alpha, tol
        self.similar = similar
        self._whole = self._invert() if self.n_items <= DENSE_ITEMS else None
        # Items are divided by these lengths.
        self.lengths = np.ones(self.n_items)
        self._plain_diagonal = self._find_diagonal().astype(np.float64)
        if unit_diagonal:
            self.lengths = np.sqrt(self._plain_diagonal)
            if self._whole is not None:
                self._whole /= self.lengths[:, None]
                self._whole /= self.lengths

    def __matmul__(self, block: Array) -> Array:
        if self._whole is not None:
            return self._whole @ block
        divisors = self.lengths[:, None]
        smooth = smooth_over_graph(
            self.S, block / divisors, alpha=self.alpha, tol=self.tol
        )
        return smooth / divisors

    def diagonal(self) -> Array:
        return self._plain_diagonal / self.lengths**2

    def block(self, rows: Array, columns: Array) -> Array:
        if self._whole is not None:
            return self._whole[np.ix_(rows, columns)]
        return super().block(rows, columns)

    def release(self) -> None:
        self._whole = None

    def extend(self, rows: Any, coefficients: Array, fitted: Array) -> Array:
        if self.similar is None:
            raise ValueError("this kernel was made without `similar`")
        near = sparse.csr_array(self.similar(rows))
        reached = self.alpha * (near @ (self.lengths[:, None] * fitted))
        # The diagonal that a new item would have, without ways there and back again
        # through two different neighbours; it scales a whole row of scores.
        own = (1 - self.alpha) + self.alpha**2 * (
            near.multiply(near) @ self._plain_diagonal
        )
        return reached / np.sqrt(own)[:, None]

    def _invert(self) -> Array:
        """Return all entries, before any scaling."""
        dtype = _precision(self.n_items)
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

    def _find_diagonal(self) -> Array:
        """Return the diagonal before any scaling, estimated on a large graph."""
        if self._whole is not None:
            return np.diagonal(self._whole).copy()
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (self.n_items, N_PROBES))
        estimate = np.mean(signs * (self @ signs), axis=1)
        # No diagonal of this inverse is smaller.
        return np.maximum(estimate, 1 - self.alpha)


class MixedKernel(ViewKernel):
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

    def extend(self, rows: Any, coefficients: Array, fitted: Array) -> Array:
        return self._sum(
            lambda kernel: kernel.extend(rows, coefficients, kernel @ coefficients)
        )

    def _sum(self, part: Callable[[ViewKernel], Array]) -> Array:
        """Return the weighed sum of what each kernel gives."""
        pairs = zip(self.weights, self.kernels, strict=True)
        return sum((weight * part(kernel) for weight, kernel in pairs), np.zeros(()))


def _precision(n_items: int) -> type[np.floating[Any]]:
    """Return the precision in which all entries of a kernel are kept."""
    return np.float64 if n_items <= DOUBLE_ITEMS else np.float32
