"""Ridge regression by products with a kernel that is too large to factorise."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from linkspread.fitting.conjugate_gradients import solve_by_gradients
from linkspread.fitting.item_folds import ItemFolds
from linkspread.fitting.ridge import RidgeFit, measure_fit

__all__ = ["solve_most", "solve_products"]

Array = np.ndarray

# Random signs by which the inverse's diagonal of a large system is estimated.
N_PROBES = 8
# The part that is left out where leave-one-out would take too long, and how exactly
# the others are solved to see which ridge does best.
SHARE_OUT, ROUGH_TOL = 0.1, 1e-2


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
        fits.append(
            measure_fit(coefficients, held_out, targets, weights, ridge, residual)
        )
    return fits


def solve_most(
    apply: Callable[[Array], Array],
    diagonal: Array,
    targets: Array,
    weights: Array,
    ridges: Sequence[float],
    *,
    tol: float,
    folds: ItemFolds | None = None,
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
    folds : ItemFolds, default=None
        What is left out together; None leaves out some at random.

    Returns
    -------
    fit : RidgeFit
        Its `held_out` is NaN but for the part that was left out.
    """
    unit = float(np.mean(diagonal)) or 1.0
    is_out, is_asked = _parts_out(len(targets), folds)
    wanted = np.where(is_out, 0.0, targets)
    best: RidgeFit | None = None
    start = None
    for ridge in sorted(ridges, reverse=True):  # the easiest first
        added = ridge * unit / weights

        def product(block: Array, added: Array = added) -> Array:
            # What is left out has equations of its own, whose answer is 0.
            return np.where(is_out, block, apply(block) + added[:, None] * block)

        solution, residual = solve_by_gradients(
            product,
            wanted,
            diagonal=diagonal + added,
            tol=max(tol, ROUGH_TOL),
            start=start,
        )
        start = solution
        said = np.sum(apply(solution), axis=1, keepdims=True, where=is_asked)
        said[~is_asked.any(axis=1)] = np.nan
        guess = solution.mean(axis=1, keepdims=True)
        fit = measure_fit(guess, said, targets, weights, ridge, residual)
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


def _parts_out(n: int, folds: ItemFolds | None) -> tuple[Array, Array]:
    """Return what is left out, and what of it is asked for, a column for each part."""
    if folds is not None:
        return folds.few_cells()
    is_out = np.random.default_rng(0).random((n, 1)) < SHARE_OUT
    return is_out, is_out


def _warn(residual: float, tol: float) -> None:
    """Warn of a system that was not solved."""
    if residual > 10 * tol:
        warnings.warn(
            f"fitting the links must reach a residual of {tol:g}, and has only reached "
            f"{residual:.1e}. Give a larger `ridge`.",
            ConvergenceWarning,
            stacklevel=2,
        )
