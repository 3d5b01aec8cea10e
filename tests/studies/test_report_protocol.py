import numpy as np
import pytest
from numpy.testing import assert_array_equal

from linkspread.ground.errors import LinkspreadError
from linkspread.metrics import mean_average_precision
from linkspread.studies.report import (
    choose_labeled,
    choose_queries,
    expected_by_chance,
    keep_hidden,
)


@pytest.fixture
def labels(rng):
    return rng.permutation(np.repeat([0, 1, 2, 5], [40, 30, 20, 10]))


@pytest.mark.parametrize("labels_per_class", [1, 5, 9])
def test_each_class_gets_the_same_number_of_labels(labels, labels_per_class):
    labeled = choose_labeled(labels, labels_per_class)
    counts = np.unique(labels[labeled], return_counts=True)
    assert_array_equal(counts, [[0, 1, 2, 5], [labels_per_class] * 4])


def test_the_choice_depends_on_the_seed_alone(labels):
    first, again, other = (choose_labeled(labels, random_state=s) for s in (1, 1, 2))
    assert_array_equal(first, again)
    assert (first != other).any()


def test_more_labels_contain_fewer(labels):
    few, more = choose_labeled(labels, 2), choose_labeled(labels, 6)
    assert_array_equal(few & more, few)


@pytest.mark.parametrize("labels_per_class", [0, 10, -3])
def test_some_item_of_each_class_must_stay_hidden(labels, labels_per_class):
    message = f"between 1 and 9, .* got {labels_per_class}"
    with pytest.raises(LinkspreadError, match=message):
        choose_labeled(labels, labels_per_class)


def test_queries_are_hidden_and_of_different_classes(labels):
    hidden = np.flatnonzero(~choose_labeled(labels))
    queries = choose_queries(labels, hidden, 3, random_state=4)
    assert np.isin(queries, hidden).all()
    assert len(set(labels[queries])) == 3


def test_no_more_queries_than_classes(labels):
    assert len(choose_queries(labels, np.arange(100), 20)) == 4


def test_chance_is_the_mean_over_all_orders(rng):
    query_labels, item_labels = np.array([0, 1, 1, 7]), np.array([0, 0, 1, 2, 0, 1])
    drawn = [
        mean_average_precision(rng.random((4, 6)), query_labels, item_labels)
        for _ in range(4000)
    ]
    expected = expected_by_chance(query_labels, item_labels)
    assert np.mean(drawn) == pytest.approx(expected, abs=0.01)


def test_chance_with_one_class_is_certainty():
    assert expected_by_chance(np.zeros(3), np.zeros(9)) == pytest.approx(1)


def test_results_without_the_labelled_keep_their_order():
    items = np.array([4, 0, 3, 1, 2])
    labeled = np.array([True, False, False, False, True])
    found, scores = keep_hidden(items, items / 10, labeled, n_results=2)
    assert_array_equal(found, [3, 1])
    assert_array_equal(scores, [0.3, 0.1])
    assert len(keep_hidden(items, items / 10, labeled)[0]) == 3
