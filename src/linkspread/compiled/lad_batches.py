"""A batch of problems: walked, certified, and walked again until proven."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkspread.compiled.certificate import Best, take
from linkspread.compiled.highs import solve_with_highs
from linkspread.compiled.simplex import solve_batch
from linkspread.ground.errors import LinkspreadError

# How far targets are moved to break ties, relative to their largest entry: one number
# per walk. The smaller the move the nearer the vertex, the larger the fewer the ties.
MOVES = (1e-8, 1e-10, 1e-6, 1e-7)
# A walk takes about one pivot per variable; one that takes this many goes in circles.
PIVOTS_PER_VARIABLE = 20


@dataclass(frozen=True)
class Batch:
    """The answers to one batch of problems, and what they took."""

    coefficients: np.ndarray
    gaps: np.ndarray
    n_retried: int
    n_fallback: int
    n_pivots: int


def check_batch(A: Any, targets: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a batch in float64, or say what is wrong with it."""
    try:
        A = np.ascontiguousarray(A, dtype=np.float64)
        targets = np.ascontiguousarray(targets, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise LinkspreadError(
            f"Dictionaries and targets must hold real numbers ({error}). "
            "Convert them to arrays of floats."
        ) from error
    is_fit = A.ndim == 3 and A.shape[:2] == targets.shape and 0 not in A.shape
    if not is_fit or len(A) != n_rows:
        raise LinkspreadError(
            f"{n_rows} problems must have dictionaries of shape ({n_rows}, m, k) and "
            f"targets of shape ({n_rows}, m), got {A.shape} and {targets.shape}. "
            "Give each dictionary as many lines as its target."
        )
    for array in (A, targets):
        # Minima and maxima are NaN where any entry is, and need no second array.
        if not (np.isfinite(array.min()) and np.isfinite(array.max())):
            raise LinkspreadError(
                "Dictionaries and targets must be finite, got NaN or infinity. "
                "Remove or impute the items they come from."
            )
    return A, targets


def certified_batch(A: np.ndarray, targets: np.ndarray, tol: float) -> Batch:
    """Solve a batch: walk, certify, walk again where the gap is too large."""
    # Answers grow with their targets, so these are brought near 1, exactly, by powers
    # of two. Kernels of narrow width have targets of 1e-30 and less.
    _, exponents = np.frexp(np.abs(targets).max(axis=1, keepdims=True))
    targets = np.ldexp(targets, -exponents)
    best = Best(A, targets)
    pending = np.flatnonzero(targets.any(axis=1))
    n_walks, n_pivots = np.zeros(len(A), dtype=int), 0
    for seed, move in enumerate(MOVES):
        if not len(pending):
            break
        n_walks[pending] += 1
        n_pivots += _walk(best, A, targets, pending, move, seed)
        pending = pending[best.gaps[pending] > tol]
    for row in pending:
        best.improve(np.array([row]), *solve_with_highs(A[row], targets[row]))
    return Batch(
        coefficients=np.ldexp(best.coefficients, exponents),
        gaps=best.gaps,
        n_retried=int((n_walks > 1).sum()),
        n_fallback=len(pending),
        n_pivots=n_pivots,
    )


def _walk(
    best: Best,
    A: np.ndarray,
    targets: np.ndarray,
    rows: np.ndarray,
    move: float,
    seed: int,
) -> int:
    """Improve some rows by one run of the simplex method; return its pivots."""
    A, exact = take(A, rows), take(targets, rows)
    n, m, k = A.shape
    sizes = move * np.random.default_rng(seed).uniform(0.5, 1.0, m)
    # Away from 0, so that no entry changes its sign; zeros go both ways in turn.
    away = np.where(exact != 0, np.sign(exact), np.resize([1.0, -1.0], m))
    coefficients, duals = np.empty((n, k)), np.empty((n, m))
    n_pivots = np.empty(n, dtype=np.int64)
    limit = PIVOTS_PER_VARIABLE * (m + k)
    solve_batch(A, exact, exact + away * sizes, limit, coefficients, duals, n_pivots)
    best.improve(rows, coefficients, duals)
    return int(n_pivots.sum())
