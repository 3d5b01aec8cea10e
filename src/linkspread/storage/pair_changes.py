"""What changed between two states of a store, and what it has not been told yet."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from linkspread.storage.judged_pairs import (
    JudgedPairs,
    PairColumns,
    ViewPair,
    judged_items,
)
from linkspread.storage.judgements import Judgement

Row = tuple[str, str, float]


@dataclass(frozen=True)
class PairChanges:
    """Pairs that came and pairs that went between two states of a store."""

    added: dict[ViewPair, PairColumns]
    removed: dict[ViewPair, PairColumns]


def compare_pairs(before: JudgedPairs, after: JudgedPairs) -> PairChanges:
    """Return what must be added to the pairs of one state, and removed, for another."""
    return PairChanges(_surplus(after, before), _surplus(before, after))


def not_said_before(
    judgements: Iterable[Judgement], known: Iterable[Judgement]
) -> list[Judgement]:
    """Return the judgements that say something other than their people said last."""
    said = {_key(judgement): _word(judgement) for judgement in known}
    new = []
    for judgement in judgements:
        if said.get(_key(judgement)) != _word(judgement):
            new.append(judgement)
            said[_key(judgement)] = _word(judgement)
    return new


def _surplus(pairs: JudgedPairs, others: JudgedPairs) -> dict[ViewPair, PairColumns]:
    """Return the rows of some pairs that others do not have, or not as often."""
    found = {}
    for views, columns in pairs.columns.items():
        rows = _rows(columns)
        # Minus keeps counts above 0 only.
        left_over = Counter(rows) - Counter(_rows(others.columns.get(views)))
        chosen = [k for k, row in enumerate(rows) if _takes(left_over, row)]
        if chosen:
            found[views] = PairColumns(*(np.take(own, chosen) for own in columns))
    return found


def _rows(columns: PairColumns | None) -> list[Row]:
    """Return pairs as rows; 7 and "7" name the same item."""
    if columns is None:
        return []
    ids = columns.left.astype(str).tolist(), columns.right.astype(str).tolist()
    return list(zip(*ids, columns.weight.tolist(), strict=True))


def _takes(left_over: Counter[Row], row: Row) -> bool:
    """Tell whether a row is left over, and count it as taken."""
    if left_over[row] < 1:
        return False
    left_over[row] -= 1
    return True


def _key(judgement: Judgement) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return who judged which pair, in whichever order it was given."""
    return judgement.who, tuple(sorted(judged_items(judgement)))


def _word(judgement: Judgement) -> tuple[str, float]:
    """Return what was said of a pair."""
    return judgement.verdict, float(judgement.weight)
