"""Judged pairs joined to others and taken back."""

import pytest

from linkspread import Links
from linkspread.ground.errors import LinkError

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
    with pytest.raises(LinkError, match="only single pairs can be taken away"):
        links(PAIRS) - labels
    with pytest.raises(TypeError):
        links(PAIRS) - 3
