"""The collections that loaders return, with classes or with partners."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkspread.ground.errors import ViewError


@dataclass(frozen=True, eq=False, repr=False)
class Collection:
    """Views with matched rows, and the class of each row."""

    views: Mapping[str, Any]
    labels: np.ndarray  # class of each item, a position in `label_names`
    label_names: tuple[str, ...]
    # Any, as the loader decides which of them exist.
    ids: Any = None  # of the items, or by view where views have their own
    train: Any = None  # rows of the published split
    test: Any = None
    names: Any = None  # Unicode names of glyphs
    characters: Any = None  # the glyphs themselves
    words: Any = None  # the keywords that are the columns of the view "text"
    pictures: Any = None  # file of each picture

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
    """Views, perhaps of different sizes, and the pairs of partners between them."""

    views: Mapping[str, Any]
    ids: Mapping[str, np.ndarray]
    pairs: np.ndarray  # rows of partners in the first and second view, or any two
    metrics: Mapping[str, str]
    shared_space: bool  # whether rows of both views can be compared
    texts: Mapping[str, list[str]] | None = None
    labels: np.ndarray | None = None  # class of a row in every view

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
