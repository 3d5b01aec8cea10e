"""Label spreading over one graph in closed form, as a polynomial of the graph."""

from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebinterpolate
from scipy import sparse

from linkspread.propagation.chebyshev import filtered_sums

Array = np.ndarray


def smoothing_polynomial(alpha: float, *, tol: float) -> Array:
    """Return Chebyshev coefficients of ``(1 - alpha) / (1 - alpha l)``."""
    if 4 * alpha <= tol:  # as good as 1 everywhere
        return np.ones(1)
    # The pole 1 / alpha sets the rate at which the coefficients fall [Trefethen2013];
    # the factors before it bound the error relative to the smallest value.
    rate = (1 + np.sqrt(1 - alpha**2)) / alpha
    bound = 8 * (1 + alpha) / (np.sqrt(1 - alpha**2) * (1 - 1 / rate))
    degree = int(np.ceil(np.log(bound / tol) / np.log(rate)))
    return chebinterpolate(lambda l: (1 - alpha) / (1 - alpha * l), degree)


def smooth_over_graph(
    S: sparse.csr_array, block: Any, *, alpha: float, tol: float
) -> Array:
    """Return ``(1 - alpha) (I - alpha S)^-1 @ block``, label spreading [Zhou2004]."""
    coefficients = smoothing_polynomial(alpha, tol=tol)
    return filtered_sums(S, block, coefficients[None])[:, 0]
