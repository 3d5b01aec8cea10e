"""Proof of optimality for least absolute deviations, whatever found the answer.

The dual of ``min_w |w|_1 + |b - A w|_1`` is ``max_y b'y`` with ``|y| <= 1`` and
``|A'y| <= 1``: nothing but boxes. Any y divided by its largest violation is therefore
feasible, and its value is a lower bound on every objective. Plain NumPy, because the
proof must not share the shortcuts of the compiled solver.
"""

import numpy as np


class Best:
    """The best coefficients and the best bound of every problem met so far."""

    def __init__(self, A: np.ndarray, targets: np.ndarray):
        self.coefficients = np.zeros((len(A), A.shape[2]))
        self.values = np.abs(targets).sum(axis=1)
        self.bounds = np.zeros(len(A))
        self._A, self._targets = A, targets

    def improve(
        self, rows: np.ndarray, coefficients: np.ndarray, duals: np.ndarray
    ) -> None:
        """Take over what is better; what is not finite never is."""
        A, targets = take(self._A, rows), take(self._targets, rows)
        values = objectives(A, targets, coefficients)
        better = values < self.values[rows]
        self.values[rows[better]] = values[better]
        self.coefficients[rows[better]] = coefficients[better]
        bounds = lower_bounds(A, targets, duals)
        better = bounds > self.bounds[rows]
        self.bounds[rows[better]] = bounds[better]

    @property
    def gaps(self) -> np.ndarray:
        """The relative gaps, of shape (n_problems,)."""
        return _divide(self.values - self.bounds, self.values)


def relative_gaps(
    A: np.ndarray, targets: np.ndarray, coefficients: np.ndarray, duals: np.ndarray
) -> np.ndarray:
    """Return by what share each objective can at most exceed its minimum."""
    values = objectives(A, targets, coefficients)
    return _divide(values - lower_bounds(A, targets, duals), values)


def objectives(
    A: np.ndarray, targets: np.ndarray, coefficients: np.ndarray
) -> np.ndarray:
    """Return ``|w|_1 + |b - A w|_1`` of every problem."""
    with np.errstate(over="ignore", invalid="ignore"):
        residuals = targets - np.matmul(A, coefficients[:, :, None])[:, :, 0]
        return np.abs(coefficients).sum(axis=1) + np.abs(residuals).sum(axis=1)


def lower_bounds(A: np.ndarray, targets: np.ndarray, duals: np.ndarray) -> np.ndarray:
    """Return ``b'y`` of every problem, y scaled until ``|y|, |A'y| <= 1``."""
    with np.errstate(over="ignore", invalid="ignore"):
        products = np.abs(np.matmul(duals[:, None, :], A)[:, 0])
        scales = np.maximum(np.abs(duals).max(axis=1), products.max(axis=1))
        return np.einsum("ij,ij->i", targets, duals) / np.maximum(scales, 1.0)


def take(array: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return some rows of an array, or the array itself when those are all."""
    return array if len(rows) == len(array) else array[rows]


def _divide(excess: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the excess as a share of the values; 0 where the value itself is 0."""
    shares = np.zeros(len(values))
    np.divide(excess, values, out=shares, where=values != 0)
    # Rounding may put a bound above its objective, by one part in 1e16.
    return np.maximum(shares, 0.0)
