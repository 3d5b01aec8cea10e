"""A served model follows its store, and people who search are not disturbed."""

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import linkspread as ls
from linkspread.ground.errors import LinkError
from linkspread.storage import Judgement, LinkStore
from linkspread.web.live_model import LiveModel
from web_sites import PAIRS, fit_search
from web_sites import fit_model as fit_coarsely

VIEWS = {"source": "text", "target": "image"}


def fit_model(pairs=PAIRS, **parameters):
    """Return a model whose scores can be compared to five digits."""
    return fit_coarsely(pairs, **{"tol": 1e-7} | parameters)


def judge(store, left, right, verdict="must", who="ann"):
    names = dict(left_view="text", left_id=left, right_view="image", right_id=right)
    return store.add(Judgement(who=who, verdict=verdict, **names))


def scores(model):
    return model.scores("text", "image")


@pytest.fixture
def store(tmp_path):
    with LinkStore.open(tmp_path / "judgements.db") as opened:
        yield opened


def test_a_snapshot_stays_as_it_was():
    model = fit_model()
    kept, before = model.snapshot(), scores(model)
    why = str(model.explain("t9", "i4", **VIEWS))
    link = ls.Links.from_pairs([("t9", "i4", -1.0)], between=("text", "image"))
    model.add_links(link)
    assert not np.allclose(scores(model), before)
    assert_array_equal(scores(kept), before)
    assert str(kept.explain("t9", "i4", **VIEWS)) == why
    # Neither does the model change with its snapshot.
    after = scores(model)
    kept.add_links(link).add_links(link)
    assert_array_equal(scores(model), after)


def test_the_model_is_as_if_it_had_been_told_itself(store):
    live = LiveModel(fit_model(), store)
    first = judge(store, "t5", "i7")
    judge(store, "t5", "i8", "cannot")
    judge(store, "t6", "i8", "unsure")
    live.follow()
    assert live.shown.number == 3
    told = fit_model()
    pairs = [("t5", "i7", 1.0), ("t5", "i8", -1.0)]
    told.add_links(ls.Links.from_pairs(pairs, between=("text", "image")))
    assert_allclose(scores(live.shown.model), scores(told), atol=1e-5)
    store.undo(first, who="bob")
    live.follow()
    gone = ls.Links.from_pairs(pairs[:1], between=("text", "image"))
    told.remove_links(gone)
    assert_allclose(scores(live.shown.model), scores(told), atol=1e-5)


def test_a_search_is_as_if_it_had_been_told_and_warming_it_up_changes_nothing(store):
    live, told = LiveModel(fit_search(), store), fit_search()
    live._warm_up()
    assert_array_equal(scores(live._model), scores(told))
    judge(store, "t5", "i7")
    live.follow()
    pair = ls.Links.from_pairs([("t5", "i7", 1.0)], between=("text", "image"))
    assert_array_equal(scores(live.shown.model), scores(told.add_links(pair)))
    assert live.open("image", "text") is live.shown.model


def test_absorbed_rows_are_not_added_again_but_can_be_taken_back(store):
    id = judge(store, "t5", "i7")
    has_it = [*PAIRS, ("t5", "i7", 1.0)]
    live = LiveModel(fit_model(has_it), store, absorbed=1)
    assert_array_equal(scores(live.shown.model), scores(fit_model(has_it)))
    store.undo(id, who="ann")
    live.follow()
    assert_allclose(scores(live.shown.model), scores(fit_model()), atol=1e-5)


def test_people_who_disagree_add_up_to_nothing(store):
    live = LiveModel(fit_model(), store)
    judge(store, "t5", "i7", "must", who="ann")
    judge(store, "t5", "i7", "cannot", who="bob")
    live.follow()
    assert list(live.ledger.disagreements()) == [(("image", "i7"), ("text", "t5"))]
    assert_allclose(scores(live.shown.model), scores(fit_model()), atol=1e-5)


def test_what_others_store_is_seen_soon(store, tmp_path):
    live = LiveModel(fit_model(), store)
    live.start()
    try:
        assert live.is_warm.wait(60)
        with LinkStore.open(tmp_path / "judgements.db") as other:
            judge(other, "t5", "i7")
        start = time.monotonic()
        assert live.wait(0, timeout=10) == 1
        # It looks twice a second; the rest is the time of a busy machine.
        assert time.monotonic() - start < 10
    finally:
        live.stop()


def test_nobody_waits_for_what_others_stored_later(store):
    live = LiveModel(fit_model(), store)
    live._thread = object()  # Somebody follows, when this test says so.
    mine = judge(store, "t5", "i7")
    assert not live.catch_up(id=mine, patience=0)
    live.follow()
    other = judge(store, "t6", "i8", who="bob")
    assert live.catch_up(id=mine, patience=0.01)
    assert not live.catch_up(id=other, patience=0)
    assert not live.catch_up(patience=0)
    undone = store.undo(mine, who="ann")
    assert not live.catch_up(id=undone, patience=0)
    live.follow()
    assert live.catch_up(id=undone, patience=0.01)
    assert live.catch_up(patience=0.01)


def test_unknown_items_are_counted_and_left_out(store):
    live = LiveModel(fit_model(), store)
    judge(store, "nobody", "i7")
    live.follow()
    assert live.n_unknown == 1
    assert not live.refusal


def test_a_model_that_takes_no_links_says_so_and_goes_on(store):
    model = fit_model()

    def refuse(**links):
        raise LinkError("not this one")

    model.change_links = refuse
    live = LiveModel(model, store)
    judge(store, "t5", "i7")
    live.follow()
    assert "count at the next fit" in live.refusal
    assert live.shown.number == 1
    assert live.shown.model.search("t5", **VIEWS)[0].shape == (10,)


def test_further_views_follow_once_they_were_asked_for(store):
    pairs = [("t0", "t3", 1.0), ("t0", "t1", -1.0)]
    model = fit_model()
    model.add_links(ls.Links.from_pairs(pairs, between=("text", "text")))
    live = LiveModel(model, store)
    live.open("text", "text")
    before = live.shown.model.scores("text", "text")
    names = dict(left_view="text", left_id="t9", right_view="text", right_id="t12")
    store.add(Judgement(who="ann", verdict="must", **names))
    live.follow()
    assert not np.allclose(live.shown.model.scores("text", "text"), before)
