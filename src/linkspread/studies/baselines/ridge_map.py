"""Ridge maps: regress the items of one view on their partners in the other."""

from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline

from linkspread.compiled.singular import svd
from linkspread.ground.checks import check_positive, naming
from linkspread.ground.errors import FewLinksError, LinkspreadError
from linkspread.links import Links
from linkspread.studies.baselines.correspondences import matched_rows
from linkspread.studies.baselines.matching import Chosen, PairMatching
from linkspread.studies.baselines.memory import in_tiles
from linkspread.studies.baselines.preparation import as_dense_rows, prepare
from linkspread.studies.baselines.side import Side, unit_rows

Array = np.ndarray

BOTH = "both"
# Directions with less than this share of the largest singular value are rounding.
ROUNDING = 1e-12
# The same where only their squares are known.
SQUARED_ROUNDING = 1e-6


class RidgeMap(PairMatching):
    """Match by least squares from each view to the other.

    ``min_W ||X W - Y||^2 + ridge v ||W||^2`` over the centred matched rows, v the mean
    variance of a feature of X; the score is the cosine of x W and y, or the mean of
    that and the same the other way. All components take part.
    """

    PER_VIEW: ClassVar[tuple[str, ...]] = ("scaling",)

    def __init__(
        self,
        *,
        ridge: float = 0.1,
        space: str = BOTH,
        scaling: Any = "none",
        hubs: int | None = None,
    ) -> None:
        self.ridge = ridge
        self.space = space
        self.scaling = scaling
        self.hubs = hubs

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> tuple[Side, Side]:
        remedy = "The default is 0.1; 0 is allowed."
        ridge = check_positive(self.ridge, name="ridge", remedy=remedy, zero=True)
        spaces = compared_spaces(self.space, tables, a, b)
        rows, cols, weights = matched_rows(links, a, b)
        shares = np.sqrt(weights / weights.sum())
        left, right = (
            self._once(
                ("span", a, b, view, repr(chosen[view])),
                partial(_MatchedSpan, tables[view], own, shares, view, **chosen[view]),
            )
            for view, own in ((a, rows), (b, cols))
        )
        ways = (a, left, right), (b, right, left)
        return tuple(  # type: ignore[return-value]
            Side.of(
                tables[view],
                _InSpaces(own, own.map_to(other, ridge), view, spaces),
            )
            for view, own, other in ways
        )


def compared_spaces(
    space: Any, tables: dict[str, Any], a: str, b: str
) -> tuple[str, ...]:
    """Return the views in whose spaces the items of two views are compared."""
    if space != BOTH and space not in tables:
        raise LinkspreadError(
            f"`space` must be {BOTH!r} or a view of the fit, {list(tables)}, got "
            f"{space!r:.60}. Name the view in whose space items are compared."
        )
    # Two views that are not the one named have no space that was asked for.
    return (space,) if space in (a, b) else (a, b)


def shrunk_inverse(singular: Array, n_features: int, ridge: float) -> Array:
    """Return ``s / (s^2 + ridge v)``, v the mean of all squares s^2 over features."""
    return singular / (singular**2 + ridge * np.sum(singular**2) / n_features)


def decompose(matched: Any, shares: Array, mean: Array) -> tuple[Array, Array, Array]:
    """Return ``U, s, basis`` of ``shares * (matched - mean) = U diag(s) basis'``.

    Directions that are rounding are left out; there may be none.
    """
    largest = np.abs(matched).max() if min(matched.shape) else 0.0
    if sparse.issparse(matched) and matched.shape[0] < matched.shape[1]:
        # The products of a few sparse rows are cheap, and dense rows are not made.
        own = sparse.csr_array(sparse.diags_array(shares) @ matched)
        along = np.outer(own @ mean, shares)
        gram = (own @ own.T).toarray() - along - along.T
        values, U = np.linalg.eigh(gram + mean @ mean * np.outer(shares, shares))
        singular, U = np.sqrt(np.maximum(values[::-1], 0)), U[:, ::-1]
        kept = singular > SQUARED_ROUNDING * max(singular[0], largest)
        U, singular = U[:, kept], singular[kept]
        return U, singular, (own.T @ U - np.outer(mean, shares @ U)) / singular
    U, singular, Vt = svd(shares[:, None] * (as_dense_rows(matched) - mean))
    kept = singular > ROUNDING * max(singular[0], largest)
    return U[:, kept], singular[kept], Vt[kept].T


class _MatchedSpan:
    """What a view's matched rows span, about their mean."""

    def __init__(
        self, X: Any, rows: Array, shares: Array, view: str, *, scaling: str
    ) -> None:
        with naming(view):
            self.prepared: Pipeline = prepare(X, scaling=scaling)
        matched = self.prepared.transform(X[rows])
        self.mean = matched.T @ shares**2
        self.U, self.singular, self.basis = decompose(matched, shares, self.mean)
        if not len(self.singular):
            raise FewLinksError(
                f"view {view!r} must vary over its matched items, and all "
                f"{len(rows)} are alike. Match items that differ."
            )

    def map_to(self, other: "_MatchedSpan", ridge: float) -> Array:
        """Return the ridge map from this basis to that of the other view."""
        inverse = shrunk_inverse(self.singular, len(self.mean), ridge)
        return inverse[:, None] * (self.U.T @ other.U) * other.singular

    def coordinates(self, rows: Any) -> tuple[Array, Array]:
        """Return the coordinates of centred rows in the basis, and whole lengths."""
        rows = self.prepared.transform(rows)
        if sparse.issparse(rows):
            inside = rows @ self.basis - self.mean @ self.basis
            squares = row_squares(rows) - 2 * (rows @ self.mean) + self.mean @ self.mean
            return inside, np.sqrt(np.maximum(squares, 0))

        def some(tile: slice) -> tuple[Array, Array]:
            centred = as_dense_rows(rows[tile]) - self.mean
            return centred @ self.basis, np.linalg.norm(centred, axis=1)

        inside, lengths = in_tiles(some, rows.shape[0])
        return inside, lengths


class _InSpaces:
    """Make the vectors of a view's items in its own space, in the other's, or in both.

    Inner products with those of the other view are cosines, or the mean of two.
    """

    def __init__(
        self, span: _MatchedSpan, core: Array, view: str, spaces: tuple[str, ...]
    ) -> None:
        self.span, self.core = span, core
        self.is_own = [space == view for space in spaces]

    def __call__(self, rows: Any) -> Array:
        """Return vectors of shape (n_rows, n_dimensions)."""
        inside, lengths = self.span.coordinates(rows)
        # Of rows in their own space only the part in the span meets what is mapped.
        own = inside / np.where(lengths > 0, lengths, 1.0)[:, None]
        parts = [own if is_own else unit_rows(inside @ self.core)
                 for is_own in self.is_own]  # fmt: skip
        return np.hstack(parts) / np.sqrt(len(parts))


def row_squares(rows: sparse.csr_array) -> Array:
    """Return the squared length of each sparse row."""
    return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
