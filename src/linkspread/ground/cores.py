"""The cores that a computation may take, and the threads of BLAS.

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
from numbers import Integral
from typing import Any

from joblib import cpu_count
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from linkspread.ground.errors import GraphError

# Cores that this thread may use of those that the machine has; None for all.
_OWN_CORES: ContextVar[int | None] = ContextVar("own cores", default=None)
# The number of threads of BLAS belongs to the process. Whoever holds it writes down
# how many it wants, so that nobody waits and the last one restores what was before.
_HOLDS: list[int] = []
_BEFORE: list[tuple[Any, int]] = []
_LOCK = threading.Lock()


@contextmanager
def hold_blas(n_threads: int) -> Iterator[None]:
    """Hold BLAS to some threads; of several holds at a time the smallest counts."""
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
    """Give each library that all threads share what the holds leave it."""
    for library, most in before:
        wanted = min([*_HOLDS, most])
        if library.get_num_threads() != wanted:
            # Newer versions let only the thread that was first set any number.
            release = getattr(library, "clear_controlling_thread", lambda force: None)
            release(force=True)
            library.set_num_threads(wanted)
            release(force=True)


def _is_apart(library: Any) -> bool:
    """Tell whether each thread has a number of its own: libraries over OpenMP."""
    return getattr(library, "threading_layer", None) == "openmp"


@cache
def _libraries() -> list[Any]:
    """Return the BLAS libraries of the process, which takes a while to find."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


@contextmanager
def own_cores(n_cores: int | None) -> Iterator[None]:
    """Let every core mean some of them, for what this thread counts."""
    token = _OWN_CORES.set(n_cores)
    try:
        yield
    finally:
        _OWN_CORES.reset(token)


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` means on this machine."""
    if n_jobs is not None and (not is_integer(n_jobs) or n_jobs == 0):
        raise GraphError(
            f"`n_jobs` must be None or a whole number other than 0, got {n_jobs!r}. "
            "Use None for every core."
        )
    if n_jobs is not None and n_jobs > 0:
        return int(n_jobs)
    n_cores = _machine_cores()
    wanted = n_cores + 1 + int(n_jobs) if n_jobs else n_cores
    return max(min(wanted, _OWN_CORES.get() or n_cores), 1)


def _machine_cores() -> int:
    """Return the cores of this process, by its affinity and its container."""
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), _allowed_cores())
    return _allowed_cores()


@cache
def _allowed_cores() -> int:
    """Return the cores that the system allows, which takes reading of files."""
    return int(cpu_count())


def is_integer(value: Any) -> bool:
    """Return whether a value is a whole number and not a truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)
