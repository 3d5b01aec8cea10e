"""What the judgements of several people say of pairs of items."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from linkspread.storage.judgements import Judgement

Array = np.ndarray
ViewPair = tuple[str, str]
Item = tuple[str, str]

SIGNS = {"must": 1.0, "cannot": -1.0}


class PairColumns(NamedTuple):
    """The judged pairs of two views, a row for each person and pair."""

    left: Array
    right: Array
    weight: Array


@dataclass(frozen=True)
class Disagreement:
    """People who say different things of a pair."""

    between: ViewPair
    left: str | int
    right: str | int
    must: tuple[str, ...]
    cannot: tuple[str, ...]


@dataclass(frozen=True)
class JudgedPairs:
    """What a store says of pairs, at one moment."""

    number: int
    columns: dict[ViewPair, PairColumns]
    disagreements: list[Disagreement]


def gather_pairs(judgements: Iterable[Judgement], number: int) -> JudgedPairs:
    """Return what judgements, in their order, say: of each person the last word."""
    words: dict[tuple[str, Item, Item], Judgement] = {}
    for judgement in judgements:
        first, second = sorted(judged_items(judgement))
        key = judgement.who, first, second
        # Out and in again: what was said last stands last.
        words.pop(key, None)
        words[key] = judgement
    said = [_turned(word) for word in words.values() if word.verdict in SIGNS]
    by_views: dict[ViewPair, list[Judgement]] = defaultdict(list)
    for judgement in said:
        by_views[judgement.left_view, judgement.right_view].append(judgement)
    columns = {views: _columns(rows) for views, rows in sorted(by_views.items())}
    return JudgedPairs(number, columns, _disagreements(said))


def judged_items(judgement: Judgement) -> tuple[Item, Item]:
    """Return view and id of both items; 7 and "7" are one."""
    left = judgement.left_view, str(judgement.left_id)
    return left, (judgement.right_view, str(judgement.right_id))


def _turned(judgement: Judgement) -> Judgement:
    """Return a judgement with its items in order, so that a pair is always the same."""
    left, right = judged_items(judgement)
    if left <= right:
        return judgement
    values: dict[str, Any] = vars(judgement) | {
        "left_view": judgement.right_view,
        "left_id": judgement.right_id,
        "right_view": judgement.left_view,
        "right_id": judgement.left_id,
    }
    return Judgement(**values)


def _columns(judgements: list[Judgement]) -> PairColumns:
    """Return judgements on two views as columns."""
    left = [judgement.left_id for judgement in judgements]
    right = [judgement.right_id for judgement in judgements]
    if judgements[0].left_view == judgements[0].right_view:
        # Both are ids of one view, so one text makes all of them texts.
        both = _ids(left + right)
        return PairColumns(both[: len(left)], both[len(left) :], _weights(judgements))
    return PairColumns(_ids(left), _ids(right), _weights(judgements))


def _weights(judgements: list[Judgement]) -> Array:
    """Return the weights of judgements, with the sign of their verdicts."""
    return np.array([SIGNS[word.verdict] * word.weight for word in judgements])


def _ids(ids: list[str | int]) -> Array:
    """Return ids as integers where all are, or else as texts."""
    if all(isinstance(item, int) for item in ids):
        return np.array(ids, dtype=np.int64)
    return np.array([str(item) for item in ids])


def _disagreements(judgements: list[Judgement]) -> list[Disagreement]:
    """Return the pairs of which some say must and others cannot."""
    by_pair: dict[tuple[Item, Item], list[Judgement]] = defaultdict(list)
    for judgement in judgements:
        by_pair[judged_items(judgement)].append(judgement)
    return [
        Disagreement(
            between=(first.left_view, first.right_view),
            left=first.left_id,
            right=first.right_id,
            must=_people(group, "must"),
            cannot=_people(group, "cannot"),
        )
        for group in by_pair.values()
        if len({word.verdict for word in group}) > 1
        for first in group[:1]
    ]


def _people(judgements: list[Judgement], verdict: str) -> tuple[str, ...]:
    """Return who gave a verdict, by name."""
    return tuple(sorted(word.who for word in judgements if word.verdict == verdict))
