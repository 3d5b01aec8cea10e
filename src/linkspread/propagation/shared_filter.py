"""One set of functions for a whole grid of parameters.

As a function of one view's eigenvalue l, every response of this package is a sum of
a constant and of terms ``1 / (1 - a l)``, whatever alpha and beta are: only `a`
changes, between alpha and the limit where beta is 1. A short basis of that family
therefore serves all settings, and a setting is no more than a small core.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from scipy.linalg import qr

from linkspread.compiled.singular import svd
from linkspread.compiled.threads import small_algebra
from linkspread.propagation.filter import (
    Response,
    SeparableFilter,
    fitted_response,
    unseen_response,
)

Array = np.ndarray
# alpha of both views, and beta
Setting = tuple[tuple[float, float], float]

# Members of the family from which the basis is made, evenly spaced in log(1 - a).
N_MEMBERS = 96


def share_filter(
    settings: Sequence[Setting], *, tol: float = 1e-6, unseen: bool = False
) -> SeparableFilter:
    """Write the responses of many settings in functions that all of them share."""
    return _share_filter(tuple(settings), tol, unseen)


@lru_cache(maxsize=4)
def _share_filter(
    settings: tuple[Setting, ...], tol: float, unseen: bool
) -> SeparableFilter:
    """Do so once for all folds, which have the same grid."""
    make = unseen_response if unseen else fitted_response
    responses = [make(pair, beta) for pair, beta in settings]
    betas = [beta for _, beta in settings]
    # The error counts in units of the smallest value of a response, which is small.
    threshold = tol / 30
    while True:
        left = _basis([pair[0] for pair, _ in settings], betas, threshold)
        right = _basis([pair[1] for pair, _ in settings], betas, threshold)
        with small_algebra(left.size):
            separable = _fit_cores(left, right, responses)
        # Rounding sets a floor under what more functions can reach.
        if separable.error <= tol or threshold < 1e-13:
            return separable
        threshold /= 10


def _basis(alphas: list[float], betas: list[float], threshold: float) -> Array:
    """Return Chebyshev coefficients of functions that span the family."""
    poles = [a / (1 - b**2 * (1 - a)) for a, b in zip(alphas, betas, strict=True)]
    gaps = np.geomspace(1 - max(poles), 1 - min(alphas), N_MEMBERS)
    rows = _pole_coefficients(1 - gaps, threshold)
    functions, singular, _ = svd(rows.T)
    kept = singular > threshold * singular[0] / 10
    return functions[:, kept].T


def _pole_coefficients(a: Array, threshold: float) -> Array:
    """Return the Chebyshev coefficients of 1 and of each ``1 / (1 - a l)``.

    The latter are those of a geometric series in ``r = a / (1 + sqrt(1 - a^2))``.
    They are scaled to the largest value 1, and end where all are small.
    """
    root = np.sqrt(1 - a**2)
    r = a / (1 + root)
    slowest = max(r.max(), 1e-3)
    degree = int(np.ceil(np.log(threshold / 100) / np.log(slowest)))
    rows = 2 * r[:, None] ** np.arange(degree + 1) * ((1 - a) / root)[:, None]
    rows[:, 0] /= 2
    return np.vstack([np.eye(1, degree + 1), rows])


def _fit_cores(left: Array, right: Array, responses: list[Response]) -> SeparableFilter:
    """Interpolate each response at as many points as functions, and measure it."""
    l, m = _interpolation_points(left), _interpolation_points(right)
    to_left = np.linalg.inv(chebyshev.chebval(l, left.T).T)
    to_right = np.linalg.inv(chebyshev.chebval(m, right.T).T)
    values = np.stack([h(l[:, None], m[None, :]) for h in responses])
    cores = to_left @ values @ to_right.T
    l, m = _dense_ends(2 * len(left)), _dense_ends(2 * len(right))
    phi, psi = chebyshev.chebval(l, left.T), chebyshev.chebval(m, right.T)
    error = 0.0
    for core, h in zip(cores, responses, strict=True):
        values = h(l[:, None], m[None, :])
        smallest = np.abs(values).min() or 1.0
        error = max(error, np.abs(phi.T @ core @ psi - values).max() / smallest)
    return SeparableFilter(left, right, tuple(cores), float(error))


def _interpolation_points(functions: Array) -> Array:
    """Choose points at which the functions tell most, by pivoting."""
    candidates = _dense_ends(16 * len(functions))
    values = chebyshev.chebval(candidates, functions.T)
    return candidates[qr(values, mode="r", pivoting=True)[1][: len(functions)]]


def _dense_ends(n_points: int) -> Array:
    """Return points of [-1, 1] that lie closest near 1, where the poles are."""
    angles = np.linspace(0, 1, n_points)
    return np.unique(np.concatenate([1 - 2 * angles**4, np.cos(np.pi * angles)]))
