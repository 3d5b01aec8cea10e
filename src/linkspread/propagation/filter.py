"""The two-sided graph filter that the paper's iteration converges to.

In the eigenbases of S_x (eigenvalue l) and S_y (eigenvalue m), every result of this
package is an entrywise product ``h(l, m) * Z``. This file defines these responses h
and expands them in short sums of products of polynomials::

    h_k(l, m) ~ sum_rs cores[k][r, s] * phi_r(l) * psi_s(m)

so that a propagation needs one Chebyshev recurrence per view. `separate` expands a few
responses in as few functions as possible, `share_filter` a grid of alpha and beta in
shared functions. Derivations are in ``docs/how-it-works.md``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from scipy.fft import dctn
from scipy.linalg import qr

from linkspread.compiled.backends import small_algebra
from linkspread.compiled.singular import range_basis, svd
from linkspread.ground.errors import LinkspreadError

Array = np.ndarray
Response = Callable[[Array, Array], Array]
# alpha of both views, and beta
Setting = tuple[tuple[float, float], float]

MAX_DEGREE = 4096
# Coefficients below this fraction of the largest are rounding noise of the transform.
NOISE = 4 * np.finfo(float).eps
# Columns of the random sketch of a large table of coefficients.
SKETCH = 100
# Functions from which the basis of `share_filter` is computed, evenly spaced in
# log(1 - a).
N_MEMBERS = 96


def _smoothing(l: Array, alpha: float, n_inner: int | None = None) -> Array:
    """Return p(l), the response of one view's label propagation.

    ``(1 - alpha) / (1 - alpha l)``; with n_inner a truncated geometric series.
    """
    full = (1 - alpha) / (1 - alpha * l)
    return full if n_inner is None else full * (1 - (alpha * l) ** n_inner)


def fitted_response(
    alpha: tuple[float, float],
    beta: float,
    *,
    n_outer: int | None = None,
    n_inner: int | None = None,
) -> Response:
    """Return h(l, m) for fitted items."""

    def response(l: Array, m: Array) -> Array:
        p = _smoothing(l, alpha[0], n_inner)
        q = _smoothing(m, alpha[1], n_inner)
        if n_outer is None:
            return (1 - beta) / 2 * (p + q + 2 * beta * p * q) / (1 - beta**2 * p * q)
        x = y = np.zeros(np.broadcast_shapes(np.shape(p), np.shape(q)))
        for _ in range(n_outer):
            x = p * ((1 - beta) + beta * y)
            y = q * ((1 - beta) + beta * x)
        return (x + y) / 2

    return response


def unseen_response(alpha: tuple[float, float], beta: float) -> Response:
    """Return the response for a new item of the first view.

    A new item with normalised similarities s to the fitted items, which do not change,
    has the scores ``s @ (response o Z)``.
    """

    def response(l: Array, m: Array) -> Array:
        p, q = _smoothing(l, alpha[0]), _smoothing(m, alpha[1])
        own_view = (1 - beta) * p * (1 + beta * q) / (1 - beta**2 * p * q)
        new_item = alpha[0] / (1 - (1 - alpha[0]) * beta**2 * q) * (1 + beta * q) / 2
        return own_view * new_item

    return response


@dataclass(frozen=True)
class SeparableFilter:
    """Responses as sums of products of polynomials in l and in m."""

    left: Array
    right: Array
    cores: tuple[Array, ...]
    error: float

    @property
    def degrees(self) -> tuple[int, int]:
        """Number of sparse products in each view."""
        return self.left.shape[1] - 1, self.right.shape[1] - 1


def separate(responses: tuple[Response, ...], *, tol: float) -> SeparableFilter:
    """Expand responses in shared polynomials of the smallest degree for `tol`."""
    scales = [_scale(response) for response in responses]
    tables = _coefficients(responses, scales, tol)
    threshold = tol
    while True:
        left = _basis(np.hstack(tables), threshold)
        right = _basis(np.hstack([table.T for table in tables]), threshold)
        n_left, n_right = left.shape[1], right.shape[1]
        cores = tuple(
            left @ table[:n_left, :n_right] @ right.T * scale
            for table, scale in zip(tables, scales, strict=True)
        )
        # On a grid three times as fine as the functions.
        grid = [
            np.cos(np.linspace(0, np.pi, min(3 * own.shape[1] + 8, 1500)))
            for own in (left, right)
        ]
        found = _compare(left, right, cores, responses, *grid)
        error = max(e / scale for (e, _), scale in zip(found, scales, strict=True))
        # Rounding limits what smaller thresholds can reach.
        if error <= tol or threshold < NOISE:
            return SeparableFilter(left, right, cores, error)
        threshold /= 10


def _scale(response: Response) -> float:
    """Return the smallest value of a response, the unit of errors.

    Dividing by it turns an absolute error of the filter into a relative error of
    the result, because ``||h o Z|| >= min(h) ||Z||`` in Frobenius norm.
    """
    l = np.cos(np.linspace(0, np.pi, 65))
    values = np.abs(response(l[:, None], l[None, :]))
    return float(max(values.min(), 1e-6 * values.max())) or 1.0


def _coefficients(
    responses: tuple[Response, ...], scales: list[float], tol: float
) -> list[Array]:
    """Return the Chebyshev coefficients of each response in units of its scale."""
    degree = 16
    while degree <= MAX_DEGREE:
        tables = [
            _transform(response, degree) / scale
            for response, scale in zip(responses, scales, strict=True)
        ]
        # The last quarter of the degrees must be negligible; aliasing is smaller still.
        floor = degree * NOISE * max(float(np.abs(table).max()) for table in tables)
        if max(_tail(table, 3 * degree // 4) for table in tables) <= max(tol, floor):
            return tables
        degree *= 2
    raise LinkspreadError(
        f"`alpha` and `beta` must allow the propagation a degree of at most "
        f"{MAX_DEGREE}, and these are too close to 1. Use smaller values or a larger "
        f"`tol` than {tol:g}."
    )


def _transform(response: Response, degree: int) -> Array:
    """Interpolate a response at Chebyshev points; entry (i, j) goes with T_i T_j."""
    points = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    table = dctn(response(points[:, None], points[None, :]), type=2)
    table /= (degree + 1) ** 2
    table[0] /= 2
    table[:, 0] /= 2
    return table


def _sizes(table: Array) -> Array:
    """Return the absolute coefficients with rounding noise set to zero."""
    sizes = np.abs(table)
    sizes[sizes < NOISE * sizes.max()] = 0
    return sizes


def _tail(table: Array, start: int) -> float:
    """Return the larger sum of coefficients beyond `start` along either axis."""
    sizes = _sizes(table)
    return max(float(sizes[start:].sum()), float(sizes[:, start:].sum()))


def _basis(table: Array, threshold: float) -> Array:
    """Return an orthonormal basis of the Chebyshev polynomials needed."""
    tails = np.cumsum(_sizes(table).sum(axis=1)[::-1])[::-1]
    table = table[: max(1, int(np.sum(tails > threshold / 4)))]
    with small_algebra(table.size):
        functions, singular = _singular(table)
    small = np.cumsum(singular[::-1])[::-1] <= threshold / 4
    return functions[:, : max(1, int(np.sum(~small)))].T


def _singular(table: Array) -> tuple[Array, Array]:
    """Return the left singular vectors of a table, and its singular values."""
    if len(table) <= SKETCH:
        return svd(table)[:2]
    # The singular values decay so fast that a small sketch contains them.
    sketch = np.random.default_rng(0).standard_normal((table.shape[1], SKETCH))
    span = range_basis(lambda block: table @ block, sketch)
    functions, singular, _ = svd(span.T @ table)
    return span @ functions, singular


def _compare(
    left: Array, right: Array, cores: Any, responses: Any, l: Array, m: Array
) -> Iterator[tuple[float, float]]:
    """Yield the largest error and the smallest value of each response on a grid."""
    phi, psi = chebyshev.chebval(l, left.T), chebyshev.chebval(m, right.T)
    for core, response in zip(cores, responses, strict=True):
        values = response(l[:, None], m[None, :])
        error = np.abs(phi.T @ core @ psi - values).max()
        yield float(error), float(np.abs(values).min())


@lru_cache(maxsize=4)  # the folds of a selection have the same grid
def share_filter(
    settings: tuple[Setting, ...], *, tol: float = 1e-6, unseen: bool = False
) -> SeparableFilter:
    """Expand the responses of many settings in shared functions.

    As a function of one view's eigenvalue l, every response is a sum of a constant and
    terms ``1 / (1 - a l)``, with `a` between alpha and the limit where beta is 1. A
    short basis of that family suffices for all settings.
    """
    make = unseen_response if unseen else fitted_response
    responses = [make(pair, beta) for pair, beta in settings]
    betas = [beta for _, beta in settings]
    # Errors are relative to the smallest value of a response, which is small.
    threshold = tol / 30
    while True:
        left = _pole_basis([pair[0] for pair, _ in settings], betas, threshold)
        right = _pole_basis([pair[1] for pair, _ in settings], betas, threshold)
        with small_algebra(left.size):
            separable = _fit_cores(left, right, responses)
        # Rounding limits what more functions can reach.
        if separable.error <= tol or threshold < 1e-13:
            return separable
        threshold /= 10


def _pole_basis(alphas: list[float], betas: list[float], threshold: float) -> Array:
    """Return Chebyshev coefficients of functions that span 1 and ``1 / (1 - a l)``.

    The latter are a geometric series in ``r = a / (1 + sqrt(1 - a^2))``, scaled to the
    largest value 1 and truncated where all are small.
    """
    poles = [a / (1 - b**2 * (1 - a)) for a, b in zip(alphas, betas, strict=True)]
    a = 1 - np.geomspace(1 - max(poles), 1 - min(alphas), N_MEMBERS)
    root = np.sqrt(1 - a**2)
    r = a / (1 + root)
    slowest = max(r.max(), 1e-3)
    degree = int(np.ceil(np.log(threshold / 100) / np.log(slowest)))
    rows = 2 * r[:, None] ** np.arange(degree + 1) * ((1 - a) / root)[:, None]
    rows[:, 0] /= 2
    functions, singular, _ = svd(np.vstack([np.eye(1, degree + 1), rows]).T)
    return functions[:, singular > threshold * singular[0] / 10].T


def _fit_cores(left: Array, right: Array, responses: list[Response]) -> SeparableFilter:
    """Interpolate each response at as many points as functions."""
    l, m = _interpolation_points(left), _interpolation_points(right)
    to_left = np.linalg.inv(chebyshev.chebval(l, left.T).T)
    to_right = np.linalg.inv(chebyshev.chebval(m, right.T).T)
    values = np.stack([h(l[:, None], m[None, :]) for h in responses])
    cores = to_left @ values @ to_right.T
    grid = _dense_ends(2 * len(left)), _dense_ends(2 * len(right))
    found = _compare(left, right, cores, responses, *grid)
    error = max(error / (smallest or 1.0) for error, smallest in found)
    return SeparableFilter(left, right, tuple(cores), error)


def _interpolation_points(functions: Array) -> Array:
    """Choose interpolation points by pivoted QR."""
    candidates = _dense_ends(16 * len(functions))
    values = chebyshev.chebval(candidates, functions.T)
    return candidates[qr(values, mode="r", pivoting=True)[1][: len(functions)]]


def _dense_ends(n_points: int) -> Array:
    """Return points of [-1, 1] that are densest near 1, where the poles are."""
    angles = np.linspace(0, 1, n_points)
    return np.unique(np.concatenate([1 - 2 * angles**4, np.cos(np.pi * angles)]))
