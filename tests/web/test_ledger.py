"""The ledger says after each row what the store says of all rows."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkspread.storage import Judgement, LinkStore
from linkspread.web.ledger import Ledger, pair_key

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
            ledger.take(store.changes(after=number))
            number = store.last_number()
            changes = ledger.changes()
            taken += rows_of(changes.added)
            gone = rows_of(changes.removed)
            assert gone <= taken
            taken -= gone
            ledger.settle()
            assert taken == rows_of(store.pairs().columns)
            assert not any(map(rows_of, ledger.changes()))
        wanted = {
            pair_key((own.between[0], own.left), (own.between[1], own.right))
            for own in store.pairs().disagreements
        }
        assert set(ledger.disagreements()) == wanted
        said = Counter()
        for pair in {pair_key(*_items(own)) for own in store.judgements()}:
            said.update(own.verdict for own in ledger.words(pair).values())
        assert +ledger.verdicts == said


def _items(row):
    return (row.left_view, row.left_id), (row.right_view, row.right_id)


def test_what_was_said_before_counts_again_after_an_undo(tmp_path):
    pair = dict(left_view="text", left_id="a", right_view="image", right_id="x")
    with LinkStore.open(tmp_path / "judgements.db") as store:
        store.add(Judgement(who="ann", verdict="must", **pair))
        second = store.add(Judgement(who="ann", verdict="cannot", **pair))
        ledger = Ledger()
        ledger.take(store.changes())
        key = pair_key(("text", "a"), ("image", "x"))
        assert ledger.words(key)["ann"].verdict == "cannot"
        store.undo(second, who="bob")
        ledger.take(store.changes(after=2))
    assert ledger.words(key)["ann"].verdict == "must"
    assert not ledger.is_active(second)
    assert ledger.changes().added["image", "text"].weight == pytest.approx([1.0])
