"""Heat over one graph, at several times in one recurrence."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebinterpolate
from scipy import sparse
from scipy.special import ive

from linkspread.propagation.chebyshev import filtered_sums

__all__ = ["arrival_polynomials", "diffuse", "diffusion_polynomials"]

Array = np.ndarray


def diffusion_polynomials(times: Sequence[float], *, tol: float) -> Array:
    """Return Chebyshev coefficients of ``exp(-t (1 - l))`` for each time t.

    Parameters
    ----------
    times : sequence of float
        At least 0.
    tol : float
        Error allowed on [-1, 1], where the largest value is 1.

    Returns
    -------
    coefficients : ndarray of shape (n_times, degree + 1)
    """
    # They are modified Bessel functions, which fall faster than any power.
    longest = max(times)
    orders = np.arange(int(20 + 4 * np.sqrt(longest) * np.sqrt(-np.log(tol)) + longest))
    tails = np.cumsum(2 * ive(orders, longest)[::-1])[::-1]
    degree = max(int(np.searchsorted(-tails, -tol)) - 1, 0)
    coefficients = 2 * ive(orders[: degree + 1], np.asarray(times)[:, None])
    coefficients[:, 0] /= 2
    return coefficients


def arrival_polynomials(times: Sequence[float], *, tol: float) -> Array:
    """Return coefficients of ``exp(-t) (exp(t l) - 1) / l``: heat that arrives.

    An item beside the graph, joined to it by similarities s, gets ``s @ this(S) @ f``
    of the heat f, as long as none goes back through it.

    Parameters
    ----------
    times : sequence of float
        At least 0.
    tol : float
        Error allowed, as for `diffusion_polynomials`.

    Returns
    -------
    coefficients : ndarray of shape (n_times, degree + 1)
    """
    # An interpolant errs by twice what is cut off.
    degree = diffusion_polynomials(times, tol=tol / 2).shape[1] - 1

    def arriving(time: float) -> Callable[[Any], Any]:
        def response(l: Any) -> Any:
            safe = np.where(np.abs(l) < 1e-9, 1.0, l)
            steps = np.where(np.abs(l) < 1e-9, time, np.expm1(time * safe) / safe)
            return np.exp(-time) * steps

        return response

    return np.stack([chebinterpolate(arriving(time), degree) for time in times])


def diffuse(
    S: sparse.csr_array,
    block: Any,
    times: Sequence[float],
    *,
    tol: float,
    rows: Array | None = None,
) -> Array:
    """Return ``exp(-t (I - S)) @ block`` for each time t.

    Parameters
    ----------
    S : csr_array of shape (n, n)
        Normalised affinity.
    block : ndarray or sparse of shape (n, c)
    times : sequence of float
        At least 0.
    tol : float
        Error allowed, in units of the block.
    rows : ndarray of int of shape (n_rows,), default=None
        Rows of the result that are wanted; None for all.

    Returns
    -------
    heat : ndarray of shape (n_rows, n_times, c)
    """
    return filtered_sums(S, block, diffusion_polynomials(times, tol=tol), rows=rows)
