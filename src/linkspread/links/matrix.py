"""Balanced links between two sets of items as a factored matrix.

Without balance, cannot-links outnumber must-links, and the constant part of Z gives
well-connected items high scores. On the Wikipedia benchmark that costs a fifth of the
mean average precision, so ``balance="auto"`` is the default.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.ground.checks import is_number
from linkspread.ground.errors import LinkError
from linkspread.storage.schema import AnyMatrix, Matrix

Array = np.ndarray
Balance = str | float


@dataclass(frozen=True, eq=False, repr=False)
class LinkMatrix:
    """The links ``Z = left @ core @ right.T + pairs`` in factored form.

    Labels give the thin product: memberships on both sides and a small class-by-class
    core. Judged pairs are the sparse part.

    Parameters
    ----------
    left : ndarray or sparse of shape (n, c)
        Memberships of the row items.
    core : ndarray of shape (c, d)
        Weight of a link between each two classes.
    right : ndarray or sparse of shape (m, d)
        Memberships of the column items.
    pairs : csr_array of shape (n, m)
        Judged pairs; may be empty.

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
        """Return the Frobenius norm of Z, from products of thin matrices."""
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

        The sparse part adds a column for each linked row, or for each linked column
        if those are fewer.
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
        """Return the number of columns of the factors of `thin`."""
        width = max(self.core.shape)
        if self.pairs.nnz == 0:
            return width
        return width + min(len(_used(self.pairs)), len(_used(self.pairs.T.tocsr())))

    def toarray(self) -> Array:
        """Return Z as a dense array, which must fit in memory."""
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
        Must fit in memory.
    """
    return np.asarray(_dense(Z), dtype=np.float64)


def _dense(matrix: Any) -> Array:
    """Return a sparse, dense or factored matrix as an array."""
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)


def _used(matrix: sparse.csr_array) -> Array:
    """Return the rows of a sparse matrix that have an entry."""
    return np.flatnonzero(np.diff(matrix.indptr))


def _thin_pairs(pairs: sparse.csr_array) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return ``rows, columns`` with few columns and product ``rows @ columns.T``."""
    used_rows, used_columns = _used(pairs), _used(pairs.T.tocsr())
    if len(used_rows) > len(used_columns):
        columns, rows = _thin_pairs(pairs.T.tocsr())
        return rows, columns
    indicator = sparse.csr_array(
        (np.ones(len(used_rows)), (used_rows, np.arange(len(used_rows)))),
        shape=(pairs.shape[0], len(used_rows)),
    )
    return indicator, pairs[used_rows].T.tocsr()


def check_balance(balance: Any) -> Balance:
    """Return `balance` if it is "auto", "literal" or a number of at least 0."""
    if isinstance(balance, str) and balance in ("auto", "literal"):
        return balance
    if is_number(balance) and 0 <= balance < np.inf:
        return float(balance)
    raise LinkError(
        f"`balance` must be 'auto', 'literal' or a number of at least 0, got "
        f"{balance!r}. 'auto' suits most collections; 0 uses must-links only."
    )


def balance_classes(
    left_size: Array, right_size: Array, balance: Balance = "auto"
) -> Array:
    """Return the class-by-class core G of label links ``Z = U G V.T``.

    ``"auto"`` centres Z over the labelled items: every row and column sums to zero.
    Positive cannot-links, which centring gives two rare classes, are set to 0. If one
    side has a single class, centring would leave nothing; cannot-links are then scaled
    to the same total weight as must-links.
    """
    identity = np.eye(len(left_size))
    must = float(left_size @ right_size)
    cannot = float(left_size.sum() * right_size.sum()) - must
    if balance != "auto" or must <= 0 or cannot <= 0:
        # Links of one kind need no balance.
        weight = balance if isinstance(balance, float) else 1.0
        return identity - weight * (1 - identity)
    if min(np.count_nonzero(left_size), np.count_nonzero(right_size)) == 1:
        return identity - must / cannot * (1 - identity)
    left_share = left_size / left_size.sum()
    right_share = right_size / right_size.sum()
    core = identity - right_share[:, None] - left_share[None, :]
    core += left_share @ right_share
    # The diagonal is at least (1 - left_share) * (1 - right_share), up to rounding.
    return np.where(identity > 0, np.maximum(core, 0.0), np.minimum(core, 0.0))


def balance_pairs(
    pairs: sparse.csr_array, balance: Balance = "auto"
) -> sparse.csr_array:
    """Scale the cannot-links of judged pairs."""
    must = float(pairs.data[pairs.data > 0].sum())
    cannot = float(-pairs.data[pairs.data < 0].sum())
    weight = balance if isinstance(balance, float) else 1.0
    if balance == "auto" and must > 0 and cannot > 0:
        weight = must / cannot
    balanced = pairs.copy()
    balanced.data = np.where(pairs.data < 0, weight * pairs.data, pairs.data)
    balanced.eliminate_zeros()
    return balanced
