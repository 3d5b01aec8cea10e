"""Problems of least absolute deviations, and their optima."""

import numpy as np
from scipy.optimize import linprog

GAP = 1e-6


def objective(A, b, w):
    return np.abs(w).sum() + np.abs(b - A @ w).sum()


def highs_objective(A, b):
    """Return the minimum by ``A (p - q) + u - v = b``, all of them at least 0."""
    m, k = A.shape
    # Its tolerance is absolute: the default, 1e-7, is coarse for small targets.
    tight = {"primal_feasibility_tolerance": 1e-10}
    matrix, size = np.hstack([A, -A, np.eye(m), -np.eye(m)]), np.abs(b).max() or 1.0
    costs = np.ones(2 * (m + k))
    found = linprog(costs, A_eq=matrix, b_eq=b / size, method="highs", options=tight)
    return size * found.fun


def laplacian_root(labels):
    """Return the symmetric root of the Laplacian of links among neighbours."""
    known = (labels >= 0)[:, None] & (labels >= 0)
    Z = np.where(known, np.where(labels[:, None] == labels, 1.0, -1.0), 0.0)
    np.fill_diagonal(Z, 1.0)
    degrees = (1 + Z).sum(axis=1)
    L = np.eye(len(Z)) - (1 + Z) / np.sqrt(np.outer(degrees, degrees))
    values, vectors = np.linalg.eigh(L)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
