"""Searches that wait for each other are answered together, each with its own answer."""

import threading
import time
from types import SimpleNamespace

import pytest
from numpy.testing import assert_array_equal

from linkspread.ground.errors import LinkspreadError
from linkspread.web.live_model import Shown
from linkspread.web.searching import Busy, Searches
from web_sites import fit_model

VIEWS = {"source": "text", "target": "image"}


class Slow:
    """A model whose first search waits, and that counts its searches."""

    def __init__(self, model):
        self.model, self.may_go, self.asked = model, threading.Event(), []

    def search(self, queries, **how):
        self.asked.append(queries)
        if len(self.asked) <= self.n_held:
            assert self.may_go.wait(60)
        return self.model.search(queries, **how)


@pytest.fixture
def slow():
    slow = Slow(fit_model())
    searches = Searches(SimpleNamespace(shown=Shown(0, slow)))
    slow.n_held = searches._turns._places._value
    return slow, searches


def all_at_once(works):
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    return threads


def test_those_that_wait_share_a_search_and_each_has_its_own_answer(slow):
    model, searches = slow
    found = {}

    def work(id, n):
        try:
            found[id] = searches.search(id, n=n, **VIEWS)
        except LinkspreadError as error:
            found[id] = error

    wanted = {f"t{k}": 3 + k % 4 for k in range(30)} | {"nobody": 5}
    held = all_at_once([lambda k=k: work(f"t{50 + k}", 2) for k in range(model.n_held)])
    while len(model.asked) < model.n_held:
        time.sleep(0.005)
    others = all_at_once([lambda o=own: work(*o) for own in wanted.items()])
    while len(searches._waiting["text", "image"]) < len(wanted):
        time.sleep(0.005)
    model.may_go.set()
    for thread in held + others:
        thread.join()
    assert isinstance(found.pop("nobody"), LinkspreadError)
    for id, (ids, scores) in found.items():
        n = wanted.get(id, 2)
        own = model.model.search(id, n_results=n, **VIEWS)
        assert_array_equal(ids, own[0])
        assert scores == pytest.approx(own[1], abs=1e-5)
    # Two blocks, one of them again one by one, because of the unknown id.
    assert len([own for own in model.asked if isinstance(own, list)]) <= 4


def test_too_many_that_wait_are_refused_and_nobody_is_forgotten(slow):
    model, searches = slow
    found = []

    def work():
        try:
            found.append(len(searches.search("t5", n=4, **VIEWS)[0]))
        except Busy as error:
            found.append(error)

    threads = all_at_once([work] * 100)
    while sum(isinstance(own, Busy) for own in found) < 100 - 60 - model.n_held:
        time.sleep(0.005)
    model.may_go.set()
    for thread in threads:
        thread.join()
    assert found.count(4) == 60 + model.n_held
