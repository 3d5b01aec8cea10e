"""Judged pairs that are left out together with all others of their items.

A pair left out alone still has its items judged elsewhere, as most items of a
collection are not: what a fit says of it then is no measure of what it says of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

__all__ = ["ItemFolds"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class ItemFolds:
    """The items of both sides of judged pairs, in folds.

    Attributes
    ----------
    rows, columns : ndarray of int of shape (n_pairs,)
        The folds of each pair's items.
    n_folds : int
    """

    rows: Array
    columns: Array
    n_folds: int

    @classmethod
    def draw(cls, i: Array, j: Array, n_folds: int) -> "ItemFolds":
        """Draw folds of the items that have judged pairs.

        Parameters
        ----------
        i, j : ndarray of int of shape (n_pairs,)
            The items of each pair.
        n_folds : int

        Returns
        -------
        folds : ItemFolds
        """
        rng = np.random.default_rng(0)
        rows, columns = (_draw_folds(items, n_folds, rng) for items in (i, j))
        return cls(rows, columns, n_folds)

    def cells(self) -> Iterator[tuple[Array, Array]]:
        """Yield pairs to leave out, and those of them that nothing else is known of.

        Yields
        ------
        out : ndarray of int
            All pairs of the items of a fold of rows and of one of columns, sorted.
        asked : ndarray of bool
            Of these the pairs with both items there; each pair is asked once.
        """
        for a in range(self.n_folds):
            for b in range(self.n_folds):
                is_out = (self.rows == a) | (self.columns == b)
                asked = (self.rows == a) & (self.columns == b)
                if asked.any():
                    out = np.flatnonzero(is_out)
                    yield out, asked[out]

    def few_cells(self) -> tuple[Array, Array]:
        """Return a cell for each fold of rows, with the same fold of columns.

        Returns
        -------
        is_out, is_asked : ndarray of bool of shape (n_pairs, n_folds)
        """
        folds = np.arange(self.n_folds)
        of_row, of_column = self.rows[:, None] == folds, self.columns[:, None] == folds
        return of_row | of_column, of_row & of_column


def _draw_folds(items: Array, n_folds: int, rng: np.random.Generator) -> Array:
    """Return the fold of each entry's item, folds of equal numbers of items."""
    known, places = np.unique(items, return_inverse=True)
    return rng.permutation(np.arange(len(known)) % n_folds)[places]
