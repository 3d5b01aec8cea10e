"""Pairs that nobody judged yet: told apart, counted, drawn, and never listed."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

Array = np.ndarray

# Among so many times as many pairs as are closed or wanted, a blind draw mostly hits.
ROOM = 8


@dataclass(frozen=True)
class OpenPairs:
    """Hold which pairs of some rows and some columns may still be judged.

    A pair is closed if it was judged, or if the labels of both items are known.
    """

    rows: Array
    columns: Array
    known: tuple[Array, Array]
    judged: tuple[Array, Array]
    within: bool = False

    def keys(self, i: Array, j: Array) -> Array:
        """Return a number of each pair; (a, b) and (b, a) within a view share one."""
        low, high = (np.minimum(i, j), np.maximum(i, j)) if self.within else (i, j)
        return np.asarray(low, dtype=np.int64) * len(self.known[1]) + high

    def is_open(self, i: Array, j: Array) -> Array:
        """Tell which pairs of a row and a column may still be judged."""
        is_closed = self.known[0][i] & self.known[1][j]
        if self.within:
            is_closed |= i == j
        return ~is_closed & ~np.isin(self.keys(i, j), self._closed)

    def first(self, i: Array, j: Array, n: int, *, taken: Array) -> tuple[Array, Array]:
        """Return the first open pairs of a list, none of them twice."""
        keys = self.keys(i, j)
        is_new = np.zeros(len(keys), dtype=bool)
        is_new[np.unique(keys, return_index=True)[1]] = True
        is_new &= self.is_open(i, j) & ~np.isin(keys, taken)
        found = np.flatnonzero(is_new)[:n]
        return i[found], j[found]

    def count(self) -> int:
        """Return how many pairs are open."""
        rows, columns = self.rows, self.columns
        known_rows = rows[self.known[0][rows]]
        known_columns = columns[self.known[1][columns]]
        n_possible = self._n_pairs(rows, columns)
        return n_possible - self._n_pairs(known_rows, known_columns) - self._n_judged()

    def draw(
        self, n: int, rng: np.random.Generator, *, taken: Array
    ) -> tuple[Array, Array]:
        """Draw open pairs at random, none of them twice."""
        places = self._n_places()
        if places <= ROOM * (n + len(taken) + len(self._closed)):
            return self.first(*self._at(rng.permutation(places)), n, taken=taken)
        i = j = np.empty(0, dtype=np.int64)
        while len(i) < n:
            more = self._at(rng.integers(places, size=2 * n))
            used = np.concatenate([taken, self.keys(i, j)])
            more = self.first(*more, n - len(i), taken=used)
            i, j = np.concatenate([i, more[0]]), np.concatenate([j, more[1]])
        return i, j

    @cached_property
    def _closed(self) -> Array:
        """Keys of judged pairs, sorted once as every question looks among them."""
        return np.unique(self.keys(*self.judged))

    def _n_places(self) -> int:
        """Return the number of pairs of which not both items are known."""
        n_known = int(self.known[0][self.rows].sum())
        n_known_columns = int(self.known[1][self.columns].sum())
        return len(self.rows) * len(self.columns) - n_known * n_known_columns

    def _at(self, places: Array) -> tuple[Array, Array]:
        """Return the pairs at some places: first unknown rows, with every column."""
        rows, n_unknown = _unknown_first(self.rows, self.known[0])
        columns, width = _unknown_first(self.columns, self.known[1])
        n_first = n_unknown * len(columns)
        # Known rows come after these, with unknown columns only.
        is_first, later = places < n_first, places - n_first
        row, column = np.divmod(places, max(len(columns), 1))
        later_row, later_column = np.divmod(later, max(width, 1))
        i = np.where(is_first, row, n_unknown + later_row)
        return rows[i], columns[np.where(is_first, column, later_column)]

    def _n_pairs(self, rows: Array, columns: Array) -> int:
        """Return the number of pairs of some rows and some columns, each once."""
        n_pairs = len(rows) * len(columns)
        if not self.within:
            return n_pairs
        n_both = len(np.intersect1d(rows, columns))
        return n_pairs - n_both - n_both * (n_both - 1) // 2

    def _n_judged(self) -> int:
        """Return the number of judged pairs that would be open otherwise."""
        i, j = np.divmod(self._closed, len(self.known[1]))
        is_row, is_column = np.isin(i, self.rows), np.isin(j, self.columns)
        is_among = is_row & is_column
        if self.within:
            is_among |= np.isin(j, self.rows) & np.isin(i, self.columns)
            is_among &= i != j
        return int(np.sum(is_among & ~(self.known[0][i] & self.known[1][j])))


def _unknown_first(positions: Array, known: Array) -> tuple[Array, int]:
    """Return positions with those of unknown items first, and how many these are."""
    is_known = known[positions]
    ordered = np.concatenate([positions[~is_known], positions[is_known]])
    return ordered, int(np.sum(~is_known))
