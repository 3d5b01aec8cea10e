"""Low-rank factors of links that are too many for thin ones: a random sketch.

The products ``F @ block`` cost two recurrences, so F is approximated from its action
on random blocks and never formed (Halko, Martinsson and Tropp 2011).
"""

from typing import Any, Protocol

import numpy as np

from linkspread.kernels.singular import svd
from linkspread.kernels.threads import small_algebra
from linkspread.propagation.spread import compress

__all__ = ["ThinOperator", "sketch"]

Array = np.ndarray

BLOCK = 64
OVERSAMPLING = 16
# Bytes that the basis of both views may take together.
BASIS_BYTES = 2e9


class ThinOperator(Protocol):
    """Matrices F_k of the same shape that are multiplied with thin blocks."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of row items and of column items."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the products."""

    @property
    def T(self) -> "ThinOperator":
        """The operator of the transposed matrices."""

    def apply(self, block: Array, n_responses: int | None = None) -> list[Array]:
        """Return ``F_k @ block`` for the first responses, or for all."""


def sketch(
    operator: ThinOperator, *, tol: float, rank: int | None, seed: int = 0
) -> tuple[Array, Array, list[Array], float]:
    """Find bases of both views for all responses of an operator.

    Parameters
    ----------
    operator : ThinOperator
    tol : float
        Relative error allowed, in Frobenius norm.
    rank : int or None
        Keep at most so many directions, the best ones; None keeps what `tol` needs,
        as far as memory allows.
    seed : int, default=0

    Returns
    -------
    left, right : ndarray of shape (n, r) and (m, s)
    cores : list of ndarray of shape (r, s)
    error : float
        Relative error of the first response, estimated on fresh random vectors.
    """
    rng = np.random.default_rng(seed)
    # Where a rank does not bind, all responses must be reached, not only the first.
    if rank is None or rank >= min(operator.shape):
        basis = _growing_range(operator, tol, rng)
    else:
        basis = _fixed_range(operator, rank, rng)
    images = operator.T.apply(basis)
    k = basis.shape[1]
    selectors = [np.eye(k, k * len(images), k * i) for i in range(len(images))]
    left, right, cores, _ = compress(
        basis, np.hstack(images), selectors, tol=tol, rank=rank
    )
    return left, right, cores, _estimate_error(operator, left, cores[0], right, rng)


def _growing_range(
    operator: ThinOperator, tol: float, rng: np.random.Generator
) -> Array:
    """Add random samples to an orthonormal basis until they bring nothing new."""
    n, m = operator.shape
    dtype = operator.dtype
    limit = min(n, max(BLOCK, int(BASIS_BYTES / (n + m) / dtype.itemsize)))
    basis = np.zeros((n, 0), dtype=dtype)
    while basis.shape[1] < limit:
        samples = operator.apply(rng.standard_normal((m, BLOCK)))
        scaled = np.hstack([sample / _size(sample) for sample in samples])
        rest = _remove(basis, scaled)
        # Gaussian samples measure the Frobenius norm of what the basis misses.
        if np.linalg.norm(rest) <= tol / 4:
            break
        # Directions below the tolerance would only carry rounding into the basis.
        with small_algebra(rest.size):
            U, singular, _ = svd(rest)
        fresh = U[:, singular > 0.01 * tol / np.sqrt(len(singular))]
        room = min(limit, n) - basis.shape[1]
        basis = np.hstack([basis, _orthonormal(_remove(basis, fresh[:, :room]))])
    return basis


def _fixed_range(operator: ThinOperator, rank: int, rng: np.random.Generator) -> Array:
    """Return a basis a little larger than `rank`, sharpened by one power step."""
    n, m = operator.shape
    width = min(n, m, rank + max(OVERSAMPLING, rank // 2))
    basis = _orthonormal(operator.apply(rng.standard_normal((m, width)), 1)[0])
    image = _orthonormal(operator.T.apply(basis, 1)[0])
    return _orthonormal(operator.apply(image, 1)[0])


def _orthonormal(block: Array) -> Array:
    """Return an orthonormal basis of the columns of a block."""
    with small_algebra(block.size):
        return np.linalg.qr(block)[0]


def _remove(basis: Array, block: Array) -> Array:
    """Return the part of a block that is orthogonal to the basis."""
    # Twice is enough to make up for cancellation.
    for _ in range(2):
        block = block - basis @ (basis.T @ block)
    return block


def _estimate_error(
    operator: ThinOperator,
    left: Array,
    core: Array,
    right: Array,
    rng: np.random.Generator,
) -> float:
    """Compare F with its factors on random vectors that did not make them."""
    test = rng.standard_normal((operator.shape[1], OVERSAMPLING))
    exact = operator.apply(test, 1)[0]
    missed = exact - left @ (core @ (right.T @ test))
    return float(np.linalg.norm(missed)) / _size(exact)


def _size(block: Array) -> float:
    """Return the norm of a block, or 1 for a block of zeros."""
    return float(np.linalg.norm(block)) or 1.0
