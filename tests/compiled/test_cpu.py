"""Compiled loops against NumPy, SciPy and sorting."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from linkspread.compiled.cpu import (
    AHEAD,
    LINE_BYTES,
    SMALL_BYTES,
    add_products,
    chebyshev_step,
    clenshaw_step,
    difference_sums,
    keep_nearest,
    largest_means,
    lines_to_fetch,
    sampled_products,
    sparse_difference_sums,
    sparse_products,
)
from linkspread.propagation.chebyshev import N_TERMS, recurrence_terms

N_ITEMS = 20_000


@given(
    tile=arrays(np.float64, (2, 90), elements=st.integers(0, 5).map(float)),
    n_kept=st.integers(1, 20),
    width=st.integers(1, 90),
)
def test_the_smallest_keys_are_kept_and_ties_by_index(tile, n_kept, width):
    offsets = np.arange(90) % 3.0
    excluded = np.array([0, 89])
    keys, ids = np.full((2, n_kept), np.inf), np.full((2, n_kept), -1)
    for first in range(0, 90, width):
        columns = slice(first, first + width)
        part = np.ascontiguousarray(tile[:, columns])
        keep_nearest(part, offsets[columns], first, excluded, keys, ids)
    full = tile + offsets
    full[0, 0] = full[1, 89] = np.inf
    expected = np.argsort(full, axis=1, kind="stable")[:, :n_kept]
    assert_array_equal(np.sort(ids, axis=1), np.sort(expected, axis=1))
    assert_array_equal(keys, np.take_along_axis(full, ids, 1))
    assert_array_equal(keys[:, 0], keys.max(axis=1))


def test_places_that_no_item_fills_stay_infinite():
    keys, ids = np.full((1, 4), np.inf), np.full((1, 4), -1)
    tile = np.array([[2.0, np.nan, 1.0]])
    keep_nearest(tile, np.zeros(3), 0, np.array([-1]), keys, ids)
    assert keys[0, 0] == np.inf
    assert sorted(ids[0]) == [-1, -1, 0, 2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("relative", [False, True])
def test_sums_follow_their_formula(rng, relative, dtype):
    Q, X = (rng.random((n, 37)) * (rng.random((n, 37)) < 0.5) for n in (4, 9))
    Q, X = Q.astype(dtype), X.astype(dtype)
    ids = rng.integers(0, 9, (4, 6))
    ids[2, 3] = -1
    difference = Q[:, None].astype(np.float64) - X[ids]
    size = Q[:, None].astype(np.float64) + X[ids] if relative else 1
    terms = np.divide(difference**2, size, out=0 * difference, where=size != 0)
    expected = np.where(ids < 0, np.inf, terms.sum(axis=2))
    dense, sparse = np.empty((4, 6)), np.empty((4, 6))
    difference_sums(Q, X, ids, relative, dense)
    assert_allclose(dense, expected, rtol=1e-14)
    q, x = sp.csr_array(Q), sp.csr_array(X)
    arrays = (q.data, q.indices, q.indptr, x.data, x.indices, x.indptr)
    sparse_difference_sums(*arrays, ids, relative, sparse)
    assert_allclose(sparse, expected, rtol=1e-14)


def test_sparse_products_are_negated_products(rng):
    Q = sp.random_array((5, 30), density=0.2, format="csr", rng=rng)
    X = sp.random_array((8, 30), density=0.2, format="csr", rng=rng)
    T = sp.csr_array(X.T)
    out = np.full((5, 8), 7.0)
    arrays = (Q.data, Q.indices, Q.indptr, T.data, T.indices, T.indptr)
    sparse_products(*arrays, out)
    assert_allclose(out, -(Q @ T).toarray(), atol=1e-15)


def graph_of(n_rows, n_edges, dtype, index):
    """Return some rows of a graph: the last ones have no neighbour."""
    rng = np.random.default_rng(n_edges)
    rows = rng.integers(0, n_rows - 5, n_edges)
    columns = rng.integers(0, N_ITEMS, n_edges)
    values = rng.standard_normal(n_edges).astype(dtype)
    S = sp.coo_array((values, (rows, columns)), shape=(n_rows, N_ITEMS)).tocsr()
    return S.data, S.indices.astype(index), S.indptr.astype(index), S


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("n_rows", [N_ITEMS, 300])
@pytest.mark.parametrize("n_edges", [0, AHEAD - 1, 5_000])
@pytest.mark.parametrize("width", [2, 30, 70])
@pytest.mark.slow
def test_steps_are_the_products_of_scipy(dtype, index, n_rows, n_edges, width):
    data, indices, indptr, S = graph_of(n_rows, n_edges, dtype, index)
    rng = np.random.default_rng(0)
    current = rng.standard_normal((N_ITEMS, width)).astype(dtype)
    previous = rng.standard_normal((n_rows, width)).astype(dtype)
    expected = 2 * (S @ current) - previous
    following = np.empty_like(previous)
    graph = data, indices, indptr, dtype(2)
    chebyshev_step(*graph, current, previous, following)
    assert np.allclose(following, expected, atol=1e-4)

    sources = rng.standard_normal((n_rows, 2, width)).astype(dtype)
    weights = np.array([0.5, -1.0], dtype)
    expected = expected + 0.5 * sources[:, 0] - sources[:, 1]
    clenshaw_step(*graph, current, previous, weights, sources)
    assert np.allclose(previous, expected, atol=1e-4)


def test_a_block_in_the_cache_of_a_core_is_not_asked_for():
    assert lines_to_fetch(np.empty((SMALL_BYTES // 8, 1))) == 0
    assert lines_to_fetch(np.empty((SMALL_BYTES // 8 + 1, 1))) == 1


def test_a_row_is_asked_for_to_its_end():
    for width in (LINE_BYTES // 4, LINE_BYTES // 4 + 1):
        block = np.empty((SMALL_BYTES, width), np.float32)
        assert lines_to_fetch(block) * LINE_BYTES >= block[0].nbytes
        assert (lines_to_fetch(block) - 1) * LINE_BYTES < block[0].nbytes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_terms_of_a_recurrence_begin_with_a_cache_line(dtype):
    for n_items in (1, 7, 300):
        terms = recurrence_terms(n_items, 3, dtype)
        assert terms.ctypes.data % LINE_BYTES == 0
        assert terms.dtype == dtype and len(terms) == N_TERMS * n_items * 3


def test_sampled_products_are_inner_products_of_rows(rng):
    left, right = rng.standard_normal((5, 3)), rng.standard_normal((4, 3))
    rows, columns = np.array([4, 0, 0]), np.array([1, 3, 3])
    wanted = (left @ right.T)[rows, columns]
    assert_allclose(sampled_products(left, right, rows, columns), wanted)


@pytest.mark.parametrize("n_largest", [1, 3, 40])
def test_means_of_the_largest_are_those_of_sorting(rng, n_largest):
    scores = rng.standard_normal((40, 70)).astype(np.float32)
    scores[5:9] = scores[4]  # ties
    found = np.empty(70, dtype=np.float32)
    largest_means(scores, n_largest, 16, found)
    wanted = np.sort(scores, axis=0)[-n_largest:].mean(axis=0)
    assert_allclose(found, wanted, atol=1e-6)


def test_products_of_rows_are_added(rng):
    left, right, totals = (rng.random((n, 6)) for n in (4, 5, 9))
    rows, columns = rng.integers(0, 4, 9), rng.integers(0, 5, 9)
    wanted = totals + left[rows] * right[columns]
    add_products(left, right, rows, columns, totals)
    assert_allclose(totals, wanted, rtol=1e-15)
