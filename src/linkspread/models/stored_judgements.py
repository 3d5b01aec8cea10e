"""Apply the pairs of a link store to a fitted model."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from linkspread.ground.errors import ConflictWarning
from linkspread.links import Items, Links
from linkspread.storage import PairColumns

ViewPair = tuple[str, str]


class KnownPairs(NamedTuple):
    """The pairs of a store whose items a model has, and the number of others."""

    links: Links | None
    n_pairs: int
    n_unknown: int


def known_pairs(
    columns: Mapping[ViewPair, PairColumns], items: Mapping[str, Items]
) -> KnownPairs:
    """Return the pairs of a store whose items are known, as links."""
    links, n_pairs, n_unknown = None, 0, 0
    for between, pairs in columns.items():
        known = _known(between, pairs, items)
        n_pairs, n_unknown = n_pairs + known.sum(), n_unknown + (~known).sum()
        if known.any():
            some = PairColumns(*(own[known] for own in pairs))
            with _conflicts_allowed():
                found = Links.from_pairs(some, between=between)
            links = found if links is None else links + found
    return KnownPairs(links, int(n_pairs), int(n_unknown))


def change_links(model: Any, added: Links | None, removed: Links | None) -> None:
    """Add links and remove others; an error leaves the model as it was."""
    with _conflicts_allowed():
        model.change_links(added=added, removed=removed)


def _known(
    between: ViewPair, pairs: PairColumns, items: Mapping[str, Items]
) -> np.ndarray:
    """Return which pairs have two known items."""
    if not set(between) <= items.keys():
        return np.zeros(len(pairs.weight), dtype=bool)
    left = items[between[0]].contains(pairs.left)
    return left & items[between[1]].contains(pairs.right)


@contextmanager
def _conflicts_allowed() -> Iterator[None]:
    """Silence warnings about conflicting judgements of a pair: they add up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConflictWarning)
        yield
