"""Items added to a fitted model or changed, against plain loops and another fit."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

import linkspread as ls
from linkspread import Links, LinkSpreading
from linkspread.graphs import NeighborGraph, normalize
from linkspread.ground.errors import LinkspreadError
from linkspread.propagation import spread_links
from reference import relative_error

SIZES = {"text": 50, "image": 40}
BETWEEN = ("text", "image")
K = 5


def make_views(rng):
    return {view: rng.standard_normal((n, 4)) for view, n in SIZES.items()}


def make_links(rng, kind="both"):
    pairs = [(int(rng.integers(50)), int(rng.integers(40)), 1.0) for _ in range(8)]
    pairs += [(int(rng.integers(50)), int(rng.integers(40)), -1.0) for _ in range(8)]
    single = Links.from_pairs(dict.fromkeys(pairs), between=BETWEEN)
    labels = {view: rng.integers(-1, 3, n) for view, n in SIZES.items()}
    return single if kind == "pairs" else Links.from_labels(labels) + single


def name_links(links):
    """Return links by position as links of named items."""
    ((_, table),) = links.pair_tables
    rows = zip(table.left, table.right, table.weights, strict=True)
    pairs = [(f"text{i}", f"image{j}", weight) for i, j, weight in rows]
    labels = Links(labels=links._labels, items=links._items)
    return labels + Links.from_pairs(pairs, between=BETWEEN)


def make_model(**parameters):
    return LinkSpreading(**{"n_neighbors": K, "tol": 1e-9, "alpha": 0.3} | parameters)


def loop_graph(before, X, changed, widths):
    """Return the affinity after a change, item by item."""
    n_before, n_items = before.shape[0], len(X)
    W = np.zeros((n_items, n_items))
    old = np.setdiff1d(np.arange(n_before), changed)
    W[np.ix_(old, old)] = before.toarray()[np.ix_(old, old)]
    distances, ids = NearestNeighbors(n_neighbors=K + 1).fit(X).kneighbors(X[changed])
    for own, row, near in zip(changed, distances, ids, strict=True):
        for d, j in zip(row, near, strict=True):
            if j != own:
                weight = np.exp(-(d**2) / (widths[own] * widths[j]))
                W[own, j] = W[j, own] = max(W[own, j], weight)
    return W


@pytest.mark.parametrize("as_table", [np.asarray, sparse.csr_array])
def test_graphs_take_up_items_as_a_plain_loop_does(rng, as_table):
    X, rows = rng.standard_normal((30, 4)), rng.standard_normal((7, 4))
    graph = NeighborGraph(n_neighbors=K).fit(as_table(X))
    whole, changed = np.vstack([X, rows]), np.arange(30, 37)
    grown = graph.renew(as_table(whole), changed)
    assert np.array_equal(grown.bandwidths_[:30], graph.bandwidths_)
    seventh = NearestNeighbors(n_neighbors=K + 1).fit(whole).kneighbors(rows)[0]
    assert np.allclose(grown.bandwidths_[30:], seventh[:, K])
    expected = loop_graph(graph.affinity_, whole, changed, grown.bandwidths_)
    assert np.allclose(grown.affinity_.toarray(), expected)


@pytest.mark.parametrize("bandwidth", ["local", 0.8])
def test_graphs_take_up_changed_items_as_a_plain_loop_does(rng, bandwidth):
    X, changed = rng.standard_normal((30, 4)), np.array([3, 11, 29])
    graph = NeighborGraph(n_neighbors=K, bandwidth=bandwidth).fit(X)
    other = X.copy()
    other[changed] = rng.standard_normal((3, 4))
    renewed = graph.renew(other, changed)
    widths = np.broadcast_to(renewed.bandwidths_, 30)
    expected = loop_graph(graph.affinity_, other, changed, widths)
    assert np.allclose(renewed.affinity_.toarray(), expected)


def test_duplicates_of_new_items_are_their_neighbours(rng):
    X = rng.standard_normal((20, 3))
    graph = NeighborGraph(n_neighbors=3).fit(X)
    # More equal items than neighbours: an item may not find itself.
    grown = graph.renew(np.vstack([X, np.ones((8, 3))]), np.arange(20, 28))
    assert np.all(grown.affinity_.diagonal() == 0)
    assert np.all(np.diff(grown.affinity_.indptr)[20:] >= 3)


@pytest.mark.slow
def test_new_items_are_searched_and_found_over_the_grown_graph(rng):
    views, links = make_views(rng), make_links(rng)
    model = make_model().fit(views, links)
    rows = views["image"][:6] + 0.01
    model.add_items("image", rows)
    block = model.scores("text", "image")
    assert block.shape == (50, 46)
    # New items that resemble old ones are found alike.
    likeness = [np.corrcoef(block[:, i], block[:, 40 + i])[0, 1] for i in range(6)]
    assert np.median(likeness) > 0.6
    assert model.search(45, source="image", target="text")[0].shape == (10,)
    assert model.report_.graphs["image"].n_items == 46
    S = {v: normalize(g.affinity_) for v, g in model.graphs_.items()}
    Z = model.links_.between("text", "image")
    spread = spread_links(S["text"], Z, S["image"], alpha=0.3, tol=1e-9)
    expected = spread.left @ spread.core @ spread.right.T
    assert relative_error(block, expected) < 1e-7


def test_new_items_can_be_linked(rng):
    views = make_views(rng)
    ids = {view: [f"{view}{i}" for i in range(n)] for view, n in SIZES.items()}
    links = Links.from_pairs(
        [("text1", "image2", 1.0), ("text1", "image3", -1.0)], between=BETWEEN
    )
    model = make_model().fit(views, links, ids=ids)
    model.add_items("image", rng.standard_normal((2, 4)), ids=["new0", "new1"])
    model.add_links(Links.from_pairs([("text7", "new1", 1.0)], between=BETWEEN))
    found, _ = model.search("text7", source="text", target="image", n_results=1)
    assert found[0] == "new1"


@pytest.mark.slow
def test_changed_items_keep_their_links(rng):
    views, links = make_views(rng), make_links(rng, "pairs")
    model = make_model().fit(views, links)
    judged = model.links_.judged(*BETWEEN).toarray()
    model.update_items("text", rng.standard_normal((2, 4)), ids=[3, 9])
    assert np.array_equal(model.links_.judged(*BETWEEN).toarray(), judged)
    S = {v: normalize(g.affinity_) for v, g in model.graphs_.items()}
    Z = model.links_.between(*BETWEEN)
    spread = spread_links(S["text"], Z, S["image"], alpha=0.3, tol=1e-9)
    expected = spread.left @ spread.core @ spread.right.T
    assert relative_error(model.scores(*BETWEEN), expected) < 1e-7


def test_a_rebuilt_model_is_a_fit_to_all_items(rng):
    views, links = make_views(rng), make_links(rng)
    rows = rng.standard_normal((30, 4))
    model = make_model().fit(views, links).add_items("image", rows)
    model.rebuild()
    # Labels of the fit are those of 40 images; nothing is known of the others.
    fitted = make_model().fit(
        {**views, "image": np.vstack([views["image"], rows])}, model.links_
    )
    assert relative_error(model.scores(*BETWEEN), fitted.scores(*BETWEEN)) < 1e-8


def test_grown_models_are_saved_whole(rng, tmp_path):
    model = make_model().fit(make_views(rng), make_links(rng))
    model.add_items("image", rng.standard_normal((5, 4))).save(tmp_path / "model")
    loaded = ls.load(tmp_path / "model")
    assert np.array_equal(loaded.scores(*BETWEEN), model.scores(*BETWEEN))
    more = rng.standard_normal((2, 4))
    one, other = (m.add_items("text", more).scores(*BETWEEN) for m in (loaded, model))
    assert relative_error(one, other) < 1e-8


@pytest.mark.parametrize("as_table", [np.asarray, sparse.csr_array])
def test_sparse_tables_stay_sparse(rng, as_table):
    views = {view: as_table(X) for view, X in make_views(rng).items()}
    model = make_model().fit(views, make_links(rng))
    model.add_items("image", as_table(rng.standard_normal((3, 4))))
    model.update_items("image", as_table(rng.standard_normal((1, 4))), ids=[41])
    assert sparse.issparse(model.graphs_["image"]._index.items) == (
        as_table is sparse.csr_array
    )


NAMES = {view: [f"{view}{i}" for i in range(n)] for view, n in SIZES.items()}


@pytest.mark.parametrize("as_table", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("bandwidth", ["local", 0.8])
@pytest.mark.parametrize("n_removed", [1, 5, 20])
def test_a_graph_without_items_is_one_fitted_without_them(
    rng, as_table, bandwidth, n_removed
):
    X = np.vstack([rng.standard_normal((50, 3)), np.ones((4, 3))])
    removed = rng.choice(54, n_removed, replace=False)
    graph = NeighborGraph(n_neighbors=9, bandwidth=bandwidth).fit(as_table(X))
    before = graph.affinity_.copy(), np.copy(graph.bandwidths_)
    left = graph.without(removed)
    expected = NeighborGraph(n_neighbors=9, bandwidth=bandwidth).fit(
        as_table(np.delete(X, removed, axis=0))
    )
    assert np.allclose(left.bandwidths_, expected.bandwidths_)
    assert np.allclose(left.affinity_.toarray(), expected.affinity_.toarray())
    assert (graph.affinity_ != before[0]).nnz == 0
    assert np.array_equal(graph.bandwidths_, before[1])


def test_items_far_from_all_that_go_keep_their_edges(rng):
    X = np.vstack([rng.standard_normal((20, 2)), rng.standard_normal((20, 2)) + 1e3])
    graph = NeighborGraph(n_neighbors=3, bandwidth=0.5).fit(X)
    left = graph.without(np.arange(20))
    assert (left.affinity_ != graph.affinity_[20:][:, 20:]).nnz == 0


def test_without_items_a_model_is_one_fitted_without_them(rng):
    views, links = make_views(rng), name_links(make_links(rng)).resolve(NAMES)
    model = make_model().fit(views, links, ids=NAMES)
    removed = {"image": [2, 11, 30], "text": [0, 49]}
    gone = [np.array(NAMES[view])[where] for view, where in removed.items()]
    for view, ids in zip(removed, gone, strict=True):
        assert model.remove_items(view, ids) is model
    kept = {v: np.delete(np.arange(n), removed[v]) for v, n in SIZES.items()}
    fitted = make_model().fit(
        {view: X[kept[view]] for view, X in views.items()},
        links.select(kept),
        ids={view: np.array(NAMES[view])[own] for view, own in kept.items()},
    )
    assert relative_error(model.scores(*BETWEEN), fitted.scores(*BETWEEN)) < 1e-6
    assert np.array_equal(model.items_["image"].ids, fitted.items_["image"].ids)
    assert model.report_.graphs["image"].n_items == 37
    before = model.scores(*BETWEEN)
    assert relative_error(before, model.rebuild().scores(*BETWEEN)) < 1e-6
    with pytest.raises(LinkspreadError, match="not have 'image11'"):
        model.search("image11", source="image", target="text")


def test_a_given_graph_loses_the_items_too(rng):
    views, links = make_views(rng), name_links(make_links(rng)).resolve(NAMES)
    W = {
        view: NeighborGraph(n_neighbors=K).fit(X).affinity_ for view, X in views.items()
    }
    model = make_model(graph="precomputed").fit(W, links, ids=NAMES)
    model.remove_items("text", ["text7", "text8"])
    kept = np.delete(np.arange(50), [7, 8])
    expected = make_model(graph="precomputed").fit(
        {**W, "text": W["text"][kept][:, kept]}, links.select({"text": kept})
    )
    assert relative_error(model.scores(*BETWEEN), expected.scores(*BETWEEN)) < 1e-7


def test_links_of_removed_items_go_and_others_keep_their_names(rng, tmp_path):
    pairs = [("text1", "image2", 1), ("text5", "image3", -1), ("text6", "image2", 1)]
    links = Links.from_pairs(pairs, between=BETWEEN)
    views = make_views(rng)
    model = make_model().fit(views, links, ids=NAMES)
    model.remove_items("text", ["text5", "text0"])
    ((_, table),) = model.links_.pair_tables
    assert table.left.tolist() == ["text1", "text6"]
    assert table.right.tolist() == ["image2", "image2"]
    # The rest goes on as before: links by name come and go, also after a save.
    more = Links.from_pairs([("text49", "image9", 1), ("text6", "image3", -1)],
                            between=BETWEEN)  # fmt: skip
    model.add_links(more)
    model.save(tmp_path / "model")
    loaded = ls.load(tmp_path / "model")
    loaded.remove_links(more).remove_items("image", ["image0"])
    twin = make_model().fit(views, links, ids=NAMES)
    twin.remove_items("image", ["image0"]).remove_items("text", ["text5", "text0"])
    assert relative_error(loaded.scores(*BETWEEN), twin.scores(*BETWEEN)) < 1e-7
    model.remove_links(Links.from_pairs([("text1", "image2", 1)], between=BETWEEN))
    assert model.links_.judged(*BETWEEN).nnz == 3
    found = model.search("text49", source="text", target="image", n_results=1)[0]
    assert found[0] == "image9"


def test_new_items_may_follow_those_removed(rng):
    views = make_views(rng)
    links = Links.from_matched(BETWEEN, 40)
    model = make_model().fit(views, links, ids=NAMES)
    model.remove_items("image", ["image39"])
    model.add_items("image", views["image"][39:], ids=["image39"])
    links = Links.from_pairs([("text39", "image39")], between=BETWEEN)
    model.add_links(links).rebuild()
    expected = make_model().fit(views, Links.from_matched(BETWEEN, 40), ids=NAMES)
    assert relative_error(model.scores(*BETWEEN), expected.scores(*BETWEEN)) < 1e-7


def test_what_cannot_be_removed_changes_nothing(rng):
    views = make_views(rng)
    links = Links.from_pairs([("text1", "image2"), ("text1", "image3", -1)],
                             between=BETWEEN)  # fmt: skip
    model = make_model().fit(views, links, ids=NAMES)
    unnamed = make_model(graph={"text": "sr", "image": "knn"}).fit(
        views, Links.from_matched(BETWEEN, 40), ids={"text": NAMES["text"]}
    )
    scores = model.scores(*BETWEEN)
    wrong = [
        (model, "smell", ["a"], "`view` must be one of"),
        (model, "text", ["text50"], "'text50', 1 of 1"),
        (model, "text", "text5", "one flat list"),
        (model, "text", ["text1"], "some links between 'text' and 'image' must stay"),
        (model, "image", NAMES["image"][4:], "`n_neighbors` must be smaller than"),
        (
            unnamed,
            "image",
            [3],
            "view 'image', whose items are known by position.* `ids`",
        ),
        (
            unnamed,
            "text",
            ["text3"],
            "graph='knn' or a graph that was given, and 'text'",
        ),
    ]
    for own, view, ids, message in wrong:
        with pytest.raises(LinkspreadError, match=message):
            own.remove_items(view, ids)
    assert np.array_equal(model.scores(*BETWEEN), scores)
    assert model.items_["text"].n_items == 50


def test_mistakes_change_nothing(rng):
    views, links = make_views(rng), make_links(rng)
    model = make_model(graph={"text": "knn", "image": "sr"}).fit(views, links)
    ids = {v: [f"{v}{i}" for i in range(n)] for v, n in SIZES.items()}
    named = make_model().fit(views, Links.from_matched(BETWEEN, 40), ids=ids)
    scores = model.scores(*BETWEEN)
    row = rng.standard_normal((1, 4))
    wrong = [
        (lambda: model.add_items("smell", row), "`view` must be one of"),
        (lambda: model.add_items("image", row), "only to a view with graph='knn'"),
        (lambda: model.add_items("text", row[:, :3]), "4"),
        (lambda: model.add_items("text", row * np.nan), "NaN|finite"),
        (lambda: model.add_items("text", row, ids=["a"]), "must be left out"),
        (lambda: named.add_items("text", row), "must be given"),
        (lambda: named.add_items("text", row, ids=["a", "b"]), "one entry for each"),
        (lambda: named.add_items("text", row, ids=["text3"]), "must be distinct"),
        (lambda: named.add_items("text", row, ids=[3]), "of the kind of the others"),
        (lambda: model.update_items("text", row, ids=[3, 4]), "once, got 2 ids"),
        (lambda: model.update_items("text", row, ids=[99]), "99"),
    ]
    for call, message in wrong:
        with pytest.raises(LinkspreadError, match=message):
            call()
    assert np.array_equal(model.scores(*BETWEEN), scores)


def test_graphs_made_by_functions_are_not_rebuilt(rng):
    def ring(X):
        return sparse.csr_array(
            np.roll(np.eye(len(X)), 1, 0) + np.roll(np.eye(len(X)), -1, 0)
        )  # noqa: E501

    model = make_model(graph=ring).fit(make_views(rng), make_links(rng))
    with pytest.raises(LinkspreadError, match="cannot be rebuilt"):
        model.rebuild()
