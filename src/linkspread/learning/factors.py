"""The scores of two views: fixed columns of targets, coefficients of queries."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh, norm, svd

from linkspread.learning.choice import COLUMNS, Choice, hub_strengths
from linkspread.learning.maps import dense, tiles
from linkspread.learning.rows import Rows, Sides
from linkspread.learning.terms import Fitting, LabelTerm, Term, fit_term, matches
from linkspread.links.evidence import Change, Evidence

Array = np.ndarray
# Of queries: (space, scale of targets, coefficients, constant).
Part = tuple[str, Array | None, Any, Array | None]

# Items of the other view that measure hub strength: at least the first, up to as many
# as give the second number of scores.
N_REFERENCES, REFERENCE_SCORES = 1000, 4e7
# Scores at a time, so that they stay in the cache.
HUB_SCORES = 1 << 20
# Directions of exported vectors below this share of the largest are dropped.
ROUNDING = 1e-12
# Rank of coefficients up to which products with many targets use thin factors.
MAX_THIN = 128
# With more judgements at a time terms are fitted again.
MAX_CHANGES = 100


@dataclass(frozen=True, eq=False)
class ScoreFactors:
    """The factors of the scores of two views.

    ``s(x, y) = sum_t w_t a_t(x) . c(y) r_t(y) + b(y)``: coefficients a of the query,
    columns c, scales r and a bias b of the target. Judgements change a only.
    """

    sides: Sides
    terms: tuple[tuple[Term, float], ...]  # each with its weight
    # For both sides as targets, the scale of every term; None for 1.
    scales: tuple[tuple[Array | None, ...], tuple[Array | None, ...]]
    bias: tuple[Array, Array]  # hub correction of items as targets
    classes: tuple[Array | None, Array | None]  # probabilities, where there are labels
    n_pairs: int = 0  # judged pairs of the fit

    @property
    def is_within(self) -> bool:
        """Whether both sides are one view."""
        return self.sides.maps[0] is self.sides.maps[1]

    def fitted(self, side: int, items: Any) -> Rows:
        """Return the rows of fitted items."""
        rows, own = self.sides.rows(side, items), self.classes[side]
        return rows if own is None else replace(rows, classes=own[items])

    def scores(self, side: int, rows: Rows, targets: Any = slice(None)) -> Array:
        """Return the scores of queries of one side with items of the other."""
        return self.prepare(side, rows).scores(targets)

    def prepare(self, side: int, rows: Rows) -> "QueryBatch":
        """Compute the coefficients of queries of one side."""
        return QueryBatch(self, side, len(rows.values), list(self._parts(side, rows)))

    def _parts(self, side: int, rows: Rows) -> Iterator[Part]:
        """Yield the coefficients of queries, one part per space and scale.

        Parts without scale are summed, so that columns of targets are read once.
        """
        scales = self.scales[1 - side]
        width = self.sides.maps[1 - side].values.shape[1]
        parts: dict[tuple[str, int | None], list[Any]] = {}
        for k, (term, weight) in enumerate(self.terms):
            for piece in term.pieces(side, rows):
                coefficients: Any = piece.coefficients * weight
                if piece.space == "values":
                    whole = np.zeros((len(rows.values), width), dtype=np.float32)
                    whole[:, piece.columns] = coefficients
                    coefficients = whole
                own = k if piece.scaled and scales[k] is not None else None
                sums = parts.setdefault((piece.space, own), [None, None])
                sums[0] = coefficients if sums[0] is None else sums[0] + coefficients
                if not np.isscalar(piece.constant):
                    constant = (piece.constant * weight).astype(np.float32)
                    sums[1] = constant if sums[1] is None else sums[1] + constant
        for (space, own), (coefficients, constant) in sorted(
            parts.items(), key=lambda part: part[0][1] is None
        ):
            scale = None if own is None else scales[own]
            yield space, scale, coefficients.astype(np.float32), constant

    def vectors(self, side: int) -> tuple[Array, Array, Array]:
        """Return query vectors, target vectors, and the projection of `query_vectors`.

        Inner products are the scores; directions in which all queries are 0, up to
        rounding, are dropped.
        """
        sizes = [own.n_items for own in self.sides.maps]
        gram: Any = 0.0
        for some in tiles(sizes[side]):
            A = self.query_vectors(side, self.fitted(side, some)).astype(np.float64)
            gram = gram + A.T @ A
        values, Q = eigh(gram)
        Q = Q[:, values > ROUNDING * values[-1]].astype(np.float32)
        searching = [
            self.query_vectors(side, self.fitted(side, some)) @ Q
            for some in tiles(sizes[side])
        ]
        found = [
            self._found_vectors(1 - side, some) @ Q for some in tiles(sizes[1 - side])
        ]
        return np.vstack(searching), np.vstack(found), Q

    def query_vectors(self, side: int, rows: Rows) -> Array:
        """Return all coefficients of queries, with a 1 for the bias."""
        n = len(rows.values)
        columns = []
        for _, _, coefficients, constant in self._parts(side, rows):
            own = np.zeros(n, dtype=np.float32) if constant is None else constant
            columns += [dense(coefficients), own[:, None]]
        return np.hstack([*columns, np.ones((n, 1), dtype=np.float32)])

    def _found_vectors(self, side: int, some: slice) -> Array:
        """Return the columns of targets that match `query_vectors`."""
        targets = self.fitted(side, some)
        ones = np.ones((len(targets.values), 1))
        columns = []
        asked = self.fitted(1 - side, slice(0, 1))
        for space, scale, _, _ in self._parts(1 - side, asked):
            own = np.hstack([dense(getattr(targets, space)), ones])
            columns.append(own if scale is None else own * scale[some][:, None])
        own_bias = self.bias[side][some][:, None]
        return np.hstack([*columns, own_bias]).astype(np.float32)


@dataclass(frozen=True, eq=False)
class QueryBatch:
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
            S = _products(coefficients, getattr(found, space))
            if constant is not None:
                S += constant[:, None]
            if scale is not None:
                S *= scale[targets]
            total += S
        return total

    def thin(self) -> "QueryBatch":
        """Return queries with factored coefficients where few judgements allow."""
        parts = [(*own[:2], _thin(own[2]), own[3]) for own in self.parts]
        return replace(self, parts=parts)

    def score_parts(self) -> tuple[dict[str, Any], list[Part], Array]:
        """Return the tables of targets, the parts of the queries, and the bias."""
        factors, other = self.factors, 1 - self.side
        prior = factors.sides.prior
        tables = {
            "values": factors.sides.maps[other].values,
            "prior": None if prior is None else prior[other],
            "classes": factors.classes[other],
        }
        return tables, self.parts, factors.bias[other]


def _thin(coefficients: Any) -> Any:
    """Return two factors of a matrix if its rank is low, else the matrix itself."""
    if sp.issparse(coefficients) or min(coefficients.shape) <= 2 * MAX_THIN:
        return coefficients
    C, tol = coefficients.astype(np.float64), np.sqrt(ROUNDING)
    # Random combinations of the columns of a matrix of low rank span all of them.
    sketch = C @ np.random.default_rng(0).standard_normal((C.shape[1], MAX_THIN))
    U, s, _ = svd(sketch, full_matrices=False)
    left = U[:, s > tol * s[0]]
    right = left.T @ C
    if norm(C - left @ right) > 10 * tol * norm(C):
        return coefficients
    return left.astype(np.float32), right.astype(np.float32)


def _products(coefficients: Any, columns: Any) -> Array:
    """Return products over the columns with nonzero coefficients."""
    if isinstance(coefficients, tuple):
        return np.asarray(coefficients[0] @ _products(coefficients[1], columns))
    if sp.issparse(coefficients) or sp.issparse(columns):
        return dense(coefficients @ columns.T)
    used = np.flatnonzero(coefficients.any(axis=0))
    own = slice(used[0], used[-1] + 1) if len(used) else slice(0)
    return np.asarray(coefficients[:, own] @ columns[:, own].T)


def fit_factors(
    sides: Sides,
    evidence: Evidence,
    choice: Choice,
    *,
    before: ScoreFactors | None = None,
) -> ScoreFactors:
    """Fit the chosen terms to all evidence.

    `before` has the same maps and choice, but other judgements: its scales, bias and
    classes of targets are kept, so nothing of the size of a view is computed.
    """
    kept = [] if before is None else [term for term, _ in before.terms]
    fitting = Fitting(sides, evidence, kept)
    terms = [fit_term(setting, fitting) for setting in choice.terms]
    weighted = tuple(zip(terms, (s.weight for s in choice.terms), strict=True))
    if before is not None:
        return replace(before, terms=weighted, n_pairs=evidence.n_pairs)
    scales = _scales(terms, sides, 0), _scales(terms, sides, 1)
    classes = _classes(terms, sides, 0), _classes(terms, sides, 1)
    bias, n_pairs = _no_bias(sides), evidence.n_pairs
    bare = ScoreFactors(sides, weighted, scales, bias, classes, n_pairs)
    if choice.hubs == 0:
        return bare
    return replace(bare, bias=(_hubs(bare, 0, choice), _hubs(bare, 1, choice)))


def change_factors(
    factors: ScoreFactors,
    choice: Choice,
    changes: Sequence[Change],
    read: Callable[[], Evidence],
) -> ScoreFactors:
    """Apply single judgements to the terms, at constant cost.

    The result equals `fit_factors` with `before`, up to rounding. `read` returns the
    evidence, without labels, for terms that must be fitted again: with few pairs, many
    changes at a time, or after a snapshot.
    """
    fitting: Fitting | None = None
    terms = []
    for (term, weight), setting in zip(factors.terms, choice.terms, strict=True):
        own: Term | None = term if matches(term, setting) else None
        for change in changes if len(changes) <= MAX_CHANGES else [None]:
            if own is not None:
                own = change and own.changed(factors.sides, change)
        if own is None:
            if fitting is None:
                kept = [term for term, _ in factors.terms]
                fitting = Fitting(factors.sides, read(), kept)
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
    """Return factors for maps with added, removed or changed items.

    `places` are the old positions of all items, -1 for new ones. With evidence, by new
    positions, terms are fitted again.
    """
    terms, n_pairs = [term for term, _ in factors.terms], factors.n_pairs
    if evidence is not None:
        kept = [t for t in terms if keep_labels or not isinstance(t, LabelTerm)]
        fitting, n_pairs = Fitting(sides, evidence, kept), evidence.n_pairs
        terms = [fit_term(setting, fitting) for setting in choice.terms]
    scales, classes, bias = [], [], []
    for side, own in enumerate(places):
        some = np.flatnonzero(own < 0)
        new = sides.rows(side, some)
        scales.append(
            tuple(
                None if scale is None else _renewed(scale, own, term.scale(side, new))
                for scale, term in zip(factors.scales[side], terms, strict=True)
            )
        )
        known = factors.classes[side] if keep_labels else None
        if known is None:
            classes.append(_classes(terms, sides, side))
        else:
            classes.append(_renewed(known, own, _classes(terms, sides, side, some)))
    weighted = tuple(zip(terms, (s.weight for s in choice.terms), strict=True))
    both = (scales[0], scales[1]), _no_bias(sides), (classes[0], classes[1])
    bare = ScoreFactors(sides, weighted, *both, n_pairs)
    for side, own in enumerate(places):
        some = np.flatnonzero(own < 0)
        bias.append(_renewed(factors.bias[side], own, 0.0))
        if choice.hubs and len(some):
            bias[side][some] = _hubs(bare, side, choice, some)
    return replace(bare, bias=(bias[0], bias[1]))


def _renewed(own: Array, places: Array, new: Any) -> Array:
    """Return values of kept items from their old places, and of new items."""
    found = np.empty((len(places), *own.shape[1:]), dtype=own.dtype)
    found[places >= 0] = own[places[places >= 0]]
    # A term with too few links has no scales.
    found[places < 0] = 1.0 if new is None else new
    return found


def _scales(terms: Any, sides: Sides, side: int) -> tuple[Array | None, ...]:
    """Return the scales of all items of one side as targets, for every term."""
    some = tiles(sides.maps[side].n_items)
    found = []
    for term in terms:
        parts = [term.scale(side, sides.rows(side, own)) for own in some]
        none = parts[0] is None
        found.append(None if none else np.concatenate(parts).astype(np.float32))
    return tuple(found)


def _classes(
    terms: Any, sides: Sides, side: int, items: Any = slice(None)
) -> Array | None:
    """Return the class probabilities of items, or None without a label term."""
    for term in terms:
        if isinstance(term, LabelTerm):
            return term.classes(side, sides.rows(side, items))
    return None


def _no_bias(sides: Sides) -> tuple[Array, Array]:
    left, right = (np.zeros(own.n_items, dtype=np.float32) for own in sides.maps)
    return left, right


def _hubs(
    factors: ScoreFactors, side: int, choice: Choice, some: Array | None = None
) -> Array:
    """Return the hub correction of items of one side as targets."""
    sizes = [own.n_items for own in factors.sides.maps]
    rng = np.random.default_rng(0)
    n_references = max(N_REFERENCES, int(REFERENCE_SCORES / max(sizes)))
    chosen = np.sort(rng.permutation(sizes[1 - side])[:n_references])
    references = factors.prepare(1 - side, factors.fitted(1 - side, chosen)).thin()
    asked = np.arange(sizes[side]) if some is None else some
    parts = [
        hub_strengths(references.scores(asked[own]), sizes[1 - side])
        for own in tiles(len(asked), max(COLUMNS, HUB_SCORES // len(chosen)))
    ]
    return (-choice.hubs * np.concatenate(parts)).astype(np.float32)
