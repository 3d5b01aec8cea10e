"""Blocks of work shared among threads, one BLAS thread in each.

Two pools that both want every core, that of BLAS and that of a compiled loop, take
turns badly: with one block per thread, and BLAS held to one thread in each, a search
takes half the time.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from numbers import Integral
from typing import Any

from numba import get_num_threads, set_num_threads
from threadpoolctl import (  # type: ignore[import-untyped]
    ThreadpoolController,
    threadpool_limits,
)

from linkspread.exceptions import GraphError

__all__ = [
    "count_threads",
    "few_cores",
    "is_integer",
    "map_blocks",
    "small_algebra",
    "small_loops",
]

# Entries of a matrix up to which one thread factorises it as fast as several.
SMALL_ENTRIES = 1 << 20
# Multiplications of a loop that one thread does in less than a millisecond.
SMALL_LOOP = 1 << 19

# The BLAS limit belongs to the process: two searches that set and restored it in turns
# could leave it at one thread for good, so only one at a time holds it.
_BLAS_LOCK = threading.RLock()
# Cores that this thread may use of those that the machine has; None for all.
_OWN_CORES: ContextVar[int | None] = ContextVar("own cores", default=None)


def map_blocks(
    work: Callable[[Any], Any], blocks: list, *, n_threads: int, concurrent: bool = True
) -> Iterator[Any]:
    """Yield ``work(block)`` for every block, in order.

    Parameters
    ----------
    work : callable
    blocks : list
    n_threads : int
    concurrent : bool, default=True
        Whether the work may run in several threads at once; if not, BLAS gets them.

    Yields
    ------
    result : object
    """
    # One block is a live query: it must not wait for a long search to end.
    if len(blocks) == 1 and n_threads >= count_threads(None):
        yield work(blocks[0])
        return
    n_workers = min(n_threads, len(blocks)) if concurrent else 1
    with _BLAS_LOCK, threadpool_limits(n_threads // n_workers, user_api="blas"):
        with ThreadPoolExecutor(n_workers) as pool:
            yield from pool.map(work, blocks)


@contextmanager
def small_algebra(n_entries: int) -> Iterator[None]:
    """Hold BLAS to one thread for the factorisation of a small matrix.

    Its threads wait for each other by spinning. Where another process has one of the
    cores, a small factorisation then takes a hundred times as long as in one thread.

    Parameters
    ----------
    n_entries : int
        Entries of the matrix; large ones keep all threads.
    """
    if n_entries > SMALL_ENTRIES:
        yield
        return
    with _BLAS_LOCK, _blas().limit(limits=1, user_api="blas"):
        yield


@cache
def _blas() -> ThreadpoolController:
    """Return the handle on the BLAS libraries, which takes a while to find."""
    return ThreadpoolController()


@contextmanager
def small_loops(n_products: int) -> Iterator[None]:
    """Hold compiled loops to one thread where each is short.

    Their threads wait by spinning as well: of two processes that share two cores, each
    takes ten times as long as alone.

    Parameters
    ----------
    n_products : int
        Multiplications of one loop; long ones keep all threads.
    """
    with _loop_threads(1 if n_products <= SMALL_LOOP else None):
        yield


@contextmanager
def _loop_threads(n_threads: int | None) -> Iterator[None]:
    """Hold compiled loops to some threads, where they have more.

    Parameters
    ----------
    n_threads : int or None
        None leaves them what they have.
    """
    before = get_num_threads()
    set_num_threads(min(n_threads or before, before))
    try:
        yield
    finally:
        set_num_threads(before)


@contextmanager
def few_cores(n_cores: int | None) -> Iterator[None]:
    """Hold what is computed here to some of the cores: others have the rest.

    Parameters
    ----------
    n_cores : int or None
        None for all of them.
    """
    token = _OWN_CORES.set(n_cores)
    try:
        with _loop_threads(n_cores):
            yield
    finally:
        _OWN_CORES.reset(token)


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` means on this machine.

    Parameters
    ----------
    n_jobs : int or None
        None and -1 mean every core (see `few_cores`), -2 all but one, and so on.

    Returns
    -------
    n_threads : int
    """
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    n_cores = n_cores or os.cpu_count() or 1
    n_cores = min(_OWN_CORES.get() or n_cores, n_cores)
    if n_jobs is None:
        return n_cores
    if not is_integer(n_jobs) or n_jobs == 0:
        raise GraphError(
            f"`n_jobs` must be None or a whole number other than 0, got {n_jobs!r}. "
            "Use None for every core."
        )
    return int(n_jobs) if n_jobs > 0 else max(n_cores + 1 + int(n_jobs), 1)


def is_integer(value: Any) -> bool:
    """Return whether a value is a whole number and not a truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)
