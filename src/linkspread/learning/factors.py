"""The scores of two views: fixed columns of items, coefficients of queries."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from linkspread.learning.choice import Choice, hub_strengths
from linkspread.learning.evidence import Change, Evidence
from linkspread.learning.scan import Part, bound_scores
from linkspread.learning.terms import (
    Fitting,
    LabelTerm,
    Rows,
    Sides,
    Term,
    fit_term,
    fits,
)

__all__ = ["ScoreFactors", "change_factors", "fit_factors", "renew_factors"]

Array = np.ndarray

# Items of the other view by which the hub strength of an item is measured: all where
# these are not more scores than the second, else at least the first.
N_REFERENCES, REFERENCE_SCORES = 1000, 4e7
# Items whose scales and hub strengths are computed at once.
TILE = 4096
# Directions of exported vectors below this share of the largest are left out.
ROUNDING = 1e-12
# Judgements at a time from which terms are fitted anew.
MOST_CHANGES = 100
SEED = 0


@dataclass(frozen=True, eq=False)
class ScoreFactors:
    """What the scores of two views are computed from.

    ``s(x, y) = sum_t w_t a_t(x) . c(y) r_t(y) + b(y)``: coefficients a of the query,
    columns c, scales r and a bias b of the target. Judgements change a only.

    Parameters
    ----------
    sides : Sides
    terms : tuple of (Term, float)
        Each with its weight.
    scales : tuple of two tuples of (ndarray of shape (n_items,) or None)
        Of every term, for the items of either side as targets.
    bias : tuple of two ndarrays of shape (n_items,)
        Hub correction of the items of either side as targets.
    classes : tuple of two (ndarray of shape (n_items, n_classes) or None)
        Probabilities of the classes where there are labels.
    n_pairs : int, default=0
        Judged pairs that terms were fitted to.
    """

    sides: Sides
    terms: tuple[tuple[Term, float], ...]
    scales: tuple[tuple[Array | None, ...], tuple[Array | None, ...]]
    bias: tuple[Array, Array]
    classes: tuple[Array | None, Array | None]
    n_pairs: int = 0

    @property
    def is_within(self) -> bool:
        """Whether both sides are one view."""
        return self.sides.maps[0] is self.sides.maps[1]

    @property
    def dtype(self) -> Any:
        """Of the scores."""
        return np.dtype(np.float32)

    def fitted(self, side: int, items: Any) -> Rows:
        """Return what is known of fitted items.

        Parameters
        ----------
        side : {0, 1}
        items : slice or ndarray of int

        Returns
        -------
        rows : Rows
        """
        own = self.classes[side]
        classes = None if own is None else own[items]
        return replace(self.sides.rows(side, items), classes=classes)

    def scores(self, side: int, rows: Rows, targets: Any = slice(None)) -> Array:
        """Return the scores of queries of one side with items of the other.

        Parameters
        ----------
        side : {0, 1}
            Of the queries.
        rows : Rows
        targets : slice or ndarray of int, default=slice(None, None, None)

        Returns
        -------
        scores : ndarray of float32 of shape (n_queries, n_targets)
        """
        return self.ask(side, rows).scores(targets)

    def ask(self, side: int, rows: Rows) -> "Asked":
        """Return queries of one side, whose coefficients are computed now.

        Parameters
        ----------
        side : {0, 1}
        rows : Rows

        Returns
        -------
        asked : Asked
        """
        return Asked(self, side, rows.values.shape[0], list(self._parts(side, rows)))

    def _parts(self, side: int, rows: Rows) -> Iterator[Part]:
        """Yield coefficients of queries over whole spaces, few of them.

        What has no scale of its own is added up first, so that the columns of the
        targets are read once.
        """
        plain: dict[str, list[Any]] = {}
        for (term, weight), scale in zip(
            self.terms, self.scales[1 - side], strict=True
        ):
            own: dict[str, list[Any]] = {}
            for piece in term.pieces(side, rows):
                place = own if piece.scaled and scale is not None else plain
                coefficients = piece.coefficients * weight
                if piece.space == "values":
                    width = self.sides.maps[1 - side].values.shape[1]
                    whole = np.zeros((rows.values.shape[0], width), dtype=np.float32)
                    whole[:, piece.columns] = coefficients
                    coefficients = whole
                sums = place.setdefault(piece.space, [None, None])
                sums[0] = coefficients if sums[0] is None else sums[0] + coefficients
                if not np.isscalar(piece.constant):
                    constant = (piece.constant * weight).astype(np.float32)
                    sums[1] = constant if sums[1] is None else sums[1] + constant
            yield from ((s, scale, _single(c), k) for s, (c, k) in own.items())
        yield from ((s, None, _single(c), k) for s, (c, k) in plain.items())

    def vectors(self, side: int) -> tuple[Array, Array, Array]:
        """Return vectors of all items whose inner products are the scores.

        Parameters
        ----------
        side : {0, 1}
            Of the items that search.

        Returns
        -------
        searching, found : ndarray of float32 of shape (n_items, r)
            In the directions that any query has, to rounding.
        turn : ndarray of shape (n_coefficients, r)
            What makes such vectors of `query_vectors`.
        """
        n_queries = self.sides.maps[side].n_items
        gram: Any = 0.0
        for some in _tiles(n_queries):
            A = self.query_vectors(side, self.fitted(side, some)).astype(np.float64)
            gram = gram + A.T @ A
        values, Q = eigh(gram)
        Q = Q[:, values > ROUNDING * values[-1]].astype(np.float32)
        searching = [
            self.query_vectors(side, self.fitted(side, some)) @ Q
            for some in _tiles(n_queries)
        ]
        found = [
            self._found_vectors(1 - side, some) @ Q
            for some in _tiles(self.sides.maps[1 - side].n_items)
        ]
        return np.vstack(searching), np.vstack(found), Q

    def query_vectors(self, side: int, rows: Rows) -> Array:
        """Return all coefficients of queries, and a 1 for the bias.

        Parameters
        ----------
        side : {0, 1}
        rows : Rows

        Returns
        -------
        vectors : ndarray of float32 of shape (n_queries, n_coefficients)
        """
        n = rows.values.shape[0]
        parts = []
        for _, _, coefficients, constant in self._parts(side, rows):
            parts.append(_dense(coefficients))
            none = np.zeros(n, dtype=np.float32)
            parts.append((none if constant is None else constant)[:, None])
        return np.hstack([*parts, np.ones((n, 1), dtype=np.float32)])

    def _found_vectors(self, side: int, some: slice) -> Array:
        """Return the columns of targets beside those of `query_vectors`."""
        targets = self.fitted(side, some)
        n = targets.values.shape[0]
        parts = []
        asked = self.fitted(1 - side, slice(0, 1))
        for space, scale, _, _ in self._parts(1 - side, asked):
            own = np.hstack([_dense(getattr(targets, space)), np.ones((n, 1))])
            parts.append(own if scale is None else own * scale[some][:, None])
        own_bias = self.bias[side][some][:, None]
        return np.hstack([*parts, own_bias]).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Asked:
    """Queries of one side with their coefficients."""

    factors: ScoreFactors
    side: int
    n_queries: int
    parts: list[Part]

    def scores(self, targets: Any = slice(None)) -> Array:
        """Return the scores with items of the other side, all of them or some."""
        factors, other = self.factors, 1 - self.side
        found = factors.fitted(other, targets)
        total = np.tile(factors.bias[other][targets], (self.n_queries, 1))
        for space, scale, coefficients, constant in self.parts:
            T = getattr(found, space)
            S = coefficients @ T.T
            S = S.toarray() if sp.issparse(S) else S
            if constant is not None:
                S += constant[:, None]
            if scale is not None:
                S *= scale[targets]
            total += S
        return total

    def bounds(self) -> tuple[Array, Array]:
        """Return what scores of a single query are at least, and at most."""
        factors, other = self.factors, 1 - self.side
        prior = factors.sides.prior
        tables = {
            "values": factors.sides.maps[other].values,
            "prior": None if prior is None else prior[other],
            "classes": factors.classes[other],
        }
        return bound_scores(tables, self.parts, factors.bias[other])


def fit_factors(
    sides: Sides,
    evidence: Evidence,
    choice: Choice,
    *,
    before: ScoreFactors | None = None,
) -> ScoreFactors:
    """Fit the chosen terms to all that is known.

    Parameters
    ----------
    sides : Sides
    evidence : Evidence
    choice : Choice
    before : ScoreFactors, default=None
        With the same maps and choice, of fewer or more judgements: what its items are
        as targets is kept, so that nothing of the size of a view is computed.

    Returns
    -------
    factors : ScoreFactors
    """
    fitting = Fitting(sides, evidence)
    if before is not None:
        fitting.keep([term for term, _ in before.terms])
    terms = tuple((fit_term(s, fitting), s.weight) for s in choice.terms)
    if before is not None:
        return replace(before, terms=terms, n_pairs=evidence.n_pairs)
    bare = ScoreFactors(
        sides,
        terms,
        (_scales(terms, sides, 0), _scales(terms, sides, 1)),
        (_zeros(sides, 0), _zeros(sides, 1)),
        (_classes(terms, sides, 0), _classes(terms, sides, 1)),
        evidence.n_pairs,
    )
    if choice.hubs == 0:
        return bare
    return replace(bare, bias=(_hubs(bare, 0, choice), _hubs(bare, 1, choice)))


def change_factors(
    factors: ScoreFactors,
    choice: Choice,
    changes: Sequence[Change],
    read: Callable[[], Evidence],
) -> ScoreFactors:
    """Apply single judgements to the terms, at a cost that does not grow.

    Parameters
    ----------
    factors : ScoreFactors
    choice : Choice
    changes : sequence of Change
    read : callable
        Returns all that is known, labels apart, for terms that must be fitted again:
        those of few pairs, of many changes at a time, or of a snapshot.

    Returns
    -------
    factors : ScoreFactors
        What `fit_factors` gives with the same maps, choice and targets, to rounding.
    """
    fitting: Fitting | None = None
    terms = []
    for (term, weight), setting in zip(factors.terms, choice.terms, strict=True):
        own: Term | None = term if fits(term, setting) else None
        for change in changes if len(changes) <= MOST_CHANGES else [None]:
            if own is not None:
                own = change and own.changed(factors.sides, change)
        if own is None:
            if fitting is None:
                fitting = Fitting(factors.sides, read())
                fitting.keep([term for term, _ in factors.terms])
            own = fit_term(setting, fitting)
        terms.append((own, weight))
    born = sum((c.after != 0) - (c.before != 0) for c in changes)
    return replace(factors, terms=tuple(terms), n_pairs=factors.n_pairs + born)


def renew_factors(
    factors: ScoreFactors,
    sides: Sides,
    choice: Choice,
    places: tuple[Array, Array],
    *,
    evidence: Evidence | None = None,
    keep_labels: bool = True,
) -> ScoreFactors:
    """Return factors for maps with more items, fewer or others; what stays is kept.

    Parameters
    ----------
    factors : ScoreFactors
    sides : Sides
        With the items there are now.
    choice : Choice
    places : tuple of two ndarrays of int of shape (n_items,)
        Where each item was in the factors, -1 for those that are new.
    evidence : Evidence, default=None
        What terms are fitted to again, by the positions of now; None keeps them.
    keep_labels : bool, default=True
        Whether what labels taught stays.

    Returns
    -------
    factors : ScoreFactors
    """
    kept = [term for term, _ in factors.terms]
    terms, n_pairs = kept, factors.n_pairs
    if evidence is not None:
        fitting, n_pairs = Fitting(sides, evidence), evidence.n_pairs
        fitting.keep(
            [own for own in kept if keep_labels or not isinstance(own, LabelTerm)]
        )
        terms = [fit_term(setting, fitting) for setting in choice.terms]
    weighted = tuple(zip(terms, (s.weight for s in choice.terms), strict=True))
    scales, classes = [], []
    for side, own in enumerate(places):
        rows = sides.rows(side, np.flatnonzero(own < 0))
        scales.append(
            tuple(
                None if scale is None else _renewed(scale, own, term.scale(side, rows))
                for scale, term in zip(factors.scales[side], terms, strict=True)
            )
        )
        known = factors.classes[side] if keep_labels else None
        told = _classes(weighted, sides, side) if known is None else None
        if known is not None:
            term = next(term for term in terms if isinstance(term, LabelTerm))
            told = _renewed(known, own, term.classes(side, rows))
        classes.append(told)
    bias = [
        _renewed(own, place, 0.0)
        for own, place in zip(factors.bias, places, strict=True)
    ]
    both = (scales[0], scales[1]), (bias[0], bias[1]), (classes[0], classes[1])
    renewed = ScoreFactors(sides, weighted, *both, n_pairs)
    if choice.hubs:
        bare = replace(renewed, bias=(_zeros(sides, 0), _zeros(sides, 1)))
        for side, own in enumerate(places):
            new = np.flatnonzero(own < 0)
            if len(new):
                bias[side][new] = _hubs(bare, side, choice, new)
    return renewed


def _renewed(own: Array, places: Array, new: Any) -> Array:
    """Return what is known of items at their places, and what is new at the others."""
    found = np.empty((len(places), *own.shape[1:]), dtype=own.dtype)
    found[places >= 0] = own[places[places >= 0]]
    # A term that was left with too little to fit has no scales.
    found[places < 0] = 1.0 if new is None else new
    return found


def _scales(terms: Any, sides: Sides, side: int) -> tuple[Array | None, ...]:
    """Return the scale of every item as a target, for every term."""
    n_items = sides.maps[side].n_items
    found = []
    for term, _ in terms:
        parts = [term.scale(side, sides.rows(side, some)) for some in _tiles(n_items)]
        none = parts[0] is None
        found.append(None if none else np.concatenate(parts).astype(np.float32))
    return tuple(found)


def _classes(terms: Any, sides: Sides, side: int) -> Array | None:
    """Return the probabilities of the classes of every item."""
    for term, _ in terms:
        if hasattr(term, "classes"):
            return term.classes(side, sides.rows(side, slice(None)))
    return None


def _zeros(sides: Sides, side: int) -> Array:
    return np.zeros(sides.maps[side].n_items, dtype=np.float32)


def _hubs(
    factors: ScoreFactors, side: int, choice: Choice, some: Array | None = None
) -> Array:
    """Return what is taken from the scores of items of one side as targets."""
    sizes = [own.n_items for own in factors.sides.maps]
    rng = np.random.default_rng(SEED)
    n_references = max(N_REFERENCES, int(REFERENCE_SCORES / max(sizes)))
    chosen = np.sort(rng.permutation(sizes[1 - side])[:n_references])
    references = factors.fitted(1 - side, chosen)
    asked = np.arange(sizes[side]) if some is None else some
    parts = [
        hub_strengths(factors.scores(1 - side, references, asked[own]), sizes[1 - side])
        for own in _tiles(len(asked))
    ]
    return (-choice.hubs * np.concatenate(parts)).astype(np.float32)


def _tiles(n_rows: int) -> Iterator[slice]:
    """Yield slices of all rows."""
    for start in range(0, n_rows, TILE):
        yield slice(start, min(start + TILE, n_rows))


def _single(X: Any) -> Any:
    """Return coefficients in single precision."""
    return X.astype(np.float32)


def _dense(X: Any) -> Array:
    return X.toarray() if sp.issparse(X) else np.asarray(X)
