"""LinkSpreading: its parameters, its fits, and fits that fail."""

from itertools import count

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from linkspread import Links, LinkSpreading
from linkspread.graphs import knn_graph, normalize
from linkspread.ground.errors import (
    ConflictWarning,
    GraphError,
    LinkError,
    LinkspreadError,
)
from linkspread.models.spreading import Spreading
from reference import fixed_point, relative_error
from small_views import (
    KINDS,
    PARAMETERS,
    SIZES,
    M,
    N,
    closed_form,
    fitted,
    make_links,
    make_pairs,
    make_views,
)


@pytest.mark.parametrize(
    "kind, balance",
    [(kind, "auto") for kind in KINDS] + [("mixture", "literal"), ("mixture", 0.25)],
)
def test_scores_are_the_closed_form(kind, balance):
    views, links = make_views(), make_links(kind)
    model = LinkSpreading(balance=balance, **PARAMETERS).fit(views, links)
    wanted = closed_form(views, links, "text", "image", balance)
    assert relative_error(model.scores("text", "image"), wanted) <= 1e-6
    assert relative_error(model.scores("image", "text"), wanted.T) <= 1e-6


def test_every_parameter_can_differ_between_views():
    views, links = make_views(), make_links("labels")
    views = {view: np.abs(X) for view, X in views.items()}
    rng = np.random.default_rng(3)
    W = rng.random((M, M))
    model = LinkSpreading(
        graph={"text": "knn", "image": W + W.T},
        n_neighbors={"text": 6, "image": 2},
        metric={"text": "hellinger", "image": "euclidean"},
        bandwidth={"text": 0.7, "image": "local"},
        weights={"text": "gaussian", "image": "binary"},
        alpha={"image": 0.6, "text": 0.2},
        tol=1e-9,
    ).fit(views, links)
    W_text = knn_graph(views["text"], n_neighbors=6, metric="hellinger", bandwidth=0.7)
    Z = links.between("text", "image").toarray()
    wanted = fixed_point(normalize(W_text), Z, normalize(W + W.T), (0.2, 0.6), 0.95)
    assert relative_error(model.scores("text", "image"), wanted) <= 1e-6


def test_metric_and_neighbours_by_view():
    views, links = make_views(), make_links("many pairs")
    metric, n_neighbors = (
        {"text": "cosine", "image": "euclidean"},
        {"text": 3, "image": 7},
    )
    model = LinkSpreading(metric=metric, n_neighbors=n_neighbors, tol=1e-9)
    model.fit(views, links)
    S = [
        normalize(knn_graph(views[v], n_neighbors=n_neighbors[v], metric=metric[v]))
        for v in views
    ]
    Z = links.resolve(SIZES).between("text", "image").toarray()
    wanted = fixed_point(S[0], Z, S[1], (0.1, 0.1), 0.95)
    assert relative_error(model.scores("text", "image"), wanted) <= 1e-6


@pytest.mark.parametrize("kind", ["labels", "many pairs"])
def test_swapping_the_views_transposes_the_scores(kind):
    model = fitted(kind)
    there, back = model.scores("text", "image"), model.scores("image", "text")
    np.testing.assert_allclose(back, there.T, rtol=1e-12, atol=1e-14)


def test_the_order_of_the_views_does_not_matter():
    views, links = make_views(), make_links("mixture")
    turned = dict(reversed(views.items()))
    one = LinkSpreading(**PARAMETERS).fit(views, links).scores("text", "image")
    other = LinkSpreading(**PARAMETERS).fit(turned, links).scores("text", "image")
    assert relative_error(other, one) <= 1e-8


def test_labels_link_items_within_a_view_too():
    wanted = closed_form(make_views(), make_links("labels"), "text", "text")
    assert relative_error(fitted("labels").scores("text", "text"), wanted) <= 1e-6


def test_links_within_a_view_by_pairs_are_symmetric():
    views = make_views("text")
    table = [(i, j, 1.0 if (i + j) % 3 else -1.0) for i, j in
             zip(range(20), range(20, 40), strict=True)]  # fmt: skip
    links = Links.from_pairs(table, between=("text", "text"))
    model = LinkSpreading(**PARAMETERS).fit(views, links)
    wanted = closed_form(views, links, "text", "text")
    got = model.scores("text", "text")
    assert relative_error(got, wanted) <= 1e-6
    np.testing.assert_allclose(got, got.T, atol=1e-9)


def test_one_view_with_labels_is_the_form_of_scikit_learn():
    views = make_views("text")
    y = np.random.default_rng(2).integers(-1, 3, N)
    model = LinkSpreading(**PARAMETERS).fit(views["text"], y)
    assert model.view_names_ == ("X",)
    assert model.n_features_in_ == 3
    wanted = closed_form({"X": views["text"]}, Links.from_labels({"X": y}), "X", "X")
    assert relative_error(model.scores("X", "X"), wanted) <= 1e-6


def test_labels_by_view_are_links():
    views, rng = make_views(), np.random.default_rng(4)
    labels = {v: rng.integers(-1, 2, len(X)) for v, X in views.items()}
    one = LinkSpreading(**PARAMETERS).fit(views, labels)
    other = LinkSpreading(**PARAMETERS).fit(views, Links.from_labels(labels))
    np.testing.assert_array_equal(
        one.scores("text", "image"), other.scores("text", "image")
    )


def test_three_views_with_labels():
    views, rng = make_views(*SIZES), np.random.default_rng(4)
    links = Links.from_labels({v: rng.integers(-1, 3, n) for v, n in SIZES.items()})
    model = LinkSpreading(**PARAMETERS).fit(views, links)
    assert set(model.spreads_) == {
        ("text", "image"),
        ("text", "sound"),
        ("image", "sound"),
    }
    for source, target in [("text", "image"), ("sound", "text"), ("image", "sound")]:
        wanted = closed_form(views, links, source, target)
        assert relative_error(model.scores(source, target), wanted) <= 1e-6


def test_three_views_with_pairs_between_some():
    views = make_views(*SIZES)
    links = make_pairs(1, 20) + make_pairs(2, 15, between=("sound", "image"))
    model = LinkSpreading(**PARAMETERS).fit(views, links)
    for source, target in [("text", "image"), ("image", "sound")]:
        wanted = closed_form(views, links, source, target)
        assert relative_error(model.scores(source, target), wanted) <= 1e-6
    wanted = model.scores("text", "image") @ model.scores("image", "sound")
    assert relative_error(model.scores("text", "sound"), wanted) <= 1e-6


def test_two_dimensions_hold_less_than_the_report_allows():
    views, links = make_views(), make_links("many pairs")
    model = LinkSpreading(rank=2, **PARAMETERS).fit(views, links)
    report = model.report_.spreads["text", "image"]
    wanted = closed_form(views, links, "text", "image")
    error = relative_error(model.scores("text", "image"), wanted)
    assert report.rank == 2
    assert report.error == pytest.approx(error, rel=0.4)
    assert error > 0.1


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"beta": 1}, r"`beta` must be a number in \[0, 1\), got 1"),
        ({"tol": 0}, "`tol` must be between 0 and 1, got 0"),
        ({"rank": 0}, "`rank` must be a positive integer, got 0. None keeps"),
        ({"balance": "fair"}, "`balance` must be 'auto', 'literal'.*got 'fair'"),
        ({"alpha": 1.0}, r"view 'text': `alpha` must be a number.*got 1.0"),
        (
            {"alpha": {"text": 0.1, "image": "x"}},
            r"view 'image': `alpha` must be a number.*got 'x'",
        ),
        ({"alpha": (0.1, 0.2)}, r"`alpha` must be a number.*got \(0.1, 0.2\)"),
        ({"alpha": {"text": 0.1}}, r"`alpha` given by view must name each.*\['text'\]"),
        ({"n_neighbors": M}, "view 'image': `n_neighbors` must be smaller.*30 items"),
        (
            {"n_neighbors": "ten"},
            "view 'text': `n_neighbors` must be a positive.*'ten'",
        ),
        (
            {"n_neighbors": None},
            "view 'text': `n_neighbors` must be a positive.*None",
        ),
        ({"graph": "tree"}, "view 'text': `graph` must be one of.*got 'tree'"),
        ({"graph": None}, "view 'text': `graph` must be one of.*got None"),
        (
            {"metric": {"text": "cosine", "image": "miles"}},
            "view 'image': `metric` must be one of.*got 'miles'",
        ),
        ({"bandwidth": -1}, "view 'text': `bandwidth` must be.*got -1"),
        ({"weights": "heavy"}, "view 'text': `weights` must be one of.*'heavy'"),
    ],
)
def test_wrong_parameters_are_one_sentence_before_any_work(
    monkeypatch, parameters, message
):
    # Nothing may be computed: a graph can take minutes, a mistake must not.
    monkeypatch.setattr(
        "linkspread.models.link_spreading.build_graphs", lambda *_, **__: 1 / 0
    )
    model = LinkSpreading(**{"n_neighbors": 4} | parameters)
    with pytest.raises(LinkspreadError, match=message):
        model.fit(make_views(), make_links("labels"))


@pytest.mark.parametrize(
    "links, message",
    [
        (None, "`links` must be Links or labels by view, got None.*target y is None"),
        ([0, 1], "`links` must be Links or labels by view, got list for 2 views"),
        ({"text": np.zeros(3, int)}, "labels of view 'text' must fit.*3 labels for 40"),
        (
            Links.from_pairs([(0, 0)], between=("text", "video")),
            r"links must be among the given views.*'video'",
        ),
        (
            Links.from_pairs([(0, 99)], between=("text", "image")),
            "links must name items of view 'image', which does not have 99",
        ),
    ],
)
def test_wrong_links_are_one_sentence(links, message):
    with pytest.raises(LinkError, match=message):
        LinkSpreading(n_neighbors=4).fit(make_views(), links)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.dok_array])
def test_any_kind_of_table_gives_the_same_scores(make):
    views, links = make_views(), make_links("labels")
    model = LinkSpreading(**PARAMETERS)
    wanted = model.fit(views, links).scores("text", "image")
    model.fit({view: make(X) for view, X in views.items()}, links)
    assert relative_error(model.scores("text", "image"), wanted) <= 1e-8


def test_a_bare_sparse_table_in_the_format_of_a_dict_is_one_view():
    X = make_views()["text"]
    y = np.arange(N) % 2
    model = LinkSpreading(**PARAMETERS).fit(sparse.dok_array(X), y)
    wanted = LinkSpreading(**PARAMETERS).fit(X, y).scores("X", "X")
    assert relative_error(model.scores("X", "X"), wanted) <= 1e-8


def test_links_of_an_isolated_item_stay_with_it():
    W = np.zeros((N, N))
    W[1:, 1:] = 1.0  # item 0 has no neighbour
    links = Links.from_pairs([(0, 3, 1.0)], between=("text", "image"))
    model = LinkSpreading(**PARAMETERS | {"graph": {"text": W, "image": "knn"}})
    scores = model.fit(make_views(), links).scores("text", "image")
    assert scores[0].argmax() == 3
    np.testing.assert_allclose(scores[1:], 0, atol=1e-12)
    assert model.report_.graphs["text"].n_isolated == 1


NAMES = ("text", "image", "sound")


def fit_some():
    """Return a model of three views, fitted to labels and pairs."""
    links = make_links("mixture") + make_pairs(2, 30, ("image", "sound"))
    model = LinkSpreading(n_neighbors=4, alpha=0.5)
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
    scores, n_calls = Spreading.scores, count()

    def fail_at_the_second(*own):
        if next(n_calls):
            raise MemoryError
        return scores(*own)

    monkeypatch.setattr(Spreading, "scores", fail_at_the_second)


# How a fit fails, early and late, and what is raised.
FAILURES = {
    "parameter": (LinkspreadError, "`tol` must be"),
    "graph": (GraphError, "view 'sound'"),
    "memory": (MemoryError, None),
}


def fail(model, how, monkeypatch):
    """Fit other items of the same views in a way that goes wrong."""
    links = make_links("mixture", seed=7) + make_pairs(7, 30, ("image", "sound"))
    if how == "parameter":
        model.set_params(tol=2.0)
    if how == "graph":
        model.set_params(graph=dict.fromkeys(NAMES, "knn") | {"sound": np.asarray})
    if how == "memory":
        let_memory_run_out(monkeypatch)
    ids = {view: np.arange(SIZES[view])[::-1] for view in NAMES}
    error, sentence = FAILURES[how]
    with pytest.raises(error, match=sentence):
        model.fit(make_views(*NAMES, seed=7), links, ids=ids)
    monkeypatch.undo()


@pytest.mark.parametrize("how", FAILURES)
def test_a_fit_that_fails_leaves_the_earlier_one_whole(how, monkeypatch):
    model = fit_some()
    said, kept = answers(model), state(model)
    fail(model, how, monkeypatch)
    again = answers(model)
    for question, (ids, scores) in said.items():
        assert_array_equal(again[question][0], ids)
        assert_array_equal(again[question][1], scores)
    assert state(model).keys() == kept.keys()
    assert all(state(model)[name] is own for name, own in kept.items())


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


def fit_labels(links, *views, **parameters):
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
    model = fit_labels(links, **parameters)
    for source, target in [("text", "image"), ("sound", "image")]:
        shared = [name for name in names if {source, target} <= set(OF[name])]
        own = [label_set(name, source, target) for name in shared]
        alone = fit_labels(sum(own[1:], own[0]), source, target, **parameters)
        assert_same_answers(model, alone, source, target)


def test_a_search_within_a_view_uses_all_its_labels():
    model = fit_labels(label_set("topics") + label_set("moods"))
    both = label_set("topics", "image") + label_set("moods", "image")
    alone = fit_labels(both, "image")
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
    plain = fit_labels(others, "text", "image")
    model = fit_labels(cancelled(others), "text", "image")
    assert_same_answers(model, plain, "text", "image")
