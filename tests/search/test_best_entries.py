"""The largest entries of a block against a full stable sort."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkspread.search.rank import PIECE, best_entries

# The module, whose name in the package is that of its function.
RANK = sys.modules[best_entries.__module__]


def by_sorting(block, n_results):
    """Return the largest entries of each row by sorting all of them."""
    order = np.argsort(-block, axis=1, kind="stable")[:, :n_results]
    return order, np.take_along_axis(block, order, axis=1)


@given(
    seed=st.integers(0, 10_000),
    n_rows=st.integers(0, 4),
    n_columns=st.integers(1, 70),
    n_results=st.integers(0, 9),
    n_values=st.integers(1, 40),
    piece=st.integers(1, 6),
)
def test_the_best_are_those_of_a_stable_sort(
    seed, n_rows, n_columns, n_results, n_values, piece
):
    # Short pieces of few values: ties within pieces, between them, and at the bound.
    rng = np.random.default_rng(seed)
    block = rng.integers(0, n_values, (n_rows, n_columns)).astype(float)
    block[rng.random(block.shape) < 0.1] = -np.inf
    n_results = min(n_results, n_columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RANK, "PIECE", piece)
        patch.setattr(RANK, "MIN_PIECES", 1)
        got = best_entries(block, n_results)
    wanted = by_sorting(block, n_results)
    np.testing.assert_array_equal(got[0], wanted[0])
    np.testing.assert_array_equal(got[1], wanted[1])


def test_rows_that_are_long_enough_are_cut_into_pieces(rng):
    block = rng.random((3, 5 * PIECE + 7), dtype=np.float32)
    block[1] = 0.5
    block[2, -1] = 2.0
    positions, values = best_entries(block, 1)
    np.testing.assert_array_equal(positions[:, 0], block.argmax(axis=1))
    assert values.dtype == np.float32
