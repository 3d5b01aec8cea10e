"""Parts of links: hiding items, selecting items, picking pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from linkspread import Links
from linkspread.ground.errors import LinkError

SIZES = {"text": 5, "image": 4}
Y = {"text": np.array([0, 1, -1, 2, 0]), "image": np.array([1, 0, 2, -1])}
PAIRS = [(0, 1, 1.0), (3, 2, -2.0), (4, 0, -1.0), (2, 2, 3.0)]


def both_kinds():
    """Return labels and pairs of the same two views, by position."""
    pairs = Links.from_pairs(PAIRS, between=("text", "image"))
    return (Links.from_labels(Y) + pairs).resolve(SIZES)


def literal(links):
    """Return all links of the two views as one table, -1 against +1."""
    Z = links.between("text", "image", balance="literal")
    return Z.toarray()


def test_hidden_items_have_no_links_and_others_keep_theirs():
    Z, hidden = (literal(x) for x in (both_kinds(), both_kinds().hide({"text": [3]})))
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
    assert np.array_equal(literal(chosen), literal(links)[np.ix_(text, image)])


def test_views_that_are_not_named_keep_all_items():
    links = both_kinds()
    assert np.array_equal(literal(links.select({"text": [1]})), literal(links)[[1]])


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
