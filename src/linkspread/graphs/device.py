"""Graphs built on a device: neighbours, their edges, and sparse codes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from linkspread.compiled.backends import choose_device
from linkspread.compiled.gpu import load_torch
from linkspread.graphs.distances import Metric
from linkspread.graphs.edges import neighbor_matrix
from linkspread.graphs.rows import Rows

Array = np.ndarray

# Multiplications from which a search pays: a processor does them in about a second.
LEAST_PRODUCTS = 1e11
# Of sparse codes, n k^3: a processor takes several seconds for them.
LEAST_CODES = 2e10
# Neighbours from which assembling a graph pays.
LEAST_EDGES = 2e6


def device_for_search(backend: str, metric: Metric, items: Rows, n_queries: int) -> Any:
    """Return the device on which neighbours are to be searched, or None."""
    work = float(n_queries) * items.shape[0] * items.shape[1]
    device = choose_device(backend, work=work, least=LEAST_PRODUCTS)
    return None if sp.issparse(items) or metric.pairwise is not None else device


def device_for_codes(
    backend: str, metric: Metric, items: Rows, n_rows: int, n_neighbors: int
) -> Any:
    """Return the device on which sparse codes are to be found, or None."""
    work = float(n_rows) * n_neighbors**3
    device = choose_device(backend, work=work, least=LEAST_CODES)
    return None if sp.issparse(items) or metric.pairwise is not None else device


def symmetric_graph(
    ids: Array, weights: Array, dtype: np.dtype, *, backend: str = "auto"
) -> sp.csr_array:
    """Return the graph in which each item is joined to its neighbours."""
    device = choose_device(backend, work=ids.size, least=LEAST_EDGES)
    if device is None:
        W = neighbor_matrix(ids, weights, dtype, len(ids))
        return W.maximum(sp.csr_array(W.T))
    from linkspread.compiled.gpu.graphs import symmetric_edges

    data, indices, indptr = symmetric_edges(
        device.put(ids).long(), device.put(weights.astype(dtype))
    )
    small = max(len(data), len(ids)) <= np.iinfo(np.int32).max
    integers = np.int32 if small else np.int64
    places = [tensor.cpu().numpy().astype(integers) for tensor in (indices, indptr)]
    shape = len(ids), len(ids)
    return sp.csr_array((data.cpu().numpy(), *places), shape=shape)


class DeviceKernels:
    """Affinities among the neighbours of items, as tensors on a device."""

    def __init__(self, device: Any, kernels: Any, kernel: str) -> None:
        self.device, self.kernel, self.metric = device, kernel, kernels.metric
        self.items = device.put(kernels.embedded)
        # Most metrics embed an item in the same way when it is the one that asks.
        is_same = kernels.queries is kernels.embedded
        self.queries = self.items if is_same else device.put(kernels.queries)
        self.widths = device.put(kernels.widths.copy())

    def problems(
        self, ids: Array, targets: Array, roots: Any
    ) -> Callable[[slice], tuple[Any, Any]]:
        """Return what builds the problems of some rows."""
        from linkspread.compiled.gpu.codes import affinities, distances_within

        def build(rows: slice) -> tuple[Any, Any]:
            near, wanted = self.device.put(ids[rows]).long(), targets[rows]
            distances = distances_within(
                self.queries[near], self.items[near], self.metric.relative
            )
            blocks = affinities(
                distances, self.widths[near], self.kernel, self.metric.name
            )
            wanted = self.device.put(wanted)
            if roots is None:
                return blocks, wanted
            own = self.device.put(roots.roots(ids[rows]))
            zeros = wanted.new_zeros(wanted.shape)
            cat = load_torch().cat
            return cat([blocks, own], dim=1), cat([wanted, zeros], dim=1)

        return build
