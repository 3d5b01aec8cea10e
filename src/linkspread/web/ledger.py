"""What people have said of pairs, kept up with a store a row at a time.

`LinkStore.pairs` reads all rows. This says the same after each new row, at a cost that
does not grow with what was judged before.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from linkspread.storage import Judgement, PairColumns, Undo

Item = tuple[str, str]
PairKey = tuple[Item, Item]
SIGNS = {"must": 1.0, "cannot": -1.0}


class LedgerChanges(NamedTuple):
    """Links to add and links to take away, by the views they are between."""

    added: dict[tuple[str, str], PairColumns]
    removed: dict[tuple[str, str], PairColumns]


def pair_key(first: Item, second: Item) -> PairKey:
    """Return view and id of two items, in whichever order they were given."""
    left, right = sorted([(first[0], str(first[1])), (second[0], str(second[1]))])
    return left, right


class Ledger:
    """Last words of all people, and which of them a model has taken up."""

    def __init__(self) -> None:
        self._said: dict[PairKey, tuple[Judgement, ...]] = {}
        self._pair_of: dict[str, PairKey] = {}
        self._counted: dict[PairKey, tuple[float, ...]] = {}
        self._touched: set[PairKey] = set()
        self.verdicts: Counter[str] = Counter()

    def take(self, rows: Iterable[Judgement | Undo]) -> None:
        """Read further rows of the store, in their order."""
        for row in rows:
            if isinstance(row, Undo):
                self._take_back(row)
            else:
                self._take_up(row)

    def words(self, pair: PairKey) -> dict[str, Judgement]:
        """Return the last word of each person on a pair, by name."""
        return {own.who: own for own in self._said.get(pair, ())}

    def is_active(self, id: str) -> bool:
        """Tell whether a judgement is there and was not taken back."""
        return id in self._pair_of

    def disagreements(self) -> Iterator[PairKey]:
        """Yield the pairs of which some say must and others cannot."""
        for pair in list(self._said):
            said = {own.verdict for own in self.words(pair).values()}
            if said >= SIGNS.keys():
                yield pair

    def changes(self) -> LedgerChanges:
        """Return what a model must add and remove to follow all rows so far."""
        added: dict[tuple[str, str], list[tuple[str, str, float]]] = defaultdict(list)
        removed: dict[tuple[str, str], list[tuple[str, str, float]]] = defaultdict(list)
        for pair in sorted(self._touched):
            views = pair[0][0], pair[1][0]
            now, before = Counter(self._weights(pair)), Counter(self._counted.get(pair))
            ids = pair[0][1], pair[1][1]
            added[views] += [(*ids, weight) for weight in (now - before).elements()]
            removed[views] += [(*ids, weight) for weight in (before - now).elements()]
        return LedgerChanges(_columns(added), _columns(removed))

    def settle(self) -> None:
        """Note that a model has taken up all changes."""
        for pair in self._touched:
            self._counted[pair] = self._weights(pair)
            if not self._counted[pair]:
                del self._counted[pair]
        self._touched.clear()

    def _take_up(self, row: Judgement) -> None:
        """Add a judgement."""
        left = row.left_view, str(row.left_id)
        pair = pair_key(left, (row.right_view, str(row.right_id)))
        self._pair_of[row.id] = pair
        self._replace(pair, (*self._said.get(pair, ()), row))

    def _take_back(self, row: Undo) -> None:
        """Forget a judgement, so that what its maker said before counts again."""
        pair = self._pair_of.pop(row.takes_back, None)
        if pair is not None:
            said = self._said[pair]
            self._replace(pair, tuple(own for own in said if own.id != row.takes_back))

    def _replace(self, pair: PairKey, said: tuple[Judgement, ...]) -> None:
        """Put other judgements in the place of those of a pair."""
        self.verdicts.subtract(own.verdict for own in self.words(pair).values())
        # One assignment, so that who reads meanwhile sees all or nothing of it.
        self._said[pair] = said
        self.verdicts.update(own.verdict for own in self.words(pair).values())
        self._touched.add(pair)

    def _weights(self, pair: PairKey) -> tuple[float, ...]:
        """Return what each person's last word weighs."""
        said = [own for own in self.words(pair).values() if own.verdict in SIGNS]
        return tuple(sorted(SIGNS[own.verdict] * own.weight for own in said))


def _columns(
    rows: dict[tuple[str, str], list[tuple[str, str, float]]],
) -> dict[tuple[str, str], PairColumns]:
    """Return pairs as columns, without views that have none."""
    return {
        views: PairColumns(*(np.array(own) for own in zip(*pairs, strict=True)))
        for views, pairs in rows.items()
        if pairs
    }
