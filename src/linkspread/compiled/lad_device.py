"""Many sparse codes at once on a device; what it cannot prove, the simplex walks."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from linkspread.compiled.lad import Report, check_tol, solve_many

# Dictionaries of one problem in memory at a time, with their scaled copies, the normal
# matrices, the factors and the bases of vertices.
N_COPIES = 10
# More problems at a time are no faster.
LARGEST_BLOCK = 1 << 14


def solve_on_device(
    device: Any,
    problems: Callable[[slice], tuple[Any, Any]],
    n_rows: int,
    *,
    shape: tuple[int, int],
    tol: float = 1e-7,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray, Report]:
    """Solve many problems of one shape, as `solve_many` does."""
    from linkspread.compiled.gpu.codes import solve_codes

    check_tol(tol)
    start = time.perf_counter()
    coefficients, gaps = np.zeros((n_rows, shape[1])), np.zeros(n_rows)

    def work(rows: slice) -> tuple[np.ndarray, ...]:
        A, targets = problems(rows)
        found, own_gaps, _ = solve_codes(A, targets, tol)
        late = (own_gaps > tol).nonzero().flatten()
        parts = found, own_gaps, late, A[late], targets[late]
        return tuple(part.cpu().numpy() for part in parts)

    row_bytes = 8 * N_COPIES * shape[1] * sum(shape)
    n_block = device.block_rows(row_bytes, min(n_rows, LARGEST_BLOCK))
    reports = []
    for rows, found in device.in_blocks(work, n_rows, n_block):
        coefficients[rows], gaps[rows], late = found[:3]
        if len(late):
            late = late + rows.start
            answers = _walk(found[3], found[4], tol=tol, n_jobs=n_jobs)
            coefficients[late], gaps[late] = answers[:2]
            reports.append(answers[2])
    report = Report(
        n_rows=n_rows,
        n_retried=sum(r.n_rows for r in reports),
        n_fallback=sum(r.n_fallback for r in reports),
        n_pivots=sum(r.n_pivots for r in reports),
        largest_gap=float(gaps.max()),
        seconds=time.perf_counter() - start,
    )
    return coefficients, gaps, report


def _walk(
    A: np.ndarray, targets: np.ndarray, *, tol: float, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray, Report]:
    """Solve a few problems by the simplex method."""
    return solve_many(
        lambda rows: (A[rows], targets[rows]), len(A), tol=tol, n_jobs=n_jobs
    )
