import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from linkspread.ground.errors import LinkError, UnknownItemError
from linkspread.links import Items
from linkspread.links.pairs import (
    describe_pairs,
    matched_pairs,
    pair_matrix,
    with_positions,
)
from linkspread.links.tables import PairTable

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
        match=r"between 'a' and 'b' must be resolved to positions, and are known by "
        r"ids only\. Call `links\.resolve",
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
