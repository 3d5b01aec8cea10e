"""Scores of views that no link joins, through views that links join to both.

An audio and an image that no one ever compared score what the texts between them say::

    F[audio, image] = F[audio, text] @ F[text, image]
"""

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from linkspread.fitting.fitted_pair import FittedPair
from linkspread.propagation import Spread
from linkspread.propagation.rows import ChainedRows

__all__ = ["chain_scores"]

Array = np.ndarray


def chain_scores(steps: list[Any]) -> Any:
    """Return the product of the scores of each view of a chain with the next."""
    return reduce(_multiply, steps)


def _multiply(first: Any, second: Any) -> Any:
    """Return the product of two scores, in the form of its factors."""
    if isinstance(first, FittedPair):
        joint = first.right.T @ second.left
        return FittedPair(
            left=first.left,
            right=second.right,
            core=first.core @ joint @ second.core,
            embed_left=_Onwards(first.embed_left, joint @ second.core),
            embed_right=_Onwards(second.embed_right, (first.core @ joint).T),
            error=first.error + second.error,
        )
    if isinstance(first, Spread) and isinstance(second, Spread):
        return first.times(second)
    return ChainedRows(first, second)


@dataclass(frozen=True, eq=False)
class _Onwards:
    """Vectors of new rows of one view, turned into those of a view further on."""

    embed: Any
    turn: Array

    @property
    def width(self) -> int:
        """Length of the vectors."""
        return self.turn.shape[1]

    def __call__(self, rows: Any) -> Array:
        """Return the vectors of shape (q, r)."""
        return self.embed(rows) @ self.turn
