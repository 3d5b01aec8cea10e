"""What one view brings into a match: a vector for every item, old or new."""

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Side"]

Array = np.ndarray


class Side:
    """What one view brings into a match.

    Parameters
    ----------
    vectors : ndarray of shape (n_items, n_dimensions) or None
        One per fitted item; None to make them when they are asked for.
    embed : callable
        Makes the vectors of new items from a table of their features.
    n_features : int
        Columns that such a table has.
    table : ndarray or csr_array of shape (n_items, n_features), default=None
        Where vectors are made when asked for: what they are made of.
    """

    def __init__(
        self,
        vectors: Array | None,
        embed: Callable[[Any], Array],
        n_features: int,
        table: Any = None,
    ) -> None:
        self.embed = embed
        self.n_features = n_features
        self._vectors = vectors
        self._table = table

    @classmethod
    def of(cls, X: Any, embed: Callable[[Any], Array]) -> "Side":
        """Return the side of a view whose items are embedded by their features.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_items, n_features)
        embed : callable

        Returns
        -------
        side : Side
        """
        return cls(None, embed, X.shape[1], X)

    @property
    def vectors(self) -> Array:
        """One per fitted item, all made now if they were not; the table is let go."""
        if self._vectors is None:
            self._vectors, self._table = self.embed(self._table), None
        return self._vectors

    def vectors_of(self, positions: Array) -> Array:
        """Return the vectors of some items, and make those alone if none exist.

        Parameters
        ----------
        positions : ndarray of int of shape (n,)

        Returns
        -------
        vectors : ndarray of shape (n, n_dimensions)
        """
        if self._vectors is None and 2 * len(positions) < self._table.shape[0]:
            return self.embed(self._table[positions])
        return self.vectors[positions]

    def unscaled_of(self, positions: Array) -> tuple[Array, Array]:
        """Return the vectors of some items in two parts, for many single products.

        Parameters
        ----------
        positions : ndarray of int of shape (n,)

        Returns
        -------
        vectors : ndarray of shape (n, n_dimensions)
        scale : ndarray of shape (n,)
            What each is yet to be multiplied by.
        """
        return self.vectors_of(positions), np.ones(len(positions))
