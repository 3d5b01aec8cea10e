"""Short work is done by one thread, long work by all of them."""

import numba
import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info

from linkspread.compiled.backends import (
    SMALL_ENTRIES,
    SMALL_LOOP,
    few_cores,
    small_algebra,
    small_loops,
)
from linkspread.ground.cores import count_threads
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


@pytest.fixture
def problem(rng):
    S = sparse.random_array((90, 90), density=0.1, rng=rng, format="csr") / 10
    S = (S + S.T).tocsr()
    return S, rng.standard_normal((90, 5)), rng.standard_normal((3, 7))


def test_the_number_of_threads_changes_no_bit(problem, monkeypatch):
    by_one = chebyshev.filtered_sums(*problem)
    monkeypatch.setattr("linkspread.compiled.backends.SMALL_LOOP", 0)
    by_all = chebyshev.filtered_sums(*problem)
    assert np.array_equal(by_all, by_one)


@pytest.mark.parametrize("limit", [0, SMALL_LOOP])
def test_recurrences_take_the_threads_that_their_size_is_worth(
    problem, monkeypatch, limit
):
    S, block, coefficients = problem
    used = {}

    def noting(name, kernel):
        def noted(*arrays):
            used[name] = numba.get_num_threads()
            return kernel(*arrays)

        return noted

    for name in ("chebyshev_step", "add_terms", "clenshaw_step"):
        monkeypatch.setattr(chebyshev, name, noting(name, getattr(chebyshev, name)))
    monkeypatch.setattr("linkspread.compiled.backends.SMALL_LOOP", limit)
    sums = chebyshev.filtered_sums(S, block, coefficients)
    chebyshev.filtered_sum(S, sums, coefficients)
    expected = 1 if limit else numba.get_num_threads()
    assert used == dict.fromkeys(used, expected)
    assert len(used) == 3


def test_few_cores_hold_searches_and_loops():
    before = numba.get_num_threads()
    with few_cores(1):
        assert count_threads(None) == count_threads(-1) == 1
        assert numba.get_num_threads() == 1
        assert count_threads(3) == 3  # asked for by name
    assert numba.get_num_threads() == before
    n_cores = count_threads(None)
    with few_cores(10**6):
        assert numba.get_num_threads() == before
        assert count_threads(None) == n_cores


def test_few_cores_end_with_an_error():
    before = numba.get_num_threads(), count_threads(None)
    with pytest.raises(KeyError), few_cores(1):
        raise KeyError
    assert (numba.get_num_threads(), count_threads(None)) == before
