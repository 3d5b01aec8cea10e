"""A model fitted again: what a failure leaves."""

from itertools import count

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from linkspread import LinkSpreading
from linkspread.ground.errors import GraphError, LinkspreadError
from linkspread.models.spreading import Spreading
from small_views import SIZES, make_links, make_pairs, make_views

NAMES = ("text", "image", "sound")


def fit():
    """Return a model of three views, fitted to labels and pairs."""
    links = make_links("mixture") + make_pairs(2, 30, ("image", "sound"))
    model = LinkSpreading(n_neighbors=4, alpha=0.5)
    return model.fit(make_views(*NAMES), links)


def answers(model):
    """Return what a model says of fitted and of new items."""
    new = make_views(*NAMES, seed=9)
    said = {}
    for source, target in [("text", "image"), ("sound", "image")]:
        ask = {"source": source, "target": target}
        said[source, "fitted"] = model.search(range(SIZES[source]), **ask)
        said[source, "new"] = model.search(new[source], **ask)
    return said


def state(model):
    """Return the fitted attributes by name, the objects themselves."""
    return {name: own for name, own in vars(model).items() if name.endswith("_")}


def let_memory_run_out(monkeypatch):
    """Let the scores of the second pair of views fail."""
    scores, n_calls = Spreading.scores, count()

    def fail_at_the_second(*own):
        if next(n_calls):
            raise MemoryError
        return scores(*own)

    monkeypatch.setattr(Spreading, "scores", fail_at_the_second)


# How a fit fails, early and late, and what is raised.
FAILURES = {
    "parameter": (LinkspreadError, "`tol` must be"),
    "graph": (GraphError, "view 'sound'"),
    "memory": (MemoryError, None),
}


def fail(model, how, monkeypatch):
    """Fit other items of the same views in a way that goes wrong."""
    links = make_links("mixture", seed=7) + make_pairs(7, 30, ("image", "sound"))
    if how == "parameter":
        model.set_params(tol=2.0)
    if how == "graph":
        model.set_params(graph=dict.fromkeys(NAMES, "knn") | {"sound": np.asarray})
    if how == "memory":
        let_memory_run_out(monkeypatch)
    ids = {view: np.arange(SIZES[view])[::-1] for view in NAMES}
    error, sentence = FAILURES[how]
    with pytest.raises(error, match=sentence):
        model.fit(make_views(*NAMES, seed=7), links, ids=ids)
    monkeypatch.undo()


@pytest.mark.parametrize("how", FAILURES)
def test_a_fit_that_fails_leaves_the_earlier_one_whole(how, monkeypatch):
    model = fit()
    said, kept = answers(model), state(model)
    fail(model, how, monkeypatch)
    again = answers(model)
    for question, (ids, scores) in said.items():
        assert_array_equal(again[question][0], ids)
        assert_array_equal(again[question][1], scores)
    assert state(model).keys() == kept.keys()
    assert all(state(model)[name] is own for name, own in kept.items())
