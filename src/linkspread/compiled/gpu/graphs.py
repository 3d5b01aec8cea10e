"""Graphs on a device: edges, polynomials, and the triangles of tall matrices."""

import warnings

import numpy as np
import torch

# Rows whose products are added up at a time, in float64.
GRAM_ROWS = 1 << 17
# Rows of a tall matrix that are factorised at a time.
QR_ROWS = 1 << 12


def symmetric_edges(ids, weights):
    """Return the CSR arrays of ``max(W, W')``, W having the weights at these ids."""
    n_items = len(ids)
    rows = torch.arange(n_items, device=ids.device)[:, None].expand_as(ids)
    is_edge = weights > 0
    i, j, values = rows[is_edge], ids[is_edge], weights[is_edge]
    # Every edge in both directions; mutual neighbours give the same edge twice.
    places, order = torch.cat([i * n_items + j, j * n_items + i]).sort()
    values = values.repeat(2)[order]
    if len(places) > 1:
        is_second = torch.zeros_like(places, dtype=torch.bool)
        is_second[1:] = places[1:] == places[:-1]
        first = torch.nonzero(is_second).flatten() - 1
        values[first] = torch.maximum(values[first], values[first + 1])
        places, values = places[~is_second], values[~is_second]
    counts = torch.bincount(places // n_items, minlength=n_items)
    indptr = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
    return values, places % n_items, indptr


class Graph:
    """A sparse matrix on a device, as its CSR arrays."""

    def __init__(self, device, S, dtype):
        if isinstance(S, torch.Tensor):
            arrays = S.values(), S.col_indices(), S.crow_indices()
        else:
            arrays = S.data, S.indices, S.indptr
        self.data = device.put(arrays[0], dtype)
        # Column numbers of 32 bits take half the bandwidth.
        small = max(self.data.shape[0], S.shape[0]) < 2**31
        integers = torch.int32 if small else torch.int64
        self.indices, self.indptr = (device.put(a, integers) for a in arrays[1:])
        self.shape = tuple(S.shape)
        self.kernels = device.kernels
        self._matrix = None

    def matrix(self):
        """Return the graph as a torch matrix."""
        if self._matrix is None:
            with warnings.catch_warnings():
                # Torch warns that its CSR matrices are in beta, and unchecked.
                warnings.simplefilter("ignore", UserWarning)
                arrays = self.indptr, self.indices, self.data, self.shape
                self._matrix = torch.sparse_csr_tensor(*arrays, check_invariants=False)
        return self._matrix

    def step(self, scale, current, previous):
        """Write ``scale * S @ current - previous`` over ``previous``."""
        self.kernels.chebyshev_step(self, scale, current, previous)


def dense_block(device, block, dtype):
    """Return a thin block as a dense tensor on the device."""
    if not hasattr(block, "tocoo"):
        return device.put(block, dtype)
    entries = block.tocoo()
    dense = torch.zeros(block.shape, dtype=dtype, device=device.place)
    places = tuple(device.put(index.astype(np.int64)) for index in entries.coords)
    return dense.index_put_(places, device.put(entries.data, dtype), accumulate=True)


def filtered_sums(graph, block, coefficients):
    """Return ``phi_r(S) @ block`` for every polynomial phi_r, in one recurrence."""
    steps = torch.from_numpy(np.ascontiguousarray(coefficients.T))
    steps = steps.to(block.device, block.dtype)
    sums = steps[0][:, None] * block[:, None, :]
    current, previous = block, torch.zeros_like(block)
    for i in range(1, len(steps)):
        graph.step(1 if i == 1 else 2, current, previous)
        current, previous = previous, current
        sums.addcmul_(current[:, None, :], steps[i][:, None])
    return sums


def largest_stretch(graph, n_steps):
    """Return a lower bound of the largest eigenvalue, by power iteration."""
    vector = graph.data.new_ones((graph.shape[0], 1))
    largest = 0.0
    for _ in range(n_steps):
        image = torch.zeros_like(vector)
        graph.step(1, vector, image)
        sizes = float(image.norm()), float(vector.norm())
        largest = max(largest, sizes[0] / (sizes[1] or 1.0))
        if sizes[0] == 0:
            break
        vector = image / sizes[0]
    return largest


def triangle(tall):
    """Return R with ``R'R = A'A`` for a tall matrix A, as an array in float64."""
    width = tall.shape[1]
    if tall.dtype != torch.float32:
        # A block of rows at a time; the Gram matrix would lose half of the digits.
        step = max(QR_ROWS, 4 * width)
        n_whole = len(tall) // step
        if n_whole > 1:
            blocks = tall[: n_whole * step].view(n_whole, step, -1)
            parts = [torch.linalg.qr(blocks, mode="r").R.flatten(0, 1)]
            tall = torch.cat([*parts, tall[n_whole * step :]])
        return torch.linalg.qr(tall, mode="r").R.cpu().numpy()
    # The Gram matrix in float64 keeps all digits of float32 entries.
    gram = tall.new_zeros((width, width), dtype=torch.float64)
    for rows in tall.split(GRAM_ROWS):
        wide = rows.double()
        gram.addmm_(wide.T, wide)
    values, vectors = torch.linalg.eigh(gram)
    root = values.clamp(min=0).sqrt()[:, None] * vectors.T
    # The smallest come first, and are 0 beyond the rank.
    return root[width - min(tall.shape) :].cpu().numpy()
