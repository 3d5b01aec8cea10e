"""Views in one space: the plain cosine, and a ridge that draws a map to it."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any, Self

import numpy as np

from linkspread.baselines.correspondences import matched_rows
from linkspread.baselines.matching import Chosen, PairMatching
from linkspread.baselines.memory import in_tiles
from linkspread.baselines.preparation import as_dense_rows
from linkspread.baselines.ridge_map import (
    BOTH,
    ViewsOfSpaces,
    compared_spaces,
    shrunk_inverse,
)
from linkspread.baselines.side import Side, unit_rows
from linkspread.estimators.link_choice import check_views_known
from linkspread.exceptions import ViewError
from linkspread.kernels.singular import svd
from linkspread.links import Links
from linkspread.parameter_checks import check_positive

__all__ = ["CosineMatching", "RidgeToIdentity"]

Array = np.ndarray


class CosineMatching(PairMatching):
    """Match by the plain cosine, where views share a space.

    Nothing is learnt, and links need not join the views: it is what a user has before
    any judgement. The columns of both views must mean the same.

    Parameters
    ----------
    hubs : int, default=None
        Subtract from each score the means of the so many largest scores of both
        items, against hubs; None subtracts nothing.

    Attributes
    ----------
    view_names_ : tuple of str
    items_ : dict from str to Items
    links_ : Links
    sides_ : dict from pairs of str to pairs of Side

    Examples
    --------
    >>> from linkspread.baselines import CosineMatching
    >>> views = {"text": [[1.0, 0.0], [0.0, 2.0]], "image": [[0.0, 1.0], [3.0, 0.0]]}
    >>> CosineMatching().fit(views).scores("text", "image").tolist()
    [[0.0, 1.0], [1.0, 0.0]]
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
        """Take the unit vectors of all items.

        Parameters
        ----------
        views : mapping from str to table of shape (n_items, n_features)
            At least two with the same number of columns.
        links : Links, or mapping from str to labels, default=None
            Not learnt from; ``search(judged=False)`` leaves out what they judge.
        ids : mapping from str to array-like of shape (n_items,), default=None
        columns : mapping from str to list of str, default=None
            Both as for the other baselines.

        Returns
        -------
        self : CosineMatching
        """
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
        return Side.of(tables[a], _units), Side.of(tables[b], _units)


class RidgeToIdentity(PairMatching):
    """Match by a map that stays near the identity, where views share a space.

    ``min_W ||X W - Y||^2 + ridge v ||W - I||^2`` over the matched rows, as they are,
    v the mean square of a feature of X; the score is the cosine of x W and y, or the
    mean of that and the same the other way. A large ridge gives the plain cosine.

    Parameters
    ----------
    ridge : float, default=1.0
        In units of the mean square of a feature.
    space : str, default="both"
        View whose items stay as they are, while those of the other are mapped;
        "both" takes the mean of the two cosines.
    hubs : int, default=None
        Subtract from each score the means of the so many largest scores of both
        items, against hubs; None subtracts nothing.

    Attributes
    ----------
    view_names_ : tuple of str
    items_ : dict from str to Items
    links_ : Links
    sides_ : dict from pairs of str to pairs of Side

    Examples
    --------
    >>> import linkspread as ls
    >>> from linkspread.baselines import RidgeToIdentity
    >>> views = {"text": [[1.0, 0.0], [0.0, 2.0]], "image": [[0.0, 1.0], [3.0, 0.0]]}
    >>> links = ls.Links.from_matched(("text", "image"), 2)
    >>> model = RidgeToIdentity(ridge=0.01).fit(views, links)
    >>> model.scores("text", "image").round(1).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
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
        shares = np.sqrt(weights / weights.sum())[:, None]
        X = shares * as_dense_rows(tables[a][rows])
        Y = shares * as_dense_rows(tables[b][cols])
        return tuple(  # type: ignore[return-value]
            Side.of(
                tables[view],
                ViewsOfSpaces(_units, _NearIdentity(own, other, ridge), view, spaces),
            )
            for view, own, other in ((a, X, Y), (b, Y, X))
        )


class _NearIdentity:
    """Map rows by ``W = I + (X'X + ridge v I)^-1 X'(Y - X)``, never made whole."""

    def __init__(self, X: Array, Y: Array, ridge: float) -> None:
        U, singular, Vt = svd(X)
        self.basis = Vt.T
        # Rows that are all 0 say nothing, and leave the identity.
        inverse = shrunk_inverse(singular, X.shape[1], ridge) if X.any() else singular
        self.change = inverse[:, None] * (U.T @ (Y - X))

    def __call__(self, rows: Any) -> Array:
        def some(tile: slice) -> tuple[Array]:
            own = as_dense_rows(rows[tile])
            return (unit_rows(own + own @ self.basis @ self.change),)

        return in_tiles(some, rows.shape[0])[0]


def _units(rows: Any) -> Array:
    """Return rows scaled to length 1."""
    return unit_rows(as_dense_rows(rows))


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
