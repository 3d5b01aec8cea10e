"""Judged pairs fitted by heat that flows in both views for the same time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from linkspread.fitting.heat import TIME_WEIGHTS, Diffusion
from linkspread.fitting.item_folds import ItemFolds
from linkspread.fitting.pairs import N_FOLDS, Term
from linkspread.fitting.ridge import RidgeFit, solve_dense

__all__ = ["DiffusedFit", "fit_diffused"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class DiffusedFit:
    """Coefficients of judged pairs.

    Attributes
    ----------
    views : tuple of two Diffusion
    coefficients : csr_array of shape (n, m)
    fit : RidgeFit
        Of the pairs in the order of ``pairs.tocoo()``.
    """

    views: tuple[Diffusion, Diffusion]
    coefficients: sparse.csr_array
    fit: RidgeFit

    @property
    def terms(self) -> list[Term]:
        """Coefficients and two kernels for each time; scores are their sum."""
        kernels = zip(*(view.kernels for view in self.views), strict=True)
        return [
            (weight * self.coefficients, x, y)
            for weight, (x, y) in zip(TIME_WEIGHTS, kernels, strict=True)
        ]


def fit_diffused(
    views: tuple[Diffusion, Diffusion],
    pairs: sparse.csr_array,
    targets: Array,
    weights: Array,
    *,
    ridges: Sequence[float],
    by_items: bool = False,
) -> DiffusedFit:
    """Fit judged pairs, with the ridge that does best on pairs left out.

    Parameters
    ----------
    views : tuple of two Diffusion
        Of the rows and of the columns.
    pairs : csr_array of shape (n, m)
        Whose entries tell which pairs were judged; not more than can be factorised.
    targets, weights : ndarray of shape (n_pairs,)
    ridges : sequence of float
    by_items : bool, default=False
        As for `fit_pairs`.

    Returns
    -------
    fit : DiffusedFit
    """
    i, j = pairs.tocoo().coords
    folds = ItemFolds.draw(i, j, N_FOLDS) if by_items else None
    K, aims = _among(views, i, j), targets[:, None]
    fits = solve_dense(K, aims, weights, ridges, folds=folds)
    best = min(fits, key=lambda fit: fit.error)
    values = best.coefficients[:, 0]
    coefficients = sparse.csr_array((values, (i, j)), shape=pairs.shape)
    return DiffusedFit(views, coefficients, best)


def _among(views: tuple[Diffusion, Diffusion], i: Array, j: Array) -> Array:
    """Return how alike judged pairs are."""
    kernel = np.zeros((len(i), len(i)))
    rows, own_i = np.unique(i, return_inverse=True)
    columns, own_j = np.unique(j, return_inverse=True)
    left, right = views[0].among(rows), views[1].among(columns)
    for weight, x, y in zip(TIME_WEIGHTS, left, right, strict=True):
        kernel += weight * x[np.ix_(own_i, own_i)] * y[np.ix_(own_j, own_j)]
    return kernel
