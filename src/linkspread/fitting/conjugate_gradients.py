"""Symmetric systems with several right sides, solved by products alone."""

from collections.abc import Callable

import numpy as np

__all__ = ["solve_by_gradients"]

Array = np.ndarray


def solve_by_gradients(
    apply: Callable[[Array], Array],
    targets: Array,
    *,
    diagonal: Array,
    tol: float,
    start: Array | None = None,
    max_steps: int = 500,
) -> tuple[Array, float]:
    """Solve ``A X = targets`` by conjugate gradients, all columns in step.

    Parameters
    ----------
    apply : callable
        Returns ``A @ X``; A is symmetric with eigenvalues above 0.
    targets : ndarray of shape (n, c)
    diagonal : ndarray of shape (n,)
        Of A, which scales the system.
    tol : float
        Relative residual of every column at which to stop.
    start : ndarray of shape (n, c), default=None
        A guess; None starts from zero.
    max_steps : int, default=500

    Returns
    -------
    solution : ndarray of shape (n, c)
    residual : float
        The largest relative residual that is left.
    """
    solution = np.zeros_like(targets) if start is None else start.copy()
    rest = targets if start is None else targets - apply(solution)
    sizes = np.linalg.norm(targets, axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    scaled = rest / diagonal[:, None]
    direction = scaled
    progress = np.einsum("ic,ic->c", rest, scaled)
    for _ in range(max_steps):
        if np.all(np.linalg.norm(rest, axis=0) <= tol * sizes):
            break
        image = apply(direction)
        curvature = np.einsum("ic,ic->c", direction, image)
        step = progress / np.where(curvature > 0, curvature, 1.0)
        solution = solution + step * direction
        rest = rest - step * image
        scaled = rest / diagonal[:, None]
        before, progress = progress, np.einsum("ic,ic->c", rest, scaled)
        direction = scaled + progress / np.where(before > 0, before, 1.0) * direction
    return solution, float(np.max(np.linalg.norm(rest, axis=0) / sizes))
