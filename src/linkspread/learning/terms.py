"""Terms of a score: what the views share, and what each kind of evidence teaches.

A term turns queries into coefficients over fixed columns of the target view, its
*pieces*; a score is their inner product, times a fixed scale of the target for some:

- `PriorTerm`: the cosine of rows in a shared space.
- `DisplacementTerm`: matched pairs in a shared space. The differences of partners are
  regressed on the features, and items are moved by what is expected of them,
  ``(cos(x + d(x), y) + cos(x, y - d(y))) / 2``.
- `GridTerm`: matched pairs. The cosine of the descriptions of two items by the known
  pairs, ``u(x) = (K + ridge I)^-1 k(x)``.
- `MapTerm`: matched pairs. The linear columns of one view are predicted from the other,
  and compared with those of the item: a ridge map, into either view.
- `PairsTerm`: judged pairs, ``phi(x)' M phi(y)``.
- `LabelTerm`: the probability of one class, less what chance would give.

Judgements change pieces only. Columns and scales of the targets stay, so that a live
judgement costs nothing of the size of a view.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from linkspread.learning.cores import (
    Decomposition,
    LabelModel,
    PairRegression,
    decompose,
    fit_labels,
)
from linkspread.learning.evidence import Evidence
from linkspread.learning.maps import BLOCKS, ViewMap, unit_rows

__all__ = [
    "Contributions",
    "DisplacementTerm",
    "Fitting",
    "GridTerm",
    "LabelTerm",
    "MAPS_INTO",
    "MapTerm",
    "PairsTerm",
    "Piece",
    "PriorTerm",
    "ROUGH",
    "Rows",
    "Setting",
    "Sides",
    "Term",
    "fit_term",
    "score_pieces",
]

Array = np.ndarray

# Residual of fits that are only compared.
ROUGH = 1e-4
# Ridge maps, and the view whose columns they predict.
MAPS_INTO = {"into left": 0, "into right": 1}


@dataclass(frozen=True)
class Sides:
    """Maps of two views, and their rows in a shared space if there is one.

    Parameters
    ----------
    maps : tuple of two ViewMap
    prior : tuple of two tables, default=None
        Unit rows of both views, of one width.
    """

    maps: tuple[ViewMap, ViewMap]
    prior: tuple[Any, Any] | None = None

    def rows(self, side: int, items: Any) -> "Rows":
        """Return what is known of some fitted items of one side.

        Parameters
        ----------
        side : {0, 1}
        items : slice or ndarray of int

        Returns
        -------
        rows : Rows
        """
        prior = None if self.prior is None else self.prior[side][items]
        return Rows(self.maps[side].values[items], prior)


@dataclass(frozen=True)
class Rows:
    """Features of some items, and their rows in a shared space.

    Parameters
    ----------
    values : ndarray of shape (n_items, d)
    prior : table of shape (n_items, n_shared), default=None
    classes : ndarray of shape (n_items, n_classes), default=None
        Probabilities of the classes, where they were computed before.
    """

    values: Array
    prior: Any = None
    classes: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the features."""
        return self.values.shape

    def __getitem__(self, some: Any) -> "Rows":
        return Rows(
            self.values[some],
            None if self.prior is None else self.prior[some],
            None if self.classes is None else self.classes[some],
        )


@dataclass(frozen=True)
class Setting:
    """One term with its kernels, its ridge and its weight.

    Parameters
    ----------
    kind : {"prior", "displacement", "grid", "into left", "into right", "pairs", \
"labels"}
    mixture : str, default="linear"
        Sum of kernels, one of `maps.MIXTURES`.
    ridge : float, default=inf
    weight : float, default=1.0
    """

    kind: str
    mixture: str = "linear"
    ridge: float = np.inf
    weight: float = 1.0


@dataclass(frozen=True)
class Piece:
    """Coefficients of queries over columns of the targets.

    Parameters
    ----------
    space : {"values", "prior", "classes"}
    coefficients : array of shape (n_queries, n_columns)
    constant : ndarray of shape (n_queries,) or 0
    columns : slice
        Of the features.
    scaled : bool
        Whether scores are multiplied by the scale of the target.
    """

    space: str
    coefficients: Any
    constant: Any = 0.0
    columns: slice = field(default_factory=lambda: slice(None))
    scaled: bool = False


# For one query and one target: what each judged pair adds, and what is of no pair.
Contributions = tuple[Array, float]


class Term(ABC):
    """One term of the scores of two views."""

    @abstractmethod
    def pieces(self, side: int, rows: Rows) -> list[Piece]:
        """Return the pieces of queries.

        Parameters
        ----------
        side : {0, 1}
            Of the queries.
        rows : Rows

        Returns
        -------
        pieces : list of Piece
        """

    def scale(self, side: int, rows: Rows) -> Array | None:
        """Return what scores of targets are multiplied by.

        Parameters
        ----------
        side : {0, 1}
            Of the targets.
        rows : Rows

        Returns
        -------
        scale : ndarray of shape (n_targets,) or None for 1
        """
        return None

    @abstractmethod
    def contributions(
        self, side: int, query: Rows, target: Rows, scale: float
    ) -> Contributions:
        """Return what each must-link, judged pair or class adds to one score.

        Parameters
        ----------
        side : {0, 1}
            Of the query.
        query, target : Rows
            Of one item each.
        scale : float
            Of the target.

        Returns
        -------
        parts : ndarray of float
        rest : float
            What is of none of them: of the prior, or of chance.
        """


def score_pieces(
    pieces: list[Piece], targets: Rows, scale: Array | float | None
) -> Array:
    """Return the scores of queries with targets, of shape (n_queries, n_targets)."""
    total: Any = 0.0
    for piece in pieces:
        T = getattr(targets, piece.space)
        if piece.space == "values":
            T = T[:, piece.columns]
        S = piece.coefficients @ T.T
        S = S.toarray() if sp.issparse(S) else S
        if not np.isscalar(piece.constant):
            S = S + np.asarray(piece.constant)[:, None]
        total = total + (S * scale if piece.scaled and scale is not None else S)
    return np.asarray(total)


@dataclass
class Fitting:
    """What terms are fitted to; decompositions are kept for every ridge.

    Parameters
    ----------
    sides : Sides
    evidence : Evidence
    tol : float, default=1e-9
        Residual of regressions that are iterated; live links need it small.
    """

    sides: Sides
    evidence: Evidence
    tol: float = 1e-9
    _decomposed: dict[str, tuple[Decomposition, Decomposition]] = field(
        default_factory=dict
    )
    _labels: "LabelTerm | None" = None
    _regression: PairRegression | None = None

    def decomposed(self, mixture: str) -> tuple[Decomposition, Decomposition]:
        """Return the features of both items of every must-link, decomposed."""
        if mixture not in self._decomposed:
            i, j, _ = self.evidence.must
            left, right = self.sides.maps
            self._decomposed[mixture] = (
                decompose(left.values[i, left.columns(mixture)]),
                decompose(right.values[j, right.columns(mixture)]),
            )
        return self._decomposed[mixture]

    def regression(self, columns: "list[Any]") -> PairRegression:
        """Return the regression of the judged pairs, made once for every ridge."""
        if self._regression is None:
            left, right = (
                [own.values[:, both[side]] for both in columns]
                for side, own in enumerate(self.sides.maps)
            )
            # Fits that are only compared need no more than single precision.
            dtype = np.float64 if self.tol < ROUGH else np.float32
            self._regression = PairRegression(
                left, right, self.evidence.targets(), dtype=dtype
            )
        return self._regression

    def keep_labels(self, terms: "list[Term]") -> None:
        """Take over what labels taught before: live links are single pairs."""
        for term in terms:
            if isinstance(term, LabelTerm):
                self._labels = term

    def labels(self) -> "LabelTerm":
        """Return the term of the labels."""
        if self._labels is None:
            assert self.evidence.labels is not None
            left, right = (
                fit_labels(own, known)
                for own, known in zip(
                    self.sides.maps, self.evidence.labels, strict=True
                )
            )
            self._labels = LabelTerm((left, right))
        return self._labels


def fit_term(setting: Setting, fitting: Fitting) -> Term:
    """Fit one term to what is known."""
    kind, evidence = setting.kind, fitting.evidence
    if kind == "prior" or (kind == "displacement" and np.isinf(setting.ridge)):
        return PriorTerm()
    if kind == "labels":
        return fitting.labels()
    if kind != "pairs" and len(evidence.must[0]) < 2:
        # Too few are left to describe anything by: live links can be taken back.
        if fitting.sides.prior is not None:
            return PriorTerm()
        kind = "pairs"
    if kind == "pairs":
        return _fit_pairs_term(setting, fitting)
    left, right = fitting.sides.maps
    columns = left.columns(setting.mixture), right.columns(setting.mixture)
    both = fitting.decomposed(setting.mixture)
    if kind == "grid":
        return GridTerm(both, setting.ridge, columns)
    if kind in MAPS_INTO:
        into = MAPS_INTO[kind]
        return MapTerm(into, both[1 - into], setting.ridge, columns[1 - into],
                       *_linear_columns(fitting, into))  # fmt: skip
    assert fitting.sides.prior is not None
    i, j, _ = evidence.must
    difference = _dense(fitting.sides.prior[1][j] - fitting.sides.prior[0][i])
    return DisplacementTerm(both, setting.ridge, columns, difference)


def _linear_columns(fitting: Fitting, side: int) -> tuple[slice, Array, Array]:
    """Return where a view's linear columns are, and those of its linked items."""
    own = fitting.sides.maps[side]
    columns = own.columns("linear")
    known = own.values[fitting.evidence.must[side], columns].astype(np.float64)
    mean = known.mean(axis=0)
    return columns, known - mean, mean


def _fit_pairs_term(setting: Setting, fitting: Fitting) -> "PairsTerm":
    """Fit judged pairs by every kernel that both views have, each with its core."""
    maps, evidence = fitting.sides.maps, fitting.evidence
    names = [name for name in BLOCKS if all(own.has(name) for own in maps)]
    columns = [tuple(own.columns(name) for own in maps) for name in names]
    if not evidence.n_pairs:
        cores = [np.zeros([own.stop - own.start for own in both]) for both in columns]
        return PairsTerm(cores, columns, np.zeros(0), (np.zeros(0, np.intp),) * 2, maps)
    cores, c = fitting.regression(columns).solve(setting.ridge, tol=fitting.tol)
    i, j, _, _ = evidence.targets()
    return PairsTerm(cores, columns, c, (i, j), maps)


@dataclass(frozen=True, eq=False)
class PriorTerm(Term):
    """The plain cosine of rows in a shared space."""

    def pieces(self, side: int, rows: Rows) -> list[Piece]:
        """Return the pieces of queries."""
        return [Piece("prior", rows.prior)]

    def contributions(
        self, side: int, query: Rows, target: Rows, scale: float
    ) -> Contributions:
        """Return what each part adds to one score."""
        score = score_pieces(self.pieces(side, query), target, None)
        return np.zeros(0), float(score[0, 0])


@dataclass(frozen=True, eq=False)
class PairsTerm(Term):
    """Ridge regression of judged pairs on products of features, kernel by kernel."""

    cores: list[Array]
    columns: list[Any]  # of each kernel in both views
    coefficients: Array
    judged: tuple[Array, Array]  # positions of both items of every pair
    maps: tuple[ViewMap, ViewMap]

    def pieces(self, side: int, rows: Rows) -> list[Piece]:
        """Return the pieces of queries."""
        found = []
        for core, both in zip(self.cores, self.columns, strict=True):
            turned = core if side == 0 else core.T
            own = rows.values[:, both[side]] @ turned
            found.append(Piece("values", own, columns=both[1 - side]))
        return found

    def contributions(
        self, side: int, query: Rows, target: Rows, scale: float
    ) -> Contributions:
        """Return what each part adds to one score."""
        asked = (query, target) if side == 0 else (target, query)
        total = np.zeros(len(self.coefficients))
        for both in self.columns:
            near = [
                own.values[known, cols].astype(np.float64) @ rows.values[0, cols]
                for own, known, cols, rows in zip(
                    self.maps, self.judged, both, asked, strict=True
                )
            ]
            total += near[0] * near[1] / len(self.columns)
        return self.coefficients * total, 0.0


@dataclass(frozen=True, eq=False)
class GridTerm(Term):
    """The cosine of descriptions by the known pairs."""

    both: tuple[Decomposition, Decomposition]
    ridge: float
    columns: tuple[slice, slice]

    def describe(self, side: int, rows: Rows) -> Array:
        """Return the descriptions of items in the basis of their side."""
        values = rows.values[:, self.columns[side]]
        return self.both[side].describe(values, self.ridge)

    def pieces(self, side: int, rows: Rows) -> list[Piece]:
        """Return the pieces of queries."""
        own, other = self.both[side], self.both[1 - side]
        described = _product(unit_rows(self.describe(side, rows)), own.U.T, other.U)
        coefficients = other.undescribe(described, self.ridge)
        constant = -coefficients @ other.mean
        columns = self.columns[1 - side]
        return [Piece("values", coefficients, constant, columns, scaled=True)]

    def scale(self, side: int, rows: Rows) -> Array | None:
        """Return what scores of targets are multiplied by."""
        lengths = np.linalg.norm(self.describe(side, rows), axis=1)
        return 1 / np.maximum(lengths, 1e-12)

    def contributions(
        self, side: int, query: Rows, target: Rows, scale: float
    ) -> Contributions:
        """Return what each part adds to one score."""
        own = unit_rows(self.describe(side, query)) @ self.both[side].U.T
        other = self.describe(1 - side, target) @ self.both[1 - side].U.T
        return scale * own[0] * other[0], 0.0


@dataclass(frozen=True, eq=False)
class MapTerm(Term):
    """The cosine of an item's linear columns and those predicted from the other view.

    Compared are the columns of the view `into`, predicted by ridge regression on the
    features of the other view, each less the mean of the linked items.
    """

    into: int
    known: Decomposition  # of the features that predict
    ridge: float
    features: slice
    columns: slice  # that are predicted
    partners: Array  # of the linked items, centred
    mean: Array

    def _place(self, side: int, rows: Rows) -> Array:
        """Return where items are in the space of the predicted columns."""
        if side == self.into:
            return rows.values[:, self.columns] - self.mean
        own = self.known.describe(rows.values[:, self.features], self.ridge)
        return _product(own, self.known.U.T, self.partners)

    def pieces(self, side: int, rows: Rows) -> list[Piece]:
        """Return the pieces of queries."""
        coefficients, mean, columns = (
            unit_rows(self._place(side, rows)), self.mean, self.columns
        )  # fmt: skip
        if side == self.into:
            turned = _product(coefficients, self.partners.T, self.known.U)
            coefficients = self.known.undescribe(turned, self.ridge)
            mean, columns = self.known.mean, self.features
        constant = -coefficients @ mean
        return [Piece("values", coefficients, constant, columns, scaled=True)]

    def scale(self, side: int, rows: Rows) -> Array | None:
        """Return what scores of targets are multiplied by."""
        lengths = np.linalg.norm(self._place(side, rows), axis=1)
        return 1 / np.maximum(lengths, 1e-12)

    def contributions(
        self, side: int, query: Rows, target: Rows, scale: float
    ) -> Contributions:
        """Return what each part adds to one score."""
        predicting, placed = (target, query) if side == self.into else (query, target)
        own = self.known.describe(predicting.values[:, self.features], self.ridge)
        shares = (own @ self.known.U.T)[0]
        there = self.partners @ self._place(self.into, placed)[0]
        size = max(float(np.linalg.norm(self._place(side, query)[0])), 1e-12)
        return scale * shares * there / size, 0.0


@dataclass(frozen=True, eq=False)
class DisplacementTerm(Term):
    """The cosine after items are moved by what is expected of them."""

    both: tuple[Decomposition, Decomposition]
    ridge: float
    columns: tuple[slice, slice]
    difference: Array  # of the partners, in the shared space

    def _expected(self, side: int, rows: Rows) -> Array:
        """Return how far items are expected from their partners."""
        values = rows.values[:, self.columns[side]]
        own = self.both[side].describe(values, self.ridge)
        moved = _product(own, self.both[side].U.T, self.difference)
        return (1 - 2 * side) * (moved + self.difference.mean(axis=0))

    def pieces(self, side: int, rows: Rows) -> list[Piece]:
        """Return the pieces of queries."""
        moved = unit_rows(_dense(rows.prior) + self._expected(side, rows))
        other, sign = self.both[1 - side], 2 * side - 1
        turned = _product(rows.prior, self.difference.T, other.U)
        coefficients = sign * other.undescribe(np.asarray(turned), self.ridge)
        constant = sign * np.asarray(rows.prior @ self.difference.mean(axis=0))
        constant = constant - coefficients @ other.mean
        columns = self.columns[1 - side]
        return [
            Piece("prior", 0.5 * moved),
            Piece("prior", 0.5 * rows.prior, scaled=True),
            Piece("values", 0.5 * coefficients, 0.5 * constant, columns, scaled=True),
        ]

    def scale(self, side: int, rows: Rows) -> Array | None:
        """Return what scores of targets are multiplied by."""
        moved = _dense(rows.prior) + self._expected(side, rows)
        return 1 / np.maximum(np.linalg.norm(moved, axis=1), 1e-12)

    def contributions(
        self, side: int, query: Rows, target: Rows, scale: float
    ) -> Contributions:
        """Return what each part adds to one score."""
        x, y = _dense(query.prior)[0], _dense(target.prior)[0]
        moved = float(np.linalg.norm(x + self._expected(side, query)[0]))
        total, prior = np.zeros(len(self.difference)), 0.0
        for own, rows, there, size in (
            (side, query, y, 1 / max(moved, 1e-12)),
            (1 - side, target, x, scale),
        ):
            values = rows.values[:, self.columns[own]]
            shares = self.both[own].describe(values, self.ridge) @ self.both[own].U.T
            shares = shares[0] + 1 / len(self.difference)
            total += (0.5 - own) * size * shares * (self.difference @ there)
            prior += 0.5 * size * float(x @ y)
        return total, prior


@dataclass(frozen=True, eq=False)
class LabelTerm(Term):
    """The probability of one class, less what chance would give."""

    models: tuple[LabelModel, LabelModel]

    def classes(self, side: int, rows: Rows) -> Array:
        """Return the probabilities of the classes."""
        if rows.classes is not None:
            return rows.classes
        return self.models[side].probabilities(rows.values)

    def pieces(self, side: int, rows: Rows) -> list[Piece]:
        """Return the pieces of queries."""
        chance = float(self.models[0].shares @ self.models[1].shares)
        own = self.classes(side, rows)
        return [Piece("classes", own, np.full(len(own), -chance))]

    def contributions(
        self, side: int, query: Rows, target: Rows, scale: float
    ) -> Contributions:
        """Return what each part adds to one score."""
        own, other = self.classes(side, query)[0], self.classes(1 - side, target)[0]
        return own * other, -float(self.models[0].shares @ self.models[1].shares)


def _product(A: Any, B: Array, C: Array) -> Any:
    """Return ``A B C``, in the order that is cheaper: A may be one query or a view."""
    (n, p), (q, r) = A.shape, C.shape
    return (A @ B) @ C if n * q * (p + r) <= p * r * (n + q) else A @ (B @ C)


def _dense(X: Any) -> Array:
    return X.toarray() if sp.issparse(X) else np.asarray(X)
