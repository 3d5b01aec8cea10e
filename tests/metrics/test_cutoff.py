"""Recall and nDCG against scikit-learn and a plain count."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import ndcg_score

from linkspread.ground.errors import LinkspreadError
from linkspread.metrics import ndcg, precision_at_k, recall_at_k


@pytest.fixture
def problem(rng):
    query_labels, item_labels = rng.integers(0, 4, 15), rng.integers(0, 4, 60)
    return rng.standard_normal((15, 60)), query_labels, item_labels


@pytest.mark.parametrize("k", [None, 1, 5, 40, 60, 1000])
def test_ndcg_matches_scikit_learn(problem, k):
    scores, query_labels, item_labels = problem
    gains = (query_labels[:, np.newaxis] == item_labels).astype(float)
    expected = ndcg_score(gains, scores, k=k)
    assert ndcg(*problem, k=k) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("k", [1, 5, 60, 1000])
def test_recall_matches_a_plain_count(problem, k):
    scores, query_labels, item_labels = problem
    expected = [
        np.mean([i in np.argsort(-row)[:k] for i in np.flatnonzero(item_labels == c)])
        for row, c in zip(scores, query_labels, strict=True)
    ]
    assert_allclose(recall_at_k(*problem, k=k), np.mean(expected))


def test_recall_of_all_ranks_is_one(problem):
    assert recall_at_k(*problem, k=60) == 1


def test_recall_grows_with_the_number_of_ranks(problem):
    values = [recall_at_k(*problem, k=k) for k in range(1, 61)]
    assert (np.diff(values) >= 0).all()


@pytest.mark.parametrize("k", [None, 1, 5, 60])
def test_a_perfect_ranking_has_ndcg_one(problem, k):
    _, query_labels, item_labels = problem
    scores = query_labels[:, np.newaxis] == item_labels
    assert ndcg(scores, query_labels, item_labels, k=k) == pytest.approx(1)


@pytest.mark.parametrize("measure", [ndcg, recall_at_k])
@pytest.mark.parametrize("k", [0, 1.5])
def test_a_cutoff_that_is_no_positive_integer_is_refused(measure, k):
    with pytest.raises(LinkspreadError, match=f"positive integer, got {k}. Pass the"):
        measure(np.eye(2), [0, 1], [0, 1], k=k)


def test_recall_needs_a_cutoff():
    with pytest.raises(LinkspreadError, match="positive integer, got None"):
        recall_at_k(np.eye(2), [0, 1], [0, 1], k=None)


@pytest.mark.parametrize("k", [1, 5, 100])
def test_precision_at_k_matches_a_loop(rng, k):
    scores = rng.random((6, 20))
    queries, items = rng.integers(0, 3, 6), rng.integers(0, 3, 20)
    shares = []
    for row, label in zip(scores, queries, strict=True):
        best = sorted(range(20), key=lambda j, row=row: -row[j])[:k]
        shares.append(np.mean([items[j] == label for j in best]))
    assert precision_at_k(scores, queries, items, k=k) == pytest.approx(np.mean(shares))
