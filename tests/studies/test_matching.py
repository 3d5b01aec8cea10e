"""Every baseline has the face of LinkSpreading: fit, search, scores, errors."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from linkspread import Links
from linkspread.datasets import make_views
from linkspread.ground.errors import LinkError, LinkspreadError, ViewError
from linkspread.metrics import mean_average_precision
from linkspread.studies.baselines import (
    BilinearRidge,
    CorrelationMatching,
    CorrelationSemantics,
    KernelSmoother,
    LabelSpreadingMatching,
    RowThenColumn,
    SemanticMatching,
)
from matching_cases import BY_LABELS, SIZES, some_labels

WAY = {"source": "text", "target": "image"}
BACK = {"source": "image", "target": "text"}

BY_PAIRS = {
    name: BY_LABELS[name]
    for name in (
        "ca",
        "csa",
        "spectral",
        "row then column",
        "bilinear",
        "smoother",
    )
}
# Those whose new rows are made of their features alone, as fitted ones are.
BY_GRAPHS = ("spreading", "spectral", "row then column")
BY_FEATURES = [name for name in BY_LABELS if name not in BY_GRAPHS]


@pytest.fixture(scope="module")
def data():
    return make_views(SIZES, n_classes=3, noise=0.5, dtype=np.float64)


def baseline(name):
    return clone(BY_LABELS[name])


def some_pairs(data, n_pairs=300):
    rng = np.random.default_rng(2)
    i, j = (rng.integers(0, SIZES[view], n_pairs) for view in ("text", "image"))
    same = data.labels["text"][i] == data.labels["image"][j]
    weights = np.where(same, 1.0, -1.0)
    return Links.from_pairs(np.column_stack([i, j, weights]), between=("text", "image"))


@pytest.mark.parametrize("name", BY_LABELS)
def test_labels_are_enough_to_find_the_class(name, data):
    model = baseline(name).fit(data.views(), some_labels(data))
    scores = model.scores("text", "image")
    found = mean_average_precision(scores, data.labels["text"], data.labels["image"])
    assert found > 0.8


@pytest.mark.parametrize("name", BY_PAIRS)
@pytest.mark.slow
def test_pairs_are_enough_to_find_the_class(name, data):
    model = baseline(name).fit(data.views(), some_pairs(data))
    scores = model.scores("text", "image")
    found = mean_average_precision(scores, data.labels["text"], data.labels["image"])
    assert found > 0.7


@pytest.mark.parametrize("name", BY_LABELS)
def test_searching_back_scores_the_same(name, data):
    model = baseline(name).fit(data.views(), some_labels(data))
    there, back = model.scores("text", "image"), model.scores("image", "text")
    assert there.shape == (70, 50)
    assert_allclose(there, back.T, atol=1e-12)


@pytest.mark.parametrize("name", BY_LABELS)
@pytest.mark.slow
def test_single_pairs_score_as_in_a_block(name, data, rng):
    model = baseline(name).fit(data.views(), some_labels(data))
    rows, cols = (rng.integers(0, n, 30) for n in SIZES.values())
    expected = model.scores("text", "image")[rows, cols]
    assert_allclose(model.pair_scores("text", "image", rows, cols), expected)
    assert_allclose(model.pair_scores("image", "text", cols, rows), expected)


@pytest.mark.parametrize("name", BY_FEATURES)
def test_new_rows_that_equal_fitted_ones_score_like_them(name, data):
    views = data.views()
    model = baseline(name).fit(views, some_labels(data))
    rows = views["text"][:7]
    assert_allclose(
        model.scores("text", "image", rows=rows),
        model.scores("text", "image", rows=np.arange(7)),
        atol=1e-10,
    )
    assert_allclose(
        model.embed(rows, **WAY) @ model._vectors_found("text", "image").T,
        model.scores("text", "image", rows=rows),
    )


@pytest.mark.parametrize("name", BY_LABELS)
def test_search_names_the_best_items_by_their_ids(name, data):
    ids = {view: [f"{view}{i}" for i in range(n)] for view, n in SIZES.items()}
    model = baseline(name).fit(data.views(), some_labels(data), ids=ids)
    found, scores = model.search("text3", source="text", target="image", n_results=4)
    row = model.scores("text", "image", rows=["text3"])[0]
    best = np.argsort(-row, kind="stable")[:4]
    assert found.tolist() == [f"image{j}" for j in best]
    assert_allclose(scores, row[best], rtol=1e-5)
    new, _ = model.search(data.views()["text"][:2], source="text", target="image")
    assert new.shape == (2, 10)


@pytest.mark.parametrize("name", BY_LABELS)
def test_permuting_items_permutes_the_scores(name, data, rng):
    if name == "svm":
        pytest.skip("folds depend on the order of the items")
    views, labels = data.views(), some_labels(data)
    order = rng.permutation(SIZES["text"])
    turned = baseline(name).fit(
        views | {"text": views["text"][order]},
        labels | {"text": labels["text"][order]},
    )
    model = baseline(name).fit(views, labels)
    expected = model.scores("text", "image")[order]
    # Logistic regression stops at a tolerance of its own.
    assert_allclose(turned.scores("text", "image"), expected, atol=2e-3)


@pytest.mark.parametrize("name", BY_LABELS)
def test_a_fitted_baseline_can_be_pickled_and_cloned(name, data):
    model = baseline(name).fit(data.views(), some_labels(data))
    again = pickle.loads(pickle.dumps(model))
    rows = data.views()["image"][:3]
    assert_allclose(
        again.embed(rows, **BACK),
        model.embed(rows, **BACK),
    )
    assert clone(model).get_params().keys() == model.get_params().keys()
    with pytest.raises(NotFittedError):
        clone(model).scores("text", "image")


@pytest.mark.parametrize("name", BY_LABELS)
def test_sparse_tables_serve(name, data):
    views = {view: sparse.csr_array(np.maximum(X, 0)) for view, X in
             data.views().items()}  # fmt: skip
    labels = some_labels(data)
    model = baseline(name).fit(views, labels)
    rows = views["text"][:3]
    assert_allclose(
        model.embed(rows, **WAY),
        model.embed(rows.toarray(), **WAY),
    )
    # Sparse rows are scaled without being centred, which only some can tell.
    if name not in ("logistic", "svm", "bilinear"):
        dense = baseline(name).fit({v: X.toarray() for v, X in views.items()}, labels)
        scores, expected = (m.scores("text", "image") for m in (model, dense))
        assert_allclose(scores, expected, atol=2e-3)


@pytest.mark.parametrize("name", BY_LABELS)
def test_a_third_view_without_links_is_left_out(name, data, rng):
    views = data.views() | {"sound": rng.standard_normal((40, 3))}
    model = baseline(name).fit(views, some_labels(data))
    assert model.scores("text", "image").shape == (70, 50)
    with pytest.raises(LinkError, match="none join 'text' and 'sound'"):
        model.scores("text", "sound")


@pytest.mark.parametrize("name", BY_LABELS)
def test_inputs_are_not_modified_and_a_failed_fit_changes_nothing(name, data):
    views, labels = data.views(), some_labels(data)
    before = {view: X.copy() for view, X in views.items()}
    model = baseline(name).fit(views, labels)
    scores = model.scores("text", "image")
    with pytest.raises(ViewError):
        model.fit({"text": views["text"], "image": [[np.nan]]}, labels)
    assert all(np.array_equal(before[view], views[view]) for view in views)
    assert_allclose(model.scores("text", "image"), scores)


@pytest.mark.parametrize("name", BY_LABELS)
def test_new_rows_must_have_the_columns_of_the_fit(name, data):
    model = baseline(name).fit(data.views(), some_labels(data))
    with pytest.raises(ViewError, match="view 'text' must have 32 columns"):
        model.embed(np.zeros((2, 5)), **WAY)


@pytest.mark.parametrize("name", ["logistic", "svm", "ca+sa", "spreading"])
def test_baselines_that_need_labels_say_so(name, data):
    with pytest.raises(LinkError, match=r"view 'text' must have labels.*a baseline"):
        baseline(name).fit(data.views(), some_pairs(data))


@pytest.mark.parametrize("name", ["logistic", "svm", "ca+sa"])
def test_one_class_is_too_few_for_a_classifier(name, data):
    labels = {view: np.zeros(n, dtype=int) for view, n in SIZES.items()}
    links = Links.from_labels(labels) + Links.from_matched(("text", "image"), 50)
    message = r"labels of view 'text' must be of at least 2 classes, got 1 class in 70"
    with pytest.raises(LinkError, match=message):
        baseline(name).fit(data.views(), links)


@pytest.mark.parametrize("name", BY_PAIRS)
def test_views_must_be_joined_by_links(name, data):
    with pytest.raises(LinkError, match="links must join two different views"):
        baseline(name).fit(data.views(), {"text": data.labels["text"]})
    parted = {"text": np.zeros(70, int), "image": np.full(50, -1)}
    with pytest.raises(LinkError, match="'text' and 'image' must be joined by"):
        baseline(name).fit(data.views(), parted)


@pytest.mark.parametrize("name", BY_PAIRS)
def test_baselines_of_two_views_do_not_search_within_one(name, data):
    model = baseline(name).fit(data.views(), some_labels(data))
    with pytest.raises(LinkspreadError, match="`source` and `target` must differ"):
        model.scores("text", "text")


def test_baselines_of_single_views_search_within_one_too(data):
    model = SemanticMatching().fit(data.views(), some_labels(data))
    ids, _ = model.search(0, source="text", target="text", n_results=5)
    assert 0 not in ids


def test_labels_in_different_classes_have_no_common_vectors(data):
    views = data.views() | {"sound": data.views()["text"]}
    y = data.labels
    links = Links.from_labels({"text": y["text"], "image": y["image"]})
    links = links + Links.from_labels({"image": y["image"], "sound": y["text"]})
    with pytest.raises(LinkError, match="labels of all views must be of the same cla"):
        SemanticMatching().fit(views, links)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SemanticMatching(classifier="tree"), "'text': `classifier` must be 'logist"),
        (SemanticMatching(classifier=3), "`classifier` must be 'logistic'.* got 3"),
        (SemanticMatching(C=0), "`C` must be a positive number, got 0"),
        (SemanticMatching(cv=0), "`cv` must be a positive integer, got 0"),
        (SemanticMatching(score="cosine"), "`score` must be one of 'correlation', 'd"),
        (SemanticMatching(scaling="log"), "`scaling` must be one of 'none', 'sqrt'"),
        (SemanticMatching(scaling="sqrt"), "'text': features must be at least 0 for"),
        (SemanticMatching(classifier="svm", kernel="poly"), "`kernel` must be one of"),
        (SemanticMatching(classifier="svm", width=0), "`width` must be a positive"),
        (SemanticMatching(C={"text": 1}), "`C` given by view must name each"),
        (CorrelationMatching(method="kcca"), "`method` must be one of 'cca', 'cfa'"),
        (CorrelationMatching(reg=-1), "`reg` must be a number of at least 0, got -1"),
        (CorrelationMatching(power=None), "`power` must be a number of at least 0"),
        (CorrelationMatching(n_components=0), "`n_components` must be a positive int"),
        (CorrelationMatching(max_features=0), "'text': `max_features` must be a posi"),
        (CorrelationSemantics(C=-1), "`C` must be a positive number, got -1"),
        (LabelSpreadingMatching(alpha=1), "'text': `alpha` must be a number in"),
        (LabelSpreadingMatching(score="x"), "`score` must be one of"),
        (LabelSpreadingMatching(n_neighbors=0), "'text': `n_neighbors` must be"),
        (RowThenColumn(rank=0), "`rank` must be a positive integer, got 0"),
        (RowThenColumn(balance="x", n_neighbors=5), "`balance` must be 'auto'"),
        (BilinearRidge(ridge=0), "`ridge` must be a positive number, got 0"),
        (BilinearRidge(n_components=None), "'text': `n_components` must be a posit"),
        (KernelSmoother(width=-1), "'text': `width` must be a positive number"),
        (KernelSmoother(metric="l7"), "'text': `metric` must be one of"),
    ],
)
def test_a_wrong_parameter_is_refused_in_one_sentence(model, message, data):
    with pytest.raises(LinkspreadError, match=message):
        model.fit(data.views(), some_labels(data))


@pytest.mark.parametrize("name", BY_LABELS)
def test_a_view_whose_rows_are_all_alike_is_refused_by_name(name):
    data = make_views(SIZES, n_classes=3, random_state=0)
    views = data.views() | {"image": np.ones((SIZES["image"], 4))}
    with pytest.raises(ViewError, match="^view 'image' must have rows that differ"):
        clone(BY_LABELS[name]).fit(views, data.labels)
