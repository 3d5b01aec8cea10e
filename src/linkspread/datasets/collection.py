"""The collections that loaders return, with classes or with partners."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


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
    # Of catalogues, all columns but the ids, as texts.
    columns: Mapping[str, Mapping[str, list[str]]] | None = None
    labels: np.ndarray | None = None  # class of a row in every view

    def __repr__(self) -> str:
        space = " in a shared space" if self.shared_space else ""
        return f"Partners({len(self.pairs)} pairs{space}, {_shapes(self.views)})"


def _shapes(views: Mapping[str, Any]) -> str:
    """Return the shape of each view."""
    return ", ".join(f"{v}: {X.shape[0]} x {X.shape[1]}" for v, X in views.items())
