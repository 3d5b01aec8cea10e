"""Blocks of work shared among threads, and short work kept to one of them.

The threads of BLAS and of compiled loops wait for each other by spinning. Where another
process has one of the cores, a product or a loop of a millisecond then takes as long as
the other process is let run, and a factorisation, which is many of them, a hundred
times as long as in one thread. Threads of a pool that each have a block of work do not
wait for each other, and stay.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from functools import wraps
from typing import Any, TypeVar

import numba

from linkspread.ground.cores import count_threads, hold_blas, own_cores

# Entries of a matrix that one thread factorises within a second.
SMALL_ENTRIES = 1 << 22
# Multiplications of a loop that one thread does in a few milliseconds.
SMALL_LOOP = 1 << 23
# Items of a model whose products one thread does in a few milliseconds.
SMALL_ITEMS = 1 << 12

# Whether the model that computes here is small, however many products a loop has.
_IS_SMALL: ContextVar[bool] = ContextVar("is small", default=False)

Method = TypeVar("Method", bound=Callable[..., Any])


def map_blocks(
    work: Callable[[Any], Any], blocks: list, *, n_threads: int, concurrent: bool = True
) -> Iterator[Any]:
    """Yield ``work(block)`` for every block, in order."""
    n_workers = min(n_threads, len(blocks)) if concurrent else 1
    n_each = n_threads // n_workers

    def run(block: Any) -> Any:
        with own_cores(n_each), hold_blas(n_each):
            return work(block)

    if n_workers == 1:
        yield from map(run, blocks)
        return
    # What is set for this thread, such as its backend, is so for those of the pool.
    runs = [copy_context().run for _ in blocks]
    with hold_blas(n_each), ThreadPoolExecutor(n_workers) as pool:
        yield from pool.map(lambda own, block: own(run, block), runs, blocks)


@contextmanager
def few_cores(n_cores: int | None) -> Iterator[None]:
    """Hold what is computed here to some of the cores: others have the rest."""
    blas = nullcontext() if n_cores is None else hold_blas(n_cores)
    with own_cores(n_cores), blas, _loop_threads(n_cores):
        yield


@contextmanager
def own_threads(n_jobs: int | None, n_items: int | None) -> Iterator[None]:
    """Hold what a model computes to its threads; a small one spins in none."""
    is_small = n_items is not None and n_items <= SMALL_ITEMS
    token = _IS_SMALL.set(is_small)
    try:
        with few_cores(count_threads(n_jobs)):
            with hold_blas(1) if is_small else nullcontext():
                yield
    finally:
        _IS_SMALL.reset(token)


def on_own_threads(method: Method) -> Method:
    """Let a method of an estimator keep to the estimator's own ``n_jobs``."""

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if method.__name__ == "fit":
            n_items = count_rows(args[0] if args else kwargs.get("views"))
            links = args[1] if len(args) > 1 else kwargs.get("links")
            # Many judged pairs of few items are no small work.
            tables = getattr(links, "pair_tables", ())
            if n_items is not None:
                n_items += sum(len(table) for _, table in tables)
        else:
            items = getattr(self, "items_", {}).values()
            n_items = sum(own.n_items for own in items)
        with own_threads(getattr(self, "n_jobs", None), n_items):
            return method(self, *args, **kwargs)

    return run  # type: ignore[return-value]


def count_rows(views: Any) -> int | None:
    """Return the rows of all tables, or None where one has no shape."""
    tables = views.values() if isinstance(views, Mapping) else [views]
    shapes: list[Any] = [getattr(table, "shape", None) for table in tables]
    return sum(shape[0] for shape in shapes) if all(shapes) else None


@contextmanager
def small_algebra(n_entries: int) -> Iterator[None]:
    """Hold BLAS to one thread for the factorisation of a small matrix."""
    with hold_blas(1) if n_entries <= SMALL_ENTRIES else nullcontext():
        yield


@contextmanager
def small_loops(n_products: int) -> Iterator[None]:
    """Hold compiled loops to one thread where each is short."""
    is_short = n_products <= SMALL_LOOP or _IS_SMALL.get()
    with _loop_threads(1 if is_short else None):
        yield


@contextmanager
def _loop_threads(n_threads: int | None) -> Iterator[None]:
    """Hold compiled loops to some threads, where they have more; None changes none."""
    if n_threads is None or n_threads >= numba.config.NUMBA_NUM_THREADS:
        yield
        return
    before = numba.get_num_threads()
    numba.set_num_threads(min(n_threads, before))
    try:
        yield
    finally:
        numba.set_num_threads(before)
