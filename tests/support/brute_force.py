"""Neighbours and distances by brute force."""

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import (
    additive_chi2_kernel,
    cosine_similarity,
)


def _shares(rows):
    """Return non-negative rows divided by their sums; zero rows stay zero."""
    sums = rows.sum(axis=1, keepdims=True)
    return np.divide(rows, sums, out=np.zeros_like(rows), where=sums > 0)


SQUARED = {
    "euclidean": lambda Q, X: cdist(Q, X) ** 2,
    "cosine": lambda Q, X: 2 * (1 - cosine_similarity(Q, X)),
    "hellinger": lambda Q, X: cdist(np.sqrt(_shares(Q)), np.sqrt(_shares(X))) ** 2 / 2,
    "chi2": lambda Q, X: -additive_chi2_kernel(Q, X) / 2,
}


def brute_distances(metric, Q, X):
    """Return all distances by library routines in float64."""
    Q, X = (
        np.asarray(m.toarray() if sp.issparse(m) else m, dtype=np.float64)
        for m in (Q, X)
    )
    if callable(metric):
        return metric(Q, X)
    return np.sqrt(np.maximum(SQUARED[metric](Q, X), 0))


def brute_neighbors(distances, n_neighbors, *, exclude_self=False):
    """Return the nearest of a whole matrix of distances, ties by index."""
    distances = distances.copy()
    if exclude_self:
        np.fill_diagonal(distances, np.inf)
    ids = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
    return ids, np.take_along_axis(distances, ids, 1)


def separated(rng, n_items=120):
    """Return unit clouds around +-1e6, whose single-precision products say nothing."""
    X = rng.standard_normal((n_items, 5))
    X[::2] += 1e6
    X[1::2] -= 1e6
    return X
