"""Polynomials of a normalised graph applied to thin blocks.

Chebyshev's recurrence applies many at once (`filtered_sums`), Clenshaw's sums many
(`filtered_sum`); the two-sided filter uses both (`FilterOperator`). Label spreading and
heat are single polynomials of one graph.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.polynomial.chebyshev import chebinterpolate
from scipy import sparse
from scipy.linalg import eigh

from linkspread.compiled.backends import small_algebra, small_loops
from linkspread.compiled.cpu import (
    LINE_BYTES,
    add_terms,
    chebyshev_step,
    clenshaw_step,
    grow_order,
    renumber_rows,
)
from linkspread.links import LinkMatrix
from linkspread.propagation.filter import SeparableFilter

Array = np.ndarray

logger = logging.getLogger("linkspread")

# A block below this size stays in the last-level cache in any order.
CACHE_BYTES = 8e6
# Rows within these distances share the cache of one core, and of all cores.
NEAR_BYTES = (2**18, 2**22)
# Finding an order costs about two products, and halves the time of each if it helps.
MIN_STEPS = 6
# Least gain in the share of edges between near items.
MIN_GAIN = 0.2
N_SAMPLED = 1000
# Parameters of `grow_order`: the share of common neighbours, which distinguishes a
# neighbourhood from single edges that lead far away; the most that are needed; and a
# number of items. With less, the order scatters over high-dimensional clusters.
NEEDED_SHARE, MAX_NEEDED, SPAN = 0.25, 5, 5000


class Numbering(NamedTuple):
    """A renumbered graph with its polynomials, and the old number of each item."""

    S: sparse.csr_array
    order: Array | None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the products."""
        return self.S.dtype

    @property
    def places(self) -> Array:
        """New number of each old one."""
        return (
            np.arange(self.S.shape[0])
            if self.order is None
            else inverse_order(self.order)
        )

    def inwards(self, rows: Any) -> Any:
        """Return rows in the new order."""
        if self.order is None:
            return rows
        return (rows.tocsr() if sparse.issparse(rows) else rows)[self.order]

    def outwards(self, rows: Array) -> Array:
        """Return rows in the old order."""
        if self.order is None:
            return rows
        restored = np.empty_like(rows)
        restored[self.order] = rows
        return restored

    def sums(self, block: Any, functions: Array) -> Array:
        """Return `filtered_sums`, in the new order."""
        return filtered_sums(self.S, self.inwards(block), functions)

    def sum(self, blocks: Array, functions: Array) -> Array:
        """Return `filtered_sum` of blocks in the new order."""
        return self.outwards(filtered_sum(self.S, blocks, functions))


def renumber(S: sparse.csr_array, *, width: int, n_steps: int) -> Numbering:
    """Renumber the items of a graph if that makes products faster."""
    return reorder(S, find_order(S, width=width, n_steps=n_steps))


def reorder(S: sparse.csr_array, order: Array | None) -> Numbering:
    """Renumber the items of a graph by an order."""
    if order is None:
        return Numbering(S, None)
    indptr = np.zeros_like(S.indptr)
    np.cumsum(np.diff(S.indptr)[order], out=indptr[1:])
    data, indices = np.empty_like(S.data), np.empty_like(S.indices)
    places = inverse_order(order)
    with small_loops(S.nnz):
        renumber_rows(S.data, S.indices, S.indptr, order, places, data, indices, indptr)
    return Numbering(sparse.csr_array((data, indices, indptr), shape=S.shape), order)


def find_order(S: sparse.csr_array, *, width: int, n_steps: int) -> Array | None:
    """Return an order with neighbours near in memory, or None if not worth it.

    Releases the GIL, so that two graphs can use two threads.
    """
    row_bytes = max(width * S.dtype.itemsize, 1)
    if S.shape[0] * row_bytes < CACHE_BYTES or n_steps < MIN_STEPS:
        return None
    reaches = [max(n_bytes // row_bytes, 1) for n_bytes in NEAR_BYTES]
    order = np.arange(S.shape[0], dtype=S.indices.dtype)
    before = _near_share(S, order, reaches)
    if before > 1 - MIN_GAIN:
        return None
    n_common = round(NEEDED_SHARE * S.nnz / S.shape[0])
    needed = min(max(n_common, 2), MAX_NEEDED)
    grow_order(S.indices, S.indptr, needed, SPAN, order)
    after = _near_share(S, inverse_order(order), reaches)
    logger.debug(
        "edges between items near in memory: %.0f %% as numbered, %.0f %% renumbered",
        100 * before,
        100 * after,
    )
    return order if after >= before + MIN_GAIN else None


def inverse_order(order: Array) -> Array:
    """Return the place of each item in an order."""
    places = np.empty_like(order)
    places[order] = np.arange(len(order), dtype=order.dtype)
    return places


def _near_share(S: sparse.csr_array, places: Array, reaches: Sequence[int]) -> float:
    """Return the mean share of edges within each reach, from a sample of rows."""
    step = max(S.shape[0] // N_SAMPLED, 1)
    rows = np.arange(0, S.shape[0], step)
    sample = S[rows]
    if not sample.nnz:
        return 1.0  # no edges
    ends = places[rows].astype(np.int64).repeat(np.diff(sample.indptr))
    distances = np.abs(ends - places[sample.indices])
    return float(np.mean([np.mean(distances <= reach) for reach in reaches]))


# Terms of a recurrence in memory; a step reads two and writes one.
N_TERMS = 4
# Columns up to which SciPy's products, in one thread, are faster than the compiled
# loops, especially while other processes use the cores.
NARROW = 4
# Terms of narrow blocks that are summed at a time.
N_NARROW_TERMS = 16
# Times and coefficients of the heat kernel: a short time for small classes, a long one
# for large classes. The polynomial of this degree has error 1e-5, like ROUNDING.
FLOWS, DEGREE = ((6.0, 1.0), (24.0, 3.0)), 24
# Heat is in single precision: smaller eigenvalues, relative to the largest, are noise.
ROUNDING = 1e-5
# Landmarks whose heat is computed at once, at most, in multiples of a cache line.
MAX_WIDTH, LINE = 128, 16


def recurrence_terms(n_items: int, width: int, dtype: Any) -> Array:
    """Return a buffer for the terms of a recurrence."""
    size, itemsize = N_TERMS * n_items * width, np.dtype(dtype).itemsize
    room = np.empty(size + LINE_BYTES // itemsize, dtype)
    # Aligned to cache lines, a row takes one line less.
    start = -room.ctypes.data % LINE_BYTES // itemsize
    return room[start : start + size]


def filtered_sums(
    S: sparse.csr_array,
    block: Any,
    coefficients: Array,
    *,
    rows: Array | None = None,
    workspace: Array | None = None,
) -> Array:
    """Return ``phi_r(S) @ block`` for every polynomial phi_r, in one recurrence."""
    steps = np.ascontiguousarray(coefficients.T, dtype=S.dtype)
    if block.shape[1] <= NARROW:
        return _narrow_sums(S, block, steps, rows)
    n_rows = block.shape[0] if rows is None else len(rows)
    sums = np.zeros((n_rows, steps.shape[1], block.shape[1]), dtype=S.dtype)
    # Sums are larger than a term, so they are updated for several terms at once.
    if workspace is None:
        workspace = recurrence_terms(block.shape[0], block.shape[1], S.dtype)
    terms = workspace[: N_TERMS * block.shape[0] * block.shape[1]]
    terms = terms.reshape(N_TERMS, *block.shape)
    _write_dense(block, terms[0])
    terms[-1] = 0  # before the first term
    with small_loops(S.nnz * block.shape[1]):
        for i in range(len(steps)):
            here, last = i % N_TERMS, i == len(steps) - 1
            if i > 0:
                scale = S.dtype.type(1 if i == 1 else 2)
                current, previous = terms[here - 1], terms[here - 2]
                chebyshev_step(
                    S.data, S.indices, S.indptr, scale, current, previous, terms[here]
                )
            if here == N_TERMS - 1 or last:
                fresh = terms[: here + 1]
                wanted = fresh if rows is None else fresh[:, rows]
                add_terms(wanted, steps[i - here : i + 1], sums)
    return sums


def filtered_sum(S: sparse.csr_array, blocks: Array, coefficients: Array) -> Array:
    """Return ``sum_r phi_r(S) @ blocks[:, r]`` by Clenshaw's recurrence."""
    steps = np.ascontiguousarray(coefficients.T, dtype=S.dtype)
    blocks = np.ascontiguousarray(blocks, dtype=S.dtype)
    if blocks.shape[2] <= NARROW:
        return _narrow_sum(S, blocks, steps)
    current = np.zeros((blocks.shape[0], blocks.shape[2]), dtype=S.dtype)
    previous = np.zeros_like(current)
    with small_loops(S.nnz * blocks.shape[2]):
        for i in range(len(steps) - 1, -1, -1):
            scale = S.dtype.type(1 if i == 0 else 2)
            clenshaw_step(
                S.data, S.indices, S.indptr, scale, current, previous, steps[i], blocks
            )
            current, previous = previous, current
    return current


def _narrow_sums(
    S: sparse.csr_array, block: Any, steps: Array, rows: Array | None
) -> Array:
    """Return the same as `filtered_sums`, for few columns."""
    current = np.empty(block.shape, dtype=S.dtype)
    _write_dense(block, current)
    previous = np.zeros_like(current)
    kept = current.shape if rows is None else (len(rows), current.shape[1])
    totals = np.zeros((kept[0] * kept[1], steps.shape[1]), dtype=S.dtype)
    terms = np.empty((N_NARROW_TERMS, kept[0] * kept[1]), dtype=S.dtype)
    for i in range(len(steps)):
        here = i % N_NARROW_TERMS
        terms[here] = (current if rows is None else current[rows]).ravel()
        if here == N_NARROW_TERMS - 1 or i == len(steps) - 1:
            with small_algebra(0):
                totals += terms[: here + 1].T @ steps[i - here : i + 1]
        if i < len(steps) - 1:
            product = S @ current
            current, previous = (2 * product if i else product) - previous, current
    return totals.reshape(*kept, steps.shape[1]).transpose(0, 2, 1)


def _narrow_sum(S: sparse.csr_array, blocks: Array, steps: Array) -> Array:
    """Return the same as `filtered_sum`, for few columns."""
    n_items, n_functions, width = blocks.shape
    flat = blocks.transpose(1, 0, 2).reshape(n_functions, -1)
    current = np.zeros((n_items, width), dtype=S.dtype)
    previous = np.zeros_like(current)
    for i in range(len(steps) - 1, -1, -1):
        with small_algebra(0):
            source = (steps[i] @ flat).reshape(n_items, width)
        product = S @ current
        following = (2 * product if i else product) - previous + source
        current, previous = following, current
    return current


def _write_dense(block: Any, out: Array) -> None:
    """Write a sparse or dense block into an array."""
    if sparse.issparse(block):
        block.astype(out.dtype, copy=False).toarray(out=out)
    else:
        out[:] = block


@dataclass(frozen=True)
class FilterOperator:
    """Apply ``F_k = sum_rs cores[k][r, s] phi_r(S_x) Z psi_s(S_y)`` to thin blocks.

    Links are in the order of the graphs; blocks and products are not.
    """

    x: Any  # like a `Numbering`
    Z: LinkMatrix
    y: Any
    separable: SeparableFilter

    @classmethod
    def of(
        cls, S_x: Any, Z: LinkMatrix, S_y: Any, separable: SeparableFilter, width: int
    ) -> Self:
        """Return the operator of two graphs for blocks of about this width."""
        x, y = (
            renumber(S, width=width, n_steps=n_steps)
            for S, n_steps in zip((S_x, S_y), separable.degrees, strict=True)
        )
        if x.order is not None or y.order is not None:
            pairs = y.inwards(x.inwards(Z.pairs).T).T.tocsr()
            Z = LinkMatrix(x.inwards(Z.left), Z.core, y.inwards(Z.right), pairs)
        return cls(x, Z, y, separable)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of row items and of column items."""
        return self.Z.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the products."""
        dtype: np.dtype[Any] = self.x.dtype
        return dtype

    @property
    def T(self) -> "FilterOperator":
        """The operator of the transposed matrices."""
        f = self.separable
        cores = tuple(core.T for core in f.cores)
        turned = SeparableFilter(f.right, f.left, cores, f.error)
        return FilterOperator(self.y, self.Z.T, self.x, turned)

    def apply(self, block: Array, n_responses: int | None = None) -> list[Array]:
        """Return ``F_k @ block`` for the first responses, or for all."""
        smoothed = self.y.sums(block, self.separable.right)
        linked = np.asarray(self.Z @ smoothed.reshape(len(smoothed), -1))
        linked = linked.reshape(-1, *smoothed.shape[1:])
        return [
            self.x.sum(np.matmul(core, linked), self.separable.left)
            for core in self.separable.cores[:n_responses]
        ]


def smoothing_polynomial(alpha: float, *, tol: float) -> Array:
    """Return Chebyshev coefficients of ``(1 - alpha) / (1 - alpha l)``."""
    if 4 * alpha <= tol:  # 1 everywhere, up to `tol`
        return np.ones(1)
    # The pole 1 / alpha sets the decay rate of the coefficients [Trefethen2013];
    # the factors before it bound the error relative to the smallest value.
    rate = (1 + np.sqrt(1 - alpha**2)) / alpha
    bound = 8 * (1 + alpha) / (np.sqrt(1 - alpha**2) * (1 - 1 / rate))
    degree = int(np.ceil(np.log(bound / tol) / np.log(rate)))
    return chebinterpolate(lambda l: (1 - alpha) / (1 - alpha * l), degree)


def smooth_over_graph(
    S: sparse.csr_array, block: Any, *, alpha: float, tol: float
) -> Array:
    """Return ``(1 - alpha) (I - alpha S)^-1 @ block``, label spreading [Zhou2004]."""
    coefficients = smoothing_polynomial(alpha, tol=tol)
    return filtered_sums(S, block, coefficients[None])[:, 0]


def heat(S: sparse.csr_array, landmarks: Array) -> tuple[Array, Array]:
    """Return the heat kernel of all items and landmarks, and its whitening.

    The landmark columns of ``sum_f c_f exp(-t_f (I - S))``.
    """
    K = np.empty((S.shape[0], len(landmarks)), dtype=np.float32)
    n_blocks = -(-len(landmarks) // MAX_WIDTH)
    width = -(-len(landmarks) // (n_blocks * LINE)) * LINE
    near = renumber(S, width=width, n_steps=DEGREE * n_blocks)
    places = near.places[landmarks]
    for start in range(0, len(landmarks), width):
        some = places[start : start + width]
        units = np.zeros((S.shape[0], len(some)), dtype=np.float32)
        units[some, np.arange(len(some))] = 1
        found = filtered_sums(near.S, units, heat_coefficients()[None])
        K[:, start : start + width] = near.outwards(found[:, 0])
    return K, inverse_root(K[landmarks])


def heat_on_device(
    device: Any, W: sparse.csr_array, landmarks: Array
) -> tuple[Any, Any]:
    """Return the same as `heat`, for a graph not normalised, as tensors."""
    from linkspread.compiled.gpu import features

    places = device.put(landmarks)
    K = features.heat_kernel(device, W, places, heat_coefficients())
    return K, device.put(inverse_root(K[places].cpu().numpy()))


def heat_coefficients() -> Array:
    """Return the Chebyshev coefficients of ``sum_f c_f exp(-t_f (1 - s))``."""
    k = np.arange(DEGREE + 1)
    angles = np.pi * (k + 0.5) / (DEGREE + 1)
    values = sum(c * np.exp(-t * (1 - np.cos(angles))) for t, c in FLOWS)
    coefficients = 2 / (DEGREE + 1) * np.cos(np.outer(k, angles)) @ values
    coefficients[0] /= 2
    return coefficients


def inverse_root(K: Array) -> Array:
    """Return the inverse root of the heat of landmarks, without noise."""
    values, own = eigh(K.astype(np.float64))
    kept = values > ROUNDING * values[-1]
    half = own[:, kept] / values[kept] ** 0.25
    # Symmetric, so that the arbitrary signs and rotations of eigenvectors cancel.
    return (half @ half.T).astype(np.float32)
