"""Rows of items, settings of terms, and pieces of scores."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkspread.learning.maps import ViewMap

Array = np.ndarray


@dataclass(frozen=True)
class Sides:
    """Maps of two views, and their unit rows in a shared space, if any."""

    maps: tuple[ViewMap, ViewMap]
    prior: tuple[Any, Any] | None = None

    def rows(self, side: int, items: Any) -> "Rows":
        """Return the rows of some fitted items of one side, 0 or 1."""
        prior = None if self.prior is None else self.prior[side][items]
        return Rows(self.maps[side].values[items], prior)


@dataclass(frozen=True)
class Rows:
    """Features of some items, and their rows in a shared space."""

    values: Array
    prior: Any = None
    classes: Array | None = None  # class probabilities, if computed before

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the features."""
        return self.values.shape

    def __getitem__(self, some: Any) -> "Rows":
        others = self.prior, self.classes
        taken = (None if own is None else own[some] for own in others)
        return Rows(self.values[some], *taken)


@dataclass(frozen=True)
class Setting:
    """One term with its kernels, its ridge and its weight."""

    kind: str  # as `terms.fit_term` reads it
    mixture: str = "linear"  # sum of kernels, one of `maps.MIXTURES`
    ridge: float = np.inf
    weight: float = 1.0


@dataclass(frozen=True)
class Piece:
    """Coefficients of queries over columns of the targets."""

    space: str  # "values", "prior" or "classes"
    coefficients: Any
    constant: Any = 0.0  # of each query
    columns: slice = field(default_factory=lambda: slice(None))  # of the features
    scaled: bool = False  # whether multiplied by the scale of the target
