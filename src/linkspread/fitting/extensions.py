"""What new rows get from a fit: plain data that is called with the rows.

A kernel makes one from the coefficients of a fit, and keeps in it only what rows that
come later need. The sum, the change and the joining of such values are in `embeddings`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

__all__ = [
    "DenseExtension",
    "FeatureExtension",
    "GraphExtension",
    "HeatExtension",
    "KernelExtension",
    "join_heat",
]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class KernelExtension:
    """Values of new rows by a kernel of the user's own, which is asked each time.

    Attributes
    ----------
    kernel : ViewKernel
    coefficients, fitted : ndarray of shape (n_items, c)
        ``fitted = K @ coefficients``.
    """

    kernel: Any
    coefficients: Array
    fitted: Array

    @property
    def width(self) -> int:
        """Number of values of each row."""
        return self.fitted.shape[1]

    def __call__(self, rows: Any) -> Array:
        """Return the values of shape (q, c)."""
        return self.kernel.extend(rows, self.coefficients, self.fitted)


@dataclass(frozen=True, eq=False)
class GraphExtension:
    """Values of new rows by their neighbours on a graph.

    Attributes
    ----------
    similar : callable or None
        Returns the normalised similarities of new rows to all items, sparse.
    alpha : float
    diagonal : ndarray of shape (n_items,)
        Of the kernel before any scaling.
    reached : ndarray of shape (n_items, c)
        The values of the items, times the lengths by which they were divided.
    """

    similar: Callable[[Any], Any] | None
    alpha: float
    diagonal: Array
    reached: Array

    @property
    def width(self) -> int:
        """Number of values of each row."""
        return self.reached.shape[1]

    def __call__(self, rows: Any) -> Array:
        """Return the values of shape (q, c)."""
        if self.similar is None:
            raise ValueError("this kernel was made without `similar`")
        near = sparse.csr_array(self.similar(rows))
        # The diagonal that a new item would have, without ways there and back again
        # through two different neighbours; it scales a whole row of scores.
        own = near.multiply(near) @ self.diagonal
        own = (1 - self.alpha) + self.alpha**2 * own
        return self.alpha * (near @ self.reached) / np.sqrt(own)[:, None]


@dataclass(frozen=True, eq=False)
class HeatExtension:
    """Values of new rows by the heat that reaches them from their neighbours.

    Attributes
    ----------
    similar : callable or None
        Returns the normalised similarities of new rows to all items, sparse.
    reached : ndarray of shape (n_items, c)
        What arrives from each item along a similarity of 1.
    """

    similar: Callable[[Any], Any] | None
    reached: Array

    @property
    def width(self) -> int:
        """Number of values of each row."""
        return self.reached.shape[1]

    def __call__(self, rows: Any) -> Array:
        """Return the values of shape (q, c)."""
        if self.similar is None:
            raise ValueError("this kernel was made without `similar`")
        return sparse.csr_array(self.similar(rows)) @ self.reached


def join_heat(extensions: Sequence[Any]) -> list[Any]:
    """Return extensions whose sum is the same, with one for all heat of a graph.

    Parameters
    ----------
    extensions : sequence of embeddings

    Returns
    -------
    extensions : list of embeddings
    """
    joined: list[Any] = []
    for own in extensions:
        last = joined[-1] if joined else None
        if not isinstance(own, HeatExtension) or not isinstance(last, HeatExtension):
            joined.append(own)
        elif own.similar is last.similar:
            joined[-1] = HeatExtension(own.similar, last.reached + own.reached)
        else:
            joined.append(own)
    return joined


@dataclass(frozen=True, eq=False)
class DenseExtension:
    """Values of new rows by their similarities to the items that have coefficients.

    Attributes
    ----------
    compare : callable
        Returns the similarities of new rows to all items.
    used : ndarray of int of shape (n_used,)
    coefficients : ndarray of shape (n_used, c)
    """

    compare: Callable[[Any], Array]
    used: Array
    coefficients: Array

    @property
    def width(self) -> int:
        """Number of values of each row."""
        return self.coefficients.shape[1]

    def __call__(self, rows: Any) -> Array:
        """Return the values of shape (q, c)."""
        return self.compare(rows)[:, self.used] @ self.coefficients


@dataclass(frozen=True, eq=False)
class FeatureExtension:
    """Values of new rows that are linear in their features.

    Attributes
    ----------
    features : callable
        Makes the features of new rows.
    coefficients : ndarray of shape (r, c)
    """

    features: Callable[[Any], Array]
    coefficients: Array

    @property
    def width(self) -> int:
        """Number of values of each row."""
        return self.coefficients.shape[1]

    def __call__(self, rows: Any) -> Array:
        """Return the values of shape (q, c)."""
        return self.features(rows) @ self.coefficients
