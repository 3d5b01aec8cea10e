"""A device: its memory, arrays that travel to it and back, work in blocks."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from linkspread.ground.errors import LinkspreadError
from linkspread.ground.progress import format_bytes

# Share of the free memory that is planned with; the rest is for what torch itself and
# the libraries below it take.
USED_SHARE = 0.7
# What torch on the processor may take: there it is for tests.
PROCESSOR_BYTES = 2e9


class Device:
    """A GPU, or the processor in its place."""

    def __init__(self, name: str, *, budget: float | None = None) -> None:
        self.name = name
        self.place = torch.device(name)
        self.budget = budget
        self.is_fused = name == "cuda" and has_triton()

    def put(self, array: Any, dtype: Any = None) -> Any:
        """Return an array as a tensor on the device."""
        if not isinstance(array, torch.Tensor):
            with warnings.catch_warnings():
                # Nothing here writes into what it was given.
                warnings.filterwarnings("ignore", message=".*not writable.*")
                array = torch.from_numpy(np.ascontiguousarray(array))
        return array.to(self.place, dtype)

    def free_bytes(self) -> float:
        """Return how many bytes may be planned with now."""
        if self.budget is not None:
            return self.budget
        if self.name != "cuda":
            return PROCESSOR_BYTES
        free, _ = torch.cuda.mem_get_info()
        # What torch keeps for itself without using it is free for us.
        kept = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        return USED_SHARE * (free + kept)

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
            except torch.OutOfMemoryError as error:
                needed = str(error).partition("GPU")[0]
                result = None
            else:
                yield rows, result
                start = rows.stop
                continue
            # Out of the handler, whose traceback would keep the tensors alive.
            if n_block == 1:
                raise LinkspreadError(
                    "The device must have room for one row at a time, got "
                    f"{format_bytes(self.free_bytes())} free ({needed.strip()}). Free "
                    "its memory, or use backend='cpu'."
                )
            n_block = max(n_block // 2, 1)
            if self.name == "cuda":
                torch.cuda.empty_cache()


def has_triton() -> bool:
    """Tell whether kernels can be written for the GPU in Triton."""
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True
