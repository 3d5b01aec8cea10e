"""Graphs as blocks of rows that stay with the workers, and polynomials of them.

In each round every worker gets the thin matrix of the round before. A polynomial takes
as many rounds as its degree.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import getitem
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.cluster.session import Range, Session, same
from linkspread.compiled.cpu import add_terms, chebyshev_step, clenshaw_step
from linkspread.graphs.normalize import row_sums, scale_edges
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
    ranges: list[Range]
    parts: list[Any]
    dtype: np.dtype[Any]

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.ranges[-1][1]

    def astype(self, dtype: Any) -> "BlockGraph":
        """Return the graph in another precision."""
        dtype = np.dtype(dtype)
        if dtype == self.dtype:
            return self
        parts = self.session.map(sparse.csr_array.astype, self.parts, dtype=dtype)
        return replace(self, parts=parts, dtype=dtype)

    def symmetrized(self, join: Join) -> "BlockGraph":
        """Join each block with the same rows of the transpose.

        Every block sends to every other the edges that end there.
        """
        send, n_blocks = self.session.map, len(self.parts)
        cut = send(_mirror, self.parts, ranges=self.ranges)
        pieces = [send(getitem, cut, [i] * n_blocks) for i in range(n_blocks)]
        return replace(self, parts=send(_join, self.parts, pieces, join=join))

    def normalized(self) -> "BlockGraph":
        """Normalise a symmetric graph; only row sums are sent."""
        degrees, starts = (
            self.session.hold(self.row_sums()),
            [a for a, _ in self.ranges],
        )
        parts = self.session.map(_normalize, self.parts, starts, degrees=degrees)
        self.session.finish(parts, f"normalising the graph of {self.name}")
        return replace(self, parts=parts)

    def row_sums(self) -> Array:
        """Return the sum of each row."""
        return np.concatenate(self.session.results(row_sums, self.parts))

    def fetch(self) -> sparse.csr_array:
        """Return the whole graph."""
        return sparse.csr_array(sparse.vstack(self.session.fetch(self.parts), "csr"))

    def filtered_sums(self, block: Any, coefficients: Array) -> list[Any]:
        """Return ``phi_r(S) @ block`` for every polynomial phi_r, in blocks of rows."""
        steps = np.ascontiguousarray(coefficients.T, dtype=self.dtype)
        width = max(SLAB_BYTES // (self.n_items * self.dtype.itemsize), 1)
        parts = self._cut(block)
        slabs = [
            self._sums_of(parts, slice(first, first + width), steps)
            for first in range(0, block.shape[1], width)
        ]
        if len(slabs) == 1:
            return slabs[0]
        each = [list(own) for own in zip(*slabs, strict=True)]
        return self.session.map(np.concatenate, each, axis=2)

    def _sums_of(self, parts: list[Any], columns: slice, steps: Array) -> list[Any]:
        """Run the recurrence of Chebyshev polynomials on some columns."""
        send = self.session.map
        term = send(_dense, parts, columns=columns, dtype=self.dtype)
        fresh = [[own] for own in term]
        before = sums = [None] * len(term)
        for i in range(len(steps)):
            if i > 0:
                shared = {"scale": 1 if i == 1 else 2, "sent": send(same, term)}
                before, term = term, send(_step, self.parts, before, **shared)
                fresh = [[*own, now] for own, now in zip(fresh, term, strict=True)]
            # Sums take several times the memory of a term, so they are updated rarely.
            if i % N_TERMS == N_TERMS - 1 or i == len(steps) - 1:
                sums = send(_add, sums, fresh, weights=steps[i - i % N_TERMS : i + 1])
                fresh = [[] for _ in term]
                self._finish(sums, i, len(steps))
        return sums

    def sums(self, block: Any, coefficients: Array) -> Array:
        """Return the whole of `filtered_sums`."""
        parts = self.session.fetch(self.filtered_sums(block, coefficients))
        return np.concatenate(parts)

    def sum(self, sources: Array, coefficients: Array) -> Array:
        """Return ``sum_r phi_r(S) @ sources[:, r]`` by Clenshaw's recurrence."""
        steps = np.ascontiguousarray(coefficients.T, dtype=self.dtype)
        send, (n_items, _, width) = self.session.map, sources.shape
        parts, whole = self._cut(sources.reshape(n_items, -1)), slice(None)
        own = send(_dense, parts, columns=whole, dtype=self.dtype)
        previous = current = send(_no_sum, own, width=width)
        for i in range(len(steps) - 1, -1, -1):
            shared = {"scale": 1 if i == 0 else 2, "weights": steps[i]}
            shared["sent"] = send(same, current)
            columns = self.parts, previous, own
            previous, current = current, send(_clenshaw, *columns, **shared)
            if i % N_TERMS == 0:
                self._finish(current, len(steps) - 1 - i, len(steps))
        return np.concatenate(self.session.fetch(current))

    def _cut(self, block: Any) -> list[Any]:
        """Return blocks of rows, sparse where most of them are zero."""
        block = block.tocsr() if sparse.issparse(block) else block
        return [_few_rows(block[start:stop]) for start, stop in self.ranges]

    def _finish(self, parts: list[Any], i: int, n_rounds: int) -> None:
        """Wait for the rounds so far."""
        label = f"propagating along {self.name}, round {i + 1} of {n_rounds}"
        self.session.finish(parts, label)


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


def _mirror(A: sparse.csr_array, *, ranges: list[Range]) -> list[sparse.csr_array]:
    """Cut a block by columns and transpose the pieces."""
    columns = sparse.csr_array(A.T)  # rows of it are columns of the block
    return [columns[start:stop] for start, stop in ranges]


def _join(
    A: sparse.csr_array, pieces: list[sparse.csr_array], *, join: Join
) -> sparse.csr_array:
    """Join a block with the pieces that the others have sent."""
    return join(A, sparse.csr_array(sparse.hstack(pieces, format="csr")))


def _normalize(W: sparse.csr_array, start: int, *, degrees: Array) -> sparse.csr_array:
    """Return the normalised rows of a block."""
    return scale_edges(W, degrees, start=start)


def _few_rows(rows: Any) -> Any:
    """Return rows in the smaller form: sparse if most of them are zero."""
    if sparse.issparse(rows):
        return sparse.csr_array(rows)
    used = rows.any(axis=1)
    # A sparse entry takes an index and a number.
    return rows if 2 * used.sum() > len(rows) else sparse.csr_array(rows)


def _dense(rows: Any, *, columns: slice, dtype: Any) -> Array:
    """Return some columns of a block as an array."""
    rows = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
    return np.ascontiguousarray(rows[:, columns], dtype=dtype)


def _no_sum(sources: Array, *, width: int) -> Array:
    """Return the zeros at which Clenshaw's recurrence starts."""
    return np.zeros((len(sources), width), sources.dtype)


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


def _add(sums: Array | None, terms: list[Array], *, weights: Array) -> Array:
    """Return the sums of a block with a few more terms."""
    n_rows, n_columns = terms[0].shape
    # A copy, as the result of another task must not change.
    shape = n_rows, weights.shape[1], n_columns
    sums = np.zeros(shape, terms[0].dtype) if sums is None else sums.copy()
    add_terms(np.stack(terms), weights, sums)
    return sums


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
    sources = sources.reshape(len(sources), -1, current.shape[1])
    arrays = S.data, S.indices, S.indptr, S.dtype.type(scale)
    clenshaw_step(*arrays, current, following, weights, sources)
    return following
