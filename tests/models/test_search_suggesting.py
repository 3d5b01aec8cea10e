"""CrossViewSearch suggests pairs: open ones, telling ones, before any judgement too."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

import linkspread as ls
from linkspread.ground.errors import LinkError
from linkspread.learning import make_map
from linkspread.models.search_pairs import leading_features
from search_models import KINDS, PAIR, class_views, model

BETWEEN = {"source": "text", "target": "image"}


def suggested(search, n, **words):
    i, j = search.suggest_pairs(n, **(BETWEEN | words))
    return list(zip(i.tolist(), j.tolist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_suggestions_are_distinct_and_never_judged(kind):
    search = model(kind)
    pairs = suggested(search, 60)
    judged = search.links_.judged(*PAIR)
    assert len(pairs) == len(set(pairs)) == 60
    for i, j in pairs:
        k = search.items_["text"].positions([i])[0]
        assert judged[k, search.items_["image"].positions([j])[0]] == 0
    assert suggested(search, 60) == pairs


def test_within_a_view_no_pair_comes_twice():
    search = model("within")
    pairs = suggested(search, 200, source="text", target="text")
    assert len({frozenset(pair) for pair in pairs}) == 200


def test_suggested_items_are_of_all_classes():
    views, _ = class_views()
    data = ls.datasets.make_views(
        {"text": 120, "image": 90}, n_classes=4, random_state=0
    )
    search = ls.CrossViewSearch().fit(views)
    pairs = suggested(search, 16)
    for side, view in enumerate(PAIR):
        items = {pair[side] for pair in pairs}
        assert len(items) <= 5
        assert len({data.labels[view][k] for k in items}) >= 3


def test_gains_fall_where_something_is_known():
    search = model("judged")
    pairs = np.array(suggested(search, 10))
    gains = search.expected_gains(pairs[:, 0], pairs[:, 1], **BETWEEN)
    assert np.all((gains > 0) & (gains < 1))
    answers = [(i, j, 1.0) for i, j in pairs]
    search.add_links(ls.Links.from_pairs(answers, between=PAIR))
    after = search.expected_gains(pairs[:, 0], pairs[:, 1], **BETWEEN)
    assert np.all(after < gains)


def test_views_that_nothing_joins_are_refused():
    views, known = class_views()
    third = np.random.default_rng(0).normal(size=(20, 3))
    search = ls.CrossViewSearch(prior=None)
    search.fit({**views, "sound": third}, ls.Links.from_labels(known))
    with pytest.raises(LinkError, match="share a space or have links"):
        search.suggest_pairs(3, source="text", target="sound")


@pytest.mark.parametrize("blocks", [("gaussian",), ("linear", "gaussian", "graph")])
def test_leading_features_are_those_of_the_kernel(blocks):
    X = np.random.default_rng(0).normal(size=(50, 3))
    own = make_map(X, blocks=blocks)
    features = leading_features(own)
    name, columns = blocks[-1], own.columns(blocks[-1])
    whole = own.values[:, columns] * own.blocks[name].size + own.blocks[name].mean
    assert_allclose(features @ features.T, whole @ whole.T, atol=1e-4)
    if name == "gaussian":
        D = ((X[:, None] - X) ** 2).sum(axis=2)
        assert_allclose(features @ features.T, np.exp(-D / D.mean()), atol=1e-4)


def test_nothing_of_all_pairs_of_items_is_made():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 4))
    search = ls.CrossViewSearch().fit({"text": X, "image": X + 0.1})
    tracemalloc.start()
    search.suggest_pairs(20, **BETWEEN)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6000 * 6000 * 4 / 2
