"""Graphs by name, by function or as given, and new items beside given graphs."""

import numpy as np
import pytest
from scipy import sparse

from linkspread import LinkSpreading
from linkspread.graphs import NeighborGraph, knn_graph, normalize, normalize_rows
from linkspread.ground.errors import GraphError, LinkspreadError, ViewError
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
    with pytest.raises(GraphError, match="view 'X': neighbours must be.*got 1 sample"):
        LinkSpreading(n_neighbors=1).fit([[1.0, 2.0]], [0])


ALIKE = (
    r"^view 'image' must have rows that differ, got 30 rows that are all alike. Chec"
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
