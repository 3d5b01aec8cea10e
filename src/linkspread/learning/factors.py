"""The scores of two views as inner products, hub correction included."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from linkspread.learning.choice import Choice, Sides, fit_term, hub_strengths
from linkspread.learning.cores import Term
from linkspread.learning.evidence import Evidence

__all__ = ["ScoreFactors", "fit_factors"]

Array = np.ndarray

# Items of the other view by which the hub strength of an item is measured.
N_REFERENCES = 2000
# Items whose vectors and hub strengths are computed at once.
TILE = 4096
SEED = 0


@dataclass(frozen=True)
class ScoreFactors:
    """Vectors of the items of two views whose inner products are the scores.

    Parameters
    ----------
    left, right : ndarray of float32 of shape (n_items, r)
        The last two columns hold the hub correction.
    sides : Sides
    terms : tuple of (Term, str, float)
        Each with the name of its kernels and its weight.
    references : tuple of two ndarrays
        Vectors of both views by which hub strengths are measured.
    strengths : tuple of two ndarrays
        Hub strength of every item of both views.
    hubs : float
        Strength of the hub correction.
    """

    left: Array
    right: Array
    sides: Sides
    terms: tuple[tuple[Term, str, float], ...]
    references: tuple[Array, Array]
    strengths: tuple[Array, Array]
    hubs: float

    def vectors_of_new(self, rows: Any, prior: Any, side: int) -> Array:
        """Return the vectors of new items.

        Parameters
        ----------
        rows : table of shape (n_rows, n_features)
        prior : table of shape (n_rows, n_shared) or None
            Their unit rows in the shared space, where there is one.
        side : int
            0 for the left view, 1 for the right.

        Returns
        -------
        vectors : ndarray of shape (n_rows, r)
        """
        features = {
            mixture: self.sides.maps[side].transform(rows, mixture)
            for mixture in {mixture for _, mixture, _ in self.terms}
        }
        own = _joined_vectors(self.terms, features, prior, side)
        # Strengths of fitted items were measured by these same references.
        strengths = _strengths(own, self.references[1 - side], self.n_items[1 - side])
        return _with_hubs(own, strengths, self.hubs, side)

    @property
    def n_items(self) -> tuple[int, int]:
        """Items of both views."""
        return len(self.left), len(self.right)


def fit_factors(
    sides: Sides,
    evidence: Evidence,
    choice: Choice,
    *,
    before: ScoreFactors | None = None,
) -> ScoreFactors:
    """Fit the chosen terms to all that is known, and make the vectors of all items.

    Parameters
    ----------
    sides : Sides
    evidence : Evidence
    choice : Choice
    before : ScoreFactors, default=None
        Of fewer or more judgements: its hub strengths, which are costly and change
        little, are kept.

    Returns
    -------
    factors : ScoreFactors
    """
    terms = tuple(
        (fit_term(chosen, sides, evidence), chosen.mixture, chosen.weight)
        for chosen in choice.terms
    )
    sizes = [m.n_items for m in sides.maps]
    vectors = []
    for side, size in enumerate(sizes):
        prior = None if sides.prior is None else sides.prior[side]
        parts = []
        for start in range(0, size, TILE):
            some = slice(start, start + TILE)
            features = {
                mixture: sides.maps[side].features(mixture)[some]
                for _, mixture, _ in terms
            }
            rows = None if prior is None else prior[some]
            parts.append(_joined_vectors(terms, features, rows, side))
        vectors.append(np.vstack(parts))
    if before is None:
        rng = np.random.default_rng(SEED)
        left, right = (
            own[np.sort(rng.permutation(len(own))[:N_REFERENCES])] for own in vectors
        )
        references = left, right
        strengths = (
            _strengths(vectors[0], right, sizes[1]),
            _strengths(vectors[1], left, sizes[0]),
        )
    else:
        references, strengths = before.references, before.strengths
    return ScoreFactors(
        _with_hubs(vectors[0], strengths[0], choice.hubs, 0),
        _with_hubs(vectors[1], strengths[1], choice.hubs, 1),
        sides,
        terms,
        references,
        strengths,
        choice.hubs,
    )


def _joined_vectors(
    terms: tuple[tuple[Term, str, float], ...],
    features: dict[str, Array],
    prior: Any,
    side: int,
) -> Array:
    """Return the vectors of some items, one term beside the other."""
    parts = []
    for term, mixture, weight in terms:
        embed = (term.left, term.right)[side]
        own = embed(features[mixture], prior)
        own = own.toarray() if sp.issparse(own) else own
        parts.append((own * np.sqrt(weight)).astype(np.float32))
    return np.hstack(parts)


def _strengths(vectors: Array, references: Array, n_items: int) -> Array:
    """Return the mean of the largest scores of each item with the other view."""
    parts = [
        hub_strengths(references @ vectors[start : start + TILE].T, n_items)
        for start in range(0, len(vectors), TILE)
    ]
    return np.concatenate(parts)


def _with_hubs(vectors: Array, strengths: Array, hubs: float, side: int) -> Array:
    """Return vectors with the columns of the hub correction."""
    less = (-hubs * strengths).astype(np.float32)
    ones = np.ones_like(less)
    ends = (less, ones) if side == 0 else (ones, less)
    return np.column_stack([vectors, *ends])
