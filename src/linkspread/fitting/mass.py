"""How two vectors are compared, as an inner product of what they become."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

__all__ = [
    "CHANGES",
    "LENGTH_POWERS",
    "MassChange",
    "SCORES",
    "centred_units",
    "share_rows",
    "unit_rows",
]

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


def _root_length_rows(vectors: Array) -> Array:
    """Divide rows by the root of their length; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.sqrt(np.where(lengths > 0, lengths, 1.0))


def _positive_shares(vectors: Array) -> Array:
    """Scale what is above 0 in each row to sum 1."""
    return share_rows(np.maximum(vectors, 0.0))


# By which power of its length a vector is divided.
LENGTH_POWERS = {"length": 1.0, "none": 0.0, "root length": 0.5}
CHANGES: dict[str, Callable[[Array], Array]] = {
    "length": unit_rows,
    "none": _unchanged,
    "posterior": lambda vectors: softmax(vectors, axis=1),
    "root length": _root_length_rows,
    "sum": _positive_shares,
}


@dataclass(frozen=True, eq=False)
class MassChange:
    """What is done to vectors, so that their mass says nothing.

    Attributes
    ----------
    mass : {"none", "length", "root length", "sum", "posterior"}
        The last takes class probabilities of the vectors.
    shares : ndarray of shape (d,), default=None
        Of the sum of each row, what is taken from it first: memberships are then as
        if they had been centred over the labelled items.
    sharpness : float, default=1.0
        What the vectors are multiplied with.
    """

    mass: str
    shares: Array | None = None
    sharpness: float = 1.0

    def __call__(self, vectors: Array) -> Array:
        """Return the changed vectors of shape (n, d)."""
        if self.shares is not None:
            vectors = vectors - vectors.sum(axis=1, keepdims=True) * self.shares
        return CHANGES[self.mass](self.sharpness * vectors)


SCORES: dict[str, Callable[[Array], Array]] = {
    "correlation": centred_units,
    "dot": _unchanged,
}
