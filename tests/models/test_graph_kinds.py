"""The graphs known by name, within the estimator."""

import numpy as np
import pytest

from linkspread import Links, LinkSpreading
from linkspread.graphs import adjust_weights, knn_graph, l1_graph, normalize
from linkspread.ground.errors import GraphError
from linkspread.propagation import propagate

SIZES = {"text": 40, "image": 30}


@pytest.fixture
def views(rng):
    return {view: rng.standard_normal((n, 4)) for view, n in SIZES.items()}


@pytest.fixture
def links(rng):
    return Links.from_labels({v: rng.integers(-1, 3, n) for v, n in SIZES.items()})


def graph_by_hand(kind, X, links, view):
    if kind in ("knn", "cwa"):
        W = knn_graph(X, n_neighbors=6)
        return W if kind == "knn" else adjust_weights(W, links, view=view, alpha=0.3)
    links = links if kind == "csr" else None
    return l1_graph(X, n_neighbors=6, links=links, view=view)


@pytest.mark.parametrize("kind", ["knn", "sr", "cwa", "csr"])
def test_scores_come_from_the_graph_of_that_name(views, links, kind):
    model = LinkSpreading(graph=kind, n_neighbors=6, alpha=0.3).fit(views, links)
    S = {v: normalize(graph_by_hand(kind, X, links, v)) for v, X in views.items()}
    Z = links.between("text", "image")
    wanted = propagate(S["text"], Z, S["image"], alpha=0.3, beta=0.95).toarray()
    np.testing.assert_allclose(model.scores("text", "image"), wanted, atol=1e-5)


def test_each_view_may_have_its_own(views, links):
    kinds = {"text": "cwa", "image": "sr"}
    model = LinkSpreading(graph=kinds, n_neighbors=6).fit(views, links)
    other = LinkSpreading(graph="knn", n_neighbors=6).fit(views, links)
    for view in views:
        W, V = model.graphs_[view].affinity_, other.graphs_[view].affinity_
        assert abs(W - V).max() > 1e-3
        assert model.report_.graphs[view].n_edges == W.nnz // 2


@pytest.mark.parametrize("kind", ["sr", "cwa", "csr"])
def test_new_items_find_what_their_twins_find(views, links, kind):
    model = LinkSpreading(graph=kind, n_neighbors=6, alpha=0.5).fit(views, links)
    ids, scores = model.search(views["text"][:5], source="text", target="image")
    assert ids.shape == (5, 10)
    fitted = model.scores("text", "image", rows=np.arange(5))
    assert np.isfinite(scores).all()
    for row, own in zip(ids, fitted, strict=True):
        # What a copy of an item finds lies in the better half of what the item finds.
        assert np.mean(own[row]) > np.median(own)


@pytest.mark.parametrize("kind", ["cwa", "csr"])
def test_pairs_within_a_view_serve_too(views, kind):
    within = [
        Links.from_pairs([(0, 1, 1.0), (2, 3, -1.0)], between=(view, view))
        for view in views
    ]
    across = Links.from_pairs([(0, 0, 1.0), (0, 1, -1.0)], between=("text", "image"))
    model = LinkSpreading(graph=kind, n_neighbors=6)
    model.fit(views, within[0] + within[1] + across)
    assert np.isfinite(model.scores("text", "image")).all()


@pytest.mark.parametrize("kind", ["cwa", "csr"])
def test_constrained_graphs_need_links_within_their_view(views, kind):
    across = Links.from_pairs([(0, 0, 1.0)], between=("text", "image"))
    with pytest.raises(GraphError, match=f"view 'text': graph='{kind}' must have"):
        LinkSpreading(graph=kind, n_neighbors=6).fit(views, across)


def test_binary_weights_cannot_be_coded(views, links):
    with pytest.raises(GraphError, match="view 'text': `kernel` must be one of"):
        LinkSpreading(graph="sr", weights="binary", n_neighbors=6).fit(views, links)
