"""Baselines of matched rows: ridge maps, similarities to anchors, the plain cosine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from linkspread.compiled.singular import svd
from linkspread.ground.checks import check_count, check_positive, naming
from linkspread.ground.errors import FewLinksError, LinkspreadError, ViewError
from linkspread.links import Links
from linkspread.models.vector_search import check_views_known
from linkspread.studies.baselines.inputs import as_dense_rows, matched_rows, prepare
from linkspread.studies.baselines.matching import (
    Chosen,
    PairMatching,
    Side,
    Steps,
    in_tiles,
    unit_rows,
)

Array = np.ndarray

BOTH = "both"
# Directions below this share of the largest singular value are rounding errors.
ROUNDING = 1e-12
# The same for squared singular values.
SQUARED_ROUNDING = 1e-6


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeMap(PairMatching):
    """Match by least squares from each view to the other.

    ``min_W ||X W - Y||^2 + ridge v ||W||^2`` over the centred matched rows, v the mean
    variance of a feature of X; the score is the cosine of x W and y, or the mean of
    that and the same the other way. All components take part.
    """

    PER_VIEW: ClassVar[tuple[str, ...]] = ("scaling",)

    ridge: float = 0.1
    space: str = BOTH
    scaling: Any = "none"

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> Sequence[Side]:
        remedy = "The default is 0.1; 0 is allowed."
        ridge = check_positive(self.ridge, name="ridge", remedy=remedy, zero=True)
        spaces = _compared_spaces(self.space, tables, a, b)
        *rows, shares = _weighted_rows(links, a, b)
        left, right = (
            self._once(
                ("span", a, b, view, repr(chosen[view])),
                partial(_MatchedSpan, tables[view], own, shares, view, **chosen[view]),
            )
            for view, own in zip((a, b), rows, strict=True)
        )
        ways = (a, left, right), (b, right, left)
        return tuple(
            Side(
                partial(own.vectors, own.map_to(other, ridge), _is_own(spaces, view)),
                tables[view],
            )
            for view, own, other in ways
        )


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeToIdentity(PairMatching):
    """Match by a map near the identity, for views with a shared space.

    ``min_W ||X W - Y||^2 + ridge v ||W - I||^2`` over the matched rows, as they are,
    v the mean square of a feature of X; the score is the cosine of x W and y, or the
    mean of that and the same the other way. A large ridge gives the plain cosine.
    """

    ridge: float = 1.0
    space: str = BOTH

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> Sequence[Side]:
        ridge = check_positive(self.ridge, name="ridge", remedy="The default is 1.")
        _check_widths(tables, a, b)
        spaces = _compared_spaces(self.space, tables, a, b)
        rows, cols, shares = _weighted_rows(links, a, b)

        def moves() -> tuple[_Moves, _Moves]:
            X, Y = tables[a], tables[b]
            return (
                _Moves(X[rows], Y[cols], shares, X, Y),
                _Moves(Y[cols], X[rows], shares, Y, X),
            )

        there, back = self._once(("moves", a, b), moves)
        return (
            _shared_side(tables, a, b, _NearIdentity(there, back, ridge, spaces, a)),
            _shared_side(tables, b, a, _NearIdentity(back, there, ridge, spaces, b)),
        )


@dataclass(kw_only=True, eq=False, repr=False)
class CosineMatching(PairMatching):
    """Match by the plain cosine, for views with a shared space, also without links."""

    def fit(
        self,
        views: Any,
        links: Any = None,
        *,
        ids: Mapping[str, Any] | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> Self:
        """Take the unit vectors of all items."""
        links = Links() if links is None else links
        return super().fit(views, links, ids=ids, columns=columns)

    def _joined_pairs(
        self, tables: dict[str, Any], links: Links
    ) -> list[tuple[str, str]]:
        width = {view: X.shape[1] for view, X in tables.items()}
        pairs = [(a, b) for a, b in combinations(tables, 2) if width[a] == width[b]]
        if not pairs:
            _check_widths(tables, *list(tables)[:2])
        return pairs

    def _check_joined(self, source: str, target: str) -> None:
        check_views_known(self.view_names_, source, target)
        if source != target and (source, target) not in self.sides_:
            raise ViewError(
                f"views {source!r} and {target!r} must have the same columns to be "
                "compared by their cosine, got other numbers. Search other views."
            )

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> Sequence[Side]:
        units = _Units()
        return _shared_side(tables, a, b, units), _shared_side(tables, b, a, units)


@dataclass(kw_only=True, eq=False, repr=False)
class AnchorSimilarity(PairMatching):
    """Match by similarity to matched items: ASIF of [Norelli2023].

    An item is described by its cosines with the matched items of its own view, the
    anchors: the largest are kept, raised to a power and scaled to unit norm. Anchor i
    of one view is the partner of anchor i of the other, so that both views share a
    space. Nothing is learnt.
    """

    n_neighbors: int | None = None
    power: float = 1.0
    centered: bool = True

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> Sequence[Side]:
        power = check_positive(self.power, name="power", remedy="The default is 1.")
        rows, cols, _ = matched_rows(links, a, b)
        n_kept = len(rows)
        if self.n_neighbors is not None:
            remedy = "None takes all anchors."
            n_kept = check_count(self.n_neighbors, name="n_neighbors", remedy=remedy)
        describe = partial(_describe, n_kept=min(n_kept, len(rows)), power=power)
        return tuple(
            self._described(tables[view], view, own, describe)
            for view, own in ((a, rows), (b, cols))
        )

    def _described(self, X: Any, view: str, anchors: Array, describe: Any) -> Side:
        """Return the side of a view; settings share the cosines."""
        dense = as_dense_rows(X[anchors])
        mean = dense.mean(axis=0) if self.centered else np.zeros(dense.shape[1])
        cosines = partial(_cosines, unit_rows(dense - mean), mean)
        embed = Steps(cosines, describe)
        if self._memory is None:
            return Side(embed, X)
        key = "cosines", view, self.centered
        shared = self._once(key, lambda: in_tiles(cosines, X))
        return Side(embed, vectors=in_tiles(describe, shared))


def _cosines(anchors: Array, mean: Array, rows: Any) -> Array:
    """Return cosines of centred rows with anchors; values below 0 count as 0."""
    return np.maximum(unit_rows(as_dense_rows(rows) - mean) @ anchors.T, 0)


def _describe(cosines: Array, *, n_kept: int, power: float) -> Array:
    """Return the largest cosines of each row, raised to a power, at unit norm."""
    if n_kept < cosines.shape[1]:
        # Anchors that tie with the last one stay too.
        least = np.partition(cosines, -n_kept, axis=1)[:, -n_kept]
        cosines = np.where(cosines >= least[:, None], cosines, 0)
    while power % 2 == 0:  # squares are many times as fast
        cosines, power = cosines**2, power / 2
    return unit_rows(cosines if power == 1 else cosines**power)


def _compared_spaces(
    space: Any, tables: dict[str, Any], a: str, b: str
) -> tuple[str, ...]:
    """Return the views in whose spaces the items of two views are compared."""
    if space != BOTH and space not in tables:
        raise LinkspreadError(
            f"`space` must be {BOTH!r} or a view of the fit, {list(tables)}, got "
            f"{space!r:.60}. Name the view in whose space items are compared."
        )
    # Neither of the two views may be the one named.
    return (space,) if space in (a, b) else (a, b)


def _weighted_rows(links: Links, a: str, b: str) -> tuple[Array, Array, Array]:
    """Return matched rows, and the roots of their shares of all weight."""
    rows, cols, weights = matched_rows(links, a, b)
    return rows, cols, np.sqrt(weights / weights.sum())


def _is_own(spaces: Sequence[str], view: str) -> list[bool]:
    """Return which of the spaces is that of a view."""
    return [space == view for space in spaces]


def _shrunk_inverse(singular: Array, n_features: int, ridge: float) -> Array:
    """Return ``s / (s^2 + ridge v)``, v the mean of all squares s^2 over features."""
    return singular / (singular**2 + ridge * np.sum(singular**2) / n_features)


def _decompose(matched: Any, shares: Array, mean: Array) -> tuple[Array, Array, Array]:
    """Return ``U, s, basis`` of ``shares * (matched - mean) = U diag(s) basis'``.

    Directions that are rounding errors are left out; none may remain.
    """
    largest = np.abs(matched).max() if min(matched.shape) else 0.0
    if sparse.issparse(matched) and matched.shape[0] < matched.shape[1]:
        # Products of a few sparse rows are cheap and need no dense rows.
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
    """The span of a view's matched rows around their mean."""

    def __init__(
        self, X: Any, rows: Array, shares: Array, view: str, *, scaling: str
    ) -> None:
        with naming(view):
            self.prepared = prepare(X, scaling=scaling)
        matched = self.prepared.transform(X[rows])
        self.mean = matched.T @ shares**2
        self.U, self.singular, self.basis = _decompose(matched, shares, self.mean)
        if not len(self.singular):
            raise FewLinksError(
                f"view {view!r} must vary over its matched items, got {len(rows)} "
                "equal ones. Match items that differ."
            )

    def map_to(self, other: "_MatchedSpan", ridge: float) -> Array:
        """Return the ridge map from this basis to that of the other view."""
        inverse = _shrunk_inverse(self.singular, len(self.mean), ridge)
        return inverse[:, None] * (self.U.T @ other.U) * other.singular

    def vectors(self, core: Array, is_own: list[bool], rows: Any) -> Array:
        """Return rows in their own space, mapped to the other, or both.

        Inner products with those of the other view are cosines, or the mean of two.
        """
        rows = self.prepared.transform(rows)
        if sparse.issparse(rows):
            inside = rows @ self.basis - self.mean @ self.basis
            along = 2 * (rows @ self.mean) - self.mean @ self.mean
            norms = np.sqrt(np.maximum(_row_squares(rows) - along, 0))
        else:
            centred = as_dense_rows(rows) - self.mean
            inside, norms = centred @ self.basis, np.linalg.norm(centred, axis=1)
        # In their own space, only the part of rows in the span matters.
        own = inside * _inverse(norms)[:, None]
        parts = [own if is_here else unit_rows(inside @ core) for is_here in is_own]
        return np.hstack(parts) / np.sqrt(len(parts))


class _Moves:
    """The change from matched rows X to their partners Y, shared by all ridges.

    With ``X = U diag(singular) basis'`` and ``change = U' (Y - X)`` the map is
    ``W = I + (X'X + ridge v I)^-1 X'(Y - X) = I + basis diag(inverse) change``.
    """

    def __init__(self, X: Any, Y: Any, shares: Array, own: Any, other: Any) -> None:
        # Rows of zeros do not change the identity.
        U, self.singular, self.basis = _decompose(X, shares, np.zeros(X.shape[1]))
        self.change = ((Y - X).T @ (shares[:, None] * U)).T
        self._own, self._other = own, other

    @cached_property
    def of_own(self) -> tuple[Array, Array]:
        """Coordinates of all items of the view, in `basis` and along `change`."""
        return self._own @ self.basis, self._own @ self.change.T

    @cached_property
    def of_other(self) -> Array:
        """Coordinates of all items of the other view along `change`."""
        return self._other @ self.change.T

    @cached_property
    def gram(self) -> Array:
        """Inner products of the rows of `change`."""
        return self.change @ self.change.T


class _NearIdentity:
    """Vectors of a view's items: mapped, unchanged, or both."""

    def __init__(
        self, own: _Moves, other: _Moves, ridge: float, spaces: Any, view: str
    ) -> None:
        self.own, self.other, self.is_own = own, other, _is_own(spaces, view)
        self.inverse = _shrunk_inverse(own.singular, own.change.shape[1], ridge)

    def __call__(self, rows: Any) -> Array:
        plain = as_dense_rows(rows)
        mapped = plain
        if not all(self.is_own):
            inside = plain @ self.own.basis * self.inverse
            mapped = plain + inside @ self.own.change
        parts = [unit_rows(plain if is_own else mapped) for is_own in self.is_own]
        return np.hstack(parts) / np.sqrt(len(parts))

    def factors(self, X: sparse.csr_array) -> tuple[Array, Array]:
        """Return scales of rows and short vectors, for products with another view.

        A mapped row is the row plus a low-rank part, so that a product is that of two
        sparse rows plus that of two short vectors.
        """
        squares = _row_squares(X)
        scales, short = [], []
        for is_own in self.is_own:
            own, norms = self.other.of_other, squares
            if not is_own:
                inside, along = self.own.of_own
                own = inside * self.inverse
                change = np.sum(own * (2 * along + own @ self.own.gram), axis=1)
                norms = squares + change
            scale = _inverse(np.sqrt(np.maximum(norms, 0)))
            scales.append(scale)
            short.append(own * scale[:, None])
        root = np.sqrt(len(scales))
        return np.column_stack(scales) / root, np.hstack(short) / root


class _Units:
    """Scale rows to unit norm."""

    def __call__(self, rows: Any) -> Array:
        return unit_rows(as_dense_rows(rows))

    def factors(self, X: sparse.csr_array) -> tuple[Array, Array]:
        """Return the scale of each row, and empty short vectors."""
        scale = _inverse(np.sqrt(_row_squares(X)))
        return scale[:, None], np.zeros((len(scale), 0))


class _SparseSide(Side):
    """The side of a sparse view, whose scores need no dense rows."""

    def __init__(self, embed: Any, X: sparse.csr_array) -> None:
        super().__init__(embed, X)
        self.rows = X

    @cached_property
    def factors(self) -> tuple[Array, Array]:
        """Scales of the sparse rows, and short vectors."""
        return self.embed.factors(self.rows)  # type: ignore[attr-defined]

    def products(self, rows: Array, other: Any, cols: Array) -> Array:
        """Return the inner products of items with items of another side."""
        (left, x), (right, y) = self.factors, other.factors
        plain = (self.rows[rows] @ other.rows[cols].T).toarray()
        return plain * (left[rows] @ right[cols].T) + x[rows] @ y[cols].T

    def pair_products(self, rows: Array, other: Any, cols: Array) -> Array:
        """Return the inner products of single pairs of items."""
        (left, x), (right, y) = self.factors, other.factors
        plain = self.rows[rows].multiply(other.rows[cols]).sum(axis=1)
        scales = np.einsum("ij,ij->i", left[rows], right[cols])
        return plain * scales + np.einsum("ij,ij->i", x[rows], y[cols])


def _shared_side(tables: dict[str, Any], view: str, other: str, embed: Any) -> Side:
    """Return the side of a view in a shared space."""
    are_sparse = all(sparse.issparse(tables[v]) for v in (view, other))
    return (_SparseSide if are_sparse else Side)(embed, tables[view])


def _row_squares(rows: sparse.csr_array) -> Array:
    """Return the squared norm of each sparse row."""
    return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()


def _inverse(norms: Array) -> Array:
    """Return ``1 / norms``, and 1 where they are 0."""
    return 1 / np.where(norms > 0, norms, 1.0)


def _check_widths(tables: dict[str, Any], a: str, b: str) -> None:
    """Refuse two views that cannot share a space."""
    if tables[a].shape[1] != tables[b].shape[1]:
        raise ViewError(
            f"views {a!r} and {b!r} must have the same columns to share a space, got "
            f"{tables[a].shape[1]} and {tables[b].shape[1]}. Use RidgeMap, which maps "
            "one space to another."
        )
