"""What LinkSpreading has in common with estimators of scikit-learn."""

import copy

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import linkspread as ls
from linkspread import Links, LinkSpreading
from linkspread.ground.errors import (
    GraphError,
    UnknownItemError,
    UnknownItemWarning,
    ViewError,
)
from linkspread.selection import evaluate_search
from small_views import PARAMETERS, M, N, make_links, make_views

ASK = {"source": "text", "target": "image", "n_results": 6}
BY_VIEW = {"alpha": {"text": 0.2, "image": 0.4}, "metric": {"text": "cosine",
           "image": "euclidean"}}  # fmt: skip


def fit(**parameters):
    """Return a model fitted to the usual views and labels."""
    model = LinkSpreading(**PARAMETERS | parameters)
    assert model.fit(make_views(), make_links("labels")) is model
    return model


def test_parameters_are_stored_as_they_are_and_come_back():
    model = LinkSpreading(**BY_VIEW)
    assert model.get_params()["alpha"] is BY_VIEW["alpha"]
    assert model.set_params(beta=0.5, alpha=0.3) is model
    assert (model.beta, model.alpha) == (0.5, 0.3)
    with pytest.raises(ValueError, match="Invalid parameter 'gamma'"):
        model.set_params(gamma=1)


def test_a_clone_has_the_parameters_and_nothing_of_the_fit():
    model = fit(**BY_VIEW)
    other = clone(model)
    assert other.get_params() == model.get_params()
    assert not hasattr(other, "report_")
    other.fit(make_views(), make_links("labels"))
    for one, two in zip(model.search(range(N), **ASK), other.search(range(N), **ASK),
                        strict=True):  # fmt: skip
        np.testing.assert_array_equal(one, two)


def test_the_representation_shows_what_is_not_default():
    assert repr(LinkSpreading()) == "LinkSpreading()"
    model = LinkSpreading(n_neighbors={"text": 5}, beta=0.5)
    assert repr(model) == "LinkSpreading(beta=0.5, n_neighbors={'text': 5})"


def test_a_fit_changes_neither_parameters_nor_inputs():
    views, links = make_views(), make_links("mixture")
    ids = {"text": [f"t{i}" for i in range(N)]}
    parameters = copy.deepcopy(BY_VIEW)
    before = copy.deepcopy((views, ids))
    described = repr(links)
    model = LinkSpreading(**PARAMETERS | parameters)
    model.fit(views, make_links("labels"), ids=ids)
    model.search(["t1", "t2"], **ASK)
    assert parameters == BY_VIEW
    assert model.get_params()["alpha"] is parameters["alpha"]
    assert repr(links) == described
    assert ids == before[1]
    for view in views:
        np.testing.assert_array_equal(views[view], before[0][view])


def test_a_parameter_changed_after_the_fit_changes_nothing():
    alpha = {"text": 0.2, "image": 0.4}
    model = fit(alpha=alpha)
    wanted = model.scores("text", "image")
    alpha["text"] = 0.9
    np.testing.assert_array_equal(model.scores("text", "image"), wanted)


def test_searches_within_a_view_use_the_parameters_of_the_fit():
    model, other = fit(), fit()
    other.set_params(beta=0.1, tol=0.5, balance="literal", rank=1)
    within = {"source": "text", "target": "text", "n_results": 6}
    one, two = (m.search(range(N), **within)[1] for m in (model, other))
    np.testing.assert_array_equal(one, two)


def test_the_same_call_gives_the_same_bits():
    for parameters in ({}, {"rank": 3}):
        for kind in ("labels", "many pairs"):
            one, two = (
                LinkSpreading(**PARAMETERS | parameters)
                .fit(make_views(), make_links(kind))
                .scores("text", "image")
                for _ in range(2)
            )
            np.testing.assert_array_equal(one, two)


def test_a_model_survives_joblib(tmp_path):
    model = fit(**BY_VIEW)
    joblib.dump(model, tmp_path / "model.joblib")
    other = joblib.load(tmp_path / "model.joblib")
    rows = np.random.default_rng(0).standard_normal((3, 3))
    for queries in (4, [0, 39], rows):
        for one, two in zip(model.search(queries, **ASK), other.search(queries, **ASK),
                            strict=True):  # fmt: skip
            np.testing.assert_array_equal(one, two)
    assert str(other.report_) == str(model.report_)


def test_a_refit_forgets_the_earlier_fit():
    model = fit()
    model.search(0, source="text", target="text")
    views = {"a": np.eye(8), "b": np.eye(8)[:6]}
    links = Links.from_pairs([(0, 0), (1, 2, -1.0)], between=("a", "b"))
    model.set_params(n_neighbors=2).fit(views, links)
    assert model.view_names_ == ("a", "b")
    assert set(model.spreads_) == set(model.report_.spreads) == {("a", "b")}
    assert set(model.graphs_) == set(model.items_) == {"a", "b"}
    assert model.scores("a", "b").shape == (8, 6)


def test_a_fit_that_fails_leaves_the_earlier_one_whole():
    model = fit()
    wanted = model.search(range(N), **ASK)
    bad = [
        ({"text": [[np.nan]]}, ViewError),
        ({"image": np.eye(M)[:, :2] * 1e200}, ViewError),
    ]
    for table, error in bad:
        with pytest.raises(error):
            model.fit(make_views() | table, make_links("labels"))
    with pytest.raises(GraphError):
        model.set_params(graph={"text": "knn", "image": lambda X: X}).fit(
            make_views(), make_links("labels")
        )
    for one, two in zip(model.search(range(N), **ASK), wanted, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_model_without_a_fit_says_so():
    model = LinkSpreading()
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model.search(0, **ASK)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model.scores("text", "image")


def test_the_number_of_features_exists_for_a_single_view_only():
    assert not hasattr(LinkSpreading(), "n_features_in_")
    assert not hasattr(fit(), "n_features_in_")
    model = LinkSpreading(n_neighbors=2).fit(np.eye(6, 4), [0, 1, 0, 1, -1, -1])
    assert model.n_features_in_ == 4


def test_single_precision_in_single_precision_out():
    views = {view: X.astype(np.float32) for view, X in make_views().items()}
    for kind in ("labels", "many pairs"):
        model = LinkSpreading(**PARAMETERS | {"tol": 1e-5}).fit(views, make_links(kind))
        for vectors in model.embeddings("text", "image"):
            assert vectors.dtype == np.float32
        got = model.scores("text", "image")
        assert got.dtype == np.float32
        assert model.search(views["text"][:2], **ASK)[1].dtype == np.float32
        double = LinkSpreading(**PARAMETERS).fit(make_views(), make_links(kind))
        wanted = double.scores("text", "image")
        np.testing.assert_allclose(got, wanted, atol=2e-4 * np.abs(wanted).max())


def test_ids_given_twice_are_refused_by_name():
    message = "ids of a view must be distinct, but view 'image' has 7 more than once"
    with pytest.raises(ViewError, match=message):
        fit_ids = {"image": [7, *range(M - 1)]}
        LinkSpreading(n_neighbors=4).fit(
            make_views(), make_links("labels"), ids=fit_ids
        )


NAMES = np.array(["ant", "boat", "cat"])
BETWEEN = ("text", "image")


@pytest.fixture(scope="module")
def data():
    """Return two views of few items in three classes."""
    return ls.datasets.make_views({"text": 40, "image": 30}, n_classes=3, n_features=5)


def make_model():
    return LinkSpreading(n_neighbors=5)


def test_named_classes_are_those_of_numbers(data):
    """Text labels were refused with advice that made other links."""
    # The texts lack the first class: numbered by themselves, boats would be ants.
    y = {
        v: np.where(np.arange(len(own)) < 15, own, -1) for v, own in data.labels.items()
    }
    y["text"][y["text"] == 0] = -1
    named = {v: [NAMES[c] if c >= 0 else None for c in own] for v, own in y.items()}
    named["text"] = pd.Series(named["text"])
    expected = make_model().fit(data.views(), y)
    found = make_model().fit(data.views(), named)
    np.testing.assert_array_equal(found.scores(*BETWEEN), expected.scores(*BETWEEN))
    all_named = {view: NAMES[own] for view, own in data.labels.items()}
    assert evaluate_search(found, all_named) == evaluate_search(found, data.labels)


def test_a_fit_skips_links_of_unknown_items_if_asked(data):
    ids = {
        view: [f"{view}{i}" for i in range(len(y))] for view, y in data.labels.items()
    }
    known = [(f"text{i}", f"image{i}", i % 2) for i in range(12)]
    pairs = Links.from_pairs([*known, ("gone", "image3", 1)], between=BETWEEN)
    expected = make_model().fit(
        data.views(), Links.from_pairs(known, between=BETWEEN), ids=ids
    )
    with pytest.raises(UnknownItemError, match="'gone', 1 of 13 .*`unknown='skip'`"):
        make_model().fit(data.views(), pairs, ids=ids)
    with pytest.warns(UnknownItemWarning, match="1 of 13 pairs .*: text 'gone'"):
        model = make_model().fit(data.views(), pairs, ids=ids, unknown="skip")
    assert model.links_.judged(*BETWEEN).nnz == 12
    np.testing.assert_array_equal(model.scores(*BETWEEN), expected.scores(*BETWEEN))


@pytest.mark.parametrize(
    "model", [ls.CrossViewSearch(), ls.LinkSpreading(n_neighbors=5)]
)
def test_one_must_link_finds_something_and_a_constant_view_is_named(model):
    """All scores were 0, without a word; and a sentence spoke of eigenvalues."""
    rng = np.random.default_rng(0)
    views = {"text": rng.normal(size=(60, 5)), "image": rng.normal(size=(50, 4))}
    one = ls.Links.from_pairs([(3, 4, 1.0)], between=("text", "image"))
    scores = model.fit(views, one).scores("text", "image")
    assert np.isfinite(scores).all() and scores[3, 4] > 0.01
    with pytest.raises(ViewError, match="view 'text' must have rows that differ"):
        model.fit(views | {"text": np.ones((60, 5))}, one)
