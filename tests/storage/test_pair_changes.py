"""What changed between two states of a store, against recounting the rows."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from link_store_places import judge
from linkspread.storage.judged_pairs import gather_pairs
from linkspread.storage.pair_changes import compare_pairs, not_said_before

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


def rows(columns):
    """Return how often each pair is there, ids as texts."""
    found = Counter()
    for between, pairs in columns.items():
        for left, right, weight in zip(*(own.tolist() for own in pairs), strict=True):
            found[between, str(left), str(right), weight] += 1
    return found


@given(WORDS, WORDS)
def test_before_plus_added_minus_removed_is_after(first, later):
    before, after = gather_pairs(first, 0), gather_pairs(first + later, 1)
    changes = compare_pairs(before, after)
    added, removed = rows(changes.added), rows(changes.removed)
    assert rows(before.columns) + added - removed == rows(after.columns)
    assert not added & removed


@given(WORDS, WORDS)
def test_leaving_out_what_was_said_changes_no_pair(known, given_now):
    new = not_said_before(given_now, known)
    wanted = gather_pairs(known + given_now, 0).columns
    assert rows(gather_pairs(known + new, 0).columns) == rows(wanted)
    assert not_said_before(new, known) == new
    assert not_said_before(given_now[-1:], known + given_now) == []
