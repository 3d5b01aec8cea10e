"""Single judged pairs of two views fitted by a kernel of each.

``min_F  sum_ij w_ij (F_ij - z_ij)^2 + ridge <F, (K_x x K_y)^-1 F>`` over the judged
pairs: ``F = K_x C K_y`` with coefficients C at these pairs only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from linkspread.fitting.item_folds import ItemFolds
from linkspread.fitting.nystrom import has_features, kernel_directions
from linkspread.fitting.ridge import RidgeFit, solve_dense
from linkspread.fitting.ridge_by_products import solve_most
from linkspread.fitting.view_kernels import DENSE_ITEMS, ViewKernel
from linkspread.kernels import pair_products, sampled_products, small_loops
from linkspread.links.balance import Balance

__all__ = ["PairFit", "Term", "fit_pairs", "pair_targets"]

Array = np.ndarray
# Coefficients C and two kernels; what a term adds to the scores is K_x C K_y.
Term = tuple[Any, ViewKernel, ViewKernel]

# Judged pairs up to which their kernel is formed and factorised.
DENSE_PAIRS = 3000
PAIR_TOL = 1e-4
# Folds of the items that are left out, where the kernel is formed and where it is not:
# more of them leave more to fit, and what takes long is then done more often.
N_FOLDS, N_LARGE_FOLDS = 20, 3


@dataclass(frozen=True, eq=False)
class PairFit:
    """Coefficients of judged pairs.

    Attributes
    ----------
    kernels : tuple of two ViewKernel
    coefficients : csr_array of shape (n, m)
    fit : RidgeFit
        Of the pairs in the order of `rows` and `columns`.
    rows, columns : ndarray of int of shape (n_pairs,)
    """

    kernels: tuple[ViewKernel, ViewKernel]
    coefficients: sparse.csr_array
    fit: RidgeFit
    rows: Array
    columns: Array

    @property
    def terms(self) -> list[Term]:
        """What the scores are the sum of."""
        return [(self.coefficients, *self.kernels)]


def pair_targets(pairs: sparse.csr_array, balance: Balance) -> tuple[Array, Array]:
    """Return what judged pairs are fitted to, and their weights.

    Parameters
    ----------
    pairs : csr_array of shape (n, m)
        Positive entries are must-links, negative ones cannot-links.
    balance : {"auto", "literal"} or float
        "auto" takes 1 and 0, less their mean, so that pairs nobody judged, of which
        the fit says 0, lie between must and cannot as chance would have it.

    Returns
    -------
    targets, weights : ndarray of shape (n_pairs,)
        In the order of ``pairs.tocoo()``.
    """
    is_must, weights = pairs.data > 0, np.abs(pairs.data)
    share = float(weights[is_must].sum() / (weights.sum() or 1.0))
    if balance == "auto" and 0 < share < 1:
        return np.where(is_must, 1.0 - share, -share), weights
    cannot = balance if isinstance(balance, float) else 1.0
    return np.where(is_must, 1.0, -cannot), weights


def fit_pairs(
    kernels: tuple[ViewKernel, ViewKernel],
    pairs: sparse.csr_array,
    targets: Array,
    weights: Array,
    *,
    ridges: Sequence[float],
    by_items: bool = False,
) -> PairFit:
    """Fit judged pairs, with the ridge that does best on pairs left out.

    Parameters
    ----------
    kernels : tuple of two ViewKernel
        Of the views of the rows and of the columns.
    pairs : csr_array of shape (n, m)
        Whose entries tell which pairs were judged.
    targets, weights : ndarray of shape (n_pairs,)
    ridges : sequence of float
    by_items : bool, default=False
        Leave out pairs with all others of their items, so as to measure what is said
        of items that nobody judged.

    Returns
    -------
    fit : PairFit
    """
    entries = pairs.tocoo()
    i, j = entries.coords
    fits = _solve(kernels, i, j, targets, weights, ridges, by_items)
    best = min(fits, key=lambda fit: fit.error)
    values = best.coefficients[:, 0].astype(np.float64)
    coefficients = sparse.csr_array((values, (i, j)), shape=pairs.shape)
    return PairFit(kernels, coefficients, best, i, j)


def _solve(
    kernels: tuple[ViewKernel, ViewKernel],
    i: Array,
    j: Array,
    targets: Array,
    weights: Array,
    ridges: Sequence[float],
    by_items: bool,
) -> list[RidgeFit]:
    """Fit for each ridge, by a factorisation where there are not many pairs."""
    n_folds = N_FOLDS if len(i) <= DENSE_PAIRS else N_LARGE_FOLDS
    folds = ItemFolds.draw(i, j, n_folds) if by_items else None
    rows, own_i = np.unique(i, return_inverse=True)
    columns, own_j = np.unique(j, return_inverse=True)
    if len(i) <= DENSE_PAIRS:
        left = kernels[0].block(rows, rows)[np.ix_(own_i, own_i)]
        left *= kernels[1].block(columns, columns)[np.ix_(own_j, own_j)]
        return solve_dense(left, targets[:, None], weights, ridges, folds=folds)
    apply = _products(kernels, rows, own_i, columns, own_j)
    diagonal = kernels[0].diagonal()[i] * kernels[1].diagonal()[j]
    aims = targets[:, None]
    return [
        solve_most(apply, diagonal, aims, weights, ridges, tol=PAIR_TOL, folds=folds)
    ]


class _Side(NamedTuple):
    """A kernel among the judged items of a view, or features that stand for it."""

    matrix: Array
    is_whole: bool

    @classmethod
    def of(cls, kernel: ViewKernel, used: Array, *, seed: int) -> "_Side":
        """Return features if the kernel has few or items are many, else all entries."""
        if len(used) <= DENSE_ITEMS and not has_features(kernel, len(used)):
            return cls(kernel.block(used, used).astype(np.float32), True)
        return cls(kernel_directions(kernel, seed=seed)[used].astype(np.float32), False)

    def diagonal(self) -> Array:
        """Return the similarity of each item to itself."""
        if self.is_whole:
            return np.diagonal(self.matrix)
        return np.einsum("ir,ir->i", self.matrix, self.matrix)


def _products(
    kernels: tuple[ViewKernel, ViewKernel],
    rows: Array,
    i: Array,
    columns: Array,
    j: Array,
) -> Callable[[Array], Array]:
    """Return the product with the kernel among judged pairs, ``(K_x C K_y)_ij``."""
    left = _Side.of(kernels[0], rows, seed=0)
    right = _Side.of(kernels[1], columns, seed=1)
    # What features leave out of a large kernel counts for each pair alone.
    seen = left.diagonal()[i] * right.diagonal()[j]
    true_left = left.diagonal() if left.is_whole else kernels[0].diagonal()[rows]
    true_right = right.diagonal() if right.is_whole else kernels[1].diagonal()[columns]
    missing = np.maximum(true_left[i] * true_right[j] - seen, 0.0)

    multiply = _multiply_whole if left.is_whole and right.is_whole else _multiply

    def apply(block: Array) -> Array:
        product = missing[:, None] * block
        for c in range(block.shape[1]):
            values = block[:, c].astype(np.float32)
            product[:, c] += multiply(left, right, i, j, values)
        return product

    return apply


def _multiply_whole(
    left: _Side, right: _Side, i: Array, j: Array, values: Array
) -> Array:
    """Return the entries of K_x C K_y at the pairs, whose values are C."""
    # Pairs come sorted by rows, as a CSR matrix has them.
    starts = np.searchsorted(i, np.arange(len(left.matrix) + 1))
    with small_loops(len(i) * (len(left.matrix) + len(right.matrix))):
        return pair_products(left.matrix, right.matrix, i, j, starts, values)


def _multiply(left: _Side, right: _Side, i: Array, j: Array, values: Array) -> Array:
    """Return the same where a side has features."""
    shape = (len(left.matrix), len(right.matrix))
    C = sparse.csr_array((values, (i, j)), shape=shape)
    one, other = _factors(left, C, right)
    with small_loops(len(i) * one.shape[1]):
        return sampled_products(one, other, i, j)


def _factors(left: _Side, C: sparse.csr_array, right: _Side) -> tuple[Array, Array]:
    """Return two matrices whose rows' inner products are the entries of K_x C K_y."""
    if right.is_whole:
        return left.matrix, right.matrix @ (C.T @ left.matrix)
    inner = C @ right.matrix
    turned = inner if left.is_whole else left.matrix.T @ inner
    return left.matrix @ turned, right.matrix
