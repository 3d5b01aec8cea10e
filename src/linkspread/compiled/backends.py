"""The choice between the compiled loops and a GPU.

>>> from linkspread.compiled.backends import choose_device
>>> choose_device("cpu", work=1e15, min_work=1e12) is None  # None: the compiled loops
True
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from functools import wraps
from importlib.util import find_spec
from typing import Any, TypeVar

import numba

from linkspread.compiled import gpu
from linkspread.ground.checks import check_name
from linkspread.ground.cores import count_threads, hold_blas, own_cores

# Matrices of up to this many entries are factorised in one thread.
SMALL_ENTRIES = 1 << 22
# Loops of up to this many multiplications run in one thread.
SMALL_LOOP = 1 << 23
# Models of up to this many items compute their products in one thread.
SMALL_ITEMS = 1 << 12

# Whether the current model is small, so that all its loops run in one thread.
_IS_SMALL: ContextVar[bool] = ContextVar("is small", default=False)

Method = TypeVar("Method", bound=Callable[..., Any])


def map_blocks(
    work: Callable[[Any], Any],
    blocks: list[Any],
    *,
    n_threads: int,
    concurrent: bool = True,
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
    # The threads of the pool inherit the context, such as the backend.
    runs = [copy_context().run for _ in blocks]
    with hold_blas(n_each), ThreadPoolExecutor(n_workers) as pool:
        yield from pool.map(lambda own, block: own(run, block), runs, blocks)


@contextmanager
def few_cores(n_cores: int | None) -> Iterator[None]:
    """Limit this thread, BLAS and compiled loops to some of the cores."""
    blas = nullcontext() if n_cores is None else hold_blas(n_cores)
    with own_cores(n_cores), blas, _loop_threads(n_cores):
        yield


@contextmanager
def own_threads(n_jobs: int | None, n_items: int | None) -> Iterator[None]:
    """Limit a model to its `n_jobs`; BLAS to one thread if the model is small."""
    is_small = n_items is not None and n_items <= SMALL_ITEMS
    token = _IS_SMALL.set(is_small)
    try:
        with few_cores(count_threads(n_jobs)):
            with hold_blas(1) if is_small else nullcontext():
                yield
    finally:
        _IS_SMALL.reset(token)


def on_own_threads(method: Method) -> Method:
    """Run a method of an estimator within `own_threads(self.n_jobs, ...)`."""

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        items = getattr(self, "items_", {}).values()
        n_items: int | None = sum(own.n_items for own in items)
        if method.__name__ == "fit":
            n_items = count_rows(args[0] if args else kwargs.get("views"))
            links = args[1] if len(args) > 1 else kwargs.get("links")
            if n_items is not None:
                # Many judged pairs make a fit large, even of few items.
                tables = getattr(links, "pair_tables", ())
                n_items += sum(len(table) for _, table in tables)
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
    """Limit BLAS to one thread for the factorisation of a small matrix."""
    with hold_blas(1) if n_entries <= SMALL_ENTRIES else nullcontext():
        yield


@contextmanager
def small_loops(n_products: int) -> Iterator[None]:
    """Limit compiled loops to one thread where each is short."""
    is_short = n_products <= SMALL_LOOP or _IS_SMALL.get()
    with _loop_threads(1 if is_short else None):
        yield


@contextmanager
def _loop_threads(n_threads: int | None) -> Iterator[None]:
    """Limit the threads of compiled loops; None keeps them."""
    if n_threads is None or n_threads >= numba.config.NUMBA_NUM_THREADS:
        yield
        return
    before = numba.get_num_threads()
    numba.set_num_threads(min(n_threads, before))
    try:
        yield
    finally:
        numba.set_num_threads(before)


BACKENDS = ("auto", "cpu", "cuda", "torch")

_PREFERRED: ContextVar[str] = ContextVar("preferred backend", default="auto")


def check_backend(backend: Any) -> None:
    """Refuse an unknown backend."""
    check_name(backend, BACKENDS, name="backend")


@contextmanager
def use_backend(backend: str) -> Iterator[None]:
    """Use this backend for "auto" within this context."""
    check_backend(backend)
    token = _PREFERRED.set(backend)
    try:
        yield
    finally:
        _PREFERRED.reset(token)


def on_own_backend(method: Callable[..., Any]) -> Callable[..., Any]:
    """Run a method of an estimator with `use_backend(self.backend)`."""

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with use_backend(self.backend):
            return method(self, *args, **kwargs)

    return run


def choose_device(backend: str, *, work: float, min_work: float) -> Any:
    """Return the device for a piece of work, or None for the compiled loops."""
    check_backend(backend)
    backend = _PREFERRED.get() if backend == "auto" else backend
    if backend == "cpu":
        return None
    if backend != "auto":
        return gpu.open_device(backend)
    # Importing torch takes seconds, so small work does not look for a GPU.
    if work < min_work or find_spec("torch") is None:
        return None
    return gpu.open_device("cuda") if gpu.has_cuda() else None


def is_tensor(array: Any) -> bool:
    """Return whether an array is a torch tensor, without importing torch."""
    return type(array).__module__.partition(".")[0] == "torch"
