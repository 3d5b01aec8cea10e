"""Views in one space: the plain cosine, and a ridge that draws a map to it."""

from collections.abc import Mapping
from functools import cached_property
from itertools import combinations
from typing import Any, Self

import numpy as np
from scipy import sparse

from linkspread.ground.checks import check_positive
from linkspread.ground.errors import ViewError
from linkspread.links import Links
from linkspread.models.link_choice import check_views_known
from linkspread.studies.baselines.correspondences import matched_rows
from linkspread.studies.baselines.matching import Chosen, PairMatching
from linkspread.studies.baselines.memory import in_tiles
from linkspread.studies.baselines.preparation import as_dense_rows
from linkspread.studies.baselines.ridge_map import (
    BOTH,
    compared_spaces,
    decompose,
    row_squares,
    shrunk_inverse,
)
from linkspread.studies.baselines.side import Side, unit_rows

Array = np.ndarray


class CosineMatching(PairMatching):
    """Match by the plain cosine, where views share a space.

    Nothing is learnt, and links need not join the views: it is what a user has before
    any judgement. The columns of both views must mean the same.
    """

    def __init__(self, *, hubs: int | None = None) -> None:
        self.hubs = hubs

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
        pairs = [p for p in combinations(tables, 2) if _share_width(tables, *p)]
        if not pairs:
            _check_widths(tables, *list(tables)[:2])
        return pairs

    def _check_joined(self, source: str, target: str) -> None:
        check_views_known(self.view_names_, source, target)
        if source != target and not {(source, target), (target, source)} & set(
            self.sides_
        ):
            raise ViewError(
                f"views {source!r} and {target!r} must have as many columns to be "
                "compared by their cosine, and they do not. Search other views."
            )

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> tuple[Side, Side]:
        is_sparse = _are_sparse(tables, a, b)
        return tuple(  # type: ignore[return-value]
            _side(tables[view], _Units(), is_sparse) for view in (a, b)
        )


class RidgeToIdentity(PairMatching):
    """Match by a map that stays near the identity, where views share a space.

    ``min_W ||X W - Y||^2 + ridge v ||W - I||^2`` over the matched rows, as they are,
    v the mean square of a feature of X; the score is the cosine of x W and y, or the
    mean of that and the same the other way. A large ridge gives the plain cosine.
    """

    def __init__(
        self, *, ridge: float = 1.0, space: str = BOTH, hubs: int | None = None
    ) -> None:
        self.ridge = ridge
        self.space = space
        self.hubs = hubs

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> tuple[Side, Side]:
        ridge = check_positive(self.ridge, name="ridge", remedy="The default is 1.")
        _check_widths(tables, a, b)
        spaces = compared_spaces(self.space, tables, a, b)
        rows, cols, weights = matched_rows(links, a, b)
        shares = np.sqrt(weights / weights.sum())

        def moves() -> tuple[_Moves, _Moves]:
            X, Y = tables[a][rows], tables[b][cols]
            items = (tables[a], tables[b]) if is_sparse else (None, None)
            return _Moves(X, Y, shares, *items), _Moves(Y, X, shares, *items[::-1])

        is_sparse = _are_sparse(tables, a, b)
        there, back = self._once(("moves", a, b), moves)
        ways = (a, there, back), (b, back, there)
        return tuple(  # type: ignore[return-value]
            _side(
                tables[view],
                _NearIdentity(own, other, ridge, [space == view for space in spaces]),
                is_sparse,
            )
            for view, own, other in ways
        )


class _Moves:
    """How matched rows of a view, X, move to their partners: what all ridges share.

    With ``X = U diag(singular) basis'`` and ``change = U' (Y - X)`` the map is
    ``W = I + (X'X + ridge v I)^-1 X'(Y - X) = I + basis diag(inverse) change``.
    """

    def __init__(
        self, X: Any, Y: Any, shares: Array, own_items: Any, other_items: Any
    ) -> None:
        self.n_features = X.shape[1]
        origin = np.zeros(self.n_features)
        # Rows that are all 0 say nothing, and leave the identity.
        U, self.singular, self.basis = decompose(X, shares, origin)
        self.change = ((Y - X).T @ (shares[:, None] * U)).T
        self.own_items, self.other_items = own_items, other_items

    @cached_property
    def of_own(self) -> tuple[Array, Array]:
        """Coordinates of all items of the view, in `basis` and along `change`."""
        return self.own_items @ self.basis, self.own_items @ self.change.T

    @cached_property
    def of_other(self) -> Array:
        """Coordinates of all items of the other view along `change`."""
        return self.other_items @ self.change.T

    @cached_property
    def gram(self) -> Array:
        """Inner products of the rows of `change`."""
        return self.change @ self.change.T


class _NearIdentity:
    """Make the vectors of a view's items: mapped, as they are, or both."""

    def __init__(
        self, own: _Moves, other: _Moves, ridge: float, is_own: list[bool]
    ) -> None:
        self.own, self.other, self.is_own = own, other, is_own
        self.inverse = shrunk_inverse(own.singular, own.n_features, ridge)

    def __call__(self, rows: Any) -> Array:
        """Return vectors of shape (n_rows, n_dimensions)."""
        step = self.own.basis * self.inverse

        def some(tile: slice) -> tuple[Array]:
            plain = as_dense_rows(rows[tile])
            parts = [
                plain if is_own else plain + plain @ step @ self.own.change
                for is_own in self.is_own
            ]
            return (
                np.hstack([unit_rows(part) for part in parts]) / np.sqrt(len(parts)),
            )

        return in_tiles(some, rows.shape[0])[0]

    def factors(self, X: sparse.csr_array) -> tuple[Array, Array]:
        """Return what the products with another view's items are made of.

        A mapped row is the row itself and a short vector besides, so that its product
        with another is that of the two sparse rows and of two short vectors.
        """
        squares = row_squares(X)
        scales, short = [], []
        for is_own in self.is_own:
            own, lengths = self.other.of_other, squares
            if not is_own:
                inside, along = self.own.of_own
                own = inside * self.inverse
                change = np.sum(own * (2 * along + own @ self.own.gram), axis=1)
                lengths = squares + change
            lengths = np.sqrt(np.maximum(lengths, 0))
            scale = 1 / np.where(lengths > 0, lengths, 1.0)
            scales.append(scale)
            short.append(own * scale[:, None])
        root = np.sqrt(len(scales))
        return np.column_stack(scales) / root, np.hstack(short) / root


class _Units:
    """Scale rows to length 1."""

    def __call__(self, rows: Any) -> Array:
        return unit_rows(as_dense_rows(rows))

    def factors(self, X: sparse.csr_array) -> tuple[Array, Array]:
        """Return the scale of each row, and nothing besides."""
        lengths = np.sqrt(row_squares(X))
        scale = 1 / np.where(lengths > 0, lengths, 1.0)
        return scale[:, None], np.zeros((len(scale), 0))


class _SparseSide(Side):
    """The side of a sparse view, whose scores need no dense rows."""

    def __init__(self, X: sparse.csr_array, embed: Any) -> None:
        super().__init__(None, embed, X.shape[1], X)
        self.rows = X

    @cached_property
    def factors(self) -> tuple[Array, Array]:
        """Scales of the sparse rows, and short vectors besides."""
        return self.embed.factors(self.rows)  # type: ignore[attr-defined]

    def products(self, rows: Array, other: Any, cols: Array) -> Array:
        """Return the inner products of all of some items with some of another side."""
        (left, x), (right, y) = self.factors, other.factors
        plain = (self.rows[rows] @ other.rows[cols].T).toarray()
        return plain * (left[rows] @ right[cols].T) + x[rows] @ y[cols].T

    def pair_products(self, rows: Array, other: Any, cols: Array) -> Array:
        """Return the inner products of single pairs of items."""
        (left, x), (right, y) = self.factors, other.factors
        plain = self.rows[rows].multiply(other.rows[cols]).sum(axis=1)
        scales = np.einsum("ij,ij->i", left[rows], right[cols])
        return plain * scales + np.einsum("ij,ij->i", x[rows], y[cols])


def _side(X: Any, embed: Any, is_sparse: bool) -> Side:
    """Return the side of a view."""
    return _SparseSide(X, embed) if is_sparse else Side.of(X, embed)


def _are_sparse(tables: dict[str, Any], a: str, b: str) -> bool:
    """Tell whether both tables are sparse, so that their products are."""
    return sparse.issparse(tables[a]) and sparse.issparse(tables[b])


def _share_width(tables: dict[str, Any], a: str, b: str) -> bool:
    """Tell whether two views have as many columns."""
    return tables[a].shape[1] == tables[b].shape[1]


def _check_widths(tables: dict[str, Any], a: str, b: str) -> None:
    """Refuse two views that cannot share a space."""
    if not _share_width(tables, a, b):
        raise ViewError(
            f"views {a!r} and {b!r} must have the same columns to share a space, got "
            f"{tables[a].shape[1]} and {tables[b].shape[1]}. Use RidgeMap, which maps "
            "one space to another."
        )
