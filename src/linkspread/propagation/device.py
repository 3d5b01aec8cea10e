"""Propagation on a device: the same thin factors, from the same filter."""

from typing import Any

import numpy as np
from scipy import sparse

from linkspread.compiled.backends import choose_device, is_tensor
from linkspread.compiled.gpu import load_torch, open_device
from linkspread.ground.errors import LinkspreadError
from linkspread.ground.progress import format_bytes
from linkspread.links import LinkMatrix
from linkspread.propagation.filter import SeparableFilter
from linkspread.propagation.parameters import (
    POWER_STEPS,
    check_shapes,
    refuse_stretching,
)
from linkspread.propagation.spread import shorten

Array = np.ndarray

# Multiplications of a step, edges times columns, from which a GPU pays: they take a
# processor about half a second in all steps together.
LEAST_WORK = 1e8
# More functions than any filter has needed.
N_FUNCTIONS = 13
# A block of the recurrence is in memory so often, beside the sums.
N_BLOCKS = 3


def device_for(backend: str, S_x: Any, Z: Any, S_y: Any) -> Any:
    """Return the device on which links are to be spread, or None."""
    if is_tensor(S_x):
        return open_device("cuda" if S_x.device.type == "cuda" else "torch")
    width = Z.thin_width() if isinstance(Z, LinkMatrix) else min(Z.shape)
    n_edges = float(sum(getattr(S, "nnz", np.size(S)) for S in (S_x, S_y)))
    device = choose_device(backend, work=n_edges * width, least=LEAST_WORK)
    if device is None or backend != "auto":
        return device
    needed = _needed_bytes(max(Z.shape), n_edges, width, N_FUNCTIONS, 8)
    return device if needed < device.free_bytes() else None


def spread_on_device(
    device: Any,
    S_x: Any,
    links: LinkMatrix,
    S_y: Any,
    separable: SeparableFilter,
    *,
    tol: float,
    rank: int | None,
) -> tuple[Any, Any, list[Any], float]:
    """Filter the memberships of each view and shorten what comes out."""
    from linkspread.compiled.gpu.graphs import triangle

    check_shapes(S_x, links, S_y)
    U, G, V = links.thin()
    graphs = [S if is_tensor(S) else sparse.csr_array(S) for S in (S_x, S_y)]
    is_single = all(str(S.dtype).endswith("float32") for S in graphs)
    x = _View(device, graphs[0], "S_x", is_single)
    y = _View(device, graphs[1], "S_y", is_single)
    left, right = x.filtered(U, separable.left), y.filtered(V, separable.right)
    cores = [np.kron(core, G) for core in separable.cores]
    maps = shorten(triangle(left), cores, triangle(right), tol=tol, rank=rank)
    to_left, to_right, short, error = maps
    bases = [
        tall @ device.put(to_short, tall.dtype)
        for tall, to_short in ((left, to_left), (right, to_right))
    ]
    small = [device.put(core, left.dtype) for core in short]
    if not is_tensor(S_x):
        bases, small = ([t.cpu().numpy() for t in part] for part in (bases, small))
    return bases[0], bases[1], small, error


class _View:
    """One view's graph on its way through the device."""

    def __init__(self, device: Any, S: Any, name: str, is_single: bool) -> None:
        self.device, self.S, self.name = device, S, name
        torch = load_torch()
        self.dtype = torch.float32 if is_single else torch.float64

    def filtered(self, block: Any, functions: Array) -> Any:
        """Return filtered columns side by side, on the device."""
        from linkspread.compiled.gpu.graphs import (
            Graph,
            dense_block,
            filtered_sums,
            largest_stretch,
        )

        self._check_room(block.shape[1], len(functions))
        graph = Graph(self.device, self.S, self.dtype)
        refuse_stretching(largest_stretch(graph, POWER_STEPS), name=self.name)
        dense = dense_block(self.device, block, self.dtype)
        return filtered_sums(graph, dense, functions).flatten(1)

    def _check_room(self, width: int, n_functions: int) -> None:
        """Refuse what will not fit, before anything is computed."""
        n_bytes = _needed_bytes(
            self.S.shape[0],
            _count_edges(self.S),
            width,
            n_functions,
            self.dtype.itemsize,
        )
        free = self.device.free_bytes()
        if n_bytes > free:
            raise LinkspreadError(
                f"The device must have about {format_bytes(n_bytes)} free to spread "
                f"links over `{self.name}`, got {format_bytes(free)}. Use "
                "backend='cpu', or links of fewer classes."
            )


def _count_edges(S: Any) -> int:
    """Return the number of stored entries of a graph."""
    return S._nnz() if is_tensor(S) else S.nnz


def _needed_bytes(
    n_items: int, n_edges: float, width: int, n_functions: int, itemsize: int
) -> float:
    """Return the memory that one view takes on a device."""
    sums = float(n_items) * width * (2 * n_functions + N_BLOCKS) * itemsize
    return sums + n_edges * (itemsize + 4)
