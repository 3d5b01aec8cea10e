"""Several sets of labels, shared by some views only, and links that say nothing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from linkspread import Links, LinkSpreading
from linkspread.ground.errors import ConflictWarning
from small_views import SIZES, make_links, make_pairs, make_views

OF = {
    "topics": ("text", "image"),
    "moods": ("image", "sound"),
    "years": ("text", "image", "sound"),
}
FITS = [{}, {"balance": "literal"}, {"balance": 0.5}]


def label_set(name, *views):
    """Return labels of one set, of these views only; each set has its own classes."""
    n_classes = {"topics": 3, "moods": 2, "years": 4}[name]
    rng = np.random.default_rng(n_classes)
    labels = {v: rng.integers(-1, n_classes, SIZES[v]) for v in OF[name]}
    return Links.from_labels({view: labels[view] for view in views or OF[name]})


def fit(links, *views, **parameters):
    """Return a model of these views."""
    model = LinkSpreading(n_neighbors=4, alpha=0.5, **parameters)
    tables = make_views("text", "image", "sound")
    return model.fit({view: tables[view] for view in views or tables}, links)


def assert_same_answers(one, two, source, target):
    """Compare the scores of fitted and of new items."""
    new = make_views("text", "image", "sound", seed=5)[source][:7]
    for rows in (None, new):
        scores = [model.scores(source, target, rows=rows) for model in (one, two)]
        assert np.ptp(scores[0]) > 0
        assert_allclose(*scores, atol=1e-10)


@pytest.mark.parametrize("parameters", FITS)
@pytest.mark.parametrize("with_years", [False, True])
def test_two_views_learn_from_the_labels_that_both_have(parameters, with_years):
    names = ["topics", "moods"] + ["years"] * with_years
    links = label_set(names[0]) + label_set(names[1])
    if with_years:
        links = links + label_set("years")
    model = fit(links, **parameters)
    for source, target in [("text", "image"), ("sound", "image")]:
        shared = [name for name in names if {source, target} <= set(OF[name])]
        own = [label_set(name, source, target) for name in shared]
        alone = fit(sum(own[1:], own[0]), source, target, **parameters)
        assert_same_answers(model, alone, source, target)


def test_a_search_within_a_view_uses_all_its_labels():
    model = fit(label_set("topics") + label_set("moods"))
    both = label_set("topics", "image") + label_set("moods", "image")
    alone = fit(both, "image")
    assert_same_answers(model, alone, "image", "image")


def cancelled(*others):
    """Return a must- and a cannot-link of the same pair, added to other links."""
    with pytest.warns(ConflictWarning):
        links = Links.from_pairs([(0, 1, 1.0), (0, 1, -1.0)], between=("text", "image"))
        return sum(others, links)


@pytest.mark.parametrize("kind", ["labels", "pairs"])
def test_links_that_cancel_each_other_out_change_nothing_of_others(kind):
    others = make_links("labels") if kind == "labels" else make_pairs(4, 40)
    if kind == "pairs":  # the pair that is cancelled must not be judged otherwise
        judged = others.resolve(SIZES).judged("text", "image").toarray()
        assert judged[0, 1] == 0
    plain = fit(others, "text", "image")
    model = fit(cancelled(others), "text", "image")
    assert_same_answers(model, plain, "text", "image")
