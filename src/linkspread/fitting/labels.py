"""Labels of one view fitted by a kernel, instead of only spread.

``min_A  sum_i w_i |f_i - u_i|^2 + ridge <f, K^-1 f>`` over the labelled items i, with
memberships u: items that nobody labelled are not pulled to 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkspread.fitting.ridge import RidgeFit, solve_dense
from linkspread.fitting.ridge_by_products import solve_products
from linkspread.fitting.view_kernels import ViewKernel

__all__ = ["LabelFit", "fit_labels"]

Array = np.ndarray

# Labelled items up to which their kernel is formed and factorised.
DENSE_LABELS = 5000
# More than so many are factorised in single precision.
DOUBLE_LABELS = 1500


@dataclass(frozen=True, eq=False)
class LabelFit:
    """Memberships of all items of a view, learnt from those of a few.

    Attributes
    ----------
    kernel : ViewKernel
    rows : ndarray of int of shape (n_labelled,)
        The labelled items.
    fit : RidgeFit
        Of the labelled items.
    targets : ndarray of shape (n_labelled, n_classes)
        Their memberships, as shares.
    weights : ndarray of shape (n_labelled,)
    coefficients : ndarray of shape (n_items, n_classes)
        Zero where there is no label.
    values : ndarray of shape (n_items, n_classes)
    """

    kernel: ViewKernel
    rows: Array
    fit: RidgeFit
    targets: Array
    weights: Array
    coefficients: Array
    values: Array

    @property
    def shares(self) -> Array:
        """How frequent classes are among the labels."""
        return self.weights @ self.targets / self.weights.sum()

    def embed(self, rows: Any) -> Array:
        """Return the memberships of new items.

        Parameters
        ----------
        rows : table of shape (q, n_features)

        Returns
        -------
        values : ndarray of shape (q, n_classes)
        """
        return self.extension()(rows)

    def extension(self) -> Any:
        """Return what makes memberships of new items, without the rest of the fit."""
        return self.kernel.extension(self.coefficients, self.values)


def fit_labels(
    kernel: ViewKernel, memberships: Any, *, ridges: Sequence[float]
) -> LabelFit:
    """Fit memberships, with the ridge that leave-one-out finds best.

    Parameters
    ----------
    kernel : ViewKernel
    memberships : sparse or ndarray of shape (n_items, n_classes)
        At least 0; the sum of a row is the weight of its item, 0 for unknown.
    ridges : sequence of float

    Returns
    -------
    fit : LabelFit
    """
    masses = np.asarray(memberships.sum(axis=1)).ravel()
    rows = np.flatnonzero(masses > 0)
    known = memberships[rows]
    targets = known.toarray() if hasattr(known, "toarray") else np.asarray(known)
    weights = masses[rows]
    targets = targets / weights[:, None]
    fits = _solve(kernel, rows, targets, weights, ridges)
    best = min(fits, key=lambda fit: fit.error)
    coefficients = np.zeros((kernel.n_items, targets.shape[1]))
    coefficients[rows] = best.coefficients
    values = kernel @ coefficients
    return LabelFit(kernel, rows, best, targets, weights, coefficients, values)


def _solve(
    kernel: ViewKernel,
    rows: Array,
    targets: Array,
    weights: Array,
    ridges: Sequence[float],
) -> list[RidgeFit]:
    """Fit for each ridge, by a factorisation where there are not many labels."""
    if len(rows) <= DENSE_LABELS:
        block = kernel.block(rows, rows)
        if len(rows) > DOUBLE_LABELS:
            block, targets = block.astype(np.float32), targets.astype(np.float32)
            weights = weights.astype(np.float32)
        return solve_dense(block, targets, weights, ridges)

    def apply(block: Array) -> Array:
        whole = np.zeros((kernel.n_items, block.shape[1]))
        whole[rows] = block
        return (kernel @ whole)[rows]

    return solve_products(apply, kernel.diagonal()[rows], targets, weights, ridges)
