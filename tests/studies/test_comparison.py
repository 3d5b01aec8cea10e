"""Comparisons with few labels: what is known, measured and expected by chance."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs

from linkspread.ground.errors import LinkspreadError
from linkspread.metrics import mean_average_precision
from linkspread.studies.report.comparison import (
    choose_labeled,
    choose_queries,
    compare_chance,
    compare_label_spreading,
    compare_scores,
    expected_by_chance,
    keep_hidden,
)


@pytest.fixture
def labels(rng):
    return {"text": rng.integers(3, size=60), "image": rng.integers(3, size=50)}


@pytest.fixture
def hidden(rng):
    return {"text": rng.permutation(60)[:40], "image": rng.permutation(50)[:30]}


def test_scores_are_measured_among_hidden_items_in_both_directions(rng, labels, hidden):
    F = rng.random((60, 50))

    def scores(source, target, *, rows, cols):
        table = F if source == "text" else F.T
        assert target != source
        return table[np.ix_(rows, cols)]

    row = compare_scores("ours", scores, labels, hidden, seconds=1.5)
    block = F[np.ix_(hidden["text"], hidden["image"])]
    y_text = labels["text"][hidden["text"]]
    y_image = labels["image"][hidden["image"]]
    there = mean_average_precision(block, y_text, y_image)
    back = mean_average_precision(block.T, y_image, y_text)
    run = row.standard
    assert run.details == {"text to image": there, "image to text": back}
    assert run.score == pytest.approx((there + back) / 2)
    assert (row.method, run.total_seconds) == ("ours", 1.5)


@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_label_spreading_is_perfect_on_separate_classes(container):
    X, y = make_blobs(300, centers=np.eye(3) * 50, random_state=0)
    labels = {"text": y, "image": y}
    labeled = choose_labeled(y, 2)
    known = dict.fromkeys(labels, np.where(labeled, y, -1))
    hidden = dict.fromkeys(labels, np.flatnonzero(~labeled))
    views = dict.fromkeys(labels, container(X))
    row = compare_label_spreading(views, known, labels, hidden, n_neighbors=10)
    assert row.standard.score == 1
    assert row.standard.total_seconds > 0


def test_items_that_no_label_reaches_count_as_unrelated(rng):
    # Two far groups, labels in one of them only.
    X = np.vstack([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 1000])
    y = np.repeat([0, 1, 0, 1], 15)
    known = np.where(np.isin(np.arange(60), [0, 1, 15, 16]), y, -1)
    both = ("text", "image")
    row = compare_label_spreading(
        dict.fromkeys(both, X),
        dict.fromkeys(both, known),
        dict.fromkeys(both, y),
        dict.fromkeys(both, np.arange(60)),
        n_neighbors=5,
    )
    assert 0 < row.standard.score < 1


def test_chance_is_measured_on_hidden_items(labels, hidden):
    row = compare_chance(labels, hidden)
    y_text = labels["text"][hidden["text"]]
    y_image = labels["image"][hidden["image"]]
    assert row.standard.details == {
        "text to image": expected_by_chance(y_text, y_image),
        "image to text": expected_by_chance(y_image, y_text),
    }
    assert row.standard.seconds == {}


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
