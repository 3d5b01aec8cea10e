"""Pairs judged one after the other, each answer stored at once."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from linkspread.cli.asking import tell
from linkspread.storage import Judgement, LinkStore

KEYS = {"y": "must", "n": "cannot", "u": "unsure"}
PROMPT = "Do they belong together? [y]es [n]o [u]nsure, [z] undo, [q]uit: "


class Answer(NamedTuple):
    """What was said of a pair, and where that is in the store."""

    place: int
    id: str
    verdict: str


def judge_pairs(
    store: LinkStore,
    pairs: Sequence[tuple[Any, Any]],
    *,
    between: tuple[str, str],
    who: str,
    show: Callable[[int], None],
) -> list[Answer]:
    """Ask about pairs on the terminal, and return the answers that count."""
    answers: list[Answer] = []
    place = 0
    while place < len(pairs):
        show(place)
        key = _read_key()
        if key == "q":
            break
        if key == "z":
            place = _take_back(store, answers, place, who)
        elif key in KEYS:
            judgement = _judgement(pairs[place], between, who, KEYS[key])
            answers.append(Answer(place, store.add(judgement), KEYS[key]))
            place += 1
        else:
            tell("Please answer y, n, u, z or q.")
    return answers


def _take_back(store: LinkStore, answers: list[Answer], place: int, who: str) -> int:
    """Undo the last answer, and return the place of its pair, which is asked again."""
    if not answers:
        tell("There is nothing to undo.")
        return place
    last = answers.pop()
    store.undo(last.id, who=who)
    tell("The last answer is undone.")
    return last.place


def _judgement(
    pair: tuple[Any, Any], between: tuple[str, str], who: str, verdict: str
) -> Judgement:
    """Return an answer as a judgement."""
    return Judgement(
        who=who,
        left_view=between[0],
        left_id=pair[0],
        right_view=between[1],
        right_id=pair[1],
        verdict=verdict,
    )


def _read_key() -> str:
    """Return the first letter of the next line; the end of the input is a q."""
    print(PROMPT, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        return "q"
    return line.strip().lower()[:1]
