"""The kernels on a GPU, through torch; this file alone loads without it."""

from functools import cache
from types import ModuleType
from typing import Any

from linkspread.ground.errors import LinkspreadError, require

__all__ = ["has_cuda", "load_torch", "open_device"]


def load_torch() -> ModuleType:
    """Return torch, or say how to install it."""
    return require("torch", extra="gpu", purpose="A GPU backend")


def has_cuda() -> bool:
    """Tell whether torch sees a GPU."""
    return bool(load_torch().cuda.is_available())


@cache
def open_device(backend: str) -> Any:
    """Return the device of a backend, or say what is missing."""
    if backend == "cuda" and not has_cuda():
        raise LinkspreadError(
            "`backend` must be one that this machine has, got 'cuda', and torch "
            f"{load_torch().__version__} sees no GPU. Use backend='cpu', or install a "
            "build of torch for the GPU's driver."
        )
    load_torch()
    from linkspread.compiled.gpu.devices import Device

    return Device("cuda" if backend == "cuda" else "cpu")
