"""How many links there are, of which kind."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkspread.links.collection import Links


@dataclass(frozen=True)
class PairCount:
    """Single pairs of two views, or within one."""

    between: tuple[str, str]
    n_must: int
    n_cannot: int

    def __str__(self) -> str:
        return (
            f"{self.between[0]} and {self.between[1]}: {self.n_must:,} must, "
            f"{self.n_cannot:,} cannot"
        )


@dataclass(frozen=True)
class LabelCount:
    """Labelled items of one view."""

    view: str
    n_items: int
    n_classes: int

    def __str__(self) -> str:
        classes = "1 class" if self.n_classes == 1 else f"{self.n_classes:,} classes"
        return f"{self.view}: {self.n_items:,} labels of {classes}"


def count_links(links: Links) -> list[PairCount | LabelCount]:
    """Count links by kind."""
    labels = {view: links.memberships(view) for view in links.views}
    found: list[PairCount | LabelCount] = [
        _count_labels(view, own) for view, own in labels.items() if own is not None
    ]
    # The same two views may be named in either order.
    pairs = {frozenset(between): between for between, _ in links.pair_tables}
    return found + [_count_pairs(links, between) for between in pairs.values()]


def _count_labels(view: str, memberships: Any) -> LabelCount:
    """Count the items of a view that have a label."""
    known = memberships > 0
    n_items, n_classes = (
        int(np.count_nonzero(np.asarray(known.sum(axis=axis)))) for axis in (1, 0)
    )
    return LabelCount(view, n_items, n_classes)


def _count_pairs(links: Links, between: tuple[str, str]) -> PairCount:
    """Count the pairs of two views; those within a view stand there twice."""
    weights = links.judged(*between).data
    twice = 2 if between[0] == between[1] else 1
    n_must, n_cannot = int(np.sum(weights > 0)), int(np.sum(weights < 0))
    return PairCount(between, n_must // twice, n_cannot // twice)
