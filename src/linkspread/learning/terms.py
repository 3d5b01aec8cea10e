"""Terms of a score: what the views share, and what each kind of evidence teaches.

A term turns queries into coefficients over fixed columns of the target view, its
*pieces*; a score is their inner product, times a fixed scale of the target for some:

- `PriorTerm`: the cosine of rows in a shared space.
- `DisplacementTerm`: matched pairs in a shared space. The differences of partners are
  regressed on the features, and items are moved by what is expected of them,
  ``(cos(x + d(x), y) + cos(x, y - d(y))) / 2``.
- `GridTerm`: matched pairs. Regressions bring items to the other view and back, which
  keeps what pairs agree on; with correlations T, ``x'TT'Ty / (|x'TT'| |T'Ty|)``.
- `MapTerm`: matched pairs. The linear columns of one view are predicted from the other,
  and compared with those of the item: a ridge map, into either view.
- `PairsTerm`: judged pairs, ``phi(x)' M phi(y)``.
- `LabelTerm`: the probability of one class, less what chance would give.

Judgements change pieces only. Columns and scales of the targets stay, so that a live
judgement costs nothing of the size of a view.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from linkspread.learning.cores import (
    FEW,
    Decomposition,
    KnownItems,
    LabelModel,
    decompose,
    fit_labels,
)
from linkspread.learning.maps import BLOCKS, SHARES, dense, unit_rows
from linkspread.learning.pairs import (
    MOST,
    MOST_COMPARED,
    LivePairs,
    PairRegression,
    PairRows,
    Product,
    scores_at,
)
from linkspread.learning.rows import Piece, Rows, Setting, Sides
from linkspread.links.evidence import Change, Evidence

Array = np.ndarray

# Queries that are cheaper by the judged pairs than by cores.
FEW_QUERIES = 16
# Ridge maps, and the view whose columns they predict.
MAPS_INTO = {"into left": 0, "into right": 1}
# For one query and one target: what each judged pair adds, and what is of no pair.
Contributions = tuple[Array, float]


class Term(ABC):
    """One term of the scores of two views; sides are 0 and 1."""

    @abstractmethod
    def pieces(self, side: int, rows: Rows) -> list[Piece]:
        """Return the pieces of queries of one side."""

    def scale(self, side: int, rows: Rows) -> Array | None:
        """Return what scores of targets of one side are multiplied by; None for 1."""
        return None

    def changed(self, sides: Sides, change: Change) -> "Term | None":
        """Return the term after one judgement, or None where it must be fitted."""
        return self

    @abstractmethod
    def contributions(
        self, side: int, query: Rows, target: Rows, scale: float, fitting: "Fitting"
    ) -> Contributions:
        """Return what each must-link, judged pair or class adds to one score.

        The scale of the target is given. Also what the prior, or chance, adds.
        """


@dataclass
class Fitting:
    """What terms are fitted to; decompositions are kept for every ridge.

    Fits that are only compared are `rough`, and cannot be changed by judgements.
    """

    sides: Sides
    evidence: Evidence
    # Fitted before: what labels taught stays, and the landmarks among pairs.
    kept: Sequence[Term] = ()
    rough: bool = False
    _decomposed: dict[tuple[int, str], Decomposition] = field(default_factory=dict)

    def linked(self, side: int, columns: slice) -> Array:
        """Return the features of the items of every must-link."""
        return self.sides.maps[side].values[self.evidence.must[side], columns]

    def shares(self, known: KnownItems, side: int, columns: slice, rows: Rows) -> Array:
        """Return how one item is described by those of every must-link."""
        solved = known.solve(known.centred(rows.values[:, columns]))
        return known.centred(self.linked(side, columns)) @ solved[0]

    def known(self, side: int, setting: Setting) -> KnownItems:
        """Return what regresses on the items of every must-link."""
        linked = self.linked(side, self.sides.maps[side].columns(setting.mixture))
        if not self.rough and len(linked) > FEW:
            return KnownItems.of(linked, setting.ridge)
        key = side, setting.mixture
        if key not in self._decomposed:
            self._decomposed[key] = decompose(linked)
        return KnownItems.in_basis(self._decomposed[key], setting.ridge)

    @cached_property
    def regression(self) -> PairRegression:
        """The regression of the judged pairs, for every ridge."""
        left, right = self.sides.maps
        own = [term for term in self.kept if isinstance(term, PairsTerm)]
        return PairRegression(
            (left.values, right.values),
            pair_columns(self.sides),
            self.evidence.signed(),
            most=MOST_COMPARED if self.rough else MOST,
            dtype=np.float32 if self.rough else np.float64,
            landmarks=own[-1].landmarks if own else None,
        )

    @cached_property
    def labels(self) -> "LabelTerm":
        """The term of the labels."""
        for term in self.kept:
            if isinstance(term, LabelTerm):
                return term
        assert self.evidence.labels is not None
        parts = zip(self.sides.maps, self.evidence.labels, strict=True)
        left, right = (fit_labels(own, known) for own, known in parts)
        return LabelTerm((left, right))


def fit_term(setting: Setting, fitting: Fitting) -> Term:
    """Fit one term to what is known."""
    kind, evidence, maps = setting.kind, fitting.evidence, fitting.sides.maps
    if kind == "prior" or (kind == "displacement" and np.isinf(setting.ridge)):
        return PriorTerm()
    if kind == "labels":
        return fitting.labels
    if kind != "pairs" and len(evidence.must[0]) < 2:
        # Too few are left to describe anything by: live links can be taken back.
        if fitting.sides.prior is not None:
            return PriorTerm()
        kind = "pairs"
    if kind == "pairs":
        return PairsTerm.of(fitting.regression, setting.ridge, rough=fitting.rough)
    columns = maps[0].columns(setting.mixture), maps[1].columns(setting.mixture)
    A, B = (fitting.linked(side, columns[side]) for side in (0, 1))
    if kind in MAPS_INTO:
        into = MAPS_INTO[kind]
        linear, A = maps[into].columns("linear"), (B, A)[into]
        Y = fitting.linked(into, linear).astype(np.float64)
        mean = Y.mean(axis=0)
        known = fitting.known(1 - into, setting).taught(A, Y - mean, mean)
        return MapTerm(into, known, columns[1 - into], linear)
    left, right = fitting.known(0, setting), fitting.known(1, setting)
    if kind == "grid":
        return GridTerm((left.taught(A, right.centred(B), right.mean), right), columns)
    D = _apart(fitting.sides, *evidence.must[:2])
    mean = D.mean(axis=0)
    both = left.taught(A, D, mean), right.taught(B, D, mean)
    return DisplacementTerm(both, columns)


def fits(term: Term, setting: Setting) -> bool:
    """Tell whether a term is what was chosen: with few links others stand in for it."""
    is_plain = setting.kind in ("prior", "labels", "pairs") or np.isinf(setting.ridge)
    return is_plain or not isinstance(term, PriorTerm | PairsTerm)


def pair_columns(sides: Sides) -> list[Product]:
    """Return every kernel that both views have."""
    left, right = sides.maps
    names = [name for name in BLOCKS if left.has(name) and right.has(name)]
    total = sum(SHARES[name] for name in names)
    return [
        Product(left.columns(name), right.columns(name), SHARES[name] / total)
        for name in names
    ]


def _apart(sides: Sides, i: Any, j: Any) -> Array:
    """Return how far items of both views are apart in a shared space."""
    assert sides.prior is not None
    return dense(sides.prior[1][j] - sides.prior[0][i]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class PriorTerm(Term):
    """The plain cosine of rows in a shared space."""

    def pieces(self, side: int, rows: Rows) -> list[Piece]:
        return [Piece("prior", rows.prior)]

    def contributions(
        self, side: int, query: Rows, target: Rows, scale: float, fitting: Fitting
    ) -> Contributions:
        return np.zeros(0), float(dense(query.prior @ target.prior.T)[0, 0])


@dataclass(frozen=True, eq=False)
class PairsTerm(Term):
    """Ridge regression of judged pairs on products of features, kernel by kernel."""

    rows: PairRows  # that coefficients are of: all pairs, or landmarks
    coefficients: Array
    ridge: float
    factor: Array | None = None  # of the landmarks
    live: LivePairs | None = None
    version: int = 0

    @classmethod
    def of(cls, own: PairRegression, ridge: float, *, rough: bool) -> "PairsTerm":
        """Return the term of a regression; judgements change it if it is not rough."""
        if rough or (own.factor is None and len(own.pairs[0]) <= FEW):
            return cls(own.rows, own.solve(ridge), ridge, own.factor)
        return cls._of_live(LivePairs(own, ridge))

    @classmethod
    def _of_live(cls, live: LivePairs) -> "PairsTerm":
        c, rows = live.coefficients(), live.rows
        return cls(rows, c, live.ridge, live.factor, live, live.version)

    @property
    def landmarks(self) -> tuple[PairRows, Array] | None:
        """The pairs that others are described by and their factor, which stay."""
        return None if self.factor is None else (self.rows, self.factor)

    @cached_property
    def cores(self) -> list[Array]:
        """The matrix of each kernel."""
        return self.rows.cores(self.coefficients)

    def pieces(self, side: int, rows: Rows) -> list[Piece]:
        """Return the pieces of queries; few of them go by the pairs, without cores."""
        own, other = (self.rows.left, self.rows.right)[:: 1 - 2 * side]
        pieces = []
        for k, (left, right, share) in enumerate(self.rows.columns):
            here, there = (left, right)[:: 1 - 2 * side]
            asked = rows.values[:, here]
            if len(asked) > FEW_QUERIES:
                part = asked @ (self.cores[k].T if side else self.cores[k])
            else:
                near = asked @ own[:, here].T
                part = (share * self.coefficients * near) @ other[:, there]
            pieces.append(Piece("values", part, columns=there))
        return pieces

    def changed(self, sides: Sides, change: Change) -> "Term | None":
        live = self.live
        if live is None or live.version != self.version:
            return None
        values = sides.maps[0].values, sides.maps[1].values
        return PairsTerm._of_live(live) if live.change(values, *change) else None

    def contributions(
        self, side: int, query: Rows, target: Rows, scale: float, fitting: Fitting
    ) -> Contributions:
        if not fitting.evidence.n_pairs:
            return np.zeros(0), 0.0
        i, j, z, w = fitting.evidence.targets()
        values, columns = [m.values for m in fitting.sides.maps], self.rows.columns
        asked = [rows.values for rows in (query, target)[:: 1 - 2 * side]]
        first = np.zeros(1, dtype=np.intp)
        if self.factor is None:
            alone = PairRows.of(asked, columns, first, first)
            alike = alone.kernel(values, i, j)[:, 0]
        else:
            near = self.rows.kernel(asked, first, first)[0]
            cores = self.rows.cores(cho_solve((self.factor, True), near))
            alike = scores_at(cores, columns, values, i, j)
        # What the regression has as coefficients of all judged pairs.
        c = w * (z - scores_at(self.cores, columns, values, i, j)) / self.ridge
        return c * alike, 0.0


@dataclass(frozen=True, eq=False)
class GridTerm(Term):
    """How alike items are on the way to the other view and back, over their lengths."""

    both: tuple[KnownItems, KnownItems]  # the first was taught the second
    columns: tuple[slice, slice]

    def _across(self, side: int, solved: Array) -> tuple[Array, Array]:
        """Return coefficients over one view as products with the other, and solved."""
        products: Any = self.both[0].products
        turned = solved @ (products if side == 0 else products.T)
        return turned, self.both[1 - side].solve(turned)

    def _expected(self, side: int, rows: Rows) -> Array:
        """Return items as the other view expects them, by coefficients over it."""
        own = self.both[side]
        away = own.centred(rows.values[:, self.columns[side]])
        return self._across(side, own.solve(away))[1]

    def _back(self, side: int, rows: Rows) -> tuple[Array, Array]:
        """Return items brought to the other view and back, and their lengths."""
        turned, solved = self._across(1 - side, self._expected(side, rows))
        squared = np.maximum(np.einsum("ij,ij->i", turned, solved), 1e-24)
        return solved, np.sqrt(squared)

    def pieces(self, side: int, rows: Rows) -> list[Piece]:
        other, columns = self.both[1 - side], self.columns[1 - side]
        solved, lengths = self._back(side, rows)
        coefficients = other.whole(self._across(side, solved / lengths[:, None])[1])
        constant = -coefficients @ other.mean
        return [Piece("values", coefficients, constant, columns, scaled=True)]

    def scale(self, side: int, rows: Rows) -> Array:
        return 1 / self._back(side, rows)[1]

    def changed(self, sides: Sides, change: Change) -> "Term | None":
        x, y = _features(sides, change, self.columns)
        return _with_change(self, change, (x, y), (y, 0.0))

    def contributions(
        self, side: int, query: Rows, target: Rows, scale: float, fitting: Fitting
    ) -> Contributions:
        total: Any = scale * self.scale(side, query)
        for own, rows in ((side, query), (1 - side, target)):
            linked = fitting.linked(1 - own, self.columns[1 - own])
            shares = self.both[1 - own].centred(linked) @ self._expected(own, rows)[0]
            total = total * shares
        return total, 0.0


@dataclass(frozen=True, eq=False)
class MapTerm(Term):
    """The cosine of an item's linear columns and those predicted from the other view.

    Compared are the columns of the view `into`, predicted by ridge regression on the
    features of the other view, each less the mean of the linked items.
    """

    into: int
    known: KnownItems  # of the features that predict
    features: slice
    columns: slice  # that are predicted

    def _place(self, side: int, rows: Rows) -> Array:
        """Return where items are in the space of the predicted columns."""
        if side == self.into:
            return rows.values[:, self.columns] - self.known.mean_taught
        away = self.known.centred(rows.values[:, self.features])
        return self.known.solve(away) @ self.known.products

    def pieces(self, side: int, rows: Rows) -> list[Piece]:
        coefficients = unit_rows(self._place(side, rows))
        mean: Any = self.known.mean_taught
        columns, products = self.columns, self.known.products
        if side == self.into and products is not None:
            turned = self.known.solve(coefficients @ products.T)
            coefficients = self.known.whole(turned)
            mean, columns = self.known.mean, self.features
        constant = -coefficients @ mean
        return [Piece("values", coefficients, constant, columns, scaled=True)]

    def scale(self, side: int, rows: Rows) -> Array:
        return 1 / _lengths(self._place(side, rows))

    def changed(self, sides: Sides, change: Change) -> "Term | None":
        if not change.n_musts:
            return self
        turn = 2 * self.into - 1
        columns = (self.features, self.columns)[::turn]
        x, y = _features(sides, change, columns)[::turn]
        known = self.known.changed(change.n_musts, x, y)
        return None if known is None else replace(self, known=known)

    def contributions(
        self, side: int, query: Rows, target: Rows, scale: float, fitting: Fitting
    ) -> Contributions:
        predicting, placed = (target, query) if side == self.into else (query, target)
        there = 1 - self.into
        shares = fitting.shares(self.known, there, self.features, predicting)
        partners = fitting.linked(self.into, self.columns) - self.known.mean_taught
        alike = partners @ self._place(self.into, placed)[0]
        return scale * self.scale(side, query) * shares * alike, 0.0


@dataclass(frozen=True, eq=False)
class DisplacementTerm(Term):
    """The cosine after items are moved by what is expected of them."""

    both: tuple[KnownItems, KnownItems]  # taught how far partners are apart
    columns: tuple[slice, slice]

    def _moved(self, side: int, rows: Rows) -> Array:
        """Return rows in the shared space, moved to where partners are expected."""
        own = self.both[side]
        away = own.centred(rows.values[:, self.columns[side]])
        expected = own.solve(away) @ own.products + own.mean_taught
        return dense(rows.prior) + (1 - 2 * side) * expected

    def pieces(self, side: int, rows: Rows) -> list[Piece]:
        moved = unit_rows(self._moved(side, rows))
        other, sign = self.both[1 - side], 2 * side - 1
        products: Any = other.products
        turned = np.asarray(rows.prior @ products.T)
        coefficients = sign * other.whole(other.solve(turned))
        constant = sign * np.asarray(rows.prior @ other.mean_taught)
        constant = constant - coefficients @ other.mean
        columns = self.columns[1 - side]
        return [
            Piece("prior", 0.5 * moved),
            Piece("prior", 0.5 * rows.prior, scaled=True),
            Piece("values", 0.5 * coefficients, 0.5 * constant, columns, scaled=True),
        ]

    def scale(self, side: int, rows: Rows) -> Array:
        return 1 / _lengths(self._moved(side, rows))

    def changed(self, sides: Sides, change: Change) -> "Term | None":
        apart = _apart(sides, [change.i], [change.j])[0]
        features = _features(sides, change, self.columns)
        return _with_change(self, change, features, (apart, apart))

    def contributions(
        self, side: int, query: Rows, target: Rows, scale: float, fitting: Fitting
    ) -> Contributions:
        x, y = dense(query.prior)[0], dense(target.prior)[0]
        apart = _apart(fitting.sides, *fitting.evidence.must[:2])
        total, prior = np.zeros(len(apart)), 0.0
        for own, rows, there, size in (
            (side, query, y, self.scale(side, query)[0]),
            (1 - side, target, x, scale),
        ):
            shares = fitting.shares(self.both[own], own, self.columns[own], rows)
            shares += 1 / len(apart)
            total += (0.5 - own) * size * shares * (apart @ there)
            prior += 0.5 * size * float(x @ y)
        return total, prior


def _with_change(
    term: GridTerm | DisplacementTerm, change: Change, features: Any, taught: Any
) -> Term | None:
    """Return a term after one judgement, or None where it must be fitted."""
    if not change.n_musts:
        return term
    left, right = (
        known.changed(change.n_musts, *own)
        for known, *own in zip(term.both, features, taught, strict=True)
    )
    return None if left is None or right is None else replace(term, both=(left, right))


def _lengths(X: Array) -> Array:
    """Return the lengths of rows, none of them 0."""
    return np.maximum(np.linalg.norm(X, axis=1), 1e-12)


def _features(sides: Sides, change: Change, columns: Any) -> list[Array]:
    """Return the features of both items of a pair."""
    return [
        own.values[k, cols].astype(np.float64)
        for own, k, cols in zip(sides.maps, change[:2], columns, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class LabelTerm(Term):
    """The probability of one class, less what chance would give."""

    models: tuple[LabelModel, LabelModel]

    @property
    def _chance(self) -> float:
        """How often items would be of one class by chance."""
        return float(self.models[0].shares @ self.models[1].shares)

    def classes(self, side: int, rows: Rows) -> Array:
        """Return the probabilities of the classes."""
        if rows.classes is not None:
            return rows.classes
        return self.models[side].probabilities(rows.values)

    def pieces(self, side: int, rows: Rows) -> list[Piece]:
        own = self.classes(side, rows)
        return [Piece("classes", own, np.full(len(own), -self._chance))]

    def contributions(
        self, side: int, query: Rows, target: Rows, scale: float, fitting: Fitting
    ) -> Contributions:
        own, other = self.classes(side, query)[0], self.classes(1 - side, target)[0]
        return own * other, -self._chance
