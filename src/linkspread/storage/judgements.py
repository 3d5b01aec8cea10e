"""Judgements of pairs of items by people, and their undo."""

import math
import operator
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import numpy as np

from linkspread.ground.checks import MAX_WEIGHT
from linkspread.ground.errors import LinkError
from linkspread.storage.files import brief

VERDICTS = ("must", "cannot", "unsure")
# Longest texts, and largest absolute value of an integer id.
MAX_LENGTHS = {"who": 200, "left_view": 200, "right_view": 200, "note": 10_000}
MAX_ITEM = 1_000
MAX_INTEGER = 2**63 - 1


def new_id() -> str:
    """Return a random UUID."""
    return str(uuid4())


def now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The verdict of a person on a pair of items, checked when added to a store."""

    who: str
    left_view: str
    left_id: str | int
    right_view: str
    right_id: str | int
    verdict: str
    weight: float = 1.0
    note: str = ""
    id: str = field(default_factory=new_id)
    at: datetime = field(default_factory=now)
    number: int | None = None


@dataclass(frozen=True, kw_only=True)
class Undo:
    """The undo of a judgement."""

    who: str
    takes_back: str
    note: str = ""
    id: str = field(default_factory=new_id)
    at: datetime = field(default_factory=now)
    number: int | None = None


def check_judgement(given: Any) -> Judgement:
    """Return a judgement in the form that is stored, or refuse it."""
    if not isinstance(given, Judgement):
        got = type(given).__name__
        raise _wrong("judgements", "`Judgement` objects", got, "Make them with that")
    if given.verdict not in VERDICTS:
        verdicts = f"one of {', '.join(VERDICTS)}"
        raise _wrong("`verdict`", verdicts, given.verdict, "Choose one of them")
    checked = replace(
        given,
        **{name: check_text(getattr(given, name), name) for name in MAX_LENGTHS},
        left_id=_check_item(given.left_id, "left_id"),
        right_id=_check_item(given.right_id, "right_id"),
        weight=_check_weight(given.weight),
        id=check_uuid(given.id, "id"),
        at=_check_time(given.at),
        number=None,
    )
    left = checked.left_view, str(checked.left_id)
    if left == (checked.right_view, str(checked.right_id)):
        raise _wrong("a pair", "two items", left, "Judge another pair")
    return checked


def check_undo(given: Undo) -> Undo:
    """Return an undo in the form that is stored, or refuse it."""
    return replace(
        given,
        who=check_text(given.who, "who"),
        takes_back=check_uuid(given.takes_back, "id"),
        note=check_text(given.note, "note"),
    )


def same_content(first: Judgement, second: Judgement) -> bool:
    """Return whether two judgements are the same but for their time."""
    return replace(first, at=second.at, number=second.number) == second


def check_uuid(given: Any, name: str) -> str:
    """Return a UUID in its usual spelling."""
    try:
        return str(UUID(given if isinstance(given, str) else ""))
    except ValueError:
        pass
    example = f"a UUID such as '{UUID(int=0)}'"
    raise _wrong(f"`{name}`", example, given, "Leave it out to get a new one")


def check_text(given: Any, name: str) -> str:
    """Return a text that both databases can hold; only notes may be empty."""
    fewest, most = int(name != "note"), MAX_LENGTHS.get(name, MAX_ITEM)
    if not isinstance(given, str) or not fewest <= len(given) <= most:
        rule = f"a text of {fewest} to {most:,} characters"
        got = len(given) if isinstance(given, str) else given
        raise _wrong(f"`{name}`", rule, got, "Give such a text")
    # Half of a surrogate pair, as in broken JSON, is not valid UTF-8.
    if "\0" in given or any("\ud800" <= letter <= "\udfff" for letter in given):
        rule = "a text without NUL and lone surrogates"
        raise _wrong(f"`{name}`", rule, given, "Remove that character")
    # The databases do not accept `numpy.str_`.
    return str(given)


def _check_item(given: Any, name: str) -> str | int:
    """Return the id of an item, a text or a plain integer."""
    if isinstance(given, str):
        return check_text(given, name)
    try:
        number = operator.index(given)
    except TypeError:
        number = MAX_INTEGER + 1
    if isinstance(given, bool) or abs(number) > MAX_INTEGER:
        rule = "a text or an integer of 64 bits"
        raise _wrong(f"`{name}`", rule, given, "Give the id of an item")
    return number


def _check_weight(given: Any) -> float:
    """Return a positive weight; its sign comes from the verdict."""
    try:
        weight = float(given)
    except (TypeError, ValueError):
        weight = math.nan
    if not 1 / MAX_WEIGHT <= weight <= MAX_WEIGHT:
        rule = f"between {1 / MAX_WEIGHT:g} and {MAX_WEIGHT:g}"
        raise _wrong("`weight`", rule, given, "Use `verdict` for must or cannot")
    return weight


def _check_time(given: Any) -> datetime:
    """Return a time in UTC."""
    try:
        if isinstance(given, datetime) and given.utcoffset() is not None:
            return given.astimezone(UTC)
    except OverflowError:
        # At the ends of the calendar.
        pass
    rule = "a datetime with a time zone"
    raise _wrong("`at`", rule, given, "Use `datetime.now(UTC)`, or leave it out")


def _wrong(what: str, rule: str, got: Any, remedy: str) -> LinkError:
    """Return the error about a part of a judgement."""
    return LinkError(f"{what} must be {rule}, got {brief(got)}. {remedy}.")


Array = np.ndarray
ViewPair = tuple[str, str]
Item = tuple[str, str]
PairKey = tuple[Item, Item]
Ids = tuple[str | int, str | int]

SIGNS = {"must": 1.0, "cannot": -1.0}


class PairColumns(NamedTuple):
    """The judged pairs of two views, a row for each person and pair."""

    left: Array
    right: Array
    weight: Array


class PairChanges(NamedTuple):
    """Judged pairs to add and to remove, by the views they are between."""

    added: dict[ViewPair, PairColumns]
    removed: dict[ViewPair, PairColumns]


@dataclass(frozen=True)
class Disagreement:
    """A pair with must-links and cannot-links of different people."""

    between: ViewPair
    left: str | int
    right: str | int
    must: tuple[str, ...]
    cannot: tuple[str, ...]


@dataclass(frozen=True)
class JudgedPairs:
    """The judged pairs of a store up to a row number."""

    number: int
    columns: dict[ViewPair, PairColumns]
    disagreements: list[Disagreement]


class Ledger:
    """The latest judgements of all people, and which of them a model has applied."""

    def __init__(self) -> None:
        self.verdicts: Counter[str] = Counter()
        self._judgements: dict[PairKey, tuple[Judgement, ...]] = {}
        # Of the judgements that were not undone, in the order of the rows.
        self._pair_of: dict[str, PairKey] = {}
        self._ids: dict[PairKey, Ids] = {}
        self._applied: dict[PairKey, tuple[float, ...]] = {}
        self._touched: set[PairKey] = set()

    def read(self, rows: Iterable[Judgement | Undo]) -> None:
        """Read more rows of a store, in their order."""
        for row in rows:
            if isinstance(row, Undo):
                self._undo(row)
            else:
                pair = pair_of(row)
                self._pair_of[row.id] = pair
                self._ids.setdefault(pair, _ids_in_order(row))
                self._replace(pair, (*self._judgements.get(pair, ()), row))

    def latest(self, pair: PairKey) -> dict[str, Judgement]:
        """Return the latest judgement of each person on a pair, by name."""
        return {own.who: own for own in self._judgements.get(pair, ())}

    def judged(self) -> list[PairKey]:
        """Return the pairs that somebody has judged."""
        return [pair for pair, said in list(self._judgements.items()) if said]

    def is_active(self, id: str) -> bool:
        """Return whether a judgement exists and was not undone."""
        return id in self._pair_of

    def disagreements(self) -> Iterator[PairKey]:
        """Yield the pairs judged must by some people and cannot by others."""
        for pair in list(self._judgements):
            if {own.verdict for own in self.latest(pair).values()} >= SIGNS.keys():
                yield pair

    def pairs(self, number: int) -> JudgedPairs:
        """Return all judged pairs, in the order of their latest judgements."""
        order = {id: place for place, id in enumerate(self._pair_of)}
        by_views: dict[ViewPair, list[Judgement]] = defaultdict(list)
        words = [own for pair in self._judgements for own in self.latest(pair).values()]
        for own in sorted(words, key=lambda own: order[own.id]):
            if own.verdict in SIGNS:
                by_views[_views(pair_of(own))].append(own)
        columns = {
            views: _columns(
                views, [(_ids_in_order(own), _signed(own)) for own in judgements]
            )
            for views, judgements in sorted(by_views.items())
        }
        return JudgedPairs(
            number, columns, [self._disagreement(pair) for pair in self.disagreements()]
        )

    def changes(self) -> PairChanges:
        """Return what a model must add and remove to follow all rows so far."""
        added: dict[ViewPair, list[tuple[Ids, float]]] = defaultdict(list)
        removed: dict[ViewPair, list[tuple[Ids, float]]] = defaultdict(list)
        for pair in sorted(self._touched):
            now, before = Counter(self._weights(pair)), Counter(self._applied.get(pair))
            for found, weights in ((added, now - before), (removed, before - now)):
                found[_views(pair)] += [
                    (self._ids[pair], w) for w in weights.elements()
                ]
        return PairChanges(
            *(
                {views: _columns(views, rows) for views, rows in found.items() if rows}
                for found in (added, removed)
            )
        )

    def mark_applied(self) -> None:
        """Mark all changes as applied."""
        for pair in self._touched:
            self._applied[pair] = self._weights(pair)
            if not self._applied[pair]:
                del self._applied[pair]
        self._touched.clear()

    def _undo(self, row: Undo) -> None:
        """Remove a judgement, so that the person's previous one counts again."""
        pair = self._pair_of.pop(row.takes_back, None)
        if pair is not None:
            said = self._judgements[pair]
            self._replace(pair, tuple(own for own in said if own.id != row.takes_back))

    def _replace(self, pair: PairKey, said: tuple[Judgement, ...]) -> None:
        """Replace the judgements of a pair."""
        self.verdicts.subtract(own.verdict for own in self.latest(pair).values())
        # A single assignment, so that concurrent readers see all of it or nothing.
        self._judgements[pair] = said
        self.verdicts.update(own.verdict for own in self.latest(pair).values())
        self._touched.add(pair)

    def _weights(self, pair: PairKey) -> tuple[float, ...]:
        """Return the signed weights of the latest judgements of a pair."""
        words = self.latest(pair).values()
        return tuple(sorted(_signed(own) for own in words if own.verdict in SIGNS))

    def _disagreement(self, pair: PairKey) -> Disagreement:
        """Return who judged a pair must, and who cannot."""
        words = self.latest(pair)
        people = [
            tuple(sorted(who for who, own in words.items() if own.verdict == verdict))
            for verdict in SIGNS
        ]
        return Disagreement(_views(pair), *self._ids[pair], *people)


def drop_repeated(
    judgements: Iterable[Judgement], known: Iterable[Judgement]
) -> list[Judgement]:
    """Return the judgements that differ from the same person's previous one."""
    said = {(own.who, pair_of(own)): (own.verdict, own.weight) for own in known}
    new = []
    for own in judgements:
        key, word = (own.who, pair_of(own)), (own.verdict, own.weight)
        if said.get(key) != word:
            new.append(own)
            said[key] = word
    return new


def pair_key(first: tuple[str, str | int], second: tuple[str, str | int]) -> PairKey:
    """Return view and id of two items, in order; 7 and "7" are one id."""
    left, right = sorted([(first[0], str(first[1])), (second[0], str(second[1]))])
    return left, right


def pair_of(judgement: Judgement) -> PairKey:
    """Return the pair that is judged, in whichever order it was given."""
    return pair_key(
        (judgement.left_view, judgement.left_id),
        (judgement.right_view, judgement.right_id),
    )


def _ids_in_order(judgement: Judgement) -> Ids:
    """Return the ids as they were given, in the order of the pair."""
    ids = judgement.left_id, judgement.right_id
    left = judgement.left_view, str(judgement.left_id)
    return ids if left == pair_of(judgement)[0] else ids[::-1]


def _views(pair: PairKey) -> ViewPair:
    """Return the views of a pair."""
    return pair[0][0], pair[1][0]


def _signed(judgement: Judgement) -> float:
    """Return a weight with the sign of its verdict."""
    return SIGNS[judgement.verdict] * judgement.weight


def _columns(views: ViewPair, rows: list[tuple[Ids, float]]) -> PairColumns:
    """Return pairs of two views as columns."""
    left = [ids[0] for ids, _ in rows]
    right = [ids[1] for ids, _ in rows]
    weight = np.array([weight for _, weight in rows])
    if views[0] == views[1]:
        # Ids of one view have one type: if any is a text, all are.
        both = _as_column(left + right)
        return PairColumns(both[: len(left)], both[len(left) :], weight)
    return PairColumns(_as_column(left), _as_column(right), weight)


def _as_column(ids: list[str | int]) -> Array:
    """Return ids as integers if all are, else as texts."""
    if all(isinstance(item, int) for item in ids):
        return np.array(ids, dtype=np.int64)
    return np.array([str(item) for item in ids])
