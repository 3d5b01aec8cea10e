"""A model that follows a link store: judged pairs as links, each applied once."""

import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np

from linkspread.ground.errors import ConflictWarning, LinkspreadError
from linkspread.links import Items, Links
from linkspread.storage import Ledger, LinkStore, PairColumns

ViewPair = tuple[str, str]
Pair = tuple[Any, Any, float]
CountedPair = tuple[ViewPair, int, int, float]


class AppliedCounts(NamedTuple):
    """Pairs added to a model and removed, and pairs with items it does not have."""

    added: int
    removed: int
    unknown: int


class Follower:
    """A model that follows a store: each row is applied once."""

    def __init__(self, model: Any, store: LinkStore, *, applied: int = 0) -> None:
        self.model, self.store, self.number, self.row = model, store, applied, ""
        self.ledger, self.n_unknown = Ledger(), 0
        if applied:
            self.ledger.read(store.changes(limit=applied))
            self.ledger.mark_applied()

    def read(self) -> bool:
        """Read new rows of the store; return whether there were any."""
        rows = list(self.store.changes(after=self.number))
        self.ledger.read(rows)
        if rows:
            self.number, self.row = rows[-1].number or self.number, rows[-1].id
        return bool(rows)

    def apply(self) -> AppliedCounts:
        """Apply what was read; after an error the model is as it was."""
        changes = self.ledger.changes()
        self._add_kept_items(changes.added)
        added, removed = (known_pairs(own, self.model.items_) for own in changes)
        if added.links is not None or removed.links is not None:
            with conflicts_add_up():
                self.model.change_links(added=added.links, removed=removed.links)
        self.ledger.mark_applied()
        self.n_unknown += added.n_unknown - removed.n_unknown
        return AppliedCounts(added.n_pairs, removed.n_pairs, added.n_unknown)

    def _add_kept_items(self, columns: Mapping[ViewPair, PairColumns]) -> None:
        """Add judged queries that the store keeps to the views they belong to."""
        judged: dict[str, set[Any]] = defaultdict(set)
        for between, pairs in columns.items():
            for view, ids in zip(between, pairs[:2], strict=True):
                items = self.model.items_.get(view)
                if items is not None and ids.dtype.kind == "U":
                    judged[view].update(ids[~items.contains(ids)].tolist())
        for view, unknown in judged.items():
            for item in self.store.kept.read(view, sorted(unknown)):
                # Judgements of an item that the model cannot take wait for a fit.
                with suppress(LinkspreadError):
                    self.model.add_items(view, item.rows, ids=[item.id])


class KnownPairs(NamedTuple):
    """The pairs of a store whose items a model has, and the number of others."""

    links: Links | None
    n_pairs: int
    n_unknown: int

    def counted(self, items: Mapping[str, Items]) -> Counter[CountedPair]:
        """Count the pairs, as `count_pairs` does."""
        return count_pairs((self.links or Links()).resolve(items))


def known_pairs(
    columns: Mapping[ViewPair, PairColumns], items: Mapping[str, Items]
) -> KnownPairs:
    """Return the pairs of a store whose items are known, as links."""
    links, n_pairs, n_unknown = None, 0, 0
    for between, pairs in columns.items():
        known = np.zeros(len(pairs.weight), dtype=bool)
        if set(between) <= items.keys():
            known = items[between[0]].contains(pairs.left)
            known &= items[between[1]].contains(pairs.right)
        n_pairs, n_unknown = n_pairs + known.sum(), n_unknown + (~known).sum()
        if known.any():
            some = PairColumns(*(own[known] for own in pairs))
            with conflicts_add_up():
                found = Links.from_pairs(some, between=between)
                links = found if links is None else links + found
    return KnownPairs(links, int(n_pairs), int(n_unknown))


@contextmanager
def conflicts_add_up() -> Iterator[None]:
    """Silence warnings about contradictory judgements of a pair: they add up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConflictWarning)
        yield


def count_pairs(links: Links) -> Counter[CountedPair]:
    """Count judged pairs by views, positions and weight; matched rows are none."""
    found: Counter[CountedPair] = Counter()
    for between, table in links.pair_tables:
        i, j = (own.tolist() for own in table.known_positions(between))
        rows = zip(i, j, table.weights.tolist(), strict=True)
        for a, b, weight in () if table.by_row else rows:
            (left, a), (right, b) = sorted([(between[0], a), (between[1], b)])
            found[(left, right), a, b, weight] += 1
    return found


def list_pairs(
    counted: Counter[CountedPair], items: Mapping[str, Items]
) -> dict[ViewPair, list[Pair]]:
    """Return counted pairs by their views, with ids."""
    found: dict[ViewPair, list[Pair]] = defaultdict(list)
    for between, i, j, weight in counted.elements():
        left, right = items[between[0]].ids[i], items[between[1]].ids[j]
        found[between].append((left.item(), right.item(), weight))
    return found


def links_of(counted: Counter[CountedPair], items: Mapping[str, Items]) -> Links | None:
    """Return counted pairs as links, None for none."""
    links = None
    for between, pairs in list_pairs(counted, items).items():
        found = Links.from_pairs(pairs, between=between)
        links = found if links is None else links + found
    return links
