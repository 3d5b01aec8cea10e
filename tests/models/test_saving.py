"""Models saved and loaded: they answer as before, to the bit."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import linkspread as ls
from linkspread import Links, LinkSpreading
from linkspread.graphs import knn_graph
from linkspread.ground.errors import ConflictWarning, ModelError, ViewError
from small_views import KINDS, SIZES, make_links, make_views

BASIC = {"n_neighbors": 4, "alpha": 0.6}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "model"


def saved(model, folder):
    """Return a model as it is after saving and loading."""
    model.save(folder)
    return ls.load(folder)


def pairs_of_views(model):
    """Return all pairs of views that can be searched."""
    views = model.view_names_
    return [(a, b) for a in views for b in views if model.links_.connects(a, b)]


def assert_alike(again, model, views):
    """Compare everything that a fitted model tells."""
    assert_same_facts(again, model)
    assert_same_answers(again, model, views)


def assert_same_answers(again, model, views):
    """Compare scores and searches, of fitted items and of new ones."""
    for source, target in pairs_of_views(model):
        old, new = (own.scores(source, target) for own in (model, again))
        assert_array_equal(old, new)
        rows = views[source][:3]
        old, new = (own.scores(source, target, rows=rows) for own in (model, again))
        assert_array_equal(old, new)
        for query in (model.items_[source].ids[:2], rows):
            old, new = (
                own.search(query, source=source, target=target, n_results=5)
                for own in (model, again)
            )
            assert_array_equal(old[0], new[0])
            assert_array_equal(old[1], new[1])
        for old, new in zip(
            model.embeddings(source, target),
            again.embeddings(source, target),
            strict=True,
        ):
            assert_array_equal(old, new)


def assert_same_facts(again, model):
    """Compare what can be told without any computation."""
    assert again.view_names_ == model.view_names_
    assert again.report_ == model.report_
    assert str(again.report_) == str(model.report_)
    assert repr(again.links_) == repr(model.links_)
    for view in model.view_names_:
        assert_array_equal(again.items_[view].ids, model.items_[view].ids)
        W, expected = (own.graphs_[view].affinity_ for own in (again, model))
        assert_array_equal(W.toarray(), expected.toarray())
        assert type(again.graphs_[view]) is type(model.graphs_[view])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_links_is_saved(kind, folder):
    model = LinkSpreading(**BASIC)
    model.fit(make_views(), make_links(kind))
    again = saved(model, folder)
    assert again.get_params() == model.get_params()
    # Also scores within a view, which neither has made yet.
    assert_alike(again, model, make_views())


@pytest.mark.parametrize("graph", ["knn", "sr", "cwa", "csr"])
@pytest.mark.parametrize("bandwidth", ["local", "0.5 mean", 2.0])
def test_every_graph_is_saved(graph, bandwidth, folder):
    model = LinkSpreading(graph=graph, bandwidth=bandwidth, **BASIC)
    model.fit(make_views(), make_links("labels"))
    assert_alike(saved(model, folder), model, make_views())


def test_a_graph_with_links_that_are_no_plain_labels_is_saved(folder):
    known = make_links("mixture") + Links.from_labels({"text": np.arange(40) % 3})
    model = LinkSpreading(graph={"text": "csr", "image": "knn"}, **BASIC)
    model.fit(make_views(), known)
    assert_alike(saved(model, folder), model, make_views())


def test_given_graphs_are_saved(folder):
    views = make_views()
    graphs = {v: knn_graph(X, n_neighbors=4) for v, X in views.items()}
    graphs["image"] = graphs["image"].toarray()
    model = LinkSpreading(graph=graphs, alpha=0.6)
    model.fit(views, make_links("labels"))
    again = saved(model, folder)
    assert_array_equal(again.graph["text"].toarray(), graphs["text"].toarray())
    assert_array_equal(again.graph["image"], graphs["image"])
    assert_same_facts(again, model)
    for source, target in (("text", "image"), ("image", "text"), ("text", "text")):
        old, new = (own.scores(source, target) for own in (model, again))
        assert_array_equal(old, new)
        rows = graphs[source][:3]
        old, new = (own.scores(source, target, rows=rows) for own in (model, again))
        assert_array_equal(old, new)


def test_a_table_that_is_the_graph_is_saved(folder):
    views = {v: knn_graph(X, n_neighbors=4) for v, X in make_views().items()}
    model = LinkSpreading(graph="precomputed", alpha=0.6)
    model.fit(views, make_links("labels"))
    assert_alike(saved(model, folder), model, views)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_tables_are_saved(dtype, folder):
    rng = np.random.default_rng(0)
    views = {
        v: sparse.random_array((n, 20), density=0.4, rng=rng, dtype=dtype).tocsr()
        for v, n in (("text", 40), ("image", 30))
    }
    model = LinkSpreading(metric="hellinger", **BASIC)
    model.fit(views, make_links("mixture"))
    assert_alike(saved(model, folder), model, views)


def test_three_views_are_saved_and_one_is(folder):
    views = make_views("text", "image", "sound")
    links = make_links("mixture") + Links.from_pairs(
        [(k, k, 1.0 if k % 2 else -1.0) for k in range(10)], between=("image", "sound")
    )
    model = LinkSpreading(**BASIC).fit(views, links)
    again = saved(model, folder)
    assert_alike(again, model, views)
    assert_array_equal(again.scores("text", "sound"), model.scores("text", "sound"))
    labels = np.arange(40) % 3
    single = LinkSpreading(**BASIC).fit(views["text"], labels)
    again = saved(single, folder)
    assert again.n_features_in_ == 3
    assert_alike(again, single, {"X": views["text"]})


def test_ids_and_the_links_by_id_are_saved(folder):
    text = np.array([f"té {i}" for i in range(40)])
    pairs = [(text[i], 3 * i + j, 1.0 if j else -1.0) for i in range(9) for j in (0, 3)]
    with pytest.warns(ConflictWarning):
        links = Links.from_pairs(pairs, between=("text", "image")) + Links.from_pairs(
            [(text[2], "6", 2.0)], between=("text", "image")
        )
        links += Links.from_matched(("text", "image"), 5)
    model = LinkSpreading(**BASIC)
    model.fit(make_views(), links, ids={"text": text, "image": 3 * np.arange(30)})
    again = saved(model, folder)
    assert_alike(again, model, make_views())
    assert again.links_.conflicts() == model.links_.conflicts() != []
    assert_array_equal(
        again.links_.judged("text", "image").toarray(),
        model.links_.judged("text", "image").toarray(),
    )
    for (_, old), (_, new) in zip(
        model.links_.pair_tables, again.links_.pair_tables, strict=True
    ):
        assert_array_equal(old.left, new.left)
        assert_array_equal(old.right, new.right)
        assert old.by_row == new.by_row


def test_exact_scores_are_saved(folder):
    model = LinkSpreading(**BASIC).fit(make_views(), make_links("many pairs"))
    again = saved(model, folder)
    assert model.report_.spreads["text", "image"].rank is None
    assert again.spreads_.keys() == model.spreads_.keys()
    assert_array_equal(again.scores("text", "image"), model.scores("text", "image"))


def test_names_of_columns_are_still_checked(folder):
    frames = {v: pd.DataFrame(X).rename(columns="f{}".format)
              for v, X in make_views().items()}  # fmt: skip
    model = LinkSpreading(**BASIC).fit(frames, make_links("labels"))
    again = saved(model, folder)
    assert_alike(again, model, frames)
    ask = {"source": "text", "target": "image"}
    turned = frames["text"][["f1", "f0", "f2"]]
    expected = again.search(frames["text"], **ask)[0]
    assert_array_equal(again.search(turned, **ask)[0], expected)
    with pytest.raises(ViewError, match="but lacks 'f1', got 'f0', 'f2'"):
        again.search(turned[["f0", "f2"]], **ask)


def test_a_loaded_model_is_fitted_again_and_saved_again(folder):
    views, links = make_views(), make_links("mixture")
    model = LinkSpreading(**BASIC).fit(views, links)
    again = saved(model, folder)
    refitted = clone(again).fit(views, links)
    assert_array_equal(refitted.scores("text", "image"), model.scores("text", "image"))
    again.fit(views, links)
    assert_array_equal(again.scores("text", "image"), model.scores("text", "image"))
    # Over itself: its arrays are mapped from the files that are replaced.
    loaded = ls.load(folder)
    twice = saved(loaded, folder)
    assert_same_answers(twice, model, views)
    assert_same_answers(loaded, model, views)


def test_parameters_of_every_kind_come_back(folder):
    parameters = {
        "n_neighbors": {"text": np.int64(4), "image": 5},
        "alpha": {"text": np.float32(0.5), "image": 0.25},
        "bandwidth": {"text": "0.5 mean", "image": 2},
        "balance": 0.5,
        "rank": 7,
        "adjustment": {"alpha": 0.1},
        "n_jobs": 1,
    }
    model = LinkSpreading(**parameters).fit(make_views(), make_links("labels"))
    found = saved(model, folder).get_params()
    assert found == model.get_params()
    assert list(found["n_neighbors"]) == ["text", "image"]


def test_what_is_shared_is_stored_once_and_shared_again(folder):
    rng = np.random.default_rng(0)
    views = {v: rng.random((n, 500)) for v, n in (("text", 400), ("image", 300))}
    model = LinkSpreading(**BASIC).fit(views, make_links("few pairs"))
    again = saved(model, folder)
    assert again._spreading.links is again.links_
    assert again._spreading.graphs["text"] is again.graphs_["text"]
    n_bytes = sum(path.stat().st_size for path in folder.iterdir())
    assert n_bytes < 2 * sum(X.nbytes for X in views.values())


def test_arrays_are_mapped_and_changes_stay_in_memory(folder):
    model = LinkSpreading(rank=4, **BASIC).fit(make_views(), make_links("labels"))
    again = saved(model, folder)
    again.spreads_["text", "image"].left[:] = 0
    assert not again.scores("text", "image").any()
    expected = model.scores("text", "image")
    assert_array_equal(ls.load(folder).scores("text", "image"), expected)


@pytest.mark.slow
def test_a_fresh_process_gives_the_same_answers(folder):
    model = LinkSpreading(**BASIC)
    ids = {"text": [f"t{i}" for i in range(SIZES["text"])]}
    model.fit(make_views(), make_links("soft labels"), ids=ids).save(folder)
    rows = make_views()["text"][:4]
    np.save(folder / "rows.npy", rows)
    program = (
        "import sys, numpy as np, linkspread as ls\n"
        "model = ls.load(sys.argv[1])\n"
        "rows = np.load(sys.argv[1] + '/rows.npy')\n"
        "old = model.search(['t3', 't4'], source='text', target='image')\n"
        "new = model.search(rows, source='text', target='image')\n"
        "np.savez(sys.argv[1] + '/found.npz', *old, *new)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = list(np.load(folder / "found.npz").values())
    expected = [
        *model.search(["t3", "t4"], source="text", target="image"),
        *model.search(rows, source="text", target="image"),
    ]
    for own, wanted in zip(found, expected, strict=True):
        if own.dtype.kind == "f":
            np.testing.assert_allclose(own, wanted, rtol=0, atol=1e-12)
        else:
            assert_array_equal(own, wanted)


def own_metric(Q, X):
    return np.sqrt(np.sum((Q[:, None] - X) ** 2, axis=2))


@pytest.mark.parametrize(
    ("parameters", "what"),
    [
        ({"metric": own_metric}, "`parameters.metric` is the function 'own_metric'"),
        ({"metric": {"text": "cosine", "image": own_metric}}, "`parameters.metric.ima"),
        ({"graph": lambda X: knn_graph(X, n_neighbors=3)}, "`parameters.graph` is"),
    ],
)
def test_functions_cannot_be_saved_and_nothing_is_written(parameters, what, folder):
    model = LinkSpreading(n_neighbors=4, **parameters)
    model.fit(make_views(), make_links("labels"))
    with pytest.raises(ModelError, match=what):
        model.save(folder)
    assert not folder.exists()


def test_a_model_that_is_not_fitted_cannot_be_saved(folder):
    with pytest.raises(NotFittedError):
        LinkSpreading().save(folder)


def test_view_names_may_be_anything(folder):
    views = make_views()
    names = {"text": "a.b, (2)/../ü", "image": "a"}
    tables = {names[v]: X for v, X in views.items()}
    labels = {names[v]: np.arange(SIZES[v]) % 3 for v in views}
    more = {**tables, "a.b": views["image"]}
    labels["a.b"] = labels["a"]
    model = LinkSpreading(**BASIC).fit(more, labels)
    assert_alike(saved(model, folder), model, more)


def test_fitted_models_can_be_sent_to_other_processes(folder):
    # Embeddings were functions once, which cannot be pickled.
    model = LinkSpreading(**BASIC)
    model.fit(make_views(), make_links("mixture"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_alike(pickle.loads(pickle.dumps(model)), model, make_views())
