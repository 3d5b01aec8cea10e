"""The kernels of the search: selection, sums and sparse products."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from linkspread.compiled import (
    difference_sums,
    keep_nearest,
    sparse_difference_sums,
    sparse_products,
)


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
