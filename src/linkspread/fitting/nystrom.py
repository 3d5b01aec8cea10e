"""Few features whose inner products are nearly a kernel (Nystrom)."""

from typing import Any

import numpy as np

from linkspread.fitting.centred_kernel import CentredKernel
from linkspread.fitting.view_kernels import FeatureKernel, ViewKernel

__all__ = ["has_features", "kernel_directions", "leading_features"]

Array = np.ndarray

# Directions that stand for a kernel among more items than are compared one by one.
N_DIRECTIONS = 256


def has_features(kernel: ViewKernel, n_most: int) -> bool:
    """Tell whether a kernel is made of features, and of not too many.

    Parameters
    ----------
    kernel : ViewKernel
    n_most : int

    Returns
    -------
    has_features : bool
    """
    plain = kernel.kernel if isinstance(kernel, CentredKernel) else kernel
    return isinstance(plain, FeatureKernel) and plain.features.shape[1] <= n_most


def kernel_directions(kernel: ViewKernel, *, seed: int) -> Array:
    """Return features of all items whose inner products are nearly the kernel.

    Parameters
    ----------
    kernel : ViewKernel
    seed : int
        As for `leading_features`.

    Returns
    -------
    features : ndarray of shape (n_items, r)
        Those of the kernel itself if it has any.
    """
    if isinstance(kernel, CentredKernel):
        features = kernel_directions(kernel.kernel, seed=seed)
        return features - features.mean(axis=0)
    if isinstance(kernel, FeatureKernel):
        return kernel.features
    return leading_features(kernel, kernel.n_items, N_DIRECTIONS, seed=seed)


def leading_features(K: Any, n_items: int, rank: int, *, seed: int) -> Array:
    """Return the leading features of a symmetric matrix that is at least 0.

    Parameters
    ----------
    K : ndarray or ViewKernel of shape (n_items, n_items)
        Only multiplied with thin blocks.
    n_items : int
    rank : int
        Features at most.
    seed : int
        Another for each of two views: items at the same position in both would be
        alike by what is random in both alike, and matched rows seem to be known.

    Returns
    -------
    features : ndarray of shape (n_items, r)
    """
    rng = np.random.default_rng(seed)
    rank = min(rank, n_items)
    probes = np.linalg.qr(rng.standard_normal((n_items, rank)))[0]
    probes = np.linalg.qr(K @ probes)[0]
    image = K @ probes
    values, vectors = np.linalg.eigh(probes.T @ image)
    kept = values > 1e-9 * values[-1]
    return image @ (vectors[:, kept] / np.sqrt(values[kept]))
