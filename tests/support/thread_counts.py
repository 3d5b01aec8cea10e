"""What tests of threads look at: who has how many of them."""

import sys
import threading
from contextlib import contextmanager

import numba
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

# What a model computes with; doors above hold the threads, rooms below have none.
ROOMS = tuple(
    f"linkspread/{room}/"
    for room in ("graphs", "metrics", "propagation", "retrieval", "solvers")
)


LIBRARIES = ThreadpoolController().select(user_api="blas").lib_controllers


def blas_threads():
    """Return the number of threads of every BLAS in this process."""
    return [own.get_num_threads() for own in LIBRARIES]


@pytest.fixture
def two_blas_threads():
    """Give BLAS two threads, also where the environment allows one."""
    with threadpool_limits(2, user_api="blas"):
        yield


class Seen:
    """How many threads there were while something was computed."""

    def __init__(self):
        self.blas, self.loops, self.started = set(), set(), 0


@contextmanager
def watched(monkeypatch):
    """Look at the threads whenever a function of a computing room is called."""
    seen, counts = Seen(), {}
    start = threading.Thread.start

    def note(frame, event, arg):
        if event != "call":
            return
        code = frame.f_code
        if code not in counts:
            is_in_room = any(room in code.co_filename for room in ROOMS)
            counts[code] = is_in_room and code.co_name != "__init__"
        if counts[code]:
            seen.blas.update(blas_threads())
            seen.loops.add(numba.get_num_threads())

    def counted(thread):
        seen.started += 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", counted)
    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(None)
        monkeypatch.undo()
