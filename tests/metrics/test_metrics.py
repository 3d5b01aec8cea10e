"""Measures of rankings against scikit-learn, scipy and plain loops."""

from itertools import permutations

import hypothesis.extra.numpy as arrays
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, lil_matrix
from sklearn.metrics import average_precision_score, ndcg_score

from linkspread import metrics
from linkspread.ground.errors import LinkspreadError
from linkspread.metrics import (
    assignment_quality,
    average_precision,
    mean_average_precision,
    ndcg,
    partner_ranks,
    precision_at_k,
    precision_recall_curve,
    rank_summary,
)

MEANS = [
    mean_average_precision,
    ndcg,
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


@pytest.fixture
def many(rng):
    query_labels, item_labels = rng.integers(0, 4, 15), rng.integers(0, 4, 60)
    return rng.standard_normal((15, 60)), query_labels, item_labels


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
    assert_array_equal(metrics._stable_order(block), expected)


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
    monkeypatch.setattr(metrics, "ENTRIES_PER_BLOCK", entries)
    assert_allclose(measure(*problem), expected, rtol=1e-14)


def test_rows_are_asked_for_in_small_blocks(rng, monkeypatch):
    monkeypatch.setattr(metrics, "ENTRIES_PER_BLOCK", 45)
    scores = ProductScores(rng.random((30, 3)), rng.random((20, 3)))
    labels = rng.integers(0, 3, 30), rng.integers(0, 3, 20)
    dense = average_precision(scores.left @ scores.right.T, *labels)
    assert_array_equal(average_precision(scores, *labels), dense)
    assert scores.largest_block == 2


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
    monkeypatch.setattr(metrics, "ENTRIES_PER_BLOCK", 3)
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


def test_ndcg_matches_scikit_learn(many):
    scores, query_labels, item_labels = many
    gains = (query_labels[:, np.newaxis] == item_labels).astype(float)
    expected = ndcg_score(gains, scores)
    assert ndcg(*many) == pytest.approx(expected, rel=1e-12)


def test_a_perfect_ranking_has_ndcg_one(many):
    _, query_labels, item_labels = many
    scores = query_labels[:, np.newaxis] == item_labels
    assert ndcg(scores, query_labels, item_labels) == pytest.approx(1)


@pytest.mark.parametrize("k", [1, 5, 100])
def test_precision_at_k_matches_a_loop(rng, k):
    scores = rng.random((6, 20))
    queries, items = rng.integers(0, 3, 6), rng.integers(0, 3, 20)
    shares = []
    for row, label in zip(scores, queries, strict=True):
        best = sorted(range(20), key=lambda j, row=row: -row[j])[:k]
        shares.append(np.mean([items[j] == label for j in best]))
    assert precision_at_k(scores, queries, items, k=k) == pytest.approx(np.mean(shares))


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


def test_average_precision_matches_scikit_learn(many):
    scores, query_labels, item_labels = many
    expected = [
        average_precision_score(item_labels == label, row)
        for row, label in zip(scores, query_labels, strict=True)
    ]
    assert_allclose(average_precision(*many), expected, rtol=1e-12)
    assert mean_average_precision(*many) == pytest.approx(np.mean(expected))


def test_many_relevant_items_are_ranked_as_few_are(rng):
    # More of one class than the kernel counts one by one, with many ties.
    scores = rng.integers(0, 300, (3, 1500)).astype(np.float32)
    query_labels, item_labels = np.zeros(3, int), rng.integers(0, 2, 1500)
    values = average_precision(scores, query_labels, item_labels)
    expected = [
        reference_average_precision(row, item_labels == 0, 1500) for row in scores
    ]
    assert_allclose(values, expected, rtol=1e-12)


def test_average_precision_with_ties_matches_a_plain_loop(rng):
    scores = rng.integers(0, 5, (10, 60)).astype(float)
    query_labels, item_labels = rng.integers(0, 3, 10), rng.integers(0, 3, 60)
    expected = [
        reference_average_precision(row, item_labels == label, 60)
        for row, label in zip(scores, query_labels, strict=True)
    ]
    values = average_precision(scores, query_labels, item_labels)
    assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize("n_levels", [5, 10**6])
def test_curve_matches_its_definition(rng, n_levels):
    scores = rng.integers(0, n_levels, (10, 60)).astype(float)
    query_labels, item_labels = rng.integers(0, 3, 10), rng.integers(0, 3, 60)
    levels = np.linspace(0, 1, 11)
    expected = [
        reference_interpolated(row, item_labels == label, levels)
        for row, label in zip(scores, query_labels, strict=True)
    ]
    precision, recall = precision_recall_curve(scores, query_labels, item_labels)
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


def test_a_perfect_ranking_has_value_one(many):
    _, query_labels, item_labels = many
    scores = (query_labels[:, np.newaxis] == item_labels).astype(float)
    assert_array_equal(average_precision(scores, query_labels, item_labels), 1)
    precision, _ = precision_recall_curve(scores, query_labels, item_labels)
    assert_array_equal(precision, 1)


@given(
    scores=arrays.arrays(
        np.float64, (4, 9), elements=st.integers(-40, 40).map(lambda value: value / 8)
    ),
    item_labels=arrays.arrays(np.int64, 9, elements=st.integers(-1, 2)),
)
def test_only_the_order_of_the_scores_counts(scores, item_labels):
    query_labels = [0, 1, 2, -1]
    expected = average_precision(scores, query_labels, item_labels)
    for transform in (np.exp, np.arctan, lambda s: 4 * s - 7, lambda s: s**3):
        values = average_precision(transform(scores), query_labels, item_labels)
        assert_array_equal(values, expected)


@given(
    scores=arrays.arrays(np.float64, (3, 7), elements=st.floats(-1e3, 1e3)),
    item_labels=arrays.arrays(np.int64, 7, elements=st.integers(0, 3)),
)
def test_values_lie_between_zero_and_one(scores, item_labels):
    values = average_precision(scores, [0, 1, 2], item_labels)
    assert ((values > 0) & (values <= 1) | np.isnan(values)).all()


def test_single_precision_agrees_with_double(many):
    scores, *labels = many
    assert_array_equal(
        average_precision(scores.astype(np.float32), *labels),
        average_precision(scores, *labels),
    )


@pytest.mark.parametrize("k", [0, -1, 2.0, "3"])
def test_a_cutoff_that_is_no_positive_integer_is_refused(k):
    with pytest.raises(LinkspreadError, match=f"`k` must be a positive.*got {k!r}. Pa"):
        precision_at_k(np.eye(2), [0, 1], [0, 1], k=k)


def test_unknown_items_are_of_no_class():
    values = average_precision(np.zeros((3, 3)), [0, 1, -1], [1, -1, 0])
    assert_array_equal(values, [1 / 3, 1, np.nan])


@pytest.mark.parametrize("labels", [["a"], [0.5], [None], [np.nan]])
def test_labels_that_are_no_integers_are_refused(labels):
    with pytest.raises(LinkspreadError, match="`item_labels` must hold integers.*got"):
        average_precision([[1]], [0], labels)


@pytest.mark.parametrize("labels", [3, np.zeros((1, 1, 1), int)])
def test_labels_of_other_dimensions_are_refused(labels):
    with pytest.raises(LinkspreadError, match=r"`query_labels` must.*got .* of shape"):
        average_precision([[1]], labels, [0])


def test_ranks_equal_counting():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 4, size=(7, 9)).astype(float)
    queries, partners = rng.integers(0, 7, 12), rng.integers(0, 9, 12)
    found = partner_ranks(lambda q: scores[q], queries, partners, n_candidates=9)
    for query, partner, rank in zip(queries, partners, found, strict=True):
        own = partners[queries == query]
        others = [scores[query, c] for c in range(9) if c not in own]
        before = sum(s > scores[query, partner] for s in others)
        tied = sum(s == scores[query, partner] for s in others)
        assert rank == 1 + before + tied / 2


def test_a_search_that_scores_all_alike_finds_nobody_first():
    ranks = partner_ranks(lambda q: np.zeros((len(q), 9)), [0], [3], n_candidates=9)
    assert rank_summary(ranks)["recall at 1"] == 0
    assert ranks[0] == 5


def test_assignment_is_the_best_of_all():
    scores = np.random.default_rng(0).random((4, 5))
    best = max(permutations(range(5), 4), key=lambda p: scores[range(4), p].sum())
    pairs = [[0, best[0]], [1, best[1]], [2, (best[2] + 1) % 5]]
    quality = assignment_quality(scores, pairs)
    assert quality.precision == 2 / 4
    assert quality.recall == 2 / 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: partner_ranks(np.zeros, [0, 1], [1], n_candidates=3), "one length"),
        (lambda: partner_ranks(np.zeros, [0], [7], n_candidates=3), "from 0 to 2"),
        (
            lambda: partner_ranks(
                lambda q: np.full((1, 3), np.nan), [0], [1], n_candidates=3
            ),
            "must be finite",
        ),
        (lambda: assignment_quality([[np.nan]], [[0, 0]]), "must be finite"),
        (lambda: assignment_quality([[1.0]], []), "0 pairs"),
    ],
)
def test_measures_refuse_what_they_cannot_measure(call, message):
    with pytest.raises(LinkspreadError, match=message):
        call()
