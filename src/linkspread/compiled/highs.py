"""The last resort of `linkspread.compiled.lad`: the linear programme given to HiGHS."""

import numpy as np
from scipy.optimize import linprog

# The tightest that HiGHS accepts.
TOLERANCE = 1e-10


def solve_with_highs(A: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return coefficients and a dual solution as HiGHS finds them, each as one row.

    ``min 1'(p + q + u + v)`` with ``A (p - q) + u - v = b`` and all of them at least 0.
    """
    m, k = A.shape
    identity = np.eye(m)
    found = linprog(
        np.ones(2 * (m + k)),
        A_eq=np.hstack([A, -A, identity, -identity]),
        b_eq=target,
        method="highs",
        options={
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
        },
    )
    if found.x is None:
        return np.zeros((1, k)), np.zeros((1, m))
    return (found.x[:k] - found.x[k : 2 * k])[None], found.eqlin.marginals[None]
