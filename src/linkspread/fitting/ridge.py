"""Ridge regression by a kernel, and what it would say of each item left out.

``(K + ridge W^-1) A = targets`` on the items that are known, W their weights. The
prediction for a known item, had it been left out, is ``target - A / inverse diagonal``:
the whole of leave-one-out costs no further fit. Of several items that are left out
together it is ``target - B^-1 A`` with their block B of the inverse.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack

from linkspread.exceptions import LinkspreadError
from linkspread.fitting.item_folds import ItemFolds
from linkspread.kernels.threads import small_algebra
from linkspread.parameter_checks import check_positive

__all__ = ["RIDGES", "RidgeFit", "check_ridge", "measure_fit", "solve_dense"]

Array = np.ndarray

# What ridge="loo" chooses from, in units of the kernel's mean diagonal.
RIDGES = (0.03, 0.3, 1.0, 3.0)


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Coefficients of a fit and how it does on what it was fitted to.

    Attributes
    ----------
    coefficients : ndarray of shape (n, c)
    held_out : ndarray of shape (n, c)
        Prediction for each known item by the others.
    error : float
        Weighed mean square of the errors of `held_out`, as a share of the targets'.
    ridge : float
    residual : float
        Relative residual of the system that was solved.
    """

    coefficients: Array
    held_out: Array
    error: float
    ridge: float
    residual: float


def check_ridge(ridge: Any) -> tuple[float, ...]:
    """Return the ridges to try.

    Parameters
    ----------
    ridge : float or "loo"

    Returns
    -------
    ridges : tuple of float
    """
    if isinstance(ridge, str):
        if ridge == "loo":
            return RIDGES
        raise LinkspreadError(
            f"`ridge` must be a positive number or 'loo', got {ridge!r:.60}. 'loo' "
            "chooses by leave-one-out."
        )
    return (check_positive(ridge, name="ridge", remedy="'loo' chooses one."),)


def solve_dense(
    kernel: Array,
    targets: Array,
    weights: Array,
    ridges: Sequence[float],
    *,
    folds: ItemFolds | None = None,
) -> list[RidgeFit]:
    """Fit by a kernel whose entries are at hand, once for each ridge.

    Parameters
    ----------
    kernel : ndarray of shape (n, n)
        Among the known items.
    targets : ndarray of shape (n, c)
    weights : ndarray of shape (n,)
    ridges : sequence of float
        In units of the kernel's mean diagonal.
    folds : ItemFolds, default=None
        What is left out together; None leaves out each by itself.

    Returns
    -------
    fits : list of RidgeFit
    """
    single = kernel.dtype == np.float32
    factorise = lapack.spotrf if single else lapack.dpotrf
    invert = lapack.spotri if single else lapack.dpotri
    places = np.diag_indices(len(kernel))
    unit = float(np.mean(kernel[places])) or 1.0
    fits = []
    for ridge in ridges:
        system = np.array(kernel, order="F")
        system[places] += ridge * unit / weights
        triangle, info = factorise(system, lower=1, overwrite_a=1)
        if info:
            raise LinkspreadError(
                "a kernel must have no eigenvalue below 0, and this one has. Give a "
                "larger `ridge`, or another kernel."
            )
        inverse, _ = invert(triangle, lower=1, overwrite_c=1)
        inverse = np.tril(inverse)
        coefficients = inverse @ targets + np.tril(inverse, -1).T @ targets
        if folds is None:
            held_out = targets - coefficients / np.diagonal(inverse)[:, None]
        else:
            held_out = targets - _missed_together(inverse, coefficients, folds)
        fits.append(measure_fit(coefficients, held_out, targets, weights, ridge, 0.0))
    return fits


def _missed_together(inverse: Array, coefficients: Array, folds: ItemFolds) -> Array:
    """Return the errors of what is left out with others; of inverse the lower half."""
    missed = np.empty_like(coefficients)
    cells = list(folds.cells())
    with small_algebra(max(len(out) for out, _ in cells) ** 2):
        for out, asked in cells:
            # The lower half is all that is read.
            factor = cho_factor(inverse[np.ix_(out, out)], lower=True)
            missed[out[asked]] = cho_solve(factor, coefficients[out])[asked]
    return missed


def measure_fit(
    coefficients: Array,
    held_out: Array,
    targets: Array,
    weights: Array,
    ridge: float,
    residual: float,
) -> RidgeFit:
    """Return a fit with its error on what was left out.

    Parameters
    ----------
    coefficients, held_out, targets : ndarray of shape (n, c)
    weights : ndarray of shape (n,)
    ridge, residual : float

    Returns
    -------
    fit : RidgeFit
    """
    squares = weights[:, None] * (held_out - targets) ** 2
    known = ~np.isnan(held_out)
    size = float(np.sum((weights[:, None] * targets**2)[known])) or 1.0
    error = float(np.sum(squares[known])) / size
    return RidgeFit(coefficients, held_out, error, ridge, residual)
