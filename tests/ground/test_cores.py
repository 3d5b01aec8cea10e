"""Cores are counted, and BLAS is held, for all threads of a process together."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from linkspread.ground import cores
from linkspread.ground.cores import count_threads, hold_blas, own_cores
from thread_counts import blas_threads, two_blas_threads  # noqa: F401


@pytest.mark.usefixtures("two_blas_threads")
def test_the_smallest_of_several_holds_counts_and_all_are_undone():
    before = blas_threads()
    with hold_blas(2):
        with hold_blas(1):
            assert set(blas_threads()) == {1}
            with hold_blas(2):
                assert set(blas_threads()) == {1}
        assert blas_threads() == before
    with pytest.raises(KeyError), hold_blas(1):
        raise KeyError
    assert blas_threads() == before


@pytest.mark.usefixtures("two_blas_threads")
def test_holds_of_two_threads_end_in_any_order():
    before = blas_threads()
    steps = threading.Barrier(2)

    def first():
        with hold_blas(1):
            steps.wait()  # both hold
        steps.wait()  # the other one holds still
        steps.wait()

    def second():
        with hold_blas(1):
            steps.wait()
            steps.wait()
            assert set(blas_threads()) == {1}
        steps.wait()

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result(timeout=30)
    assert blas_threads() == before


@pytest.mark.usefixtures("two_blas_threads")
def test_a_thread_can_hold_blas_after_another_one_did():
    # Newer versions of threadpoolctl listen only to the first thread that set a limit.
    with hold_blas(1):
        pass
    with ThreadPoolExecutor(1) as pool:

        def held():
            with hold_blas(1):
                return set(blas_threads())

        assert pool.submit(held).result() == {1}


def test_more_threads_than_blas_has_change_nothing():
    before = blas_threads()
    with hold_blas(10**6):
        assert blas_threads() == before


class PerThreadLibrary:
    """A BLAS over OpenMP, which has a number for each thread."""

    threading_layer = "openmp"

    def __init__(self):
        self.own = threading.local()

    def get_num_threads(self):
        return getattr(self.own, "n", 4)

    def set_num_threads(self, n):
        self.own.n = n


def test_a_library_over_openmp_is_held_for_each_thread(monkeypatch):
    library = PerThreadLibrary()
    monkeypatch.setattr(cores, "_libraries", lambda: [library])
    with ThreadPoolExecutor(1) as pool, hold_blas(2):
        assert library.get_num_threads() == 2
        assert pool.submit(library.get_num_threads).result() == 4
        with hold_blas(3):
            assert library.get_num_threads() == 2
        assert library.get_num_threads() == 2
    assert library.get_num_threads() == 4


def test_a_container_that_allows_fewer_cores_is_believed(monkeypatch):
    monkeypatch.setattr(cores, "_allowed_cores", lambda: 1)
    assert count_threads(None) == 1


def test_all_but_one_is_counted_from_the_machine_and_not_twice(monkeypatch):
    monkeypatch.setattr(cores, "_machine_cores", lambda: 8)
    with own_cores(count_threads(-2)):
        assert count_threads(-2) == count_threads(None) == 7
    with own_cores(2):
        assert count_threads(-2) == 2
        assert count_threads(-8) == 1
