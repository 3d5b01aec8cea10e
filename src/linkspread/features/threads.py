"""Work on many pictures in threads that each hold one picture."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from linkspread.ground.cores import count_threads, hold_blas
from linkspread.ground.progress import track

# What ``within`` sets may belong to the process: two calls that set and restored it in
# turns could leave it for good.
_ONE_AT_A_TIME = threading.Lock()


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
    n_threads = count_threads(n_jobs)
    with _ONE_AT_A_TIME, hold_blas(1), within or nullcontext():
        with ThreadPoolExecutor(n_threads) as pool:
            done = pool.map(work, range(n))
            for _ in track(done, total=n, label=label, verbose=verbose):
                pass


def single_threaded(work: Callable[[], Any]) -> Any:
    """Return what a function returns, found in a single thread.

    Threads wait by spinning: work in small steps is faster in a single one.
    """
    with hold_blas(1), threadpool_limits(1, user_api="openmp"):
        return work()
