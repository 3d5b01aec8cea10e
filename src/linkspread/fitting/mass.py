"""How two vectors are compared, as an inner product of what they become."""

from collections.abc import Callable

import numpy as np

__all__ = ["SCORES", "centred_units", "share_rows", "unit_rows"]

Array = np.ndarray


def unit_rows(vectors: Array) -> Array:
    """Scale rows to length 1; rows of zeros stay.

    Parameters
    ----------
    vectors : ndarray of shape (n, d)

    Returns
    -------
    units : ndarray of shape (n, d)
        Their inner products are cosines.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)


def centred_units(vectors: Array) -> Array:
    """Subtract each row's mean, then scale rows to length 1.

    Parameters
    ----------
    vectors : ndarray of shape (n, d)

    Returns
    -------
    units : ndarray of shape (n, d)
        Their inner products are the normalised correlations of [Rasiwasia2010].
    """
    return unit_rows(vectors - vectors.mean(axis=1, keepdims=True))


def share_rows(vectors: Array) -> Array:
    """Scale rows of at least 0 to sum 1; rows of zeros stay.

    Parameters
    ----------
    vectors : ndarray of shape (n, d)

    Returns
    -------
    shares : ndarray of shape (n, d)
    """
    sums = vectors.sum(axis=1, keepdims=True)
    return vectors / np.where(sums > 0, sums, 1.0)


def _unchanged(vectors: Array) -> Array:
    """Return vectors whose plain inner products are the scores."""
    return vectors


SCORES: dict[str, Callable[[Array], Array]] = {
    "correlation": centred_units,
    "dot": _unchanged,
}
