"""Judged pairs: positions, sums, additions, removals and conflicts."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from linkspread import Links
from linkspread.ground.errors import ConflictWarning, LinkError, UnknownItemError
from linkspread.links import Items
from linkspread.links.pairs import (
    PairTable,
    describe_pairs,
    find_conflicts,
    matched_pairs,
    pair_matrix,
    with_positions,
)

ITEMS = {"a": Items(["x", "y", "z"], view="a"), "b": Items(4, view="b")}
ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from([-2.0, 0.5, 1.0])),
    min_size=1,
    max_size=15,
)


def placed(table, between, items=ITEMS):
    """Return one table of pairs with positions."""
    [(_, found)], _ = with_positions([(between, table)], items)
    return found


def table(rows, **options):
    """Return judged pairs."""
    left, right, weights = zip(*rows, strict=True)
    return PairTable(np.array(left), np.array(right), weights, **options)


@given(ROWS)
def test_repeated_pairs_add_up(rows):
    expected = np.zeros((3, 4))
    for i, j, weight in rows:
        expected[i, j] += weight
    pairs = [(("a", "b"), placed(table(rows, by_row=True), ("a", "b")))]
    Z = pair_matrix(pairs, ("a", "b"), (3, 4))
    assert_array_equal(Z.toarray(), expected)
    assert Z.nnz == np.count_nonzero(expected)
    assert_array_equal(pair_matrix(pairs, ("b", "a"), (4, 3)).toarray(), expected.T)


@given(ROWS)
def test_links_within_a_view_are_symmetric(rows):
    rows = [(i, j, weight) for i, j, weight in rows if i != j] or [(0, 1, 1.0)]
    expected = np.zeros((4, 4))
    for i, j, weight in rows:
        expected[i, j] += weight
        expected[j, i] += weight
    pairs = [(("b", "b"), placed(table(rows), ("b", "b")))]
    assert_array_equal(pair_matrix(pairs, ("b", "b"), (4, 4)).toarray(), expected)


def test_ids_become_positions():
    resolved = placed(table([("z", 3, 1), ("x", 0, -1)]), ("a", "b"))
    assert_array_equal(resolved.positions, [[2, 0], [3, 0]])
    assert resolved.left.tolist() == ["z", "x"]
    assert resolved.weights.tolist() == [1, -1]


def test_pairs_of_other_views_do_not_count():
    pairs = [(("a", "c"), table([(0, 0, 1)])), (("a", "a"), table([(0, 1, 1)]))]
    assert pair_matrix(pairs, ("a", "b"), (3, 4)).nnz == 0


@pytest.mark.parametrize(
    ("rows", "itself"), [([(2, 1, 1), (3, 3, 1)], "3"), ([("0", 0.0, 1)], "'0'")]
)
def test_an_item_is_not_linked_to_itself(rows, itself):
    with pytest.raises(
        LinkError,
        match=f"within view 'b' must join two different items, but {itself} is linked "
        "to itself. Remove that pair",
    ):
        placed(table(rows), ("b", "b"))


def test_pairs_known_by_ids_only():
    pairs = [(("a", "b"), table([("x", 1, 1)]))]
    with pytest.raises(
        LinkError,
        match=r"between 'a' and 'b' must be resolved to positions, "
        r"and have only ids\. Call `links\.resolve",
    ):
        pair_matrix(pairs, ("b", "a"), (4, 3))


def test_matched_rows_disregard_ids():
    """Row numbers were looked up among the ids, where they name other items."""
    items = {"a": Items([2, 1, 0], view="a"), "b": Items(["p", "q"], view="b")}
    [(between, matched)] = matched_pairs(["a", "b"], 2)
    assert between == ("a", "b")
    assert_array_equal(placed(matched, between, items).positions, [[0, 1], [0, 1]])


def test_every_two_views_are_matched():
    betweens = [between for between, _ in matched_pairs(("a", "b", "c"), 2)]
    assert betweens == [("a", "b"), ("a", "c"), ("b", "c")]


def test_more_rows_are_matched_than_there_are():
    [(between, matched)] = matched_pairs(("a", "b"), np.int64(4))
    with pytest.raises(
        UnknownItemError,
        match="must have every matched row, but 4 rows are matched and view 'a' has 3. "
        "Lower `n_items`",
    ):
        placed(matched, between)


@pytest.mark.parametrize("views", [(), ("a",), ("a", "a"), ("a", "b", "a"), "ab", None])
def test_matched_views_must_differ(views):
    with pytest.raises(
        LinkError,
        match=r"at least two different names, got (\(.*\)|'ab'|None)\. Write",
    ):
        matched_pairs(views, 3)


@pytest.mark.parametrize("n_items", [0, -1, 2.0, "3", None])
def test_the_number_of_matched_rows_is_positive(n_items):
    with pytest.raises(
        LinkError,
        match=r"`n_items` must be a positive integer, got (0|-1|2\.0|'3'|None)\. Give",
    ):
        matched_pairs(("a", "b"), n_items)


def test_descriptions():
    rows = [(0, 1, 1.0), (0, 2, -1.0), (1, 2, 5.0)]
    between, within = ("text", "image"), ("text", "text")
    assert describe_pairs(between, table(rows)) == (
        "2 must and 1 cannot between text and image"
    )
    assert describe_pairs(within, table(rows, n_unsure=3)) == (
        "2 must and 1 cannot within text, 3 unsure left out"
    )


IDS = {"text": ["a", "b", "c"], "image": ["p", "q"]}
PAIRS = [("a", "p", 1.0), ("b", "q", -1.0), ("a", "p", 1.0)]


def links(pairs, between=("text", "image")):
    return Links.from_pairs(pairs, between=between).resolve(IDS)


def test_pairs_of_the_same_views_join_one_table():
    joined = links(PAIRS) + links([("c", "q", 0.5)])
    assert len(joined.pair_tables) == 1
    assert joined.judged("text", "image").toarray().tolist() == [
        [2.0, 0.0],
        [0.0, -1.0],
        [0.0, 0.5],
    ]


def test_pairs_named_in_other_ways_keep_their_tables():
    rows = Links.from_matched(("text", "image"), 1).resolve(IDS)
    turned = links([("p", "c", 1.0)], between=("image", "text"))
    joined = links(PAIRS) + rows + turned
    assert len(joined.pair_tables) == 3
    assert joined.judged("text", "image").toarray()[2, 0] == 1.0
    # Ids that are not resolved yet have no positions to join.
    unresolved = Links.from_pairs([("a", "q")], between=("text", "image"))
    assert len((links(PAIRS) + unresolved).pair_tables) == 2


def test_a_pair_that_was_given_twice_is_taken_back_once():
    left = links(PAIRS) - links([("a", "p", 1.0)])
    assert left.judged("text", "image").toarray()[0, 0] == 1.0
    with pytest.raises(LinkError, match="'a' of 'text' and 'p' of 'image' have none"):
        left - links([("a", "p", 1.0), ("a", "p", 1.0)])


def test_the_order_of_views_does_not_matter():
    gone = links([("q", "b", -1.0)], between=("image", "text"))
    assert (links(PAIRS) - gone).judged("text", "image").nnz == 1


def test_within_a_view_a_pair_has_no_order():
    within = links([("a", "b", 1.0), ("b", "c", -1.0)], between=("text", "text"))
    gone = links([("c", "b", -1.0)], between=("text", "text"))
    assert (within - gone).judged("text", "text").nnz == 2


def test_nothing_left_is_no_table():
    assert (links(PAIRS) - links(PAIRS)).pair_tables == ()


@pytest.mark.parametrize("weight", [-1.0, 2.0])
def test_the_weight_must_be_the_one_that_was_given(weight):
    with pytest.raises(LinkError, match=f"none of weight {weight:g}"):
        links(PAIRS) - links([("a", "p", weight)])


def test_links_must_be_resolved_to_be_taken_back():
    gone = Links.from_pairs([("a", "p", 1.0)], between=("text", "image"))
    with pytest.raises(LinkError, match="must be resolved"):
        links(PAIRS) - gone


def test_labels_are_not_taken_back():
    labels = Links.from_labels({"text": [0, 1, 1], "image": [0, 1]})
    with pytest.raises(LinkError, match="only pairs can be subtracted"):
        links(PAIRS) - labels
    with pytest.raises(TypeError):
        links(PAIRS) - 3


CONFLICTING = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([-2.0, -0.5, 1.0])),
    min_size=1,
    max_size=20,
)


def by_hand(pairs, *, within):
    """Return contradicting pairs with a dictionary and a loop."""
    sums = {}
    for left, right, weight in pairs:
        key = tuple(sorted((left, right))) if within else (left, right)
        both = sums.setdefault(key, [0.0, 0.0])
        both[weight < 0] += weight
    return [
        (ids, must, cannot) for ids, (must, cannot) in sums.items() if must * cannot
    ]


def table_of(pairs, form=np.int64, **options):
    """Return judged pairs whose ids have this type."""
    left, right, weights = zip(*pairs, strict=True)
    return PairTable(
        np.array(left).astype(form), np.array(right).astype(form), weights, **options
    )


@given(CONFLICTING)
def test_conflicts_are_those_found_by_hand(pairs):
    expected = [(("a", "b"), *c) for c in by_hand(pairs, within=False)]
    assert find_conflicts([(("a", "b"), table_of(pairs))]) == expected
    turned = [(right, left, weight) for left, right, weight in pairs]
    assert find_conflicts([(("b", "a"), table_of(turned))]) == expected


@given(CONFLICTING, st.sampled_from([np.int64, np.str_]))
def test_conflicts_within_a_view_disregard_the_order(pairs, form):
    expected = [
        (("a", "a"), (form(x).item(), form(y).item()), must, cannot)
        for (x, y), must, cannot in by_hand(pairs, within=True)
    ]
    assert find_conflicts([(("a", "a"), table_of(pairs, form))]) == expected


@given(CONFLICTING, st.integers(0, 20))
def test_tables_are_taken_together(pairs, cut):
    """Ids that are numbers in one table and strings in the other are the same."""
    parts = [part for part in (pairs[:cut], pairs[cut:]) if part]
    forms = [np.int64, np.str_]
    tables = [(("a", "b"), table_of(p, f)) for p, f in zip(parts, forms, strict=False)]
    found = find_conflicts(tables)
    expected = by_hand(pairs, within=False)
    assert [(int(x), int(y)) for _, (x, y), _, _ in found] == [c[0] for c in expected]
    assert [c[2:] for c in found] == [c[1:] for c in expected]


def test_the_first_ids_are_listed():
    with pytest.warns(
        ConflictWarning,
        match=r"must be either a must-link or a cannot-link, but 5 of the pairs given "
        r"are both: \('i', 't0'\), \('i', 't1'\), \('i', 't2'\) and 2 more\. Their "
        r"weights were added up; see `links\.conflicts\(\)` for all",
    ) as caught:
        links = Links.from_pairs(
            [(f"t{i}", "i", weight) for i in range(5) for weight in (1.0, -0.25)],
            between=("text", "image"),
        )
    assert caught[0].filename == __file__
    assert len(caught) == 1
    assert links.conflicts()[0] == (("image", "text"), ("i", "t0"), 1.0, -0.25)
    assert len(links.conflicts()) == 5


def test_views_in_alphabetical_order():
    with pytest.warns(
        ConflictWarning, match=r"1 of the pairs given are both: \('x', 'y'"
    ):
        links = Links.from_pairs([("y", "x", 1), ("y", "x", -1)], between=("b", "a"))
    assert links.conflicts() == [(("a", "b"), ("x", "y"), 1.0, -1.0)]


@pytest.mark.parametrize(
    ("pair", "between"), [(("x", "y"), ("a", "b")), (("y", "x"), ("b", "a"))]
)
def test_conflicts_across_a_sum(pair, between):
    must = Links.from_pairs([("x", "y")], between=("a", "b"))
    cannot = Links.from_pairs([(*pair, -3.0)], between=between)
    with pytest.warns(ConflictWarning, match=r"\('x', 'y'\)") as caught:
        links = must + cannot
    assert caught[0].filename == __file__
    assert links.conflicts() == [(("a", "b"), ("x", "y"), 1.0, -3.0)]
    assert must.conflicts() == cannot.conflicts() == []


def test_the_same_ids_between_other_views_are_no_conflict():
    links = Links.from_pairs([("x", "y")], between=("a", "b"))
    links += Links.from_pairs([("x", "y", -1)], between=("a", "c"))
    links += Links.from_pairs([("x", "y", -1)], between=("a", "a"))
    links += Links.from_pairs([("y", "x", -1)], between=("a", "b"))
    assert links.conflicts() == []


def test_once_resolved_items_are_compared_by_position():
    """Rows that are matched have no ids to compare until the views are known."""
    matched = Links.from_matched(("a", "b"), 3)
    cannot = Links.from_pairs([("t2", "i2", -1)], between=("a", "b"))
    links = matched + cannot
    assert links.conflicts() == []
    known = links.resolve({"a": ["t0", "t1", "t2"], "b": ["i0", "i1", "i2"]})
    assert [c[2:] for c in known.conflicts()] == [(1.0, -1.0)]
    other_rows = links.resolve({"a": ["t0", "t1", "t2"], "b": ["i2", "i1", "i0"]})
    assert other_rows.conflicts() == []


@pytest.mark.slow
def test_a_million_pairs_take_seconds():
    start = time.process_time()
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 10**6, (10**6, 2))
    weights = rng.choice([-1.0, 1.0], 10**6)
    ids[-1], weights[-1] = ids[0], -weights[0]
    with pytest.warns(ConflictWarning, match="of the pairs given are both"):
        links = Links.from_pairs(np.column_stack([ids, weights]), between=("a", "b"))
    assert (("a", "b"), tuple(ids[0].tolist()), 1.0, -1.0) in links.conflicts()
    # A second or two; far more would mean a loop in Python.
    assert time.process_time() - start < 15
