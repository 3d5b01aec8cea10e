"""Links from labels, pairs and matched rows, their parts and numbers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from linkspread import Links
from linkspread.ground.errors import (
    LinkError,
    UnknownItemError,
    UnknownItemWarning,
    ViewError,
)
from linkspread.links import LinkMatrix
from linkspread.links.collection import LabelCount, PairCount, count_links

TEXTS, IMAGES = ["t0", "t1", "t2"], ["i0", "i1"]
ITEMS = {"text": TEXTS, "image": IMAGES}
PAIRS = [("t0", "i1", 1.0), ("t2", "i0", -0.5), ("t1", "i1", 3.0)]
Z = np.array([[0.0, 1.0], [0.0, 3.0], [-0.5, 0.0]])


def from_pairs(pairs, between=("text", "image"), **options):
    """Return links of these pairs."""
    return Links.from_pairs(pairs, between=between, **options)


def literal(links, left="text", right="image"):
    """Return the links of two views as an array, as they were given."""
    return links.between(left, right, balance="literal").toarray()


@pytest.mark.parametrize(
    "form",
    [
        lambda pairs: pairs,
        lambda pairs: np.array(pairs, dtype=object),
        lambda pairs: pd.DataFrame(pairs, columns=["text", "image", "weight"]),
        lambda pairs: pl.DataFrame(pairs, schema=["l", "r", "w"], orient="row"),
    ],
    ids=["tuples", "array", "pandas", "polars"],
)
def test_pairs_of_any_form(form):
    links = from_pairs(form(PAIRS)).resolve(ITEMS)
    assert sparse.issparse(links.between("text", "image"))
    assert_array_equal(literal(links), Z)
    assert_array_equal(literal(links, "image", "text"), Z.T)


def test_pairs_of_positions():
    by_position = [(0, 1), (2, 0, -0.5), (1, 1, 3.0)]
    assert_array_equal(
        literal(from_pairs(by_position).resolve({"text": 3, "image": 2})), Z
    )


@pytest.mark.parametrize("items", [{"text": 9, "image": 9}, None])
def test_numbers_in_a_csv_file(tmp_path, items):
    items = items or {"text": np.arange(9), "image": [str(i) for i in range(9)]}
    (tmp_path / "pairs.csv").write_text("image,text,weight\n7,2,must\n0,8,cannot\n")
    expected = np.zeros((9, 9))
    expected[2, 7], expected[8, 0] = 1, -1
    links = from_pairs(tmp_path / "pairs.csv").resolve(items)
    assert_array_equal(literal(links), expected)


@pytest.mark.parametrize("form", [list, np.array, pd.Series, pd.Index, pl.Series])
def test_ids_of_any_form(form):
    items = {view: form(ids) for view, ids in ITEMS.items()}
    assert_array_equal(literal(from_pairs(PAIRS).resolve(items)), Z)


def test_weights_are_any_real_numbers():
    weights = [1e-6, -1e6]
    links = from_pairs([(0, 0, weights[0]), (0, 1, weights[1])])
    assert literal(links.resolve({"text": 1, "image": 2})).tolist() == [weights]


def test_repeats_add_up():
    links = from_pairs([*PAIRS, *PAIRS]) + from_pairs(
        [(i, t, w) for t, i, w in PAIRS], between=("image", "text")
    )
    assert_array_equal(literal(links.resolve(ITEMS)), 3 * Z)


def test_must_and_cannot_of_the_same_weight_cancel():
    with pytest.warns(UserWarning, match=r"\('i0', 't0'\)"):
        links = from_pairs([("t0", "i0", 1), ("t0", "i0", -1), ("t1", "i0", 1)])
    assert links.resolve(ITEMS).between("text", "image").nnz == 1


def test_pairs_are_balanced_after_adding_up():
    links = from_pairs(PAIRS).resolve(ITEMS)
    auto = links.between("text", "image")
    assert_allclose(auto[auto > 0].sum(), -auto[auto < 0].sum())
    assert_array_equal(auto.toarray(), np.where(Z < 0, -4, Z))
    doubled = links.between("text", "image", balance=2).toarray()
    assert_array_equal(doubled, np.where(Z < 0, 2 * Z, Z))


def test_three_views_with_links_between_any_two():
    links = (
        from_pairs([(0, 1, 2.0)], between=("a", "b"))
        + from_pairs([(2, 1, -1.0)], between=("c", "a"))
        + from_pairs([(0, 2, 4.0)], between=("c", "c"))
    ).resolve({"a": 2, "b": 3, "c": 4})
    expected = {
        pair: np.zeros(shape)
        for pair, shape in {
            "ab": (2, 3),
            "ac": (2, 4),
            "cc": (4, 4),
            "bc": (3, 4),
        }.items()
    }
    expected["ab"][0, 1] = 2
    expected["ac"][1, 2] = -1
    expected["cc"][0, 2] = expected["cc"][2, 0] = 4
    for (left, right), array in expected.items():
        assert_array_equal(literal(links, left, right), array)
        assert_array_equal(literal(links, right, left), array.T)
        assert links.connects(left, right) == links.connects(right, left) == array.any()
    assert links.views == ("a", "b", "c")
    assert not links.connects("a", "a")


def test_labels_connect_the_views_they_have():
    links = Links.from_labels({"a": [0], "b": [0]}) + Links.from_labels({"c": [0]})
    assert links.connects("a", "b")
    assert links.connects("a", "a")
    assert not links.connects("a", "c")
    assert links.views == ("a", "b", "c")


def test_matched_rows_of_two_views():
    links = Links.from_matched(("text", "image"), 2)
    assert_array_equal(literal(links.resolve(ITEMS)), [[1, 0], [0, 1], [0, 0]])
    assert_array_equal(literal(links.resolve({"text": 2, "image": 2})), np.eye(2))


def test_matched_rows_of_three_views():
    links = Links.from_matched(("a", "b", "c"), 2).resolve({"a": 2, "b": 5, "c": 3})
    for left, right in ("ab", "ac", "bc", "ca"):
        array = literal(links, left, right)
        assert_array_equal(array[:2, :2], np.eye(2))
        assert array.sum() == 2
    assert not links.connects("a", "a")


@pytest.mark.parametrize("balance", ["auto", "literal", 0.5])
def test_labels_and_pairs_are_the_sum_of_both(balance):
    labels = Links.from_labels({"text": [0, 1, -1], "image": [1, 0]})
    pairs = from_pairs(PAIRS).resolve(ITEMS)
    parts = [
        links.between("text", "image", balance=balance) for links in (labels, pairs)
    ]
    for links in (labels + pairs, pairs + labels):
        both = links.between("text", "image", balance=balance)
        assert isinstance(both, LinkMatrix)
        assert_allclose(both.toarray(), parts[0].toarray() + parts[1].toarray())


def test_two_label_sets_add_up():
    first = Links.from_labels({"a": [0, 1, -1], "b": [1, 0]})
    second = Links.from_labels({"b": [[0.5, 0.5], [1, 0]], "a": np.eye(3)[:, :2]})
    total = literal(first, "a", "b") + literal(second, "a", "b")
    assert_allclose(literal(first + second, "a", "b"), total)


def test_adding_leaves_both_alone():
    first, second = from_pairs(PAIRS), from_pairs([("t0", "i0")])
    assert len((first + second).resolve(ITEMS).between("text", "image").data) == 4
    assert repr(first) == "Links(2 must and 1 cannot between text and image)"
    assert repr(second) == "Links(1 must and 0 cannot between text and image)"


def test_only_links_can_be_added():
    with pytest.raises(TypeError, match="unsupported operand"):
        from_pairs(PAIRS) + 1


def test_joined_links_have_the_same_items():
    labels = Links.from_labels({"text": [0, 1]})
    with pytest.raises(
        LinkError, match="same items of view 'text', got 2 and 3 items. Resolve both"
    ):
        labels + from_pairs(PAIRS).resolve(ITEMS)
    other_order = from_pairs(PAIRS).resolve(
        {"text": ["t0", "t2", "t1"], "image": IMAGES}
    )
    with pytest.raises(
        LinkError,
        match="of view 'text', but item 1 is 't1' in one and 't2' in the other",
    ):
        from_pairs(PAIRS).resolve(ITEMS) + other_order


def test_resolving_again_takes_the_new_items():
    links = from_pairs(PAIRS).resolve(ITEMS)
    again = links.resolve({"text": ["t2", "new", "t1", "t0"], "image": IMAGES})
    assert_array_equal(literal(again), [Z[2], [0, 0], Z[1], Z[0]])
    assert_array_equal(literal(links), Z)


def test_resolving_takes_views_without_links():
    links = from_pairs(PAIRS).resolve({**ITEMS, "sound": 4})
    assert_array_equal(literal(links, "sound", "text"), np.zeros((4, 3)))
    assert links.views == ("text", "image")


def test_resolving_does_not_modify_its_inputs():
    ids = np.array(TEXTS)
    items = {"text": ids, "image": 2}
    links = from_pairs([("t0", 1)])
    links.resolve(items)
    assert items["text"] is ids
    assert ids.tolist() == TEXTS
    with pytest.raises(LinkError, match="resolve"):
        links.between("text", "image")


def test_balancing_does_not_change_the_links():
    links = from_pairs(PAIRS).resolve(ITEMS)
    links.between("text", "image", balance=0)
    assert_array_equal(literal(links), Z)


def test_labels_of_wrong_length():
    links = Links.from_labels({"text": [0, 1], "image": [0, 1]})
    with pytest.raises(
        LinkError,
        match="labels of view 'text' must fit its items, got 2 labels for 3 items. "
        "Give one label per row, -1 for unknown",
    ):
        links.resolve(ITEMS)


def test_a_view_that_is_not_at_hand():
    with pytest.raises(
        LinkError,
        match=r"among the given views, \['text', 'pictures'\], but some name 'image'"
        r"\. Add that view or rename it",
    ):
        from_pairs(PAIRS).resolve({"text": TEXTS, "pictures": IMAGES})


def test_links_between_views_that_are_not_known_yet():
    with pytest.raises(
        LinkError,
        match=r"resolved to the items of view 'text', got items of no view\. Call "
        r"`links\.resolve\(\{view: n_items_or_ids, \.\.\.\}\)` first",
    ):
        from_pairs(PAIRS).between("text", "image")
    with pytest.raises(LinkError, match="view 'sound', got items of 'text', 'image'"):
        from_pairs(PAIRS).resolve(ITEMS).between("text", "sound")


def test_links_known_by_ids_only():
    links = Links.from_labels({"text": [0, 1, 0], "image": [0, 1]}) + from_pairs(PAIRS)
    with pytest.raises(
        LinkError, match="must be resolved to positions.*Call `links.resol"
    ):
        links.between("text", "image")
    assert literal(links.resolve(ITEMS))[2].tolist() == [0.5, -1]


def test_unknown_ids_are_listed_and_counted():
    pairs = [*PAIRS, *((f"x{i}", "i0") for i in range(8))]
    with pytest.raises(
        UnknownItemError,
        match="links must name items of view 'text', which does not have 'x0', 'x1', "
        "'x2' and 5 more, 8 of 11 in all. Its 3 ids are 't0', 't1', 't2'; correct .* "
        "`unknown='skip'`",
    ):
        from_pairs(pairs).resolve(ITEMS)


def test_links_of_unknown_items_can_be_skipped():
    """One stale id in a file of pairs stopped a fit."""
    pairs = [*PAIRS, ("x0", "i0"), ("t1", "y"), ("x0", "y"), *(("t0", i) for i in "zw")]
    with pytest.warns(UnknownItemWarning) as caught:
        links = from_pairs(pairs).resolve(ITEMS, unknown="skip")
    assert [str(own.message) for own in caught] == [
        "5 of 8 pairs name items that no view has and were skipped: text 'x0', "
        "image 'y', image 'z' and 1 more."
    ]
    assert_array_equal(literal(links), Z)
    # Without any, nothing is said.
    assert_array_equal(literal(from_pairs(PAIRS).resolve(ITEMS, unknown="skip")), Z)


def test_a_table_of_which_all_pairs_are_skipped_goes():
    links = from_pairs(PAIRS) + from_pairs([("x", "y")], between=("text", "text"))
    with pytest.warns(UnknownItemWarning, match="1 of 4 pairs .*: text 'x', text 'y'"):
        links = links.resolve(ITEMS, unknown="skip")
    assert not links.connects("text", "text")
    with pytest.warns(UnknownItemWarning, match="1 of 3 pairs .*: image 2"):
        links = Links.from_matched(("text", "image"), 3).resolve(ITEMS, unknown="skip")
    assert_array_equal(literal(links), [[1, 0], [0, 1], [0, 0]])


def test_some_links_must_be_left():
    with pytest.raises(
        UnknownItemError, match="all 1 name items that no view has .*'y"
    ):
        from_pairs([("t0", "y")]).resolve(ITEMS, unknown="skip")
    with pytest.raises(LinkError, match="`unknown` must .* 'raise', 'skip', got 'no'"):
        from_pairs(PAIRS).resolve(ITEMS, unknown="no")


def test_repeated_ids_of_a_view():
    with pytest.raises(ViewError, match="view 'image' has 'i0' more than once. Drop"):
        from_pairs(PAIRS).resolve({"text": TEXTS, "image": ["i0", "i0"]})


def test_an_item_linked_to_itself():
    links = from_pairs([("t0", "t1"), ("t2", "t2")], between=("text", "text"))
    with pytest.raises(LinkError, match="'t2' is linked to itself. Remove that pair"):
        links.resolve(ITEMS)


@pytest.mark.parametrize(
    "pairs", [[], np.zeros((0, 3)), pd.DataFrame({"text": [], "image": []})]
)
def test_no_pairs(pairs):
    with pytest.raises(
        LinkError,
        match="at least one pair between 'text' and 'image', got none. Judge a few",
    ):
        from_pairs(pairs)


@pytest.mark.parametrize(
    "between", ["text", ("text",), ("a", "b", "c"), (1, 2), None, 5]
)
def test_a_wrong_between(between):
    with pytest.raises(
        LinkError,
        match=r'`between` must name two views, got .+\. Write \("text", "image"',
    ):
        from_pairs(PAIRS, between=between)


def test_between_may_be_a_list():
    assert from_pairs(PAIRS, between=["text", "image"]).views == ("text", "image")


def test_the_repr_counts():
    links = from_pairs(PAIRS) + from_pairs([("t0", "t1", -1)], between=("text", "text"))
    links += Links.from_labels({"text": [0, -1, 5], "image": [0, 5]})
    links += Links.from_labels({"text": [[1.0], [0.0], [0.0]]})
    assert repr(links) == (
        "Links(labels of 2 of 3 text, 2 of 2 image items in 2 classes, "
        "labels of 1 of 3 text items in 1 class, "
        "2 must and 1 cannot between text and image, 0 must and 1 cannot within text)"
    )
    assert repr(Links()) == "Links()"
    assert repr(Links.from_matched(("a", "b"), 2000)) == (
        "Links(2,000 must and 0 cannot between a and b)"
    )


SIZES = {"text": 5, "image": 4}
Y = {"text": np.array([0, 1, -1, 2, 0]), "image": np.array([1, 0, 2, -1])}
FOUR_PAIRS = [(0, 1, 1.0), (3, 2, -2.0), (4, 0, -1.0), (2, 2, 3.0)]


def both_kinds():
    """Return labels and pairs of the same two views, by position."""
    pairs = Links.from_pairs(FOUR_PAIRS, between=("text", "image"))
    return (Links.from_labels(Y) + pairs).resolve(SIZES)


def whole(links):
    """Return all links of the two views as one table, -1 against +1."""
    Z = links.between("text", "image", balance="literal")
    return Z.toarray()


def test_hidden_items_have_no_links_and_others_keep_theirs():
    Z, hidden = (whole(x) for x in (both_kinds(), both_kinds().hide({"text": [3]})))
    assert np.all(hidden[3] == 0)
    others = [0, 1, 2, 4]
    assert np.array_equal(hidden[others], Z[others])


@given(
    text=st.lists(st.integers(0, 4), min_size=1, unique=True),
    image=st.lists(st.integers(0, 3), min_size=1, unique=True),
)
def test_selected_links_are_the_block_of_these_items(text, image):
    links = both_kinds()
    chosen = links.select({"text": text, "image": image})
    assert np.array_equal(whole(chosen), whole(links)[np.ix_(text, image)])


def test_views_that_are_not_named_keep_all_items():
    links = both_kinds()
    assert np.array_equal(whole(links.select({"text": [1]})), whole(links)[[1]])


def test_selected_items_keep_their_ids():
    ids = {"text": ["a", "b", "c"], "image": ["x", "y"]}
    links = Links.from_pairs([("c", "x"), ("a", "y")], between=("text", "image"))
    chosen = links.resolve(ids).select({"text": [2, 1]})
    again = chosen.resolve({"text": ["c", "b"], "image": ["x", "y"]})
    assert again.judged("text", "image").toarray().tolist() == [[1, 0], [0, 0]]


def test_picked_pairs_and_the_others_add_up_to_all():
    links = both_kinds()
    chosen = np.array([True, False, True, False])
    parts = [links.pick(m).judged("text", "image") for m in (chosen, ~chosen)]
    total = links.judged("text", "image").toarray()
    assert np.array_equal((parts[0] + parts[1]).toarray(), total)
    assert parts[0].nnz == parts[1].nnz == 2


def test_judged_pairs_have_the_weights_given_in_either_direction():
    judged = both_kinds().judged("image", "text").toarray()
    assert judged[1, 0] == 1 and judged[2, 3] == -2 and judged[2, 2] == 3


def test_memberships_are_those_of_the_labels():
    links = both_kinds()
    known = links.memberships("text").toarray()
    assert known.argmax(axis=1)[[0, 1, 3, 4]].tolist() == [0, 1, 2, 0]
    assert known[2].sum() == 0
    assert links.memberships("speech") is None


def test_memberships_shared_with_a_view_are_of_the_classes_both_have():
    topics, moods = np.eye(3)[[0, 1, 2, 0]], np.array([1, 0, -1, 1])
    first = Links.from_labels({"text": Y["text"], "image": topics})
    second = Links.from_labels({"image": moods, "sound": [0, 1]})
    links = first + second

    def shared(view, other=None):
        known = links.memberships(view, shared_with=other)
        return known.toarray() if sparse.issparse(known) else known

    whole = np.hstack([topics, np.eye(3)[moods][:, :2]])
    assert np.array_equal(shared("image"), whole)
    assert np.array_equal(shared("image", "image"), whole)
    assert np.array_equal(shared("image", "text"), topics)
    assert np.array_equal(shared("image", "sound"), whole[:, 3:])
    assert np.array_equal(shared("text", "image"), shared("text"))
    assert links.memberships("text", shared_with="sound") is None


def test_a_mask_of_another_length_is_refused():
    with pytest.raises(LinkError, match="mask of all 4 pairs, got bool"):
        both_kinds().pick([True, False])


def test_pairs_by_id_must_be_resolved_before_items_are_hidden():
    links = Links.from_pairs([("a", "x")], between=("text", "image"))
    with pytest.raises(LinkError, match="resolve the links first"):
        links.hide({"text": [0]})


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ({"text": [5]}, "view 'text' must be from 0 to 4, got 5"),
        ({"text": [-1]}, "view 'text' must be from 0 to 4, got -1"),
        ({"sound": [0]}, r"\['text', 'image'\], got 'sound'"),
    ],
)
def test_items_that_are_not_there_are_refused(positions, message):
    for part in (both_kinds().hide, both_kinds().select):
        with pytest.raises(LinkError, match=message):
            part(positions)


def test_an_item_is_selected_once():
    with pytest.raises(LinkError, match="got 3 positions of 2 items"):
        both_kinds().select({"text": [0, 1, 0]})


def test_pairs_are_counted_once_by_their_sum():
    one = [(0, 1, 1.0), (0, 1, 2.0), (1, 1, -1.0), (2, 2, -1.0)]
    links = Links.from_pairs(one, between=("a", "b"))
    links += Links.from_pairs([(2, 0, 1.0)], between=("b", "a"))
    links += Links.from_pairs([(0, 1, 1.0), (1, 2, -1.0)], between=("a", "a"))
    counts = count_links(links.resolve({"a": 3, "b": 3}))
    assert [(set(c.between), c.n_must, c.n_cannot) for c in counts] == [
        ({"a", "b"}, 2, 2),
        ({"a"}, 1, 1),
    ]


def test_labels_are_counted_by_view(rng):
    y = {"a": np.array([0, 1, -1, 1]), "b": np.array([2, -1])}
    counts = count_links(Links.from_labels(y))
    assert counts == [LabelCount("a", 3, 2), LabelCount("b", 1, 1)]
    soft = sparse.csr_array(np.array([[0.2, 0.8], [0, 0]]))
    assert count_links(Links.from_labels({"a": soft})) == [LabelCount("a", 1, 2)]
    assert str(PairCount(("a", "b"), 1, 2000)) == "a and b: 1 must, 2,000 cannot"
    assert str(LabelCount("a", 1, 1)) == "a: 1 labels of 1 class"
