"""The collections that loaders return, with classes or with partners."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkspread.ground.errors import ViewError


@dataclass(frozen=True, eq=False, repr=False)
class Collection:
    """Views with matched rows, and the class of each row.

    Parameters
    ----------
    views : dict of {array, csr_array} of shape (n_items, n_features)
        The tables by view name; their widths differ.
    labels : ndarray of int of shape (n_items,)
        Class of each item, a position in `label_names`.
    label_names : tuple of str
    ids : ndarray of str or dict of ndarray of str, default=None
        Ids of the items, by view where views have their own.
    train, test : ndarray of int, default=None
        Rows of the published split.
    names : ndarray of str, default=None
        Unicode names of glyphs, such as "LATIN CAPITAL LETTER A".
    characters : ndarray of str, default=None
        The glyphs themselves.
    words : tuple of str, default=None
        The keywords that are the columns of the view "text".
    pictures : tuple of Path, default=None
        File of each picture.

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.datasets import Collection
    >>> Collection({"text": np.eye(3)}, np.array([0, 1, 1]), ("cat", "dog"))
    Collection(3 items, 2 classes, text: 3 x 3)
    """

    views: Mapping[str, Any]
    labels: np.ndarray
    label_names: tuple[str, ...]
    # Any, as the loader decides which of them exist.
    ids: Any = None
    train: Any = None
    test: Any = None
    names: Any = None
    characters: Any = None
    words: Any = None
    pictures: Any = None

    def __post_init__(self) -> None:
        for name, X in self.views.items():
            if X.shape[0] != len(self.labels):
                raise ViewError(
                    f"view {name!r} must have one row per label, {len(self.labels)}, "
                    f"got {X.shape[0]}. Give them in the same order and number."
                )

    def __repr__(self) -> str:
        counts = f"{len(self.labels)} items, {len(self.label_names)} classes"
        return f"Collection({counts}, {_shapes(self.views)})"


@dataclass(frozen=True, eq=False, repr=False)
class Partners:
    """Views and the pairs of partners between them.

    Parameters
    ----------
    views : dict of {array, csr_array} of shape (n_items, n_features)
        The tables by view name. Views may have different numbers of items.
    ids : dict of ndarray of str of shape (n_items,)
        Ids of the items, by view.
    pairs : ndarray of int of shape (n_pairs, 2)
        Rows of true partners in the first and the second view, or in any two of more.
    metrics : dict of str
        The distance that suits each view.
    shared_space : bool
        Whether rows of one view can be compared with rows of another.
    texts : dict of list of str, default=None
        Text of each item, by view, where the items are texts.
    labels : ndarray of shape (n_items,), default=None
        Class of each item, where it is known; it holds for the row in every view.

    Examples
    --------
    >>> from linkspread.datasets import load_fonts
    >>> load_fonts(size=8)
    Partners(... pairs in a shared space, sans: ... x 64, serif: ... x 64)
    """

    views: Mapping[str, Any]
    ids: Mapping[str, np.ndarray]
    pairs: np.ndarray
    metrics: Mapping[str, str]
    shared_space: bool
    texts: Mapping[str, list[str]] | None = None
    labels: np.ndarray | None = None

    def __post_init__(self) -> None:
        for position, (view, X) in enumerate(self.views.items()):
            n_rows = X.shape[0]
            rows = self.pairs[:, position] if len(self.views) == 2 else self.pairs
            if len(self.ids[view]) != n_rows:
                raise ViewError(
                    f"view {view!r} must have one id per row, {n_rows}, got "
                    f"{len(self.ids[view])}. Give one per row."
                )
            if rows.size and not 0 <= rows.min() <= rows.max() < n_rows:
                raise ViewError(
                    f"`pairs` must hold rows of view {view!r} between 0 and "
                    f"{n_rows - 1}, got {rows.min()} to {rows.max()}. Give positions "
                    "of rows, not ids."
                )
        widths = {X.shape[1] for X in self.views.values()}
        if self.shared_space and len(widths) > 1:
            raise ViewError(
                f"Views in a shared space must have the same columns, got "
                f"{sorted(widths)} columns. Use one description for all views."
            )

    def __repr__(self) -> str:
        space = " in a shared space" if self.shared_space else ""
        return f"Partners({len(self.pairs)} pairs{space}, {_shapes(self.views)})"


def _shapes(views: Mapping[str, Any]) -> str:
    """Return the shape of each view."""
    return ", ".join(f"{v}: {X.shape[0]} x {X.shape[1]}" for v, X in views.items())
