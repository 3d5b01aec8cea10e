"""Scores as thin factors: two sets of vectors and cores between them.

Wide factors are compressed by QR and a small SVD. Links without factors are sketched: F
is approximated from its products with random blocks and never formed (Halko, Martinsson
and Tropp 2011).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import qr

from linkspread.compiled.backends import map_blocks, small_algebra
from linkspread.compiled.singular import orthonormal, range_basis, svd
from linkspread.ground.cores import count_threads
from linkspread.ground.errors import LinkspreadError
from linkspread.propagation.chebyshev import inverse_order

Array = np.ndarray
# Left vectors, right vectors, the cores between them, and the relative error.
Vectors = tuple[Array, Array, list[Array], float]

# Rows of a tall matrix that are factorised at a time: few enough for a core's cache.
QR_ROWS = 1 << 12
# Rows multiplied and reordered at a time.
TURNED_ROWS = 1 << 14
# Columns of the random blocks of a sketch, and their number beyond the rank.
BLOCK = 64
OVERSAMPLING = 16
# Bytes of the bases of both views in a sketch without a given rank, which takes up to a
# minute. A larger rank must be given explicitly.
BASIS_BYTES = 2.56e8


@dataclass(frozen=True)
class Factored:
    """Scores ``F = left @ right.T`` as two thin factors.

    Parameters
    ----------
    left : ndarray of shape (n_rows, rank)
        One vector per row item.
    right : ndarray of shape (n_columns, rank)
        One vector per column item; scores are inner products, not cosines.
    error : float, default=0.0
        Estimated ``||F - left @ right.T|| / ||F||`` in Frobenius norm.

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.propagation import Factored
    >>> F = Factored(np.array([[1.0], [2.0]]), np.array([[3.0], [4.0], [5.0]]))
    >>> F.toarray()[1]
    array([ 6.,  8., 10.])
    """

    left: Array
    right: Array
    error: float = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of row items and of column items."""
        return len(self.left), len(self.right)

    @property
    def rank(self) -> int:
        """Number of columns of both factors."""
        return self.left.shape[1]

    def toarray(self) -> Array:
        """Return F as a dense array, which must fit in memory."""
        return self.left @ self.right.T


@dataclass(frozen=True)
class Spread:
    """Scores of two views, for fitted and for new items.

    Attributes
    ----------
    left : ndarray of shape (n, r)
        Orthonormal columns; one vector per item of the first view.
    right : ndarray of shape (m, s)
        The same for the second view.
    core : ndarray of shape (r, s)
        Scores of fitted items are ``left @ core @ right.T``.
    unseen_left : ndarray of shape (r, s) or None
        New items of the first view with normalised similarities to the fitted ones
        score ``similarities @ left @ unseen_left @ right.T``.
    unseen_right : ndarray of shape (r, s) or None
        The same for new items of the second view, transposed.
    error : float
        Estimated relative error of the fitted scores in Frobenius norm.
    """

    left: Array
    right: Array
    core: Array
    unseen_left: Array | None
    unseen_right: Array | None
    error: float

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of row items and of column items."""
        return len(self.left), len(self.right)

    @property
    def dtype(self) -> Any:
        """Precision of the scores."""
        return self.left.dtype

    @property
    def T(self) -> "Spread":
        """The same scores with the views exchanged."""
        return Spread(
            left=self.right,
            right=self.left,
            core=self.core.T,
            unseen_left=None if self.unseen_right is None else self.unseen_right.T,
            unseen_right=None if self.unseen_left is None else self.unseen_left.T,
            error=self.error,
        )

    def times(self, other: "Spread") -> "Spread":
        """Return the product with the scores of the second view and a third."""
        joint = self.right.T @ other.left
        onwards, so_far = joint @ other.core, self.core @ joint
        new_left, new_right = self.unseen_left, other.unseen_right
        return Spread(
            left=self.left,
            right=other.right,
            core=self.core @ onwards,
            unseen_left=None if new_left is None else new_left @ onwards,
            unseen_right=None if new_right is None else so_far @ new_right,
            error=self.error + other.error,
        )

    def fitted(self) -> Factored:
        """Return the scores of fitted items as two thin factors."""
        return Factored(self.left @ self.core, self.right, self.error)

    def vectors(self) -> "Spread":
        """Return self; `SpreadRows` has the same method."""
        return self

    def queries(self, positions: Any) -> Array:
        """Return the query vectors of fitted items, (q, s), for use with `right`."""
        return self.left[positions] @ self.core

    def unseen_queries(self, similarities: Any) -> Array:
        """Return the query vectors of new items, (q, s), for products with `right`.

        Their similarities to the fitted items are normalised like the graph.
        """
        if self.unseen_left is None:
            raise LinkspreadError(
                "new items must have a Spread with factors for them, got one for "
                "fitted items only. Use `spread_links`."
            )
        return (similarities @ self.left) @ self.unseen_left

    def rows(self, positions: Any) -> Array:
        """Return the scores of fitted items, (q, m).

        Parameters
        ----------
        positions : array-like of shape (q,)
        """
        return self.queries(positions) @ self.right.T

    def unseen_rows(self, similarities: Any) -> Array:
        """Return the scores of new items, (q, m), from similarities (q, n)."""
        return self.unseen_queries(similarities) @ self.right.T

    def mixed_rows(self, weights: Array) -> Array:
        """Return sums of rows of scores, (q, m), with weights (q, n)."""
        return weights @ self.left @ self.core @ self.right.T


def compress(
    left: Array,
    right: Array,
    cores: list[Array],
    *,
    tol: float,
    rank: int | None = None,
    orders: tuple[Array | None, Array | None] = (None, None),
) -> Vectors:
    """Find short orthonormal bases for ``left @ core_k @ right.T``."""
    to_left, to_right, small, error = shorten(
        triangle(left), cores, triangle(right), tol=tol, rank=rank
    )
    to_left, to_right = to_left.astype(left.dtype), to_right.astype(right.dtype)
    small = [product.astype(left.dtype) for product in small]
    bases = _turned(left, to_left, orders[0]), _turned(right, to_right, orders[1])
    return *bases, small, error


def _turned(tall: Array, turn: Array, order: Array | None) -> Array:
    """Return ``tall @ turn`` with the order of the rows undone, without a copy."""
    if order is None:
        return tall @ turn
    places = inverse_order(order)
    turned = np.empty((len(tall), turn.shape[1]), np.result_type(tall, turn))
    # Random reads and sequential writes are faster than the reverse.
    for start in range(0, len(tall), TURNED_ROWS):
        own = slice(start, start + TURNED_ROWS)
        np.matmul(tall[places[own]], turn, out=turned[own])
    return turned


def shorten(
    R_left: Array,
    cores: list[Array],
    R_right: Array,
    *,
    tol: float,
    rank: int | None = None,
) -> Vectors:
    """Return maps from two tall matrices, given as triangles, to short bases."""
    inner = [R_left @ core @ R_right.T for core in cores]
    sizes = [_size(product) for product in inner]
    scaled = [core / size for core, size in zip(cores, sizes, strict=True)]
    U, to_left = _directions(R_left, scaled, R_right, tol, rank)
    V, to_right = _directions(R_right, [core.T for core in scaled], R_left, tol, rank)
    small = [U.T @ product @ V for product in inner]
    error = float(np.linalg.norm(inner[0] - U @ small[0] @ V.T)) / sizes[0]
    return to_left, to_right, small, error


def _directions(
    R_left: Array, cores: list[Array], R_right: Array, tol: float, rank: int | None
) -> tuple[Array, Array]:
    """Return the leading left singular vectors of all products side by side.

    The second result maps the tall matrix to the basis. It uses the right singular
    vectors, ``L (C R') v / s``, so a singular triangle is never inverted.
    """
    maps = np.hstack([core @ R_right.T for core in cores])
    products = R_left @ maps
    with small_algebra(products.size):
        U, singular, Vt = svd(products)
    dropped = np.sqrt(np.cumsum(singular[::-1] ** 2))[::-1]
    n_kept = int(np.sum(dropped > tol / 4))
    if rank is not None and n_kept > rank:
        if len(cores) > 1:
            # If the rank is too small, only the fitted scores count.
            return _directions(R_left, cores[:1], R_right, tol, rank)
        n_kept = rank
    return U[:, :n_kept], maps @ Vt[:n_kept].T / singular[:n_kept]


def triangle(tall: Array) -> Array:
    """Return R of the QR factorisation of a tall matrix, a block of rows at a time."""
    step = max(QR_ROWS, 4 * tall.shape[1])
    if len(tall) > step:
        blocks = [tall[start : start + step] for start in range(0, len(tall), step)]
        parts = map_blocks(_small_triangle, blocks, n_threads=count_threads(None))
        tall = np.vstack(list(parts)).astype(np.float64)
    with small_algebra(tall.size):
        return _small_triangle(tall).astype(np.float64)


def _small_triangle(block: Array) -> Array:
    """Return R of a block that fits the cache, in the block's precision."""
    return qr(block, mode="r", check_finite=False)[0][: block.shape[1]]


def sketch(operator: Any, *, tol: float, rank: int | None, seed: int = 0) -> Vectors:
    """Find bases of both views for all responses of an operator.

    The operator has `shape`, `dtype`, `T` and `apply`, as `chebyshev.FilterOperator`.
    """
    n, m = operator.shape
    if n > m:
        right, left, cores, error = sketch(operator.T, tol=tol, rank=rank, seed=seed)
        return left, right, [core.T for core in cores], error
    rng = np.random.default_rng(seed)
    limit = n if rank is not None else widest_basis((n, m), operator.dtype.itemsize)
    if rank is not None and rank < n:
        width = min(n, rank + max(OVERSAMPLING, rank // 2))
        there, back = _first_response(operator), _first_response(operator.T)
        basis = range_basis(there, rng.standard_normal((m, width)), back=back)
    elif limit == n:
        # For a small view the full basis is faster than a search for directions.
        basis = np.eye(n, dtype=operator.dtype)
    else:
        # The basis must contain the ranges of all responses.
        basis = _growing_range(operator, limit, tol, rng)
        rank = limit if basis.shape[1] == limit else None
    images = _apply_in_blocks(operator.T, basis)
    k = basis.shape[1]
    selectors = [np.eye(k, k * len(images), k * i) for i in range(len(images))]
    left, right, cores, _ = compress(
        basis, np.hstack(images), selectors, tol=tol, rank=rank
    )
    # The error is measured on independent random vectors.
    test = rng.standard_normal((m, OVERSAMPLING))
    exact = operator.apply(test, 1)[0]
    missed = exact - left @ (cores[0] @ (right.T @ test))
    return left, right, cores, float(np.linalg.norm(missed)) / _size(exact)


def widest_basis(shape: tuple[int, int], itemsize: int) -> int:
    """Return the number of directions kept without a given rank."""
    fitting = int(BASIS_BYTES / sum(shape) / itemsize)
    return min(*shape, max(BLOCK, fitting))


def _apply_in_blocks(operator: Any, basis: Array) -> list[Array]:
    """Return the products of all responses, a block of columns at a time."""
    starts = range(0, basis.shape[1], 4 * BLOCK)
    parts = [operator.apply(basis[:, start : start + 4 * BLOCK]) for start in starts]
    return [np.hstack(own) for own in zip(*parts, strict=True)]


def _growing_range(
    operator: Any, limit: int, tol: float, rng: np.random.Generator
) -> Array:
    """Add random samples to an orthonormal basis until it contains new ones."""
    n, m = operator.shape
    basis = np.zeros((n, 0), dtype=operator.dtype)
    while basis.shape[1] < limit:
        samples = operator.apply(rng.standard_normal((m, BLOCK)))
        rest = _remove(basis, np.hstack([own / _size(own) for own in samples]))
        # Gaussian samples measure the Frobenius norm of what the basis misses.
        if np.linalg.norm(rest) <= tol / 4:
            break
        # Directions below the tolerance are only rounding.
        with small_algebra(rest.size):
            U, singular, _ = svd(rest)
        fresh = U[:, singular > 0.01 * tol / np.sqrt(len(singular))]
        room = limit - basis.shape[1]
        basis = np.hstack([basis, orthonormal(_remove(basis, fresh[:, :room]))])
    if basis.shape[1] < limit:
        return basis
    # The basis is incomplete: a power iteration turns it to the leading directions.
    there, back = _first_response(operator), _first_response(operator.T)
    return range_basis(there, orthonormal(back(basis)))


def _first_response(operator: Any) -> Callable[[Array], Array]:
    """Return a function that applies the first response to a block."""
    return lambda block: operator.apply(block, 1)[0]


def _remove(basis: Array, block: Array) -> Array:
    """Return the part of a block that is orthogonal to the basis."""
    # Twice, against cancellation.
    for _ in range(2):
        block = block - basis @ (basis.T @ block)
    return block


def _size(block: Array) -> float:
    """Return the norm of a block, or 1 for a block of zeros."""
    return float(np.linalg.norm(block)) or 1.0
