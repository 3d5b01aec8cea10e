"""Average precision and its curve against scikit-learn and a plain loop."""

import hypothesis.extra.numpy as arrays
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import average_precision_score

from linkspread.ground.errors import LinkspreadError
from linkspread.metrics import (
    average_precision,
    mean_average_precision,
    precision_recall_curve,
)


def reference_average_precision(scores, is_relevant, k):
    ranking = sorted(range(len(scores)), key=lambda item: (-scores[item], item))
    hits, total = 0, 0.0
    for rank, item in enumerate(ranking[:k], start=1):
        hits += is_relevant[item]
        total += is_relevant[item] * hits / rank
    return total / min(k, sum(is_relevant))


def reference_interpolated(scores, is_relevant, levels):
    ranked = is_relevant[np.lexsort((np.arange(len(scores)), -scores))]
    hits = np.cumsum(ranked)
    precision, recall = hits / np.arange(1, len(hits) + 1), hits / hits[-1]
    return [precision[recall >= level - 1e-12].max() for level in levels]


@pytest.fixture
def problem(rng):
    query_labels, item_labels = rng.integers(0, 4, 15), rng.integers(0, 4, 60)
    return rng.standard_normal((15, 60)), query_labels, item_labels


def test_average_precision_matches_scikit_learn(problem):
    scores, query_labels, item_labels = problem
    expected = [
        average_precision_score(item_labels == label, row)
        for row, label in zip(scores, query_labels, strict=True)
    ]
    assert_allclose(average_precision(*problem), expected, rtol=1e-12)
    assert mean_average_precision(*problem) == pytest.approx(np.mean(expected))


def test_many_relevant_items_are_ranked_as_few_are(rng):
    # More of one class than the kernel counts one by one, with many ties.
    scores = rng.integers(0, 300, (3, 1500)).astype(np.float32)
    query_labels, item_labels = np.zeros(3, int), rng.integers(0, 2, 1500)
    values = average_precision(scores, query_labels, item_labels)
    sorted_values = average_precision(scores, query_labels, item_labels, k=1500)
    assert_allclose(values, sorted_values, rtol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 7, 30, 60, None])
def test_average_precision_with_ties_matches_a_plain_loop(rng, k):
    scores = rng.integers(0, 5, (10, 60)).astype(float)
    query_labels, item_labels = rng.integers(0, 3, 10), rng.integers(0, 3, 60)
    expected = [
        reference_average_precision(row, item_labels == label, k or 60)
        for row, label in zip(scores, query_labels, strict=True)
    ]
    values = average_precision(scores, query_labels, item_labels, k=k)
    assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize("n_points", [2, 3, 11, 101])
@pytest.mark.parametrize("n_levels", [5, 10**6])
def test_curve_matches_its_definition(rng, n_points, n_levels):
    scores = rng.integers(0, n_levels, (10, 60)).astype(float)
    query_labels, item_labels = rng.integers(0, 3, 10), rng.integers(0, 3, 60)
    levels = np.linspace(0, 1, n_points)
    expected = [
        reference_interpolated(row, item_labels == label, levels)
        for row, label in zip(scores, query_labels, strict=True)
    ]
    precision, recall = precision_recall_curve(
        scores, query_labels, item_labels, n_points=n_points
    )
    assert_array_equal(recall, levels)
    assert_allclose(precision, np.mean(expected, axis=0), rtol=1e-12)
    assert (np.diff(precision) <= 0).all()


def test_a_level_of_recall_is_reached_exactly():
    # Recall 0.3 of 10 relevant items is 3 items, although 3 * 0.1 * 10 > 3 in doubles.
    item_labels = np.array([1] * 3 + [0] * 90 + [1] * 7)
    precision, _ = precision_recall_curve([np.arange(100, 0, -1)], [1], item_labels)
    assert precision[3] == 1
    assert precision[4] == pytest.approx(0.1)


def test_curve_when_some_queries_have_no_relevant_item():
    scores = [[1.0, 2.0]] * 3
    precision, _ = precision_recall_curve(scores, [9, 1, 9], [0, 1])
    assert_array_equal(precision, np.ones(11))


@pytest.mark.parametrize("k", [None, 1, 5, 60])
def test_a_perfect_ranking_has_value_one(problem, k):
    _, query_labels, item_labels = problem
    scores = (query_labels[:, np.newaxis] == item_labels).astype(float)
    assert_array_equal(average_precision(scores, query_labels, item_labels, k=k), 1)
    precision, _ = precision_recall_curve(scores, query_labels, item_labels)
    assert_array_equal(precision, 1)


def test_as_many_ranks_as_items_are_all_ranks(problem):
    everything = average_precision(*problem)
    for k in (60, 61, 10**9, np.int32(60)):
        assert_allclose(average_precision(*problem, k=k), everything, rtol=1e-12)


@given(
    scores=arrays.arrays(
        np.float64, (4, 9), elements=st.integers(-40, 40).map(lambda value: value / 8)
    ),
    item_labels=arrays.arrays(np.int64, 9, elements=st.integers(-1, 2)),
    k=st.none() | st.integers(1, 12),
)
def test_only_the_order_of_the_scores_counts(scores, item_labels, k):
    query_labels = [0, 1, 2, -1]
    expected = average_precision(scores, query_labels, item_labels, k=k)
    for transform in (np.exp, np.arctan, lambda s: 4 * s - 7, lambda s: s**3):
        values = average_precision(transform(scores), query_labels, item_labels, k=k)
        assert_array_equal(values, expected)


@given(
    scores=arrays.arrays(np.float64, (3, 7), elements=st.floats(-1e3, 1e3)),
    item_labels=arrays.arrays(np.int64, 7, elements=st.integers(0, 3)),
)
def test_values_lie_between_zero_and_one(scores, item_labels):
    values = average_precision(scores, [0, 1, 2], item_labels)
    assert ((values > 0) & (values <= 1) | np.isnan(values)).all()


def test_single_precision_agrees_with_double(problem):
    scores, *labels = problem
    assert_array_equal(
        average_precision(scores.astype(np.float32), *labels),
        average_precision(scores, *labels),
    )


@pytest.mark.parametrize("k", [0, -1, 2.0, "3"])
def test_a_cutoff_that_is_no_positive_integer_is_refused(k):
    with pytest.raises(LinkspreadError, match=f"`k` must be a positive.*got {k!r}. Pa"):
        mean_average_precision(np.eye(2), [0, 1], [0, 1], k=k)


@pytest.mark.parametrize("n_points", [1, 0, 11.0])
def test_a_curve_of_fewer_than_two_points_is_refused(n_points):
    with pytest.raises(LinkspreadError, match=f"at least 2, got {n_points!r}. Pass 11"):
        precision_recall_curve(np.eye(2), [0, 1], [0, 1], n_points=n_points)
