"""Work on many pictures in threads that each hold one picture."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from linkspread.exceptions import LinkspreadError
from linkspread.progress import track

__all__ = ["for_each", "single_threaded"]

# The BLAS limit belongs to the process: two calls that set and restored it in turns
# could leave it at one thread for good.
_BLAS_LOCK = threading.Lock()


def for_each(
    work: Callable[[int], None],
    n: int,
    *,
    label: str,
    n_jobs: Any,
    verbose: bool,
    within: AbstractContextManager[Any] | None = None,
) -> None:
    """Do the work of each picture by its position; what ``within`` sets is set once."""
    n_threads = _count_threads(n_jobs)
    with _BLAS_LOCK, threadpool_limits(1, user_api="blas"), within or nullcontext():
        with ThreadPoolExecutor(n_threads) as pool:
            done = pool.map(work, range(n))
            for _ in track(done, total=n, label=label, verbose=verbose):
                pass


def single_threaded(work: Callable[[], Any]) -> Any:
    """Return what a function returns, found in a single thread.

    Threads wait by spinning: work in small steps is faster in a single one.
    """
    with _BLAS_LOCK, threadpool_limits(1):
        return work()


def _count_threads(n_jobs: Any) -> int:
    """Return the number of threads that ``n_jobs`` means on this machine."""
    try:
        return effective_n_jobs(-1 if n_jobs is None else n_jobs)
    except (TypeError, ValueError) as error:
        raise LinkspreadError(
            f"`n_jobs` must be None or a whole number other than 0, got {n_jobs!r}. "
            "Use None for every core."
        ) from error
