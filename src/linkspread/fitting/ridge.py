"""Ridge regression by a kernel, and what it would say of each item left out.

``(K + ridge W^-1) A = targets`` on the items that are known, W their weights. The
prediction for a known item, had it been left out, is ``target - A / inverse diagonal``:
the whole of leave-one-out costs no further fit.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import lapack
from sklearn.exceptions import ConvergenceWarning

from linkspread.exceptions import LinkspreadError
from linkspread.fitting.conjugate_gradients import solve_by_gradients
from linkspread.parameter_checks import check_positive

__all__ = [
    "RIDGES",
    "RidgeFit",
    "check_ridge",
    "solve_dense",
    "solve_most",
    "solve_products",
]

Array = np.ndarray

# What ridge="loo" chooses from, in units of the kernel's mean diagonal.
RIDGES = (0.03, 0.3, 1.0, 3.0)
# Random signs by which the inverse's diagonal of a large system is estimated.
N_PROBES = 8
# The part that is left out where leave-one-out would take too long, and how exactly
# the others are solved to see which ridge does best.
SHARE_OUT, ROUGH_TOL = 0.1, 1e-2


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
    kernel: Array, targets: Array, weights: Array, ridges: Sequence[float]
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
        diagonal = np.diagonal(inverse).copy()
        coefficients = inverse @ targets + np.tril(inverse, -1).T @ targets
        held_out = targets - coefficients / diagonal[:, None]
        fits.append(_fit(coefficients, held_out, targets, weights, ridge, 0.0))
    return fits


def solve_products(
    apply: Callable[[Array], Array],
    diagonal: Array,
    targets: Array,
    weights: Array,
    ridges: Sequence[float],
    *,
    tol: float = 1e-7,
) -> list[RidgeFit]:
    """Fit by products with a kernel, once for each ridge; leave-one-out is estimated.

    Parameters
    ----------
    apply : callable
        Returns ``kernel @ block``.
    diagonal : ndarray of shape (n,)
        Of the kernel.
    targets : ndarray of shape (n, c)
    weights : ndarray of shape (n,)
    ridges : sequence of float
        In units of the kernel's mean diagonal.
    tol : float, default=1e-7
        Relative residual.

    Returns
    -------
    fits : list of RidgeFit
    """
    unit = float(np.mean(diagonal)) or 1.0
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (len(targets), N_PROBES))
    fits, start = [], None
    for ridge in sorted(ridges, reverse=True):  # the easiest first
        added = ridge * unit / weights
        solution, residual = solve_by_gradients(
            lambda block, added=added: apply(block) + added[:, None] * block,  # type: ignore[misc]
            np.hstack([targets, signs]),
            diagonal=diagonal + added,
            tol=tol,
            start=start,
        )
        _warn(residual, tol)
        start = solution
        coefficients, probes = np.split(solution, [targets.shape[1]], axis=1)
        # Its shape is known better than its size: one number is estimated.
        least = 1 / (diagonal + added)
        inverse = least * max(float(np.sum(signs * probes) / N_PROBES / least.sum()), 1)
        held_out = targets - coefficients / inverse[:, None]
        fits.append(_fit(coefficients, held_out, targets, weights, ridge, residual))
    return fits


def solve_most(
    apply: Callable[[Array], Array],
    diagonal: Array,
    targets: Array,
    weights: Array,
    ridges: Sequence[float],
    *,
    tol: float,
) -> RidgeFit:
    """Fit by products, with the ridge that does best on a part left out.

    For systems so large that a part of them says enough.

    Parameters
    ----------
    apply : callable
        Returns ``kernel @ block``.
    diagonal : ndarray of shape (n,)
        Of the kernel.
    targets : ndarray of shape (n, 1)
    weights : ndarray of shape (n,)
    ridges : sequence of float
        In units of the kernel's mean diagonal.
    tol : float
        Relative residual.

    Returns
    -------
    fit : RidgeFit
        Its `held_out` is NaN but for the part that was left out.
    """
    unit = float(np.mean(diagonal)) or 1.0
    is_out = np.random.default_rng(0).random(len(targets)) < SHARE_OUT
    kept = ~is_out[:, None]
    best: RidgeFit | None = None
    start = None
    for ridge in sorted(ridges, reverse=True):  # the easiest first
        added = ridge * unit / weights

        def product(block: Array, added: Array = added) -> Array:
            # What is left out has equations of its own, whose answer is 0.
            return np.where(kept, apply(block) + added[:, None] * block, block)

        solution, residual = solve_by_gradients(
            product,
            np.where(kept, targets, 0.0),
            diagonal=np.where(is_out, 1.0, diagonal + added),
            tol=max(tol, ROUGH_TOL),
            start=start,
        )
        start = solution
        said = np.where(kept, np.nan, apply(solution))
        fit = _fit(solution, said, targets, weights, ridge, residual)
        if best is None or fit.error < best.error:
            best = fit
    assert best is not None
    added = best.ridge * unit / weights
    solution, residual = solve_by_gradients(
        lambda block: apply(block) + added[:, None] * block,
        targets,
        diagonal=diagonal + added,
        tol=tol,
        start=best.coefficients,
    )
    _warn(residual, tol)
    return replace(best, coefficients=solution, residual=residual)


def _fit(
    coefficients: Array,
    held_out: Array,
    targets: Array,
    weights: Array,
    ridge: float,
    residual: float,
) -> RidgeFit:
    """Return a fit with its error on what was left out."""
    squares = weights[:, None] * (held_out - targets) ** 2
    known = ~np.isnan(held_out)
    size = float(np.sum((weights[:, None] * targets**2)[known])) or 1.0
    error = float(np.sum(squares[known])) / size
    return RidgeFit(coefficients, held_out, error, ridge, residual)


def _warn(residual: float, tol: float) -> None:
    """Warn of a system that was not solved."""
    if residual > 10 * tol:
        warnings.warn(
            f"fitting the links must reach a residual of {tol:g}, and has only reached "
            f"{residual:.1e}. Give a larger `ridge`.",
            ConvergenceWarning,
            stacklevel=2,
        )
