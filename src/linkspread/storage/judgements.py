"""Judgements of pairs of items by people, and their undo."""

import math
import operator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

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
