"""Affinity and linear kernels: exact for small views, by landmarks for large ones."""

from typing import Any

import numpy as np
from scipy import sparse

from linkspread.fitting.gaussian_kernel import GaussianKernel
from linkspread.fitting.row_features import LandmarkFeatures, LinearFeatures
from linkspread.fitting.view_kernels import (
    DENSE_ITEMS,
    DenseKernel,
    FeatureKernel,
    ViewKernel,
    precision,
)
from linkspread.graphs.distances import Pairwise

__all__ = ["AffinityKernel", "affinity_kernel", "is_histogram", "linear_kernel"]

Array = np.ndarray

# Items that stand for all others in the affinity kernel of a large view.
N_LANDMARKS = 1024
# Principal components that a wide table is reduced to.
MAX_COMPONENTS = 512
# Eigenvalues of the landmarks' kernel below this share of the largest are dropped.
SMALLEST = 1e-9


class AffinityKernel(DenseKernel):
    """The Gaussian of the distances between all items of a view that is not large.

    Its entries are made when they are first needed.

    Parameters
    ----------
    compare : GaussianKernel
        With all items as anchors.
    """

    def __init__(self, compare: GaussianKernel) -> None:
        self.compare = compare
        self._items = compare.anchors
        self.n_items = compare.anchors.shape[0]
        self._made: Array | None = None

    @property
    def matrix(self) -> Array:
        """All entries."""
        if self._made is None:
            entries = self.compare(self._items)
            entries = (entries + entries.T) / 2
            self._made = entries.astype(precision(self.n_items), copy=False)
        return self._made

    def release(self) -> None:
        """Forget the entries."""
        self._made = None


def affinity_kernel(
    X: Any, *, metric: str | Pairwise, width: float, random_state: int = 0
) -> ViewKernel:
    """Return the Gaussian of the distances between all items.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_items, n_features)
    metric : str or callable
        As in `knn_graph`.
    width : float
        In mean distances.
    random_state : int, default=0
        Of the landmarks of a large view [Williams2001].

    Returns
    -------
    kernel : ViewKernel
    """
    n_items = X.shape[0]
    if n_items <= DENSE_ITEMS:
        everyone = np.arange(n_items)
        return AffinityKernel(GaussianKernel(X, everyone, metric=metric, width=width))
    rng = np.random.default_rng(random_state)
    landmarks = np.sort(rng.choice(n_items, N_LANDMARKS, replace=False))
    compare = GaussianKernel(X, landmarks, metric=metric, width=width)
    values, vectors = np.linalg.eigh(compare(compare.anchors))
    kept = values > SMALLEST * values[-1]
    turn = vectors[:, kept] / np.sqrt(values[kept])
    embed = LandmarkFeatures(compare, turn)
    return FeatureKernel(embed(X), embed)


def linear_kernel(
    X: Any, *, n_components: int = MAX_COMPONENTS, constant: bool = False
) -> FeatureKernel:
    """Return the inner products of features, which make a ridge a linear one.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_items, n_features)
        Histograms, which have nothing below 0, are compared by the roots of their
        shares, other features scaled to variance 1.
    n_components : int, default=512
        Principal components that a wider table is reduced to.
    constant : bool, default=False
        Whether a feature is added that all items share.

    Returns
    -------
    kernel : FeatureKernel
        With a mean diagonal of 1.
    """
    scaling = "sqrt" if is_histogram(X) else "standard"
    embed = LinearFeatures.fit(
        X, scaling=scaling, n_components=n_components, constant=constant
    )
    return FeatureKernel(embed(X), embed)


def is_histogram(X: Any) -> bool:
    """Tell whether a table has no entry below 0.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_items, n_features)

    Returns
    -------
    is_histogram : bool
    """
    values = X.data if sparse.issparse(X) else X
    return bool(np.min(values, initial=0) >= 0)
