"""Vectors of new rows, put together from the values that fits give them.

Each is plain data that is called with rows, so that a fitted model can be stored.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkspread.fitting.mass import MassChange

__all__ = [
    "Added",
    "Changed",
    "Embedding",
    "Joined",
    "Shifted",
    "WithColumn",
    "add_column",
]

Array = np.ndarray
# Anything that makes vectors of new rows; those of this package have a `width`.
Embedding = Callable[[Any], Array]


@dataclass(frozen=True, eq=False)
class Added:
    """A weighed sum of vectors.

    Attributes
    ----------
    parts : tuple of embeddings
        All of one width.
    weights : tuple of float
    """

    parts: tuple[Any, ...]
    weights: tuple[float, ...]

    @property
    def width(self) -> int:
        """Length of the vectors."""
        return self.parts[0].width

    def __call__(self, rows: Any) -> Array:
        """Return the vectors of shape (q, width)."""
        pairs = zip(self.weights, self.parts, strict=True)
        return sum((weight * part(rows) for weight, part in pairs), np.zeros(()))


@dataclass(frozen=True, eq=False)
class Shifted:
    """Vectors to which the same vector is added.

    Attributes
    ----------
    embed : embedding
    shift : ndarray of shape (width,)
    """

    embed: Any
    shift: Array

    @property
    def width(self) -> int:
        """Length of the vectors."""
        return len(self.shift)

    def __call__(self, rows: Any) -> Array:
        """Return the vectors of shape (q, width)."""
        return self.embed(rows) + self.shift


@dataclass(frozen=True, eq=False)
class Joined:
    """Vectors side by side.

    Attributes
    ----------
    parts : tuple of embeddings
    """

    parts: tuple[Any, ...]

    @property
    def width(self) -> int:
        """Length of the vectors."""
        return sum(part.width for part in self.parts)

    def __call__(self, rows: Any) -> Array:
        """Return the vectors of shape (q, width)."""
        return np.hstack([part(rows) for part in self.parts])


@dataclass(frozen=True, eq=False)
class Changed:
    """Vectors whose mass is changed, then multiplied with a matrix.

    Attributes
    ----------
    embed : embedding
    change : MassChange
    turn : ndarray of shape (r, s)
    """

    embed: Any
    change: MassChange
    turn: Array

    @property
    def width(self) -> int:
        """Length of the vectors."""
        return self.turn.shape[1]

    def __call__(self, rows: Any) -> Array:
        """Return the vectors of shape (q, s)."""
        return self.change(self.embed(rows)) @ self.turn


@dataclass(frozen=True, eq=False)
class WithColumn:
    """Vectors with one more entry, the same for all rows.

    Attributes
    ----------
    embed : embedding
    value : float
    """

    embed: Any
    value: float

    @property
    def width(self) -> int:
        """Length of the vectors."""
        return self.embed.width + 1

    def __call__(self, rows: Any) -> Array:
        """Return the vectors of shape (q, width)."""
        return add_column(self.embed(rows), value=self.value)


def add_column(vectors: Array, *, value: float) -> Array:
    """Return vectors with one more column.

    Parameters
    ----------
    vectors : ndarray of shape (n, r)
    value : float

    Returns
    -------
    vectors : ndarray of shape (n, r + 1)
    """
    return np.hstack([vectors, np.full((len(vectors), 1), value)])
