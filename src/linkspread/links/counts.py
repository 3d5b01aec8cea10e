"""How many links there are, of which kind."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkspread.links.collection import Links

__all__ = ["LabelCount", "PairCount", "count_links"]


@dataclass(frozen=True)
class PairCount:
    """Single pairs of two views, or within one.

    Attributes
    ----------
    between : tuple of two str
    n_must, n_cannot : int
        Pairs that are judged, a repeated one once by the sum of its weights.
    """

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
    """Labelled items of one view.

    Attributes
    ----------
    view : str
    n_items : int
        Items that have a label.
    n_classes : int
        Classes that any of them has.
    """

    view: str
    n_items: int
    n_classes: int

    def __str__(self) -> str:
        classes = "1 class" if self.n_classes == 1 else f"{self.n_classes:,} classes"
        return f"{self.view}: {self.n_items:,} labels of {classes}"


def count_links(links: Links) -> list[PairCount | LabelCount]:
    """Count links by kind.

    Parameters
    ----------
    links : Links
        Resolved.

    Returns
    -------
    counts : list of LabelCount and PairCount
        Labels first.

    Examples
    --------
    >>> import linkspread as ls
    >>> from linkspread.links.counts import count_links
    >>> pairs = [(0, 1, 1.0), (0, 2, -1.0), (1, 2, -1.0)]
    >>> links = ls.Links.from_pairs(pairs, between=("text", "image"))
    >>> print(*count_links(links.resolve({"text": 3, "image": 3})))
    text and image: 1 must, 2 cannot
    """
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
