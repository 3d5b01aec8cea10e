"""Several threads at one model, and changes that would spoil it."""

import threading
from dataclasses import replace

import numpy as np
import pytest

import linkspread as ls
from linkspread.ground.errors import LinkError
from linkspread.models import cross_view_search

BETWEEN = ("text", "image")
WAY = {"source": "text", "target": "image"}
MODELS = [ls.CrossViewSearch(), ls.LinkSpreading(n_neighbors=6)]


def pairs(*given):
    return ls.Links.from_pairs(list(given), between=BETWEEN)


def fitted(model):
    data = ls.datasets.make_views({"text": 60, "image": 50}, random_state=0)
    links = pairs(*((i, 7 * i % 40, 1.0 if i % 3 else -1.0) for i in range(30)))
    return model.fit(data.views(), links)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_writers_take_turns_and_readers_see_one_state(model):
    fitted(model)
    failures, is_done = [], threading.Event()

    def write(first):
        for k in range(first, first + 5):
            model.add_links(pairs((30 + k, 40 + k % 10, 1.0), (45 + k, k, -1.0)))
            model.remove_links(pairs((45 + k, k, -1.0)))

    def grow():
        rows = model._table("image")[:2] + 0.1
        for _ in range(3):
            model.add_items("image", rows)

    def read():
        while not is_done.is_set():
            ids, scores = model.search([1, 2], **WAY, n_results=100)
            assert ids.shape[1] >= 50 and np.isfinite(scores).all()
            searching, found = model.embeddings(*BETWEEN)
            assert searching.shape[1] == found.shape[1]
            model.explain(1, 2, **WAY)

    def watched(work, *given):
        try:
            work(*given)
        except Exception as error:
            failures.append(repr(error))

    writers = [threading.Thread(target=watched, args=(write, k)) for k in (0, 5, 10)]
    writers.append(threading.Thread(target=watched, args=(grow,)))
    readers = [threading.Thread(target=watched, args=(read,)) for _ in range(2)]
    for thread in (*writers, *readers):
        thread.start()
    for thread in writers:
        thread.join()
    is_done.set()
    for thread in readers:
        thread.join()
    assert failures == []
    assert model.items_["image"].n_items == 56
    assert model.links_.judged(*BETWEEN).nnz == 30 + 15


def test_a_reader_beside_a_change_keeps_the_state_it_began_with(monkeypatch):
    model = fitted(ls.CrossViewSearch())
    before = model.scores(*BETWEEN)
    compute = type(model)._exact_rows

    def changed_meanwhile(view, source, target):
        model._factors = {}
        return compute(view, source, target)

    monkeypatch.setattr(type(model), "_exact_rows", changed_meanwhile)
    np.testing.assert_array_equal(model.scores(*BETWEEN), before)


def test_a_change_that_loses_what_was_there_is_refused():
    model = fitted(ls.LinkSpreading(n_neighbors=6))
    before = model.scores(*BETWEEN)
    with pytest.raises(LinkError, match="keep what was known before, got 1e.06"):
        model.add_links(pairs((3, 3, 1e6)))
    np.testing.assert_array_equal(model.scores(*BETWEEN), before)
    model.add_links(pairs((3, 3, 100.0)))


@pytest.mark.parametrize("spoilt", ["nan", "singular"])
def test_a_change_that_leaves_scores_that_are_not_finite_is_refused(
    monkeypatch, spoilt
):
    model = fitted(ls.CrossViewSearch())
    before, change = model.scores(*BETWEEN), cross_view_search.change_factors

    def spoil(*given):
        if spoilt == "singular":
            raise np.linalg.LinAlgError("SVD did not converge")
        now = change(*given)
        return replace(now, bias=(now.bias[0], np.full_like(now.bias[1], np.nan)))

    monkeypatch.setattr(cross_view_search, "change_factors", spoil)
    with pytest.raises(LinkError, match="must leave scores finite"):
        model.add_links(pairs((3, 3, 1.0)))
    monkeypatch.undo()
    np.testing.assert_array_equal(model.scores(*BETWEEN), before)
    assert model.add_links(pairs((3, 3, 1.0))).links_.judged(*BETWEEN)[3, 3] == 1
