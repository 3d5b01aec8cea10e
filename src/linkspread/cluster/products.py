"""Products of a graph in blocks with thin matrices, and polynomials of it.

The blocks stay where they are. In each round every worker gets the thin matrix of the
round before, and the number of rounds is the degree of the polynomial.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.cluster.graph_blocks import assemble
from linkspread.cluster.row_blocks import RowBlocks
from linkspread.cluster.session import Session, alone
from linkspread.compiled import add_terms, chebyshev_step, clenshaw_step
from linkspread.ground.progress import track
from linkspread.propagation.chebyshev import N_TERMS

Array = np.ndarray

# Of a thin matrix that all workers hold at once; a wider one is taken in slabs of
# columns, which do not depend on each other.
SLAB_BYTES = 1 << 28


class BlockGraph:
    """A normalised graph in blocks of rows."""

    def __init__(
        self,
        session: Session,
        name: str,
        blocks: RowBlocks,
        parts: list[Any],
        dtype: Any,
    ) -> None:
        self.session, self.name, self.blocks = session, name, blocks
        self.parts, self.dtype = parts, np.dtype(dtype)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.blocks.n_items

    def astype(self, dtype: Any) -> "BlockGraph":
        """Return the graph in another precision."""
        if np.dtype(dtype) == self.dtype:
            return self
        parts = self._each(_cast, self.parts, [dtype] * len(self.parts))
        return BlockGraph(self.session, self.name, self.blocks, parts, dtype)

    def cut(self, rows: Any) -> list[Any]:
        """Return a matrix in blocks of the same rows."""
        rows = rows.tocsr() if sparse.issparse(rows) else rows
        return [_few_rows(rows[start:stop]) for start, stop in self.blocks]

    def filtered_sums(self, block: Any, coefficients: Array) -> list[Any]:
        """Return ``phi_r(S) @ block`` for every polynomial phi_r, in blocks of rows."""
        steps = np.ascontiguousarray(coefficients.T, dtype=self.dtype)
        parts = self.cut(block)
        slabs = [
            self._sums_of_slab(parts, columns, steps)
            for columns in self._slabs(block.shape[1])
        ]
        if len(slabs) == 1:
            return slabs[0]
        return [
            self.session.submit(_join_slabs, list(own))
            for own in zip(*slabs, strict=True)
        ]

    def filtered_sum(self, sources: list[Any], coefficients: Array) -> list[Any]:
        """Return ``sum_r phi_r(S) @ sources[:, r]`` by Clenshaw's recurrence."""
        each = len(self.blocks)
        steps = np.ascontiguousarray(coefficients.T, dtype=self.dtype)
        current = self._each(_no_sum, sources)
        previous = current
        for i in self._rounds(range(len(steps) - 1, -1, -1)):
            sent = self._each(_send, current)
            scale = 1 if i == 0 else 2
            shared = [scale] * each, [sent] * each, previous, [steps[i]] * each
            following = self._each(_clenshaw, self.parts, *shared, sources)
            current, previous = following, current
            if i % N_TERMS == 0:
                self.session.wait(current, self._label)
        return current

    def fetch(self) -> sparse.csr_array:
        """Return the graph whole."""
        return assemble(self.session, self.parts, self.n_items)

    def _each(self, task: Callable[..., Any], *columns: Any) -> list[Any]:
        """Send a task for each block."""
        return self.session.submit_each(self.blocks, task, *columns)

    def _slabs(self, n_columns: int) -> Iterator[slice]:
        """Yield the columns of each slab."""
        step = max(SLAB_BYTES // (self.n_items * self.dtype.itemsize), 1)
        yield from (
            slice(a, min(a + step, n_columns)) for a in range(0, n_columns, step)
        )

    def _sums_of_slab(
        self, parts: list[Any], columns: slice, steps: Array
    ) -> list[Any]:
        """Run the recurrence on some columns."""
        each = len(parts)
        term = self._each(_first_term, parts, [columns] * each, [self.dtype] * each)
        fresh = [[own] for own in term]
        before: list[Any] = [None] * each
        sums: list[Any] = [None] * each
        for i in self._rounds(range(len(steps))):
            if i > 0:
                sent, scale = self._each(_send, term), 1 if i == 1 else 2
                shared = [scale] * each, [sent] * each
                before, term = term, self._each(_step, self.parts, *shared, before)
                fresh = [[*own, now] for own, now in zip(fresh, term, strict=True)]
            # Sums take several times the memory of a term; few of them are written.
            if i % N_TERMS == N_TERMS - 1 or i == len(steps) - 1:
                weights = steps[i - i % N_TERMS : i + 1]
                sums = self._each(_add, sums, fresh, [weights] * each)
                fresh = [[] for _ in term]
                self.session.wait(sums, self._label)
        return sums

    def _rounds(self, rounds: range) -> Iterator[int]:
        """Yield the rounds, and show how far they are."""
        verbose = self.session.verbose
        yield from track(rounds, total=len(rounds), label=self._label, verbose=verbose)

    @property
    def _label(self) -> str:
        """What a recurrence is called."""
        return f"spreading over {self.name}"


def _few_rows(rows: Any) -> Any:
    """Return rows as they travel best: without those that are zero."""
    if sparse.issparse(rows):
        return sparse.csr_array(rows)
    used = rows.any(axis=1)
    # An index and a number for each entry that is left.
    return rows if 2 * used.sum() > len(rows) else sparse.csr_array(rows)


def _cast(S: sparse.csr_array, dtype: Any) -> sparse.csr_array:
    """Return a block in another precision."""
    return S.astype(dtype)


def _send(term: Array) -> Array:
    """Return the rows of a block under a name that all workers may fetch.

    They forget it after the round, while the worker that made the rows keeps them.
    """
    return term


def _first_term(rows: Any, columns: slice, dtype: Any) -> Array:
    """Return some columns of a block as an array."""
    rows = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
    return np.ascontiguousarray(rows[:, columns], dtype=dtype)


def _no_sum(source: Array) -> Array:
    """Return the sum of nothing."""
    return np.zeros((source.shape[0], source.shape[2]), source.dtype)


@alone
def _step(S: sparse.csr_array, scale: int, sent: list[Array], before: Any) -> Array:
    """Return a block of rows of the next term of the recurrence."""
    current = np.concatenate(sent)
    before = (
        np.zeros((S.shape[0], current.shape[1]), S.dtype) if before is None else before
    )
    following = np.empty_like(before)
    factor = S.dtype.type(scale)
    chebyshev_step(S.data, S.indices, S.indptr, factor, current, before, following)
    return following


@alone
def _add(sums: Array | None, terms: list[Array], weights: Array) -> Array:
    """Return the sums of a block with a few terms more."""
    n_rows, n_columns = terms[0].shape
    # A copy: what another task made must stay as it was.
    shape = n_rows, weights.shape[1], n_columns
    sums = np.zeros(shape, terms[0].dtype) if sums is None else sums.copy()
    add_terms(np.stack(terms), weights, sums)
    return sums


@alone
def _clenshaw(
    S: sparse.csr_array,
    scale: int,
    sent: list[Array],
    before: Array,
    weights: Array,
    sources: Array,
) -> Array:
    """Return a block of rows of the next step of Clenshaw's recurrence."""
    current, following = np.concatenate(sent), before.copy()
    factor = S.dtype.type(scale)
    arrays = S.data, S.indices, S.indptr
    clenshaw_step(*arrays, factor, current, following, weights, sources)
    return following


def _join_slabs(slabs: list[Array]) -> Array:
    """Return the sums of all columns of a block."""
    return np.concatenate(slabs, axis=2)
