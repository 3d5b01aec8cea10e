"""Judgements: what can be stored, and what is said of the rest."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import pytest

from link_store_places import judge
from linkspread.ground.errors import LinkError
from linkspread.storage.judgements import Undo, check_judgement, check_undo


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"who": ""}, "`who` must be a text of 1 to 200 characters, got 0"),
        ({"who": "a" * 201}, "`who` must be a text of 1 to 200 characters, got 201"),
        ({"who": None}, "`who` must be a text of 1 to 200 characters, got None"),
        ({"left_view": "v" * 201}, "`left_view` must be a text of 1 to 200 characters"),
        (
            {"right_view": 7},
            "`right_view` must be a text of 1 to 200 characters, got 7",
        ),
        ({"left_id": "i" * 1001}, "`left_id` must be a text of 1 to 1,000 characters"),
        ({"right_id": ""}, "`right_id` must be a text of 1 to 1,000 characters"),
        (
            {"left_id": 1.5},
            "`left_id` must be a text or an integer of 64 bits, got 1.5",
        ),
        ({"left_id": True}, "`left_id` must be a text or an integer"),
        ({"right_id": 2**63}, "`right_id` must be a text or an integer of 64 bits"),
        ({"note": "n" * 10_001}, "`note` must be a text of 0 to 10,000 characters"),
        ({"note": "a\0b"}, r"`note` must be a text without NUL .*, got 'a\\x"),
        ({"left_id": "\ud800"}, "`left_id` must be a text without NUL"),
        ({"verdict": "maybe"}, "`verdict` must be one of must, cannot, unsure, got"),
        ({"verdict": "undo"}, "`verdict` must be one of must, cannot, unsure, got"),
        ({"weight": 0}, "`weight` must be between 1e-06 and 1e\\+06, got 0"),
        ({"weight": -1.0}, "`weight` must be between 1e-06 and 1e\\+06, got -1.0"),
        ({"weight": np.inf}, "`weight` must be between 1e-06 and 1e\\+06, got inf"),
        ({"weight": "much"}, "`weight` must be between 1e-06 and 1e\\+06, got 'much'"),
        ({"id": "7"}, "`id` must be a UUID such as .* got '7'"),
        ({"id": 7}, "`id` must be a UUID such as .* got 7"),
        ({"at": datetime(2026, 1, 1)}, "`at` must be a datetime with a time zone"),
        ({"at": "today"}, "`at` must be a datetime with a time zone, got 'today'"),
        (
            {"right_view": "text", "right_id": "t1"},
            "a pair must be two items, got .'text', 't1'",
        ),
    ],
)
def test_what_cannot_be_stored_is_refused(changes, message):
    with pytest.raises(LinkError, match=message):
        check_judgement(judge(**changes))


def test_only_judgements_are_taken():
    with pytest.raises(LinkError, match="must be `Judgement` objects, got 'tuple'"):
        check_judgement(("t1", 7))


def test_the_longest_texts_are_taken():
    longest = judge("w" * 200, left_id="i" * 1000, note="n" * 10_000)
    assert check_judgement(longest) == longest


def test_numbers_and_texts_of_numpy_become_plain():
    given = judge(left_id=np.str_("t1"), right_id=np.int32(7), weight=np.float32(0.5))
    checked = check_judgement(replace(given, number=3))
    assert checked == replace(given, left_id="t1", right_id=7, weight=0.5)
    plain = [type(checked.left_id), type(checked.right_id), type(checked.weight)]
    assert plain == [str, int, float]


def test_an_id_is_new_and_the_time_is_now():
    first, second = judge(), judge()
    assert UUID(first.id) != UUID(second.id)
    assert first.at.tzinfo is UTC
    assert abs((datetime.now(UTC) - first.at).total_seconds()) < 60


@pytest.mark.parametrize(
    ("changes", "name"), [({"who": ""}, "who"), ({"note": "\0"}, "note")]
)
def test_an_undo_is_checked_too(changes, name):
    undo = Undo(who="ann", takes_back=judge().id)
    assert check_undo(undo) == undo
    with pytest.raises(LinkError, match=f"`{name}` must"):
        check_undo(replace(undo, **changes))
