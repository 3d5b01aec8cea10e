"""CrossViewSearch that changes: snapshots, rebuilds, items added and removed."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import linkspread as ls
from search_models import KINDS, PAIR, model


@pytest.mark.parametrize("kind", ["shared", "judged", "labels"])
def test_a_snapshot_stays_as_it_was(kind):
    search = model(kind)
    before = search.scores(*PAIR)
    kept = search.snapshot()
    ids = [search.items_[view].ids for view in PAIR]
    table = [(ids[0][k], ids[1][k + 1], 1.0) for k in range(50, 80)]
    search.add_links(ls.Links.from_pairs(table, between=PAIR))
    assert_array_equal(kept.scores(*PAIR), before)
    assert str(kept.links_) != str(search.links_)
    if kind == "judged":
        assert not np.array_equal(search.scores(*PAIR), before)
    assert kept._maps is search._maps


def test_snapshots_are_searched_while_links_come():
    search = model("judged")
    shown, wrong = [search.snapshot()], []
    stop = threading.Event()

    def read():
        while not stop.is_set():
            own = shown[0]
            one, two = own.scores(*PAIR), own.scores(*PAIR)
            if not np.array_equal(one, two):
                wrong.append(1)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for k in range(50, 60):
        link = ls.Links.from_pairs([(f"text{k}", f"image{k}")], between=PAIR)
        search.add_links(link)
        shown[0] = search.snapshot()
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong


@pytest.mark.parametrize("kind", KINDS)
def test_a_rebuilt_search_is_the_fit_of_all_links(kind):
    search = model(kind)
    before = search.scores(*PAIR)
    assert_allclose(search.rebuild().scores(*PAIR), before, atol=1e-6)
    ids = [search.items_[view].ids for view in PAIR]
    more = ls.Links.from_pairs([(ids[0][70], ids[1][70])], between=PAIR)
    links = search.links_ + more.resolve(search.items_)
    views = search._tables
    named = {view: own.ids for view, own in search.items_.items() if own.has_ids}
    anew = ls.CrossViewSearch(**search.get_params()).fit(views, links, ids=named)
    search.add_links(more).rebuild()
    assert_allclose(search.scores(*PAIR), anew.scores(*PAIR), atol=1e-6)


@pytest.mark.parametrize("kind", ["shared", "labels"])
def test_what_doors_tell_of_a_search(kind):
    search = model(kind)
    assert PAIR in search.pairs_
    assert search.facts_["text"]["items"] == search.items_["text"].n_items
    assert search.notes_ == []
