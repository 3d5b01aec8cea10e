"""Ranking against a full stable sort."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkspread.search import rank


def by_sorting(vectors, items, n_results):
    """Return the best items of each query by sorting all scores."""
    scores = vectors @ items.T
    order = np.argsort(-scores, axis=1, kind="stable")[:, :n_results]
    return order, np.take_along_axis(scores, order, axis=1)


@given(
    seed=st.integers(0, 10_000),
    n_queries=st.integers(0, 5),
    n_items=st.integers(1, 12),
    width=st.integers(0, 3),
    n_results=st.integers(1, 15),
    n_values=st.integers(1, 3),
)
def test_rank_is_a_full_stable_sort(
    seed, n_queries, n_items, width, n_results, n_values
):
    # Small whole numbers make many ties, and their products are exact.
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-n_values, n_values + 1, (n_queries, width)).astype(float)
    items = rng.integers(-n_values, n_values + 1, (n_items, width)).astype(float)
    wanted = by_sorting(vectors, items, n_results)
    got = rank(vectors, items, n_results=n_results)
    np.testing.assert_array_equal(got[0], wanted[0])
    np.testing.assert_array_equal(got[1], wanted[1])
    assert got[0].shape == (n_queries, min(n_results, n_items))


@pytest.mark.parametrize("block_entries", [1, 30, 70, 10**6])
def test_blocks_of_any_size_agree(monkeypatch, rng, block_entries):
    # The function hides the module of the same name from a dotted path.
    module = sys.modules["linkspread.search.rank"]
    monkeypatch.setattr(module, "BLOCK_ENTRIES", block_entries)
    vectors = rng.integers(-3, 4, (11, 4)).astype(float)
    items = rng.integers(-3, 4, (30, 4)).astype(float)
    got, wanted = rank(vectors, items, n_results=7), by_sorting(vectors, items, 7)
    np.testing.assert_array_equal(got[0], wanted[0])
    np.testing.assert_array_equal(got[1], wanted[1])


def test_all_items_tie():
    found, scores = rank(np.zeros((2, 3)), np.ones((6, 3)), n_results=4)
    assert found.tolist() == [[0, 1, 2, 3]] * 2
    assert not scores.any()


def test_the_last_place_goes_to_the_first_of_its_equals():
    items = np.array([[1.0], [2.0], [1.0], [3.0], [1.0]])
    found, _ = rank(np.array([[1.0]]), items, n_results=3)
    assert found.tolist() == [[3, 1, 0]]


def test_more_results_than_items_returns_all_of_them():
    found, scores = rank(np.array([[1.0]]), np.array([[1.0], [4.0]]), n_results=9)
    assert found.tolist() == [[1, 0]]
    assert scores.tolist() == [[4.0, 1.0]]


def test_no_queries_and_no_items_have_shapes_too():
    for n_queries, n_items, shape in [(0, 5, (0, 3)), (2, 0, (2, 0))]:
        found, scores = rank(
            np.ones((n_queries, 2)), np.ones((n_items, 2)), n_results=3
        )
        assert found.shape == scores.shape == shape
        assert found.dtype == np.int64


def test_vectors_without_any_dimension_score_zero():
    found, scores = rank(np.ones((1, 0)), np.ones((4, 0)), n_results=2)
    assert found.tolist() == [[0, 1]]
    assert scores.tolist() == [[0.0, 0.0]]


def test_scores_keep_the_precision_of_the_vectors(rng):
    single = rng.random((2, 3)).astype(np.float32)
    assert rank(single, single, n_results=1)[1].dtype == np.float32
    assert rank(single, single.astype(float), n_results=1)[1].dtype == np.float64


def test_inputs_are_not_modified(rng):
    vectors, items = rng.random((3, 2)), rng.random((5, 2))
    copies = vectors.copy(), items.copy()
    rank(vectors, items, n_results=5)
    np.testing.assert_array_equal(vectors, copies[0])
    np.testing.assert_array_equal(items, copies[1])
