"""A model fitted again: what a failure leaves, and what another objective drops."""

import copy
from itertools import count, product

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from linkspread import Links, LinkSpreading
from linkspread.estimators.objective import FittingObjective
from linkspread.estimators.spread_objective import SpreadObjective
from linkspread.exceptions import (
    ConflictWarning,
    GraphError,
    LinkError,
    LinkspreadError,
)
from small_views import SIZES, make_links, make_pairs, make_views

NAMES = ("text", "image", "sound")
OBJECTIVES = ["spread", "ridge", "auto"]
# Fitted attributes that only some objectives have.
TOLD = {"spread": set(), "ridge": {"loo_error_"}, "auto": {"choice_"}}


def fit(objective):
    """Return a model of three views, fitted to labels and pairs."""
    links = make_links("mixture") + make_pairs(2, 30, ("image", "sound"))
    model = LinkSpreading(n_neighbors=4, alpha=0.5, objective=objective)
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
    for owner in (SpreadObjective, FittingObjective):
        scores, n_calls = owner.scores, count()

        def fail_at_the_second(*own, scores=scores, n_calls=n_calls):
            if next(n_calls):
                raise MemoryError
            return scores(*own)

        monkeypatch.setattr(owner, "scores", fail_at_the_second)


# How a fit fails, early and late, and what is raised.
FAILURES = {
    "parameter": (LinkspreadError, "`tol` must be"),
    "graph": (GraphError, "view 'sound'"),
    "links": (LinkError, "'image' and 'sound' must not all contradict"),
    "memory": (MemoryError, None),
}
# Links that cancel each other out are no failure where they are only spread.
CASES = [c for c in product(OBJECTIVES, FAILURES) if c != ("spread", "links")]


def fail(model, how, monkeypatch):
    """Fit other items of the same views in a way that goes wrong."""
    between = ("image", "sound")
    links = make_links("mixture", seed=7) + make_pairs(7, 30, between)
    if how == "parameter":
        model.set_params(tol=2.0)
    if how == "graph":
        model.set_params(graph=dict.fromkeys(NAMES, "knn") | {"sound": np.asarray})
    if how == "links":
        with pytest.warns(ConflictWarning):
            both = Links.from_pairs([(0, 1, 1.0), (0, 1, -1.0)], between=between)
            links = make_links("mixture", seed=7) + both
    if how == "memory":
        let_memory_run_out(monkeypatch)
    ids = {view: np.arange(SIZES[view])[::-1] for view in NAMES}
    error, sentence = FAILURES[how]
    with pytest.raises(error, match=sentence):
        model.fit(make_views(*NAMES, seed=7), links, ids=ids)
    monkeypatch.undo()


@pytest.mark.parametrize(("after", "how"), CASES)
@pytest.mark.parametrize("before", OBJECTIVES)
def test_a_fit_that_fails_leaves_the_earlier_one_whole(before, after, how, monkeypatch):
    model = fit(before)
    said, kept = answers(model), state(model)
    told = copy.deepcopy({name: kept[name] for name in TOLD[before]})
    fail(model.set_params(objective=after), how, monkeypatch)
    again = answers(model)
    for question, (ids, scores) in said.items():
        assert_array_equal(again[question][0], ids)
        assert_array_equal(again[question][1], scores)
    assert state(model).keys() == kept.keys()
    assert all(state(model)[name] is own for name, own in kept.items())
    assert {name: kept[name] for name in told} == told


@pytest.mark.parametrize("after", OBJECTIVES)
@pytest.mark.parametrize("before", OBJECTIVES)
def test_another_objective_tells_nothing_of_the_earlier_one(before, after):
    views, links = make_views(), make_links("labels")
    model = LinkSpreading(n_neighbors=4, alpha=0.5, objective=before).fit(views, links)
    every = {"choice_", "loo_error_"}
    assert every & vars(model).keys() == TOLD[before]
    model.set_params(objective=after).fit(views, links)
    assert every & vars(model).keys() == TOLD[after]
    fresh = LinkSpreading(n_neighbors=4, alpha=0.5, objective=after).fit(views, links)
    for name in TOLD[after]:
        assert getattr(model, name) == getattr(fresh, name)
    # A search within a view is fitted when it is asked for, and told of then.
    model.search(0, source="text", target="text")
    assert every & vars(model).keys() == TOLD[after]
