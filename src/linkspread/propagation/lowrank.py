"""Low-rank factors of links that are too many for thin ones: a random sketch.

The products ``F @ block`` cost two recurrences, so F is approximated from its action
on random blocks and never formed (Halko, Martinsson and Tropp 2011).
"""

from typing import Any, Protocol

import numpy as np

from linkspread.compiled.singular import svd
from linkspread.compiled.threads import small_algebra
from linkspread.propagation.spread import compress

Array = np.ndarray

BLOCK = 64
OVERSAMPLING = 16
# Bytes that the bases of both views may take together. Time grows with them too, to
# about a minute; a larger rank is there for who asks for it.
BASIS_BYTES = 2.56e8


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
    """Find bases of both views for all responses of an operator."""
    n, m = operator.shape
    if n > m:
        right, left, cores, error = sketch(operator.T, tol=tol, rank=rank, seed=seed)
        return left, right, [core.T for core in cores], error
    rng = np.random.default_rng(seed)
    limit = n if rank is not None else widest_basis((n, m), operator.dtype.itemsize)
    if rank is not None and rank < n:
        basis = _fixed_range(operator, rank, rng)
    elif limit == n:
        # All of a small view takes less time than to look for directions in it.
        basis = np.eye(n, dtype=operator.dtype)
    else:
        # All responses must be reached, not only the first.
        basis = _growing_range(operator, limit, tol, rng)
        rank = limit if basis.shape[1] == limit else None
    images = _apply_in_blocks(operator.T, basis)
    k = basis.shape[1]
    selectors = [np.eye(k, k * len(images), k * i) for i in range(len(images))]
    left, right, cores, _ = compress(
        basis, np.hstack(images), selectors, tol=tol, rank=rank
    )
    return left, right, cores, _estimate_error(operator, left, cores[0], right, rng)


def widest_basis(shape: tuple[int, int], itemsize: int) -> int:
    """Return how many directions are kept where no rank is given."""
    fitting = int(BASIS_BYTES / sum(shape) / itemsize)
    return min(*shape, max(BLOCK, fitting))


def _apply_in_blocks(operator: ThinOperator, basis: Array) -> list[Array]:
    """Return the products of all responses, a block of columns at a time."""
    starts = range(0, basis.shape[1], 4 * BLOCK)
    parts = [operator.apply(basis[:, start : start + 4 * BLOCK]) for start in starts]
    return [np.hstack(own) for own in zip(*parts, strict=True)]


def _growing_range(
    operator: ThinOperator, limit: int, tol: float, rng: np.random.Generator
) -> Array:
    """Add random samples to an orthonormal basis until they bring nothing new."""
    n, m = operator.shape
    basis = np.zeros((n, 0), dtype=operator.dtype)
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
        room = limit - basis.shape[1]
        basis = np.hstack([basis, _orthonormal(_remove(basis, fresh[:, :room]))])
    if basis.shape[1] == limit:
        return _sharpened(operator, basis)
    return basis


def _fixed_range(operator: ThinOperator, rank: int, rng: np.random.Generator) -> Array:
    """Return a basis a little larger than `rank`."""
    n, m = operator.shape
    width = min(n, m, rank + max(OVERSAMPLING, rank // 2))
    basis = _orthonormal(operator.apply(rng.standard_normal((m, width)), 1)[0])
    return _sharpened(operator, basis)


def _sharpened(operator: ThinOperator, basis: Array) -> Array:
    """Turn a basis that misses something towards what matters most: a power step."""
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
