"""A matrix of scores kept as two thin factors."""

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Factored:
    """Keep ``F = left @ right.T`` without ever forming it.

    Parameters
    ----------
    left : ndarray of shape (n_rows, rank)
        One vector per row item.
    right : ndarray of shape (n_columns, rank)
        One vector per column item; scores are inner products, not cosines.
    error : float, default=0.0
        Estimated ``||F - left @ right.T|| / ||F||`` in Frobenius norm.

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.propagation import Factored
    >>> F = Factored(np.array([[1.0], [2.0]]), np.array([[3.0], [4.0], [5.0]]))
    >>> F.shape, F.rank
    ((2, 3), 1)
    >>> F.rows(1)
    array([ 6.,  8., 10.])
    """

    left: Array
    right: Array
    error: float = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of row items and of column items."""
        return len(self.left), len(self.right)

    @property
    def rank(self) -> int:
        """Number of columns of both factors."""
        return self.left.shape[1]

    @property
    def T(self) -> "Factored":
        """The same scores with rows and columns exchanged."""
        return Factored(self.right, self.left, self.error)

    def rows(self, index: Any) -> Array:
        """Return one row or several rows of F.

        Parameters
        ----------
        index : int, slice or array-like of shape (n,)

        Returns
        -------
        rows : ndarray of shape (n_columns,) or (n, n_columns)
        """
        return self.left[index] @ self.right.T

    def block(self, rows: Any, columns: Any) -> Array:
        """Return the block of F at these rows and columns.

        Parameters
        ----------
        rows : slice or array-like of shape (n,)
        columns : slice or array-like of shape (m,)

        Returns
        -------
        block : ndarray of shape (n, m)
        """
        return self.left[rows] @ self.right[columns].T

    def toarray(self) -> Array:
        """Return F whole: only for sizes whose product fits in memory.

        Returns
        -------
        F : ndarray of shape (n_rows, n_columns)
        """
        return self.left @ self.right.T
