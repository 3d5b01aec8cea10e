"""Products at single pairs against whole matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from linkspread.compiled import (
    add_products,
    largest_means,
    pair_products,
    sampled_products,
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_at_pairs_are_entries_of_the_whole(dtype, rng):
    left, right = (rng.standard_normal((n, n)) for n in (9, 6))
    left, right = ((own + own.T).astype(dtype) for own in (left, right))
    # Rows 2 and 8 have no pair.
    places = [p for p in rng.choice(54, 20, replace=False) if p // 6 not in (2, 8)]
    rows, columns = np.divmod(np.sort(places), 6)
    values = rng.standard_normal(len(rows)).astype(dtype)
    starts = np.searchsorted(rows, np.arange(10))
    C = np.zeros((9, 6))
    C[rows, columns] = values
    found = pair_products(left, right, rows, columns, starts, values)
    assert found.dtype == dtype
    wanted = (left @ C @ right)[rows, columns]
    assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


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
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_products_of_rows_are_added(rng):
    left, right, totals = (rng.random((n, 6)) for n in (4, 5, 9))
    rows, columns = rng.integers(0, 4, 9), rng.integers(0, 5, 9)
    wanted = totals + left[rows] * right[columns]
    add_products(left, right, rows, columns, totals)
    np.testing.assert_allclose(totals, wanted, rtol=1e-15)
