"""Affinity and linear kernels: exact for small views, by landmarks for large ones."""

from typing import Any

import numpy as np
from scipy import sparse

from linkspread.fitting.gaussian_kernel import GaussianKernel
from linkspread.fitting.view_kernels import (
    DENSE_ITEMS,
    DenseKernel,
    FeatureKernel,
    ViewKernel,
)
from linkspread.graphs.distances import Pairwise

__all__ = ["affinity_kernel", "is_histogram", "linear_kernel"]

Array = np.ndarray

# Items that stand for all others in the affinity kernel of a large view.
N_LANDMARKS = 1024
# Principal components that a wide table is reduced to.
MAX_COMPONENTS = 512
# Eigenvalues of the landmarks' kernel below this share of the largest are dropped.
SMALLEST = 1e-9


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
        compare = GaussianKernel(X, np.arange(n_items), metric=metric, width=width)
        matrix = compare(X)
        return DenseKernel((matrix + matrix.T) / 2, compare)
    rng = np.random.default_rng(random_state)
    landmarks = np.sort(rng.choice(n_items, N_LANDMARKS, replace=False))
    compare = GaussianKernel(X, landmarks, metric=metric, width=width)
    values, vectors = np.linalg.eigh(compare(compare.anchors))
    kept = values > SMALLEST * values[-1]
    turn = vectors[:, kept] / np.sqrt(values[kept])
    return FeatureKernel(
        compare.smooth(X, turn), lambda rows: compare.smooth(rows, turn)
    )


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
    # Only here: scikit-learn's pipelines make a bare import twice as long.
    from linkspread.fitting.preparation import prepare

    prepared = prepare(
        X,
        scaling="sqrt" if is_histogram(X) else "standard",
        n_components=n_components,
        random_state=0,
    )
    features = prepared.transform(X)
    # Sparse rows are not centred before they are reduced.
    centre = features.mean(axis=0)
    length = float(np.sqrt(np.mean(np.sum((features - centre) ** 2, axis=1)))) or 1.0

    def embed(rows: Any) -> Array:
        own = (prepared.transform(rows) - centre) / length
        if not constant:
            return own
        # As long as one of the components is on average.
        share = np.full((len(own), 1), own.shape[1] ** -0.5)
        return np.hstack([share, own])

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
