"""Least absolute deviations with an L1 penalty, solved exactly and certified.

``min_w |w|_1 + |b - A w|_1`` finds the sparse code w of a target b in a dictionary A.
It is a linear programme; the simplex method walks over its vertices, and a duality gap
proves each answer, or sends the problem to another walk and at last to HiGHS.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from linkspread.compiled.lad_batches import Batch, certified_batch, check_batch
from linkspread.compiled.threads import map_blocks
from linkspread.ground.cores import count_threads, is_integer
from linkspread.ground.errors import LinkspreadError
from linkspread.ground.progress import track

Problems = Callable[[slice], tuple[Any, Any]]

# Problems built at a time by each thread: 4 MB for k = 90, or 8 MB with m = 2 k. The
# same for any number of threads, because BLAS rounds by the shape of what it is given.
BATCH = 64


@dataclass(frozen=True)
class Report:
    """What solving many problems took, and how well they are solved."""

    n_rows: int
    n_retried: int
    n_fallback: int
    n_pivots: int
    largest_gap: float
    seconds: float


def solve_lad(A: Any, target: Any, *, tol: float = 1e-7) -> tuple[np.ndarray, float]:
    """Return the sparse code of one target, and how far it is from the best.

    ``min_w |w|_1 + |b - A w|_1``
    """
    check_tol(tol)
    A, target = np.asarray(A), np.asarray(target)
    if A.ndim != 2 or target.ndim != 1:
        raise LinkspreadError(
            "`A` must be one matrix and `target` one vector, got shapes "
            f"{A.shape} and {target.shape}. Use `solve_many` for several problems."
        )
    batch = certified_batch(*check_batch(A[None], target[None], 1), tol)
    return batch.coefficients[0], float(batch.gaps[0])


def solve_many(
    problems: Problems,
    n_rows: int,
    *,
    tol: float = 1e-7,
    n_jobs: int | None = None,
    verbose: bool = False,
    label: str = "sparse codes",
) -> tuple[np.ndarray, np.ndarray, Report]:
    """Solve many problems of one shape, built a few at a time.

    ``min_w |w|_1 + |b_i - A_i w|_1`` for every i; memory is a few dozen dictionaries
    per thread and the result.
    """
    check_tol(tol)
    if not is_integer(n_rows) or n_rows < 1:
        raise LinkspreadError(
            f"`n_rows` must be a whole number of at least 1, got {n_rows!r}. "
            "Pass the number of problems."
        )
    start = time.perf_counter()
    blocks = [slice(i, min(i + BATCH, n_rows)) for i in range(0, n_rows, BATCH)]
    work = partial(_build_and_solve, problems, tol)
    steps = map_blocks(work, blocks, n_threads=count_threads(n_jobs))
    steps = track(steps, total=len(blocks), label=label, verbose=verbose)
    return _join(list(steps), start)


def check_tol(tol: Any) -> None:
    """Refuse a tolerance that is not a positive number."""
    if not (isinstance(tol, Real) and 0 < float(tol) < np.inf):
        raise LinkspreadError(
            f"`tol` must be a positive number, got {tol!r}. Use for instance tol=1e-7."
        )


def _build_and_solve(problems: Problems, tol: float, rows: slice) -> Batch:
    """Solve the problems of some rows."""
    n_rows = rows.stop - rows.start
    return certified_batch(*check_batch(*problems(rows), n_rows), tol)


def _join(batches: list[Batch], start: float) -> tuple[np.ndarray, np.ndarray, Report]:
    """Return the answers of all batches together, and the report."""
    sizes = {batch.coefficients.shape[1] for batch in batches}
    if len(sizes) > 1:
        raise LinkspreadError(
            "All dictionaries must have the same number of columns, got "
            f"{min(sizes)} and {max(sizes)}. Pad the smaller ones with zero columns."
        )
    gaps = np.concatenate([batch.gaps for batch in batches])
    report = Report(
        n_rows=len(gaps),
        n_retried=sum(batch.n_retried for batch in batches),
        n_fallback=sum(batch.n_fallback for batch in batches),
        n_pivots=sum(batch.n_pivots for batch in batches),
        largest_gap=float(gaps.max()),
        seconds=time.perf_counter() - start,
    )
    return np.concatenate([batch.coefficients for batch in batches]), gaps, report
