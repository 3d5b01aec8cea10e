"""Graphs as blocks of rows that stay with the workers, and polynomials of them.

In each round every worker gets the thin matrix of the round before. A polynomial takes
as many rounds as its degree.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from operator import getitem
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.cluster.session import RowBlocks, Session, alone, same
from linkspread.compiled import add_terms, chebyshev_step, clenshaw_step
from linkspread.graphs.normalize import row_sums, scale_edges
from linkspread.ground.progress import track
from linkspread.propagation.chebyshev import N_TERMS

Array = np.ndarray
Join = Callable[[sparse.csr_array, sparse.csr_array], sparse.csr_array]

# Size of a thin matrix that every worker holds; a wider one is processed in slabs of
# columns, which are independent.
SLAB_BYTES = 1 << 28


@dataclass(frozen=True)
class BlockGraph:
    """A graph in blocks of rows, each a task of a worker."""

    session: Session
    name: str
    blocks: RowBlocks
    parts: list[Any]
    dtype: np.dtype[Any]

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.blocks.n_items

    def map(
        self, task: Callable[..., Any], /, *columns: Any, **shared: Any
    ) -> list[Any]:
        """Send a task for each block."""
        return self.session.map(self.blocks, task, *columns, **shared)

    def results(self, task: Callable[..., Any], /, *columns: Any, **shared: Any) -> Any:
        """Return what a task gives for each block."""
        return self.session.results(self.blocks, task, *columns, **shared)

    def astype(self, dtype: Any) -> "BlockGraph":
        """Return the graph in another precision."""
        dtype = np.dtype(dtype)
        if dtype == self.dtype:
            return self
        parts = self.map(sparse.csr_array.astype, self.parts, dtype=dtype)
        return replace(self, parts=parts, dtype=dtype)

    def symmetrized(self, join: Join) -> "BlockGraph":
        """Join each block with the same rows of the transpose.

        Every block sends to every other the edges that end there.
        """
        cut = self.map(_mirror, self.parts, blocks=self.blocks)
        pieces = [self.map(getitem, cut, [i] * len(cut)) for i in range(len(cut))]
        return replace(
            self, parts=self.map(_join_mirrored, self.parts, pieces, join=join)
        )

    def scaled(self) -> "BlockGraph":
        """Divide by the largest weight, where that is above 1."""
        largest = max(1.0, *self.results(_largest, self.parts))
        return replace(self, parts=self.map(_scaled, self.parts, largest=largest))

    def normalized(self, *, rescale: bool = True) -> "BlockGraph":
        """Normalise a symmetric graph, as `graphs.normalize` does.

        Only row sums are sent. Weights up to 1 need not be rescaled.
        """
        largest = max(self.results(_largest, self.parts)) if rescale else 1.0
        sums = self.results(_row_sums, self.parts, largest=largest)
        shared = {
            "largest": largest,
            "degrees": self.session.hold(np.concatenate(sums)),
        }
        starts = self.blocks.boundaries[:-1]
        parts = self.map(_normalize_block, self.parts, starts, **shared)
        self.session.finish(parts, f"normalising the graph of {self.name}")
        return replace(self, parts=parts)

    def row_sums(self) -> Array:
        """Return the sum of each row."""
        return np.concatenate(self.results(_row_sums, self.parts, largest=1.0))

    def fetch(self) -> sparse.csr_array:
        """Return the whole graph, fetched a block at a time."""
        counts, dtypes = zip(*self.results(_count_edges, self.parts), strict=True)
        n_edges = sum(counts)
        small = max(n_edges, self.n_items) <= np.iinfo(np.int32).max
        integers = np.int32 if small else np.int64
        indptr = np.zeros(self.n_items + 1, integers)
        indices, data = np.empty(n_edges, integers), np.empty(n_edges, dtypes[0])
        edge = 0
        for (start, stop), part in zip(self.blocks, self.parts, strict=True):
            W = self.session.fetch(part)
            own = slice(edge, edge + W.nnz)
            data[own], indices[own] = W.data, W.indices
            indptr[start + 1 : stop + 1] = W.indptr[1:] + integers(edge)
            edge = own.stop
        shape = self.n_items, self.n_items
        return sparse.csr_array((data, indices, indptr), shape=shape)

    def cut(self, rows: Any) -> list[Any]:
        """Return a matrix in blocks of the same rows."""
        rows = rows.tocsr() if sparse.issparse(rows) else rows
        return [_few_rows(rows[start:stop]) for start, stop in self.blocks]

    def filtered_sums(self, block: Any, coefficients: Array) -> list[Any]:
        """Return ``phi_r(S) @ block`` for every polynomial phi_r, in blocks of rows."""
        steps = np.ascontiguousarray(coefficients.T, dtype=self.dtype)
        width = max(SLAB_BYTES // (self.n_items * self.dtype.itemsize), 1)
        starts, parts = range(0, block.shape[1], width), self.cut(block)
        slabs = [self._sums_of(parts, slice(a, a + width), steps) for a in starts]
        if len(slabs) == 1:
            return slabs[0]
        each = [list(own) for own in zip(*slabs, strict=True)]
        return self.map(np.concatenate, each, axis=2)

    def filtered_sum(self, sources: list[Any], coefficients: Array) -> list[Any]:
        """Return ``sum_r phi_r(S) @ sources[:, r]`` by Clenshaw's recurrence."""
        steps = np.ascontiguousarray(coefficients.T, dtype=self.dtype)
        previous = current = self.map(_no_sum, sources)
        for i in self._rounds(range(len(steps) - 1, -1, -1)):
            shared = {"scale": 1 if i == 0 else 2, "weights": steps[i]}
            shared["sent"] = self.map(same, current)
            columns = self.parts, previous, sources
            previous, current = current, self.map(_clenshaw, *columns, **shared)
            if i % N_TERMS == 0:
                self.session.wait(current, self._label)
        return current

    def _sums_of(self, parts: list[Any], columns: slice, steps: Array) -> list[Any]:
        """Run the recurrence of Chebyshev polynomials on some columns."""
        term = self.map(_first_term, parts, columns=columns, dtype=self.dtype)
        fresh = [[own] for own in term]
        before = sums = [None] * len(term)
        for i in self._rounds(range(len(steps))):
            if i > 0:
                shared = {"scale": 1 if i == 1 else 2, "sent": self.map(same, term)}
                before, term = term, self.map(_step, self.parts, before, **shared)
                fresh = [[*own, now] for own, now in zip(fresh, term, strict=True)]
            # Sums take several times the memory of a term, so they are updated rarely.
            if i % N_TERMS == N_TERMS - 1 or i == len(steps) - 1:
                weights = steps[i - i % N_TERMS : i + 1]
                sums = self.map(_add, sums, fresh, weights=weights)
                fresh = [[] for _ in term]
                self.session.wait(sums, self._label)
        return sums

    def _rounds(self, rounds: range) -> Iterator[int]:
        """Yield the rounds and show progress."""
        verbose = self.session.verbose
        yield from track(rounds, total=len(rounds), label=self._label, verbose=verbose)

    @property
    def _label(self) -> str:
        """Label of the progress of a recurrence."""
        return f"propagating along {self.name}"


def larger_of_both(A: sparse.csr_array, mirrored: sparse.csr_array) -> sparse.csr_array:
    """Return the larger weight of each edge and its mirror image."""
    return sparse.csr_array(A.maximum(mirrored))


def mean_with_mirror(
    A: sparse.csr_array, mirrored: sparse.csr_array
) -> sparse.csr_array:
    """Return the mean weight of each edge and its mirror image."""
    W = sparse.csr_array((A + mirrored) * A.dtype.type(0.5))
    W.eliminate_zeros()
    W.sort_indices()
    return W


@alone
def _mirror(A: sparse.csr_array, *, blocks: RowBlocks) -> list[sparse.csr_array]:
    """Cut a block by columns and transpose the pieces."""
    columns = sparse.csr_array(A.T)  # rows of it are columns of the block
    return [columns[start:stop] for start, stop in blocks]


@alone
def _join_mirrored(
    A: sparse.csr_array, pieces: list[sparse.csr_array], *, join: Join
) -> sparse.csr_array:
    """Join a block with the pieces that the others have sent."""
    return join(A, sparse.csr_array(sparse.hstack(pieces, format="csr")))


def _count_edges(W: sparse.csr_array) -> tuple[int, Any]:
    """Return the number of stored weights, and their precision."""
    return int(W.nnz), W.dtype


def _largest(W: sparse.csr_array) -> float:
    """Return the largest weight, in the precision of the weights."""
    return W.data.max(initial=np.finfo(W.dtype).tiny)


def _scaled(W: sparse.csr_array, *, largest: Any) -> sparse.csr_array:
    """Divide a block by the largest weight of all."""
    data = W.data / W.dtype.type(largest)
    return sparse.csr_array((data, W.indices, W.indptr), shape=W.shape)


@alone
def _row_sums(W: sparse.csr_array, *, largest: Any) -> Array:
    """Return the row sums of a block after scaling."""
    return row_sums(_scaled(W, largest=largest))


@alone
def _normalize_block(
    W: sparse.csr_array, start: int, *, largest: Any, degrees: Array
) -> sparse.csr_array:
    """Return the normalised rows of a block."""
    return scale_edges(_scaled(W, largest=largest), degrees, start=start)


def _few_rows(rows: Any) -> Any:
    """Return rows in the smaller form: sparse if most of them are zero."""
    if sparse.issparse(rows):
        return sparse.csr_array(rows)
    used = rows.any(axis=1)
    # A sparse entry takes an index and a number.
    return rows if 2 * used.sum() > len(rows) else sparse.csr_array(rows)


def _first_term(rows: Any, *, columns: slice, dtype: Any) -> Array:
    """Return some columns of a block as an array."""
    rows = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
    return np.ascontiguousarray(rows[:, columns], dtype=dtype)


def _no_sum(source: Array) -> Array:
    """Return the zeros at which the recurrence starts."""
    return np.zeros((source.shape[0], source.shape[2]), source.dtype)


@alone
def _step(
    S: sparse.csr_array, before: Array | None, *, scale: int, sent: list[Array]
) -> Array:
    """Return a block of rows of the next term of the recurrence."""
    current = np.concatenate(sent)
    if before is None:
        before = np.zeros((S.shape[0], current.shape[1]), S.dtype)
    following, factor = np.empty_like(before), S.dtype.type(scale)
    chebyshev_step(S.data, S.indices, S.indptr, factor, current, before, following)
    return following


@alone
def _add(sums: Array | None, terms: list[Array], *, weights: Array) -> Array:
    """Return the sums of a block with a few more terms."""
    n_rows, n_columns = terms[0].shape
    # A copy, as the result of another task must not change.
    shape = n_rows, weights.shape[1], n_columns
    sums = np.zeros(shape, terms[0].dtype) if sums is None else sums.copy()
    add_terms(np.stack(terms), weights, sums)
    return sums


@alone
def _clenshaw(
    S: sparse.csr_array,
    before: Array,
    sources: Array,
    *,
    scale: int,
    sent: list[Array],
    weights: Array,
) -> Array:
    """Return a block of rows of the next step of Clenshaw's recurrence."""
    current, following = np.concatenate(sent), before.copy()
    arrays = S.data, S.indices, S.indptr
    factor = S.dtype.type(scale)
    clenshaw_step(*arrays, factor, current, following, weights, sources)
    return following
