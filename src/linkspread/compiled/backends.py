"""The choice between the compiled loops and a GPU.

>>> from linkspread.compiled.backends import choose_device
>>> choose_device("cpu", work=1e15, min_work=1e12) is None  # None: the compiled loops
True
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from importlib.util import find_spec
from typing import Any

from linkspread.compiled import gpu
from linkspread.ground.checks import check_name

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
