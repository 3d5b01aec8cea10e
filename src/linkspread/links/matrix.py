"""Links between two sets of items as a matrix that is never filled in."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.storage.schema import AnyMatrix, Matrix

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class LinkMatrix:
    """Keep ``Z = left @ core @ right.T + pairs`` in its parts.

    Label links are the thin product: memberships on both sides and a small
    class-by-class core. Single judged pairs are the sparse part.

    Parameters
    ----------
    left : ndarray or sparse of shape (n, c)
        Memberships of the row items.
    core : ndarray of shape (c, d)
        Weight of a link between each two classes.
    right : ndarray or sparse of shape (m, d)
        Memberships of the column items.
    pairs : csr_array of shape (n, m)
        Links that are not labels; may be empty.

    Examples
    --------
    >>> import linkspread as ls
    >>> links = ls.Links.from_labels({"text": [0, 1, -1], "image": [1, 0]})
    >>> links.between("text", "image", balance="literal").toarray()
    array([[-1.,  1.],
           [ 1., -1.],
           [ 0.,  0.]])
    """

    left: AnyMatrix
    core: Matrix
    right: AnyMatrix
    pairs: sparse.csr_array

    def __repr__(self) -> str:
        n_rows, n_columns = self.shape
        return (
            f"LinkMatrix({n_rows:,} x {n_columns:,}, {max(self.core.shape):,} classes, "
            f"{self.pairs.nnz:,} pairs)"
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of row items and of column items."""
        return self.left.shape[0], self.right.shape[0]

    @property
    def T(self) -> "LinkMatrix":
        """The same links with rows and columns exchanged."""
        return LinkMatrix(self.right, self.core.T, self.left, self.pairs.T.tocsr())

    def __matmul__(self, block: Array) -> Array:
        """Return ``Z @ block`` without forming Z."""
        return self.left @ (self.core @ (self.right.T @ block)) + self.pairs @ block

    def norm(self) -> float:
        """Return the Frobenius norm of Z, from products of thin matrices.

        Returns
        -------
        norm : float
        """
        if self.pairs.nnz == 0:
            gram_left = _dense(self.left.T @ self.left)
            gram_right = _dense(self.right.T @ self.right)
            squared = np.sum((gram_left @ self.core @ gram_right) * self.core)
        else:
            cross = np.sum(_dense(self.left.T @ self.pairs @ self.right) * self.core)
            labels_only = LinkMatrix(self.left, self.core, self.right, 0 * self.pairs)
            labels_only.pairs.eliminate_zeros()
            squared = labels_only.norm() ** 2 + 2 * cross + np.sum(self.pairs.data**2)
        return float(np.sqrt(max(squared, 0.0)))

    def thin(self) -> tuple[Any, Array, Any]:
        """Return (left, core, right) whose product is the whole of Z.

        The sparse part joins the thin one with a column for each linked row, or for
        each linked column if those are fewer.

        Returns
        -------
        left : ndarray or csr_array of shape (n, r)
        core : ndarray of shape (r, s)
        right : ndarray or csr_array of shape (m, s)
        """
        if self.pairs.nnz == 0:
            return self.left, self.core, self.right
        rows, columns = _thin_pairs(self.pairs)
        left = sparse.hstack([sparse.csr_array(self.left), rows], format="csr")
        right = sparse.hstack([sparse.csr_array(self.right), columns], format="csr")
        core = np.zeros((left.shape[1], right.shape[1]))
        core[: self.core.shape[0], : self.core.shape[1]] = self.core
        n_pairs = rows.shape[1]
        core[-n_pairs:, -n_pairs:] = np.eye(n_pairs)
        return left, core, right

    def thin_width(self) -> int:
        """Return the number of columns that `thin` would give."""
        width = max(self.core.shape)
        if self.pairs.nnz == 0:
            return width
        return width + min(len(_used(self.pairs)), len(_used(self.pairs.T.tocsr())))

    def toarray(self) -> Array:
        """Return Z whole: only for sizes whose product fits in memory.

        Returns
        -------
        Z : ndarray of shape (n, m)
        """
        return _dense(self.left @ self.core @ self.right.T) + self.pairs.toarray()


def as_link_matrix(Z: Any) -> LinkMatrix:
    """Return Z, sparse, dense or in parts, as a LinkMatrix.

    Parameters
    ----------
    Z : LinkMatrix, sparse matrix or array-like of shape (n, m)
        Links between n and m items.

    Returns
    -------
    Z : LinkMatrix of shape (n, m)
        The same object if it is one already.
    """
    if isinstance(Z, LinkMatrix):
        return Z
    pairs = sparse.csr_array(Z, dtype=np.float64)
    n, m = pairs.shape
    return LinkMatrix(np.zeros((n, 0)), np.zeros((0, 0)), np.zeros((m, 0)), pairs)


def as_dense(Z: Any) -> Array:
    """Return Z, sparse, dense or in parts, as an array of float64.

    Parameters
    ----------
    Z : LinkMatrix, sparse matrix or array-like of shape (n, m)
        Links between n and m items.

    Returns
    -------
    Z : ndarray of shape (n, m)
        Only for sizes whose product fits in memory.
    """
    return np.asarray(_dense(Z), dtype=np.float64)


def _dense(matrix: Any) -> Array:
    """Return a sparse, dense or factored matrix as an array."""
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)


def _used(matrix: sparse.csr_array) -> Array:
    """Return the rows of a sparse matrix that have an entry."""
    return np.flatnonzero(np.diff(matrix.indptr))


def _thin_pairs(pairs: sparse.csr_array) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Write a sparse matrix as ``rows @ columns.T`` with as few columns as it can."""
    used_rows, used_columns = _used(pairs), _used(pairs.T.tocsr())
    if len(used_rows) > len(used_columns):
        columns, rows = _thin_pairs(pairs.T.tocsr())
        return rows, columns
    indicator = sparse.csr_array(
        (np.ones(len(used_rows)), (used_rows, np.arange(len(used_rows)))),
        shape=(pairs.shape[0], len(used_rows)),
    )
    return indicator, pairs[used_rows].T.tocsr()
