"""What several people say of pairs, compared with plain loops."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from link_store_places import judge
from linkspread.storage.judged_pairs import gather_pairs

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
