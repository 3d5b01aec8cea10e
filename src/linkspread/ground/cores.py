"""The number of cores a computation may use, and the threads of BLAS.

>>> from linkspread.ground.cores import count_threads, own_cores
>>> with own_cores(1):
...     count_threads(None)
1
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from joblib import cpu_count
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from linkspread.ground.checks import is_integer
from linkspread.ground.errors import GraphError

# Cores that this thread may use; None for all.
_OWN_CORES: ContextVar[int | None] = ContextVar("own cores", default=None)
# The number of BLAS threads is a setting of the whole process. Every limit in force is
# listed here; the smallest counts, and the last to end restores the original number.
_HOLDS: list[int] = []
_BEFORE: list[tuple[Any, int]] = []
_LOCK = threading.Lock()


@contextmanager
def hold_blas(n_threads: int) -> Iterator[None]:
    """Limit BLAS to `n_threads`; of several limits in force the smallest counts."""
    apart = [(own, own.get_num_threads()) for own in _libraries() if _is_apart(own)]
    with _LOCK:
        if not _HOLDS:
            shared = [own for own in _libraries() if not _is_apart(own)]
            _BEFORE[:] = [(own, own.get_num_threads()) for own in shared]
        _HOLDS.append(n_threads)
        _set_threads(_BEFORE)
    for own, before in apart:
        own.set_num_threads(min(n_threads, before))
    try:
        yield
    finally:
        with _LOCK:
            _HOLDS.remove(n_threads)
            _set_threads(_BEFORE)
        for own, before in apart:
            own.set_num_threads(before)


def _set_threads(before: list[tuple[Any, int]]) -> None:
    """Set the process-wide libraries to the smallest limit in force."""
    for library, most in before:
        wanted = min([*_HOLDS, most])
        if library.get_num_threads() != wanted:
            # Newer versions let only the thread that was first set any number.
            release = getattr(library, "clear_controlling_thread", lambda force: None)
            release(force=True)
            library.set_num_threads(wanted)
            release(force=True)


def _is_apart(library: Any) -> bool:
    """Return whether the number is a setting of each thread, as with OpenMP."""
    return getattr(library, "threading_layer", None) == "openmp"


@cache
def _libraries() -> list[Any]:
    """Return the BLAS libraries of the process; finding them is slow."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


@contextmanager
def own_cores(n_cores: int | None) -> Iterator[None]:
    """Limit what `count_threads` returns in this thread; None for all cores."""
    token = _OWN_CORES.set(n_cores)
    try:
        yield
    finally:
        _OWN_CORES.reset(token)


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` means on this machine."""
    if n_jobs is not None and (not is_integer(n_jobs) or n_jobs == 0):
        raise GraphError(
            f"`n_jobs` must be None or an integer other than 0, got {n_jobs!r}. "
            "Use None for every core."
        )
    if n_jobs is not None and n_jobs > 0:
        return int(n_jobs)
    n_cores = _machine_cores()
    wanted = n_cores + 1 + int(n_jobs) if n_jobs else n_cores
    return max(min(wanted, _OWN_CORES.get() or n_cores), 1)


def _machine_cores() -> int:
    """Return the number of cores given by CPU affinity and container limits."""
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), _allowed_cores())
    return _allowed_cores()


@cache
def _allowed_cores() -> int:
    """Return the cores that the system allows; reading them from files is slow."""
    return int(cpu_count())
