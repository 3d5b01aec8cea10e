"""Scores of two views after fitting: vectors of their items, and of new ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from linkspread.fitting.diffused_pairs import DiffusedFit
from linkspread.fitting.embeddings import Added, Changed, Embedding, Joined, Shifted
from linkspread.fitting.extensions import join_heat
from linkspread.fitting.mass import MassChange
from linkspread.fitting.matches import MatchFit
from linkspread.fitting.pairs import PairFit, Term
from linkspread.propagation.lowrank import sketch

__all__ = [
    "FittedPair",
    "PairEmbedding",
    "add_pair_fits",
    "divide_by_lengths",
    "join_scores",
]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class FittedPair:
    """Scores as inner products of the vectors of two views.

    Attributes
    ----------
    left, right : ndarray of shape (n, r) and (m, s)
        One vector per item.
    core : ndarray of shape (r, s)
        Scores are ``left @ core @ right.T``.
    embed_left : callable
        Makes of new rows of the first view vectors to be multiplied with `right`.
    embed_right : callable
        Makes of new rows of the second view vectors to be multiplied with `left`.
    error : float
        Relative error of the scores in Frobenius norm, estimated.
    """

    left: Array
    right: Array
    core: Array
    embed_left: Embedding
    embed_right: Embedding
    error: float = 0.0

    @property
    def T(self) -> "FittedPair":
        """The same scores with the views exchanged."""
        return FittedPair(
            left=self.right,
            right=self.left,
            core=self.core.T,
            embed_left=self.embed_right,
            embed_right=self.embed_left,
            error=self.error,
        )

    def queries(self, positions: Any) -> Array:
        """Return the vectors with which fitted items search the other view.

        Parameters
        ----------
        positions : array-like of shape (q,)

        Returns
        -------
        vectors : ndarray of shape (q, s)
        """
        return self.left[positions] @ self.core


def join_scores(parts: Sequence[FittedPair]) -> FittedPair:
    """Return the sum of scores of the same two views.

    Parameters
    ----------
    parts : sequence of FittedPair

    Returns
    -------
    scores : FittedPair
    """
    if len(parts) == 1:
        return parts[0]
    return FittedPair(
        left=np.hstack([part.left for part in parts]),
        right=np.hstack([part.right for part in parts]),
        core=block_diag(*[part.core for part in parts]),
        embed_left=Joined(tuple(part.embed_left for part in parts)),
        embed_right=Joined(tuple(part.embed_right for part in parts)),
        error=max(part.error for part in parts),
    )


def add_pair_fits(
    fits: Sequence[PairFit | DiffusedFit | MatchFit],
    weights: Sequence[float],
    *,
    rank: int | None,
    tol: float,
) -> FittedPair:
    """Return the weighed sum of fits of judged pairs, in few dimensions.

    Parameters
    ----------
    fits : sequence of PairFit, DiffusedFit or MatchFit
    weights : sequence of float
    rank : int or None
        Largest number of dimensions; None for what `tol` needs.
    tol : float
        Relative error allowed where `rank` does not bind.

    Returns
    -------
    scores : FittedPair
    """
    used = [(w, fit) for w, fit in zip(weights, fits, strict=True) if w > 0]
    operator = _KernelSum([(w * C, x, y) for w, fit in used for C, x, y in fit.terms])
    left, right, cores, error = sketch(operator, tol=tol, rank=rank)
    return FittedPair(
        left=left,
        right=right,
        core=cores[0],
        embed_left=PairEmbedding(operator, right),
        embed_right=PairEmbedding(operator.T, left),
        error=error,
    )


def divide_by_lengths(scores: FittedPair, mass: str) -> FittedPair:
    """Return scores divided by how long the rows of scores of both items are.

    Items that are near to much that was judged have large scores with everything, and
    would be found by everyone.

    Parameters
    ----------
    scores : FittedPair
        Whose vectors `left` and `right` are orthonormal columns.
    mass : {"none", "length", "root length"}
        By nothing, by the lengths, or by their roots: no score of two fitted items is
        beyond 1 then, since none is longer than its row or its column.

    Returns
    -------
    scores : FittedPair
    """
    if mass == "none":
        return scores
    change, turn = MassChange(mass), np.linalg.pinv(scores.core)
    return FittedPair(
        left=change(scores.left @ scores.core),
        right=change(scores.right @ scores.core.T),
        core=turn,
        embed_left=Changed(scores.embed_left, change, turn),
        # In the order in which it is stored, so that a loaded model says the same.
        embed_right=Changed(scores.embed_right, change, np.ascontiguousarray(turn.T)),
        error=scores.error,
    )


@dataclass(frozen=True, eq=False)
class PairEmbedding:
    """Vectors of new rows by fits of judged pairs, prepared when first asked for.

    Attributes
    ----------
    operator : object with `extension`
        The sum of the fits.
    basis : ndarray of shape (m, r)
        Vectors of the items of the other view.
    """

    operator: "_KernelSum"
    basis: Array

    @cached_property
    def prepared(self) -> Added | Shifted:
        """All that new rows need: it takes a few products with each kernel."""
        return self.operator.extension(self.basis)

    @property
    def width(self) -> int:
        """Length of the vectors."""
        return self.basis.shape[1]

    def __call__(self, rows: Any) -> Array:
        """Return the vectors of shape (q, r)."""
        return self.prepared(rows)


class _KernelSum:
    """Apply ``sum_k K_xk C_k K_yk`` to thin blocks, as `sketch` asks for it."""

    def __init__(self, terms: list[Term]) -> None:
        self.terms = terms
        self.shape = terms[0][0].shape
        self.dtype = np.dtype(np.float64)

    @property
    def T(self) -> "_KernelSum":
        """The operator of the transposed matrices."""
        return _KernelSum([(C.T, y, x) for C, x, y in self.terms])

    def apply(self, block: Array, n_responses: int | None = None) -> list[Array]:
        """Return the product with a block, the only response."""
        parts = [x @ (C @ (y @ block)) for C, x, y in self.terms]
        return [np.sum(parts, axis=0)]

    def extension(self, basis: Array) -> Added | Shifted:
        """Return what new rows of the first view get, multiplied with a basis."""
        parts, shift = [], np.zeros(basis.shape[1])
        for C, x, y in self.terms:
            coefficients = C @ (y @ basis)
            part = x.extension(coefficients, x @ coefficients)
            if isinstance(part, Shifted):
                part, shift = part.embed, shift + part.shift
            parts.append(part)
        parts = join_heat(parts)
        added = Added(tuple(parts), (1.0,) * len(parts))
        return Shifted(added, shift) if shift.any() else added
