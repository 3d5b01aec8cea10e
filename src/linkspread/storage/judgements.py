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
MAX_WHO, MAX_VIEW, MAX_ITEM, MAX_NOTE = 200, 200, 1_000, 10_000
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
        raise LinkError(
            "judgements must be `Judgement` objects, got "
            f"{type(given).__name__}. Make them with `storage.Judgement(who=...)`."
        )
    if given.verdict not in VERDICTS:
        raise LinkError(
            f"`verdict` must be one of {', '.join(VERDICTS)}, got "
            f"{brief(given.verdict)}. Choose one of them."
        )
    checked = replace(
        given,
        who=_check_text(given.who, "who", MAX_WHO),
        left_view=_check_text(given.left_view, "left_view", MAX_VIEW),
        left_id=_check_item(given.left_id, "left_id"),
        right_view=_check_text(given.right_view, "right_view", MAX_VIEW),
        right_id=_check_item(given.right_id, "right_id"),
        weight=_check_weight(given.weight),
        note=_check_text(given.note, "note", MAX_NOTE, may_be_empty=True),
        id=check_uuid(given.id, "id"),
        at=_check_time(given.at),
        number=None,
    )
    _check_pair(checked)
    return checked


def check_undo(given: Undo) -> Undo:
    """Return an undo in the form that is stored, or refuse it."""
    return replace(
        given,
        who=_check_text(given.who, "who", MAX_WHO),
        takes_back=check_uuid(given.takes_back, "id"),
        note=_check_text(given.note, "note", MAX_NOTE, may_be_empty=True),
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
    raise LinkError(
        f"`{name}` must be a UUID such as '{UUID(int=0)}', got {brief(given)}. "
        "Leave it out to get a new one, or use `uuid.uuid4()`."
    )


def _check_text(given: Any, name: str, most: int, *, may_be_empty: bool = False) -> str:
    """Return a text that both databases can hold."""
    fewest = 0 if may_be_empty else 1
    if not isinstance(given, str) or not fewest <= len(given) <= most:
        got = f"{len(given):,} characters" if isinstance(given, str) else brief(given)
        raise LinkError(
            f"`{name}` must be a text of {fewest} to {most:,} characters, got {got}. "
            "Give such a text."
        )
    # Half of a surrogate pair, as in broken JSON, is not valid UTF-8.
    if "\0" in given or any("\ud800" <= letter <= "\udfff" for letter in given):
        raise LinkError(
            f"`{name}` must have no NUL and no lone surrogate, got {brief(given)}. "
            "Remove that character."
        )
    # The databases do not accept `numpy.str_`.
    return str(given)


def _check_item(given: Any, name: str) -> str | int:
    """Return the id of an item, a text or a plain integer."""
    if isinstance(given, str):
        return _check_text(given, name, MAX_ITEM)
    try:
        number = operator.index(given)
    except TypeError:
        number = None
    if number is None or isinstance(given, bool) or abs(number) > MAX_INTEGER:
        raise LinkError(
            f"`{name}` must be a text or an integer of 64 bits, got {brief(given)}. "
            "Give the id of an item."
        )
    return number


def _check_weight(given: Any) -> float:
    """Return a positive weight; its sign comes from the verdict."""
    try:
        weight = float(given)
    except (TypeError, ValueError):
        weight = math.nan
    if not 1 / MAX_WEIGHT <= weight <= MAX_WEIGHT:
        raise LinkError(
            f"`weight` must be between {1 / MAX_WEIGHT:g} and {MAX_WEIGHT:g}, got "
            f"{brief(given)}. Use `verdict` for must or cannot."
        )
    return weight


def _check_time(given: Any) -> datetime:
    """Return a time in UTC."""
    try:
        if isinstance(given, datetime) and given.utcoffset() is not None:
            return given.astimezone(UTC)
    except OverflowError:
        # At the ends of the calendar.
        pass
    raise LinkError(
        f"`at` must be a datetime with a time zone, got {brief(given)}. Use "
        "`datetime.now(UTC)`, or leave it out."
    )


def _check_pair(judgement: Judgement) -> None:
    """Refuse to compare an item with itself."""
    left = judgement.left_view, str(judgement.left_id)
    if left == (judgement.right_view, str(judgement.right_id)):
        raise LinkError(
            f"a pair must be two items, got {brief(left[1])} of view "
            f"{brief(left[0])} twice. Judge another pair."
        )
