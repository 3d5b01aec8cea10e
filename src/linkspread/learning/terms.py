"""Terms of a score: the prior, and one for each kind of evidence.

A term turns queries into coefficients over fixed columns of the target view, its
*pieces*; a score is their inner product, times a fixed scale of the target for some:

- `PriorTerm`: the cosine of rows in a shared space.
- `DisplacementTerm`: must-links in a shared space. The differences of partners are
  regressed on the features, and items are moved by the predicted difference d,
  ``(cos(x + d(x), y) + cos(x, y - d(y))) / 2``.
- `GridTerm`: must-links. Regressions map items to the other view and back; with
  correlations T the score is ``x'TT'Ty / (|x'TT'| |T'Ty|)``.
- `MapTerm`: must-links. A ridge map predicts the linear columns of one view from the
  other; the score is the cosine of predicted and actual columns.
- `PairsTerm`: judged pairs, ``phi(x)' M phi(y)``.
- `LabelTerm`: the probability of a common class, minus that by chance.

Judgements change only pieces, not the columns and scales of targets, so a live
judgement needs no work of the size of a view.
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
    MAX_COMPARED,
    MAX_EXACT,
    LivePairs,
    PairRegression,
    PairRows,
    Product,
    scores_at,
)
from linkspread.learning.rows import Piece, Rows, Setting, Sides
from linkspread.links.evidence import Change, Evidence

Array = np.ndarray

# Up to this many queries are computed from the judged pairs, without cores.
FEW_QUERIES = 16
# Ridge maps, and the view whose columns they predict.
MAPS_INTO = {"into left": 0, "into right": 1}
# For one query and one target: what each link adds, and what prior or chance adds.
Contributions = tuple[Array, float]


class Term(ABC):
    """One term of the scores of two views; sides are 0 and 1."""

    @abstractmethod
    def pieces(self, side: int, rows: Rows) -> list[Piece]:
        """Return the pieces of queries of one side."""

    def scale(self, side: int, rows: Rows) -> Array | None:
        """Return the factors of the scores of targets of one side; None for 1."""
        return None

    def changed(self, sides: Sides, change: Change) -> "Term | None":
        """Return the term after one judgement, or None if it must be fitted."""
        return self

    @abstractmethod
    def contributions(
        self, side: int, query: Rows, target: Rows, scale: float, fitting: "Fitting"
    ) -> Contributions:
        """Return what each must-link, judged pair or class adds to one score.

        The second result is what the prior, or chance, adds. `scale` is the target's.
        """


@dataclass
class Fitting:
    """The evidence that terms are fitted to, and shared decompositions.

    `rough` fits are for choosing only, and cannot be changed by judgements.
    """

    sides: Sides
    evidence: Evidence
    # Terms of an earlier fit, whose label models and landmarks are kept.
    kept: Sequence[Term] = ()
    rough: bool = False
    _decomposed: dict[tuple[int, str], Decomposition] = field(default_factory=dict)

    def linked(self, side: int, columns: slice) -> Array:
        """Return the features of the items of all must-links."""
        return self.sides.maps[side].values[self.evidence.must[side], columns]

    def shares(self, known: KnownItems, side: int, columns: slice, rows: Rows) -> Array:
        """Return the regression weights of the items of all must-links for one item."""
        solved = known.solve(known.centred(rows.values[:, columns]))
        return known.centred(self.linked(side, columns)) @ solved[0]

    def known(self, side: int, setting: Setting) -> KnownItems:
        """Return the regression on the items of all must-links."""
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
            most=MAX_COMPARED if self.rough else MAX_EXACT,
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
    """Fit one term to the evidence."""
    kind, evidence, maps = setting.kind, fitting.evidence, fitting.sides.maps
    if kind == "prior" or (kind == "displacement" and np.isinf(setting.ridge)):
        return PriorTerm()
    if kind == "labels":
        return fitting.labels
    if kind != "pairs" and len(evidence.must[0]) < 2:
        # Undone judgements may leave too few links for the chosen term.
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
        known = fitting.known(1 - into, setting).fit_targets(A, Y - mean, mean)
        return MapTerm(into, known, columns[1 - into], linear)
    left, right = fitting.known(0, setting), fitting.known(1, setting)
    if kind == "grid":
        return GridTerm(
            (left.fit_targets(A, right.centred(B), right.mean), right), columns
        )
    D = _displacements(fitting.sides, *evidence.must[:2])
    mean = D.mean(axis=0)
    both = left.fit_targets(A, D, mean), right.fit_targets(B, D, mean)
    return DisplacementTerm(both, columns)


def matches(term: Term, setting: Setting) -> bool:
    """Return whether a term has the chosen kind; with few links another replaces it."""
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


def _displacements(sides: Sides, i: Any, j: Any) -> Array:
    """Return the differences of items of both views in a shared space."""
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

    rows: PairRows  # of the coefficients: all pairs, or landmarks
    coefficients: Array
    ridge: float
    factor: Array | None = None  # of the landmarks
    live: LivePairs | None = None
    version: int = 0

    @classmethod
    def of(cls, own: PairRegression, ridge: float, *, rough: bool) -> "PairsTerm":
        """Return the term of a regression; judgements can change it unless `rough`."""
        if rough or (own.factor is None and len(own.pairs[0]) <= FEW):
            return cls(own.rows, own.solve(ridge), ridge, own.factor)
        return cls._of_live(LivePairs(own, ridge))

    @classmethod
    def _of_live(cls, live: LivePairs) -> "PairsTerm":
        c, rows = live.coefficients(), live.rows
        return cls(rows, c, live.ridge, live.factor, live, live.version)

    @property
    def landmarks(self) -> tuple[PairRows, Array] | None:
        """The landmarks and their factor, if there are any."""
        return None if self.factor is None else (self.rows, self.factor)

    @cached_property
    def cores(self) -> list[Array]:
        """The matrix of each kernel."""
        return self.rows.cores(self.coefficients)

    def pieces(self, side: int, rows: Rows) -> list[Piece]:
        """Return the pieces of queries, for few of them without cores."""
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
        # Coefficients of all judged pairs in the regression.
        c = w * (z - scores_at(self.cores, columns, values, i, j)) / self.ridge
        return c * alike, 0.0


@dataclass(frozen=True, eq=False)
class GridTerm(Term):
    """The cosine of items mapped to the other view and back."""

    both: tuple[KnownItems, KnownItems]  # targets of the first: the second
    columns: tuple[slice, slice]

    def _across(self, side: int, solved: Array) -> tuple[Array, Array]:
        """Return products of coefficients with the other view, and their solution."""
        products: Any = self.both[0].products
        turned = solved @ (products if side == 0 else products.T)
        return turned, self.both[1 - side].solve(turned)

    def _expected(self, side: int, rows: Rows) -> Array:
        """Return the coefficients over the other view that are predicted for items."""
        own = self.both[side]
        away = own.centred(rows.values[:, self.columns[side]])
        return self._across(side, own.solve(away))[1]

    def _back(self, side: int, rows: Rows) -> tuple[Array, Array]:
        """Return items mapped to the other view and back, and their norms."""
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
    """The cosine of linear columns and those predicted from the other view.

    The columns of the view `into` are predicted by ridge regression on the features of
    the other view, both centred by the mean of the linked items.
    """

    into: int
    known: KnownItems  # of the features that predict
    features: slice
    columns: slice  # predicted columns

    def _place(self, side: int, rows: Rows) -> Array:
        """Return the coordinates of items in the space of the predicted columns."""
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
    """The cosine after items are moved by the predicted difference of partners."""

    both: tuple[KnownItems, KnownItems]  # targets: differences of partners
    columns: tuple[slice, slice]

    def _moved(self, side: int, rows: Rows) -> Array:
        """Return rows in the shared space, moved to the predicted partners."""
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
        apart = _displacements(sides, [change.i], [change.j])[0]
        features = _features(sides, change, self.columns)
        return _with_change(self, change, features, (apart, apart))

    def contributions(
        self, side: int, query: Rows, target: Rows, scale: float, fitting: Fitting
    ) -> Contributions:
        x, y = dense(query.prior)[0], dense(target.prior)[0]
        apart = _displacements(fitting.sides, *fitting.evidence.must[:2])
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
    """Return a term after one judgement, or None if it must be fitted."""
    if not change.n_musts:
        return term
    left, right = (
        known.changed(change.n_musts, *own)
        for known, *own in zip(term.both, features, taught, strict=True)
    )
    return None if left is None or right is None else replace(term, both=(left, right))


def _lengths(X: Array) -> Array:
    """Return the norms of rows, none of them 0."""
    return np.maximum(np.linalg.norm(X, axis=1), 1e-12)


def _features(sides: Sides, change: Change, columns: Any) -> list[Array]:
    """Return the features of both items of a pair."""
    return [
        own.values[k, cols].astype(np.float64)
        for own, k, cols in zip(sides.maps, change[:2], columns, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class LabelTerm(Term):
    """The probability of a common class, minus that by chance."""

    models: tuple[LabelModel, LabelModel]

    @property
    def _chance(self) -> float:
        """Probability of a common class by chance."""
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
