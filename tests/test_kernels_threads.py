"""Short work is done by one thread, long work by all of them."""

import numba
import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info

from linkspread.kernels import small_loops
from linkspread.kernels.cpu import SMALL_LOOP
from linkspread.kernels.threads import SMALL_ENTRIES, small_algebra
from linkspread.propagation import chebyshev


def test_short_loops_take_one_thread_and_give_the_others_back():
    n_threads = numba.get_num_threads()
    with small_loops(SMALL_LOOP):
        assert numba.get_num_threads() == 1
    assert numba.get_num_threads() == n_threads
    with small_loops(SMALL_LOOP + 1):
        assert numba.get_num_threads() == n_threads
    with pytest.raises(KeyboardInterrupt), small_loops(1):
        raise KeyboardInterrupt
    assert numba.get_num_threads() == n_threads


def test_small_matrices_take_one_thread_of_blas():
    before = [own["num_threads"] for own in threadpool_info()]
    with small_algebra(SMALL_ENTRIES):
        now = [own for own in threadpool_info() if own["user_api"] == "blas"]
        assert now
        assert all(own["num_threads"] == 1 for own in now)
    assert [own["num_threads"] for own in threadpool_info()] == before


@pytest.mark.parametrize("limit", [0, SMALL_LOOP])
def test_the_number_of_threads_changes_no_bit(rng, monkeypatch, limit):
    S = sparse.random_array((90, 90), density=0.1, rng=rng, format="csr") / 10
    S = (S + S.T).tocsr()
    block, coefficients = rng.standard_normal((90, 5)), rng.standard_normal((3, 7))
    alone = chebyshev.filtered_sums(S, block, coefficients)
    monkeypatch.setattr("linkspread.kernels.cpu.SMALL_LOOP", limit)
    assert np.array_equal(chebyshev.filtered_sums(S, block, coefficients), alone)
