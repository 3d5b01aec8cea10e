"""Ranking in blocks: ties, unknown labels, forms of input, refusals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, eye_array, lil_matrix

from linkspread.ground.errors import LinkspreadError
from linkspread.metrics import (
    average_precision,
    mean_average_precision,
    ndcg,
    precision_recall_curve,
    ranking,
    recall_at_k,
)

MEANS = [
    mean_average_precision,
    ndcg,
    lambda *data: recall_at_k(*data, k=3),
    lambda *data: precision_recall_curve(*data)[0],
]


class ProductScores:
    """Scores ``left @ right.T`` whose rows are made when asked for."""

    def __init__(self, left, right):
        self.left, self.right = left, right
        self.shape = len(left), len(right)
        self.largest_block = 0

    def rows(self, index):
        self.largest_block = max(self.largest_block, len(index))
        return self.left[index] @ self.right.T


@pytest.fixture
def problem(rng):
    return (
        rng.standard_normal((12, 20)),
        rng.integers(-1, 4, size=12),
        rng.integers(-1, 4, size=20),
    )


def test_equal_scores_are_ranked_by_position():
    scores = np.zeros((1, 3))
    assert average_precision(scores, [1], [1, 0, 0]) == 1
    assert average_precision(scores, [1], [0, 0, 1]) == pytest.approx(1 / 3)


def test_ties_are_stable_in_long_rows():
    n_items = 5000
    item_labels = np.arange(n_items) % 2
    expected = np.mean(np.arange(1, 2501) / np.arange(2, 5001, 2))
    values = average_precision(np.zeros((1, n_items)), [1], item_labels)
    assert_allclose(values, [expected])


@pytest.mark.parametrize("n_values", [2, 50, 10**9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_fast_order_is_the_stable_order(rng, n_values, dtype):
    block = rng.integers(0, n_values, (20, 300)).astype(dtype)
    expected = np.argsort(block, axis=1, kind="stable")
    assert_array_equal(ranking._stable_order(block), expected)


def test_unknown_and_hopeless_queries_are_nan_and_left_out_of_the_mean():
    scores = [[3, 2, 1], [1, 2, 3], [3, 1, 2]]
    values = average_precision(scores, [0, -1, 7], [0, 1, -1])
    assert_array_equal(values, [1, np.nan, np.nan])
    assert mean_average_precision(scores, [0, -1, 7], [0, 1, -1]) == 1


def test_unknown_items_are_not_relevant_even_to_unknown_queries():
    assert np.isnan(average_precision([[1.0, 2.0]], [-1], [-1, -1])).all()


@pytest.mark.parametrize("measure", MEANS)
def test_left_out_queries_do_not_change_a_mean(measure, problem, rng):
    scores, query_labels, item_labels = problem
    more_scores = np.vstack([scores, rng.standard_normal((2, 20))])
    more_labels = np.append(query_labels, [-1, 99])
    assert_allclose(
        measure(more_scores, more_labels, item_labels),
        measure(scores, query_labels, item_labels),
    )


@pytest.mark.parametrize("measure", MEANS)
def test_the_order_of_the_queries_does_not_matter(measure, problem, rng):
    scores, query_labels, item_labels = problem
    order = rng.permutation(len(scores))
    assert_allclose(
        measure(scores[order], query_labels[order], item_labels),
        measure(scores, query_labels, item_labels),
    )


@pytest.mark.parametrize("measure", MEANS)
@pytest.mark.parametrize("entries", [1, 50, 10**6])
def test_blocks_of_any_size_give_the_same(measure, entries, problem, monkeypatch):
    expected = measure(*problem)
    monkeypatch.setattr(ranking, "ENTRIES_PER_BLOCK", entries)
    assert_allclose(measure(*problem), expected, rtol=1e-14)


def test_rows_are_asked_for_in_small_blocks(rng, monkeypatch):
    monkeypatch.setattr(ranking, "ENTRIES_PER_BLOCK", 45)
    scores = ProductScores(rng.random((30, 3)), rng.random((20, 3)))
    labels = rng.integers(0, 3, 30), rng.integers(0, 3, 20)
    dense = average_precision(scores.left @ scores.right.T, *labels)
    assert_array_equal(average_precision(scores, *labels), dense)
    assert scores.largest_block == 2


@pytest.mark.parametrize("convert", [np.asarray, csr_array, lambda a: a.astype(bool)])
def test_memberships_of_one_class_equal_labels(convert, problem):
    scores, query_labels, item_labels = problem
    # An unknown item belongs to no class, so its row is empty.
    tables = [
        convert((labels[:, np.newaxis] == np.arange(4)).astype(int))
        for labels in (query_labels, item_labels)
    ]
    assert_array_equal(
        average_precision(scores, *tables),
        average_precision(scores, query_labels, item_labels),
    )


def test_items_that_share_one_of_several_classes_are_relevant():
    queries = [[1, 1, 0]]
    items = [[0, 0, 1], [0, 1, 1], [1, 0, 0]]
    assert average_precision([[3, 2, 1]], queries, items) == pytest.approx(7 / 12)


def test_a_relevance_table_is_a_membership_table(rng):
    scores, relevance = rng.random((5, 8)), rng.random((5, 8)) < 0.4
    expected = average_precision(scores, relevance, np.eye(8))
    hits = average_precision(scores, csr_array(relevance), eye_array(8))
    assert_array_equal(hits, expected)
    assert average_precision([[1, 2]], [[1, 0]], np.eye(2)) == 0.5


def test_integers_booleans_and_infinities_are_scores():
    assert average_precision(np.array([[0, 255]], np.uint8), [1], [0, 1]) == 1
    smallest = np.array([[np.iinfo(np.int64).min, 0]])
    assert average_precision(smallest, [1], [0, 1]) == 1
    assert average_precision([[True, False]], [1], [0, 1]) == 0.5
    assert average_precision([[-np.inf, 0, np.inf]], [1], [0, 0, 1]) == 1


def test_no_queries_give_no_values():
    assert average_precision(np.empty((0, 3)), [], [0, 1, 2]).shape == (0,)
    assert np.isnan(average_precision(np.empty((2, 0)), [0, 1], [])).all()


def test_inputs_are_not_modified(problem):
    copies = [values.copy() for values in problem]
    mean_average_precision(*problem)
    for values, copy in zip(problem, copies, strict=True):
        assert_array_equal(values, copy)


@pytest.mark.parametrize("measure", MEANS)
@pytest.mark.parametrize("labels", [([-1, -1], [0, 1]), ([5, 5], [0, 1])])
def test_a_mean_over_no_query_is_refused(measure, labels):
    with pytest.raises(LinkspreadError, match="got none among 2 queries. Check"):
        measure(np.eye(2), *labels)


def test_a_mean_over_an_empty_collection_is_refused():
    with pytest.raises(LinkspreadError, match="got none among 2 queries"):
        precision_recall_curve(np.empty((2, 0)), [0, 1], [])
    with pytest.raises(LinkspreadError, match="got none among 0 queries"):
        ndcg(np.empty((0, 2)), [], [0, 1])


def test_nan_scores_are_refused_with_their_place(monkeypatch):
    monkeypatch.setattr(ranking, "ENTRIES_PER_BLOCK", 3)
    scores = np.ones((4, 3))
    scores[2, 1] = np.nan
    with pytest.raises(LinkspreadError, match="got NaN for query 2 and item 1. Rep"):
        average_precision(scores, np.zeros(4, int), np.zeros(3, int))


@pytest.mark.parametrize(
    "scores", [np.ones(3), np.ones((1, 2, 3)), [["a"]], csr_array((1, 3)), 5]
)
def test_scores_that_are_no_table_are_refused(scores):
    with pytest.raises(LinkspreadError, match="must be a table of numbers of shape"):
        average_precision(scores, [0], [0, 1, 2])


def test_the_rows_attribute_of_a_sparse_matrix_is_no_row_reader():
    with pytest.raises(LinkspreadError, match=r"got lil_matrix of shape \(1, 3\)"):
        average_precision(lil_matrix((1, 3)), [0], [0, 1, 2])


def test_scores_that_do_not_fit_the_labels_are_refused():
    with pytest.raises(LinkspreadError, match=r"got shape \(3, 2\) for 2 query labels"):
        average_precision(np.ones((3, 2)), [0, 1], [0, 1, 2])
