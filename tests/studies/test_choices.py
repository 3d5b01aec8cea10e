"""Which labels are known, and which items are queries."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from linkspread.ground.errors import LinkspreadError
from linkspread.studies.collections import choose_labeled
from linkspread.studies.methods import Chance
from linkspread.studies.tables import choose_queries


@pytest.fixture
def many(rng):
    return rng.permutation(np.repeat([0, 1, 2, 5], [40, 30, 20, 10]))


@pytest.mark.parametrize("labels_per_class", [1, 5, 9])
def test_each_class_gets_the_same_number_of_labels(many, labels_per_class):
    labeled = choose_labeled(many, labels_per_class)
    counts = np.unique(many[labeled], return_counts=True)
    assert_array_equal(counts, [[0, 1, 2, 5], [labels_per_class] * 4])


def test_the_choice_depends_on_the_seed_alone(many):
    first, again, other = (choose_labeled(many, random_state=s) for s in (1, 1, 2))
    assert_array_equal(first, again)
    assert (first != other).any()


def test_more_labels_contain_fewer(many):
    few, more = choose_labeled(many, 2), choose_labeled(many, 6)
    assert_array_equal(few & more, few)


@pytest.mark.parametrize("labels_per_class", [0, 10, -3])
def test_some_item_of_each_class_must_stay_hidden(many, labels_per_class):
    message = f"between 1 and 9, .* got {labels_per_class}"
    with pytest.raises(LinkspreadError, match=message):
        choose_labeled(many, labels_per_class)


def test_queries_are_hidden_and_of_different_classes(many):
    hidden = np.flatnonzero(~choose_labeled(many))
    queries = choose_queries(many, hidden, 3, random_state=4)
    assert np.isin(queries, hidden).all()
    assert len(set(many[queries])) == 3


def test_no_more_queries_than_classes(many):
    assert len(choose_queries(many, np.arange(100), 20)) == 4


def test_chance_scores_any_items(rng):
    model = Chance().fit({"text": np.eye(4), "image": np.eye(7)}, None)
    assert model.scores("text", "image").shape == (4, 7)
    assert model.scores("image", "text", rows=[1, 2], cols=[0]).shape == (2, 1)
