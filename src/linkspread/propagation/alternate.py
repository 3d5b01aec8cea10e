"""The paper's own iteration, steps (1) to (5), dense: the reference for tests.

It needs several N x M arrays, O(k N M) time per step and up to hundreds of rounds. Use
:func:`linkspread.propagation.propagate` instead.
"""

from typing import Any

import numpy as np

from linkspread.links import as_dense
from linkspread.propagation.exact import (
    Alpha,
    check_alpha_pair,
    check_beta,
    check_shapes,
)

Array = np.ndarray


def alternate(
    S_x: Any,
    Z: Any,
    S_y: Any,
    *,
    alpha: Alpha = 0.1,
    beta: float = 0.95,
    n_outer: int = 10,
    n_inner: int = 100,
) -> Array:
    """Propagate links by the paper's alternating iteration.

    ``F_x <- alpha_x S_x F_x + (1 - alpha_x)((1 - beta) Z + beta F_y*)`` and the same
    for the columns with S_y, in turn; the answer is ``(F_x* + F_y*) / 2``.

    Parameters
    ----------
    S_x : sparse or ndarray of shape (n, n)
    Z : sparse, ndarray or LinkMatrix of shape (n, m)
    S_y : sparse or ndarray of shape (m, m)
    alpha : float or tuple of two floats, default=0.1
    beta : float, default=0.95
        All as in :func:`propagate`.
    n_outer : int, default=10
        Rounds of steps (3) and (4).
    n_inner : int, default=100
        Iterations within each of those steps, each time from zero.

    Returns
    -------
    F : ndarray of shape (n, m)
    """
    alpha_x, alpha_y = check_alpha_pair(alpha)
    beta = check_beta(beta)
    check_shapes(S_x, Z, S_y)
    Z = as_dense(Z)

    def smooth(S: Any, target: Array, alpha: float) -> Array:
        """Iterate ``F <- alpha S F + (1 - alpha) target`` from zero."""
        F = np.zeros_like(target)
        for _ in range(n_inner):
            F = alpha * (S @ F) + (1 - alpha) * target
        return F

    F_x = F_y = np.zeros_like(Z)
    for _ in range(n_outer):
        F_x = smooth(S_x, (1 - beta) * Z + beta * F_y, alpha_x)
        F_y = smooth(S_y, ((1 - beta) * Z + beta * F_x).T, alpha_y).T
    return (F_x + F_y) / 2
