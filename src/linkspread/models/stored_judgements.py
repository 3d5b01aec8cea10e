"""Pairs of a link store taken up by a fitted model."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from linkspread.ground.errors import ConflictWarning, LinkspreadError
from linkspread.links import Items, Links
from linkspread.storage import PairColumns

ViewPair = tuple[str, str]


class TakenPairs(NamedTuple):
    """Pairs of a store whose items a model has."""

    links: Links | None
    n_pairs: int
    n_unknown: int


def take_pairs(
    columns: Mapping[ViewPair, PairColumns], items: Mapping[str, Items]
) -> TakenPairs:
    """Return as links those pairs of a store whose items are there."""
    links, n_pairs, n_unknown = None, 0, 0
    for between, pairs in columns.items():
        known = _known(between, pairs, items)
        n_pairs, n_unknown = n_pairs + known.sum(), n_unknown + (~known).sum()
        if known.any():
            some = PairColumns(*(own[known] for own in pairs))
            with _conflicts_allowed():
                found = Links.from_pairs(some, between=between)
            links = found if links is None else links + found
    return TakenPairs(links, int(n_pairs), int(n_unknown))


def change_links(model: Any, added: Links | None, removed: Links | None) -> None:
    """Add links and remove others; a mistake leaves the model as it was."""
    with _conflicts_allowed():
        if added is not None:
            model.add_links(added)
        try:
            if removed is not None:
                model.remove_links(removed)
        except LinkspreadError:
            if added is not None:
                model.remove_links(added)
            raise


def _known(
    between: ViewPair, pairs: PairColumns, items: Mapping[str, Items]
) -> np.ndarray:
    """Tell of which pairs both items are there."""
    if not set(between) <= items.keys():
        return np.zeros(len(pairs.weight), dtype=bool)
    left = items[between[0]].contains(pairs.left)
    return left & items[between[1]].contains(pairs.right)


@contextmanager
def _conflicts_allowed() -> Iterator[None]:
    """Keep silent about pairs of which people say different things: they add up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConflictWarning)
        yield
