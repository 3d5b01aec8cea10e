"""Links after spreading: one short vector per item and the matrices that join them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import qr

from linkspread.compiled.singular import svd
from linkspread.compiled.threads import map_blocks, small_algebra
from linkspread.ground.cores import count_threads
from linkspread.propagation.factored import Factored

Array = np.ndarray

# Rows of a tall matrix that are factorised at a time: few enough for a core's cache.
QR_ROWS = 1 << 12
# Rows that are turned and put in their places at a time.
TURNED_ROWS = 1 << 14


@dataclass(frozen=True)
class Spread:
    """Scores of two views, for fitted items and for items not seen in the fit.

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

    def cores(self) -> list[Array]:
        """Return the cores of fitted items, of new rows and of new columns."""
        if self.unseen_left is None or self.unseen_right is None:
            raise ValueError("this Spread was made without `unseen=True`")
        return [self.core, self.unseen_left, self.unseen_right]

    def truncated(self, rank: int | None) -> "Spread":
        """Return the best approximation of the fitted scores in fewer dimensions.

        Parameters
        ----------
        rank : int or None
            Dimensions to keep; None or more than there are keeps all.

        Returns
        -------
        spread : Spread
        """
        if rank is None or rank >= max(self.core.shape):
            return self
        with small_algebra(self.core.size):
            U, _, Vt = svd(self.core, full_matrices=True)
        U, V = U[:, :rank], Vt[:rank].T

        def shortened(core: Array | None) -> Array | None:
            return None if core is None else U.T @ core @ V

        core = U.T @ self.core @ V
        whole, kept = float(np.linalg.norm(self.core)), float(np.linalg.norm(core))
        share = max(whole**2 - kept**2, 0.0) ** 0.5 / (whole or 1.0)
        return Spread(
            left=self.left @ U,
            right=self.right @ V,
            core=core,
            unseen_left=shortened(self.unseen_left),
            unseen_right=shortened(self.unseen_right),
            error=self.error + share,
        )

    def times(self, other: "Spread") -> "Spread":
        """Return the product of these scores with those of the second view's items.

        Parameters
        ----------
        other : Spread of shape (m, k)

        Returns
        -------
        product : Spread of shape (n, k)
        """
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

    def rows(self, positions: Any) -> Array:
        """Return the scores of fitted items, shape (q, m).

        Parameters
        ----------
        positions : array-like of shape (q,)

        Returns
        -------
        rows : ndarray of shape (q, m)
        """
        return self.queries(positions) @ self.right.T

    def unseen_rows(self, similarities: Any) -> Array:
        """Return the scores of new items, shape (q, m).

        Parameters
        ----------
        similarities : sparse or ndarray of shape (q, n)

        Returns
        -------
        rows : ndarray of shape (q, m)
        """
        return self.unseen_queries(similarities) @ self.right.T

    def mixed_rows(self, weights: Array) -> Array:
        """Return weighted sums of rows of scores, weights of shape (q, n).

        Parameters
        ----------
        weights : ndarray of shape (q, n)

        Returns
        -------
        rows : ndarray of shape (q, m)
        """
        return weights @ self.left @ self.core @ self.right.T

    def vectors(self) -> "Spread":
        """Return itself, as there are vectors."""
        return self

    def fitted(self) -> Factored:
        """Return the scores of fitted items as two thin factors."""
        return Factored(self.left @ self.core, self.right, self.error)

    def queries(self, positions: Any) -> Array:
        """Return the vectors with which fitted items search the other view.

        Parameters
        ----------
        positions : array-like of shape (q,)

        Returns
        -------
        vectors : ndarray of shape (q, s)
            To be multiplied with `right`.
        """
        return self.left[positions] @ self.core

    def unseen_queries(self, similarities: Any) -> Array:
        """Return the vectors with which new items search the other view.

        Parameters
        ----------
        similarities : sparse or ndarray of shape (q, n)
            To the fitted items of the same view, normalised like the graph.

        Returns
        -------
        vectors : ndarray of shape (q, s)
            To be multiplied with `right`.
        """
        if self.unseen_left is None:
            raise ValueError("this Spread was made without `unseen=True`")
        return (similarities @ self.left) @ self.unseen_left


def compress(
    left: Array,
    right: Array,
    cores: list[Array],
    *,
    tol: float,
    rank: int | None = None,
    orders: tuple[Array | None, Array | None] = (None, None),
) -> tuple[Array, Array, list[Array], float]:
    """Find short orthonormal bases for ``left @ core_k @ right.T``."""
    triangles = triangle(left), triangle(right)
    maps = shorten(triangles[0], cores, triangles[1], tol=tol, rank=rank)
    to_left, to_right, small, error = maps
    to_left, to_right = to_left.astype(left.dtype), to_right.astype(right.dtype)
    small = [product.astype(left.dtype) for product in small]
    bases = _turned(left, to_left, orders[0]), _turned(right, to_right, orders[1])
    return *bases, small, error


def _turned(tall: Array, turn: Array, order: Array | None) -> Array:
    """Return ``tall @ turn``, each row where it belongs, without a second copy."""
    if order is None:
        return tall @ turn
    places = np.empty_like(order)
    places[order] = np.arange(len(order), dtype=order.dtype)
    turned = np.empty((len(tall), turn.shape[1]), np.result_type(tall, turn))
    # Rows are read from anywhere and written in a row, which is faster than otherwise.
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
) -> tuple[Array, Array, list[Array], float]:
    """Find what turns two tall matrices, known by their triangles, into short bases."""
    inner = [R_left @ core @ R_right.T for core in cores]
    sizes = [float(np.linalg.norm(product)) or 1.0 for product in inner]
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

    The second result turns the tall matrix itself into the basis. It goes through
    the right singular vectors, ``L (C R') v / s``, and so never inverts a triangular
    factor that dependent columns make singular.
    """
    maps = np.hstack([core @ R_right.T for core in cores])
    products = R_left @ maps
    with small_algebra(products.size):
        U, singular, Vt = svd(products)
    dropped = np.sqrt(np.cumsum(singular[::-1] ** 2))[::-1]
    n_kept = int(np.sum(dropped > tol / 4))
    if rank is not None and n_kept > rank:
        if len(cores) > 1:
            # Where not all fit, the fitted scores decide what is kept.
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
    """Return R of a block that fits the cache, in the block's own precision."""
    return qr(block, mode="r", check_finite=False)[0][: block.shape[1]]
