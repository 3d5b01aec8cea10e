"""What several people say of pairs: by plain loops, row by row, and as changes."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from link_store_places import judge
from linkspread.storage import Judgement, Ledger, LinkStore
from linkspread.storage.judgements import drop_repeated, pair_key

VIEWS, IDS = ["text", "image"], ["1", 1, 2, "b"]
JUDGEMENTS = st.builds(
    judge,
    who=st.sampled_from(["ann", "bob", "cem"]),
    verdict=st.sampled_from(["must", "cannot", "unsure"]),
    left_view=st.sampled_from(VIEWS),
    left_id=st.sampled_from(IDS),
    right_view=st.sampled_from(VIEWS),
    right_id=st.sampled_from(IDS),
    weight=st.sampled_from([0.5, 1.0, 2.0]),
)


def gather_pairs(judgements, number):
    """Return the judged pairs of the rows of a store."""
    ledger = Ledger()
    ledger.read(judgements)
    return ledger.pairs(number)


def items(one):
    left, right = (one.left_view, str(one.left_id)), (one.right_view, str(one.right_id))
    return frozenset([left, right])


def last_words(judgements):
    """Return the signed weight of each person and pair, by the definition."""
    found = {}
    for i, one in enumerate(judgements):
        later = judgements[i + 1 :]
        key = one.who, items(one)
        if one.verdict != "unsure" and key not in [(o.who, items(o)) for o in later]:
            found[key] = one.weight if one.verdict == "must" else -one.weight
    return found


@given(st.lists(JUDGEMENTS, max_size=30))
def test_pairs_are_the_last_words(judgements):
    judgements = [one for one in judgements if len(items(one)) == 2]
    expected = last_words(judgements)
    pairs = gather_pairs(judgements, 9)
    found = []
    for (first, second), columns in pairs.columns.items():
        assert first <= second
        for left, right, weight in zip(*columns, strict=True):
            pair = frozenset([(first, str(left)), (second, str(right))])
            found.append((pair, weight))
    wanted = [(pair, weight) for (_, pair), weight in expected.items()]
    assert pairs.number == 9
    key = lambda row: (sorted(row[0]), row[1])  # noqa: E731
    assert sorted(found, key=key) == sorted(wanted, key=key)
    disputed = {pair for (_, pair), weight in expected.items() if weight > 0} & {
        pair for (_, pair), weight in expected.items() if weight < 0
    }
    told = {}
    for one in pairs.disagreements:
        pair = zip(one.between, map(str, [one.left, one.right]), strict=True)
        told[frozenset(pair)] = one
    assert told.keys() == disputed
    for pair, one in told.items():
        people = {who: w for (who, judged), w in expected.items() if judged == pair}
        assert one.must == tuple(sorted(who for who in people if people[who] > 0))
        assert one.cannot == tuple(sorted(who for who in people if people[who] < 0))


def test_ids_are_integers_where_all_were():
    judgements = [judge(left_id=5, right_id=7), judge(left_id=6, right_id="x7")]
    columns = gather_pairs(judgements, 2).columns["image", "text"]
    assert_array_equal(columns.left, ["7", "x7"])
    assert_array_equal(columns.right, np.array([5, 6]))
    assert columns.right.dtype == np.int64


def test_within_a_view_both_columns_are_of_one_kind():
    judgements = [judge(right_view="text", left_id=1, right_id="b")]
    columns = gather_pairs(judgements, 1).columns["text", "text"]
    assert (columns.left.tolist(), columns.right.tolist()) == (["1"], ["b"])


def test_the_two_sides_of_a_pair_may_change_places():
    turned = {"left_view": "image", "left_id": 7, "right_view": "text"}
    judgements = [judge(), judge("bob", "cannot", right_id="t1", **turned)]
    pairs = gather_pairs(judgements, 2)
    assert_array_equal(pairs.columns["image", "text"].weight, [1.0, -1.0])
    (dispute,) = pairs.disagreements
    assert (dispute.left, dispute.right) == (7, "t1")
    assert (dispute.must, dispute.cannot) == (("ann",), ("bob",))
    # The last word of a person: no longer a dispute.
    judgements.append(judge("bob", "unsure"))
    assert gather_pairs(judgements, 3).disagreements == []


ITEMS = st.sampled_from([("text", "1"), ("text", 1), ("text", "b"), ("image", "x")])
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob"]),
        ITEMS,
        ITEMS,
        st.sampled_from(["must", "cannot", "unsure", "undo"]),
        st.sampled_from([1.0, 2.0]),
    ),
    max_size=14,
)


def rows_of(columns):
    """Return the pairs of a store as rows that can be counted."""
    return Counter(
        (views, str(left), str(right), weight)
        for views, own in columns.items()
        for left, right, weight in zip(*(c.tolist() for c in own), strict=True)
    )


def write(store, rows):
    """Write rows to a store; an undo takes back the last judgement there is."""
    for who, left, right, verdict, weight in rows:
        known = list(store.judgements())
        if verdict == "undo":
            if known:
                store.undo(known[-1].id, who=who)
        elif (left[0], str(left[1])) != (right[0], str(right[1])):
            names = dict(left_view=left[0], left_id=left[1])
            names |= dict(right_view=right[0], right_id=right[1])
            store.add(Judgement(who=who, verdict=verdict, weight=weight, **names))


@settings(max_examples=12)
@given(parts=st.lists(ROWS, max_size=3))
def test_changes_add_up_to_the_pairs_of_the_store(tmp_path_factory, parts):
    path = tmp_path_factory.mktemp("store") / "judgements.db"
    ledger, taken, number = Ledger(), Counter(), 0
    with LinkStore.open(path) as store:
        for rows in parts:
            write(store, rows)
            ledger.read(store.changes(after=number))
            number = store.last_number()
            changes = ledger.changes()
            taken += rows_of(changes.added)
            gone = rows_of(changes.removed)
            assert gone <= taken
            taken -= gone
            ledger.mark_applied()
            assert taken == rows_of(store.pairs().columns)
            assert not any(map(rows_of, ledger.changes()))
        wanted = {
            pair_key((own.between[0], own.left), (own.between[1], own.right))
            for own in store.pairs().disagreements
        }
        assert set(ledger.disagreements()) == wanted
        said = Counter()
        for pair in {pair_key(*_items(own)) for own in store.judgements()}:
            said.update(own.verdict for own in ledger.latest(pair).values())
        assert +ledger.verdicts == said


def _items(row):
    return (row.left_view, row.left_id), (row.right_view, row.right_id)


def test_what_was_said_before_counts_again_after_an_undo(tmp_path):
    pair = dict(left_view="text", left_id="a", right_view="image", right_id="x")
    with LinkStore.open(tmp_path / "judgements.db") as store:
        store.add(Judgement(who="ann", verdict="must", **pair))
        second = store.add(Judgement(who="ann", verdict="cannot", **pair))
        ledger = Ledger()
        ledger.read(store.changes())
        key = pair_key(("text", "a"), ("image", "x"))
        assert ledger.latest(key)["ann"].verdict == "cannot"
        store.undo(second, who="bob")
        ledger.read(store.changes(after=2))
    assert ledger.latest(key)["ann"].verdict == "must"
    assert not ledger.is_active(second)
    assert ledger.changes().added["image", "text"].weight == pytest.approx([1.0])


def test_changes_keep_the_ids_as_they_were_given(tmp_path):
    with LinkStore.open(tmp_path / "judgements.db") as store:
        first = store.add(judge(left_id=5, right_id=7))
        ledger = Ledger()
        ledger.read(store.changes())
        assert ledger.changes().added["image", "text"].left.dtype == np.int64
        ledger.mark_applied()
        store.undo(first, who="bob")
        ledger.read(store.changes(after=1))
    removed = ledger.changes().removed["image", "text"]
    assert [own.tolist() for own in removed] == [[7], [5], [1.0]]


WORDS = st.lists(
    st.builds(
        lambda who, verdict, i, j, weight: judge(
            who, verdict, left_id=i, right_id=j, weight=weight
        ),
        st.sampled_from(["ann", "bob"]),
        st.sampled_from(["must", "cannot", "unsure"]),
        st.sampled_from([1, 2, "a"]),
        st.sampled_from([7, "7"]),
        st.sampled_from([1.0, 0.5]),
    ),
    max_size=12,
)


@given(WORDS, WORDS)
def test_leaving_out_what_was_said_changes_no_pair(known, given_now):
    new = drop_repeated(given_now, known)
    wanted = gather_pairs(known + given_now, 0).columns
    assert rows_of(gather_pairs(known + new, 0).columns) == rows_of(wanted)
    assert drop_repeated(new, known) == new
    assert drop_repeated(given_now[-1:], known + given_now) == []
