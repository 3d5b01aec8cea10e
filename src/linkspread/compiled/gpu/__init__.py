"""Kernels on a GPU, through torch; only this file can be imported without it."""

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from linkspread.ground.errors import LinkspreadError, require
from linkspread.ground.progress import format_bytes

__all__ = ["Device", "has_cuda", "load_torch", "open_device"]

# Share of the free memory to use; the rest is for torch and the libraries below it.
USED_SHARE = 0.7
# Memory of the torch backend on the CPU, which is for tests.
PROCESSOR_BYTES = 2e9


def load_torch() -> ModuleType:
    """Import torch."""
    return require("torch", purpose="A GPU backend")


def has_cuda() -> bool:
    """Return whether torch sees a GPU."""
    return bool(load_torch().cuda.is_available())


@cache
def open_device(backend: str) -> "Device":
    """Return the device of a backend; raise if it is missing."""
    if backend == "cuda" and not has_cuda():
        raise LinkspreadError(
            "`backend` must be one that this machine has, got 'cuda', and torch "
            f"{load_torch().__version__} sees no GPU. Use backend='cpu', or install a "
            "build of torch for the GPU's driver."
        )
    return Device("cuda" if backend == "cuda" else "cpu")


class Device:
    """A GPU, or the CPU in its place: its memory, arrays, work in blocks."""

    def __init__(self, name: str, *, budget: float | None = None) -> None:
        self.torch = load_torch()
        self.name, self.budget = name, budget
        self.place = self.torch.device(name)
        self.is_fused = name == "cuda" and find_spec("triton") is not None

    @property
    def kernels(self) -> ModuleType:
        """The kernels in Triton, or the same in torch operations."""
        name = "fused" if self.is_fused else "plain"
        return import_module(f"linkspread.compiled.gpu.{name}")

    def put(self, array: Any, dtype: Any = None) -> Any:
        """Return an array as a tensor on the device."""
        if not isinstance(array, self.torch.Tensor):
            with warnings.catch_warnings():
                # No kernel writes into its input.
                warnings.filterwarnings("ignore", message=".*not writable.*")
                array = self.torch.from_numpy(np.ascontiguousarray(array))
        return array.to(self.place, dtype)

    def free_bytes(self) -> float:
        """Return how many bytes may be allocated now."""
        if self.budget is not None:
            return self.budget
        if self.name != "cuda":
            return PROCESSOR_BYTES
        cuda = self.torch.cuda
        # Memory that torch has reserved but does not use is free.
        kept = cuda.memory_reserved() - cuda.memory_allocated()
        return USED_SHARE * (cuda.mem_get_info()[0] + kept)

    def block_rows(self, row_bytes: float, n_rows: int, *, share: float = 0.5) -> int:
        """Return how many rows of a block fit a share of the memory."""
        return int(min(max(share * self.free_bytes() // max(row_bytes, 1), 1), n_rows))

    def in_blocks(
        self, work: Callable[[slice], Any], n_rows: int, n_block: int
    ) -> Iterator[tuple[slice, Any]]:
        """Yield rows and ``work(rows)``; a block that does not fit is halved."""
        start = 0
        while start < n_rows:
            rows = slice(start, min(start + n_block, n_rows))
            try:
                result = work(rows)
            except self.torch.OutOfMemoryError as error:
                needed = str(error).partition("GPU")[0]
                result = None
            else:
                yield rows, result
                start = rows.stop
                continue
            # Outside the handler: its traceback would keep the tensors alive.
            if n_block == 1:
                raise LinkspreadError(
                    "The device must have room for one row at a time, got "
                    f"{format_bytes(self.free_bytes())} free ({needed.strip()}). Free "
                    "its memory, or use backend='cpu'."
                )
            n_block = max(n_block // 2, 1)
            if self.name == "cuda":
                self.torch.cuda.empty_cache()
