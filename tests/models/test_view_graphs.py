"""Graphs of views by name, by function and as given."""

import numpy as np
import pytest
from scipy import sparse

from linkspread import Links, LinkSpreading
from linkspread.graphs import (
    NeighborGraph,
    adjust_weights,
    knn_graph,
    l1_graph,
    normalize,
    normalize_rows,
)
from linkspread.ground.errors import GraphError, LinkspreadError, ViewError
from linkspread.propagation import propagate
from linkspread.selection import tune
from reference import extended_scores, random_graph, relative_error
from small_views import PARAMETERS, M, N, make_links, make_views

ASK = {"source": "text", "target": "image", "n_results": M}


def build(X):
    """Return a graph of four neighbours, as a user's function would."""
    return knn_graph(X, n_neighbors=4)


def given_in_each_form(views):
    """Return tables and `graph` by which the texts' graph can be given."""
    W = build(views["text"])
    as_table = views | {"text": W}
    return {
        "matrix": (views, {"text": W, "image": "knn"}),
        "dense": (views, {"text": W.toarray(), "image": "knn"}),
        "function": (views, {"text": build, "image": "knn"}),
        "table": (as_table, {"text": "precomputed", "image": "knn"}),
    }


@pytest.mark.parametrize("form", ["matrix", "dense", "function", "table"])
def test_a_given_graph_is_used_as_it_is(form):
    views, links = make_views(), make_links("labels")
    wanted = LinkSpreading(**PARAMETERS).fit(views, links)
    tables, graph = given_in_each_form(views)[form]
    model = LinkSpreading(**PARAMETERS | {"graph": graph}).fit(tables, links)
    got = model.scores("text", "image")
    assert relative_error(got, wanted.scores("text", "image")) <= 1e-8
    rows = np.random.default_rng(3).standard_normal((2, 3))
    affinities = NeighborGraph(n_neighbors=4).fit(views["text"]).extend(rows)
    found = model.search(affinities, **ASK)
    np.testing.assert_array_equal(found[0], wanted.search(rows, **ASK)[0])


def test_new_items_of_a_given_graph_score_as_in_the_extended_graph(rng):
    views, links = make_views(), make_links("labels")
    W = random_graph(rng, N)
    model = LinkSpreading(**PARAMETERS | {"graph": {"text": W, "image": "knn"}})
    model.fit(views, links)
    new = rng.random((2, N)) * (rng.random((2, N)) < 0.2)
    s = normalize_rows(new, W.sum(axis=1)).toarray()
    S_image = normalize(build(views["image"]))
    Z = links.between("text", "image").toarray()
    for form in (new, sparse.csr_array(new)):
        ids, scores = model.search(form, **ASK)
        for i in range(2):
            wanted = extended_scores(
                normalize(W), s[i], Z, S_image, (0.3, 0.3), 0.9, 400
            )
            assert relative_error(scores[i], wanted[ids[i]]) <= 1e-8


def test_new_items_of_a_given_graph_must_be_affinities():
    views, links = make_views(), make_links("labels")
    model = LinkSpreading(**PARAMETERS | {"graph": {"text": build, "image": "knn"}})
    model.fit(views, links)
    message = "view 'text': where the graph is given, new items must be rows of affin"
    with pytest.raises(GraphError, match=f"{message}.*the 40 fitted items, got 3"):
        model.search(np.ones((1, 3)), **ASK)
    with pytest.raises(GraphError, match="view 'text': affinities.*0, got -1.0. Give"):
        model.search(-np.ones((1, N)), **ASK)
    with pytest.raises(LinkspreadError, match="view 'text' must be finite"):
        model.search(np.full((1, N), np.nan), **ASK)


@pytest.mark.parametrize(
    "graph, message",
    [
        (np.ones((3, 3)), "view 'text': `graph` must have one row per item, 40, got 3"),
        (lambda X: X[:5] @ X[:5].T, "view 'text': `graph` must have"),
        (lambda X: X, r"view 'text': `graph` must be square, got shape \(40, 3\)"),
        (np.triu(np.ones((N, N))), "view 'text': `graph` must be symmetric"),
        (-np.ones((N, N)), "view 'text': `graph` must have no negative weights"),
        ("precomputed", "view 'text': `graph` must be square"),
    ],
)
def test_a_wrong_given_graph_is_one_sentence(graph, message):
    model = LinkSpreading(**PARAMETERS | {"graph": {"text": graph, "image": "knn"}})
    with pytest.raises(GraphError, match=message):
        model.fit(make_views(), make_links("labels"))


def test_a_single_item_has_no_neighbours():
    with pytest.raises(
        GraphError, match="view 'X': .*to have neighbours, got 1 sample"
    ):
        LinkSpreading(n_neighbors=1).fit([[1.0, 2.0]], [0])


ALIKE = (
    r"^view 'image' must have rows that differ, got 30 rows that are all equal. Chec"
)


@pytest.mark.parametrize("kind", ["labels", "few pairs", "matched"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_a_view_whose_rows_are_all_alike_is_refused_by_name(kind, make):
    views = make_views() | {"image": make(np.full((M, 4), 0.7))}
    model = LinkSpreading(n_neighbors=4)
    with pytest.raises(ViewError, match=ALIKE):
        model.fit(views, make_links(kind))
    if kind != "matched":
        with pytest.raises(ViewError, match=ALIKE):
            tune(views, make_links("labels"), {"n_neighbors": [4]}, model=model)


def test_rows_may_be_alike_where_the_graph_is_given(rng):
    views = make_views() | {"image": np.ones((M, 4))}
    graph = {"text": "knn", "image": random_graph(rng, M)}
    LinkSpreading(**PARAMETERS | {"graph": graph}).fit(views, make_links("labels"))


def test_new_rows_of_a_graph_that_was_given_are_affinities():
    views, links = make_views(), make_links("labels")
    graphs = {view: knn_graph(X, n_neighbors=4) for view, X in views.items()}
    model = LinkSpreading(graph=graphs, alpha=0.6)
    model.fit(views, links)
    block = model.scores("text", "image", rows=graphs["text"][:3])
    assert block.shape == (3, M)
    with pytest.raises(LinkspreadError, match=f"{N}"):
        model.scores("text", "image", rows=views["text"][:3])


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
