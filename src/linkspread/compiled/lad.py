"""Least absolute deviations with an L1 penalty, solved exactly and certified.

``min_w |w|_1 + |b - A w|_1`` finds the sparse code w of a target b in a dictionary A.
It is a linear programme, solved by the simplex method. The dual is
``max_y b'y`` with ``|y| <= 1`` and ``|A'y| <= 1``, nothing but boxes: any y divided by
its largest violation is feasible, and its value is a lower bound on every objective.
If the gap between both is too large, the problem is solved again from other
perturbations, and at last by HiGHS.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import linprog

from linkspread.compiled.backends import map_blocks
from linkspread.compiled.simplex import solve_batch
from linkspread.ground.checks import check_positive
from linkspread.ground.cores import count_threads
from linkspread.ground.errors import LinkspreadError
from linkspread.ground.progress import track

Array = np.ndarray
# The dictionaries and the targets of some rows.
Problems = Callable[[slice], tuple[Any, Any]]
# Coefficients, gaps, and the numbers of retries, of fallbacks to HiGHS and of pivots.
Batch = tuple[Array, Array, tuple[int, int, int]]

# Problems built at a time by each thread: 4 MB for k = 90, or 8 MB with m = 2 k. The
# same for any number of threads, because the rounding of BLAS depends on the shape.
BATCH = 64
# Perturbations of the targets that break ties, relative to their largest entry: one
# per attempt. Small ones keep the vertex near, large ones leave fewer ties.
MOVES = (1e-8, 1e-10, 1e-6, 1e-7)
# A run takes about one pivot per variable; one that takes this many is cycling.
PIVOTS_PER_VARIABLE = 20
# The smallest that HiGHS accepts.
HIGHS_TOLERANCE = 1e-10
# Arrays of the size of a dictionary that one problem takes on a device: scaled copies,
# normal matrices, factors and bases of vertices.
N_COPIES = 10
# Larger blocks are no faster.
LARGEST_BLOCK = 1 << 14


@dataclass(frozen=True)
class Report:
    """Statistics of solving many problems."""

    n_rows: int
    n_retried: int
    n_fallback: int
    n_pivots: int
    largest_gap: float
    seconds: float

    @classmethod
    def of(cls, counts: Array, gaps: Array, start: float) -> "Report":
        """Return the report of a solution that began at a time."""
        retried, fallback, pivots = counts.tolist()
        seconds = time.perf_counter() - start
        return cls(len(gaps), retried, fallback, pivots, float(gaps.max()), seconds)


def solve_many(
    problems: Problems,
    n_rows: int,
    *,
    tol: float = 1e-7,
    n_jobs: int | None = None,
    verbose: bool = False,
    label: str = "sparse codes",
) -> tuple[Array, Array, Report]:
    """Solve many problems of one shape, built a few at a time by each thread."""
    check_positive(tol, name="tol", remedy="Use for instance tol=1e-7.")
    start = time.perf_counter()
    blocks = [slice(i, min(i + BATCH, n_rows)) for i in range(0, n_rows, BATCH)]
    work = partial(_solve_rows, problems, tol)
    steps = map_blocks(work, blocks, n_threads=count_threads(n_jobs))
    batches = list(track(steps, total=len(blocks), label=label, verbose=verbose))
    coefficients, gaps = (np.concatenate([own[i] for own in batches]) for i in (0, 1))
    counts = np.sum([own for *_, own in batches], axis=0)
    return coefficients, gaps, Report.of(counts, gaps, start)


def solve_on_device(
    device: Any,
    problems: Problems,
    n_rows: int,
    *,
    shape: tuple[int, int],
    tol: float = 1e-7,
    n_jobs: int | None = None,
) -> tuple[Array, Array, Report]:
    """Solve many problems on a device, and those left unproven by `solve_many`."""
    from linkspread.compiled.gpu.codes import solve_codes

    start = time.perf_counter()
    coefficients, gaps = np.zeros((n_rows, shape[1])), np.zeros(n_rows)

    def work(rows: slice) -> tuple[Array, ...]:
        A, targets = problems(rows)
        found, own_gaps, _ = solve_codes(A, targets, tol)
        late = (own_gaps > tol).nonzero().flatten()
        parts = found, own_gaps, late, A[late], targets[late]
        return tuple(part.cpu().numpy() for part in parts)

    row_bytes = 8 * N_COPIES * shape[1] * sum(shape)
    n_block = device.block_rows(row_bytes, min(n_rows, LARGEST_BLOCK))
    counts = np.zeros(3, dtype=int)
    for rows, found in device.in_blocks(work, n_rows, n_block):
        coefficients[rows], gaps[rows], late, A, targets = found
        if not len(late):
            continue

        def left(own: slice, A: Any = A, targets: Any = targets) -> tuple[Any, Any]:
            return A[own], targets[own]

        walked = solve_many(left, len(late), tol=tol, n_jobs=n_jobs)
        coefficients[late + rows.start], gaps[late + rows.start], report = walked
        counts += len(late), report.n_fallback, report.n_pivots
    return coefficients, gaps, Report.of(counts, gaps, start)


def _solve_rows(problems: Problems, tol: float, rows: slice) -> Batch:
    """Solve and certify some problems, again where the gap is too large."""
    A, targets = (np.ascontiguousarray(a, np.float64) for a in problems(rows))
    # Extremes are NaN if any entry is, and need no second array.
    if not np.isfinite([a.min() + a.max() for a in (A, targets)]).all():
        raise LinkspreadError(
            "affinities of neighbours must be finite, got NaN or infinity. Remove or "
            "impute the values they come from."
        )
    # Codes scale with their targets, so targets are scaled to about 1, exactly, by
    # powers of two. Narrow kernels have targets of 1e-30 and less.
    _, exponents = np.frexp(np.abs(targets).max(axis=1, keepdims=True))
    targets = np.ldexp(targets, -exponents)
    best = _Best(A, targets)
    pending = np.flatnonzero(targets.any(axis=1))
    n_walks, n_pivots = np.zeros(len(A), dtype=int), 0
    for seed, move in enumerate(MOVES):
        if not len(pending):
            break
        n_walks[pending] += 1
        n_pivots += best.walk(pending, move, seed)
        pending = pending[best.gaps[pending] > tol]
    for row in pending:
        best.improve(np.array([row]), *solve_with_highs(A[row], targets[row]))
    counts = int((n_walks > 1).sum()), len(pending), n_pivots
    return np.ldexp(best.coefficients, exponents), best.gaps, counts


class _Best:
    """The best coefficients and the best bound found so far for each problem."""

    def __init__(self, A: Array, targets: Array):
        self.coefficients = np.zeros((len(A), A.shape[2]))
        self.values = np.abs(targets).sum(axis=1)
        self.bounds = np.zeros(len(A))
        self._A, self._targets = A, targets

    @property
    def gaps(self) -> Array:
        """The relative gaps, of shape (n_problems,)."""
        return relative_gaps(self.values, self.bounds)

    def walk(self, rows: Array, move: float, seed: int) -> int:
        """Improve some rows by one run of the simplex method; return its pivots."""
        A, exact = self._problems(rows)
        n, m, k = A.shape
        sizes = move * np.random.default_rng(seed).uniform(0.5, 1.0, m)
        # Away from 0, so that no sign changes; zeros in alternating directions.
        away = np.where(exact != 0, np.sign(exact), np.resize([1.0, -1.0], m))
        coefficients, duals = np.empty((n, k)), np.empty((n, m))
        n_pivots = np.empty(n, dtype=np.int64)
        limit, moved = PIVOTS_PER_VARIABLE * (m + k), exact + away * sizes
        solve_batch(A, exact, moved, limit, coefficients, duals, n_pivots)
        self.improve(rows, coefficients, duals)
        return int(n_pivots.sum())

    def improve(self, rows: Array, coefficients: Array, duals: Array) -> None:
        """Keep these coefficients and bounds where they are better; NaN never is."""
        problems = self._problems(rows)
        values = objectives(*problems, coefficients)
        better = values < self.values[rows]
        self.values[rows[better]] = values[better]
        self.coefficients[rows[better]] = coefficients[better]
        bounds = lower_bounds(*problems, duals)
        better = bounds > self.bounds[rows]
        self.bounds[rows[better]] = bounds[better]

    def _problems(self, rows: Array) -> tuple[Array, Array]:
        """Return the problems of some rows, without a copy where those are all."""
        A, targets = self._A, self._targets
        return (A, targets) if len(rows) == len(A) else (A[rows], targets[rows])


# The certificate is plain NumPy, independent of the solver.


def objectives(A: Array, targets: Array, coefficients: Array) -> Array:
    """Return ``|w|_1 + |b - A w|_1`` of every problem."""
    with np.errstate(over="ignore", invalid="ignore"):
        residuals = targets - np.matmul(A, coefficients[:, :, None])[:, :, 0]
        return np.abs(coefficients).sum(axis=1) + np.abs(residuals).sum(axis=1)


def lower_bounds(A: Array, targets: Array, duals: Array) -> Array:
    """Return ``b'y`` of every problem, y scaled until ``|y|, |A'y| <= 1``."""
    with np.errstate(over="ignore", invalid="ignore"):
        products = np.abs(np.matmul(duals[:, None, :], A)[:, 0])
        scales = np.maximum(np.abs(duals).max(axis=1), products.max(axis=1))
        return np.einsum("ij,ij->i", targets, duals) / np.maximum(scales, 1.0)


def relative_gaps(values: Array, bounds: Array) -> Array:
    """Return upper bounds of the relative excess of objectives over their minima."""
    shares = np.zeros(len(values))
    np.divide(values - bounds, values, out=shares, where=values != 0)
    # Rounding may put a bound above its objective, by one part in 1e16.
    return np.maximum(shares, 0.0)


def solve_with_highs(A: Array, target: Array) -> tuple[Array, Array]:
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
            "primal_feasibility_tolerance": HIGHS_TOLERANCE,
            "dual_feasibility_tolerance": HIGHS_TOLERANCE,
        },
    )
    if found.x is None:
        return np.zeros((1, k)), np.zeros((1, m))
    return (found.x[:k] - found.x[k : 2 * k])[None], found.eqlin.marginals[None]
