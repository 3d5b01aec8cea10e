"""Choosing parameters: every fast way against a plain fit of each setting."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from linkspread import Links, LinkSpreading
from linkspread.baselines import (
    BilinearRidge,
    CorrelationMatching,
    KernelSmoother,
    LabelSpreadingMatching,
    RowThenColumn,
    SemanticMatching,
)
from linkspread.datasets import make_views
from linkspread.estimators.graph_kinds import GRAPHS
from linkspread.exceptions import LinkError, LinkspreadError
from linkspread.metrics import mean_average_precision
from linkspread.selection import LabelFolds, runners, score_search, tune
from linkspread.selection.folds import item_trials, link_trials
from linkspread.selection.grids import expand_grid, group_settings

GRID = {"alpha": {"text": [0.05, 0.6], "image": [0.3]}, "beta": [0.5, 0.95]}


@pytest.fixture(scope="module")
def data():
    return make_views(120, n_classes=3, random_state=0)


@pytest.fixture(scope="module")
def known(data):
    """Return labels of two thirds of the items, the same rows in both views."""
    hidden = np.arange(120) % 3 == 0
    return {view: np.where(hidden, -1, y) for view, y in data.labels.items()}


def pairs_of(data, n_pairs, seed=0):
    rng = np.random.default_rng(seed)
    i, j = rng.integers(0, 120, n_pairs), rng.integers(0, 120, n_pairs)
    same = data.labels["text"][i] == data.labels["image"][j]
    pairs = list(zip(i, j, np.where(same, 1.0, -1.0), strict=True))
    return Links.from_pairs(pairs, between=("text", "image"))


def trials_of_pairs(data, links):
    """Return the trials that `tune` makes of pairs in three folds."""
    known = links.resolve({"text": 120, "image": 120})
    return link_trials(data.views(), known, n_splits=3, n_repeats=1, random_state=0)


def plain_scores(trials, settings, model):
    """Fit every setting anew and measure it, without any sharing."""

    def measured(trial, setting):
        fitted = clone(model).set_params(**setting).fit(trial.views, trial.links)
        return trial.measure(fitted.scores)

    return [
        [np.mean([v for t in fold for v in measured(t, s)]) for fold in trials]
        for s in settings
    ]


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
@pytest.mark.parametrize("graph", ["knn", "cwa"])
def test_a_grid_scores_as_single_fits_do(data, known, protocol, graph):
    model = LinkSpreading(
        n_neighbors=8, graph=graph, adjustment={"alpha": 0.1, "beta": 0.5}
    )
    tuning = tune(data.views(), known, GRID, model=model, n_splits=3, protocol=protocol)
    links = Links.from_labels(known)
    trials = item_trials(data.views(), links, LabelFolds(3), protocol=protocol)
    expected = plain_scores(trials, expand_grid(GRID), model)
    assert np.allclose(tuning.fold_scores, expected, atol=1e-3)


@pytest.mark.parametrize("n_pairs", [30, 600])
def test_pairs_score_as_single_fits_do(data, n_pairs):
    model = LinkSpreading(n_neighbors=8)
    grid = {"alpha": [0.1, 0.7], "rank": [4, 30]}
    links = pairs_of(data, n_pairs)
    tuning = tune(data.views(), links, grid, model=model, n_splits=3)
    trials = trials_of_pairs(data, links)
    expected = plain_scores(trials, expand_grid(grid), model)
    # The sketch of a small rank is not quite the truncation of a larger one.
    assert np.allclose(tuning.fold_scores, expected, atol=0.05)


BOTH_ALPHAS = {"alpha": {"text": [0.05, 0.9], "image": [0.3, 0.8]}}
RIVALS_OF_LABELS = [
    (SemanticMatching(), {"C": {"text": [0.01, 1.0], "image": [0.1, 10.0]}}),
    (SemanticMatching(classifier="svm", cv=2), {"width": [0.25, 1.0], "C": [1.0]}),
    (LabelSpreadingMatching(), {**BOTH_ALPHAS, "n_neighbors": [5, 9]}),
    (RowThenColumn(), {**BOTH_ALPHAS, "n_neighbors": [5, 9]}),
]
RIVALS_OF_PAIRS = [
    (RowThenColumn(n_neighbors=8), {**BOTH_ALPHAS, "rank": [4, None]}),
    (CorrelationMatching(), {"n_components": [2, 4], "reg": [0.01, 1.0]}),
    (BilinearRidge(), {"n_components": [2, 4], "ridge": [0.01, 1.0]}),
    (KernelSmoother(), {"width": {"text": [0.15, 1.0], "image": [0.3, 0.5]}}),
]


@pytest.mark.parametrize(("model", "grid"), RIVALS_OF_LABELS)
def test_rivals_share_work_and_score_as_single_fits_do(data, known, model, grid):
    tuning = tune(data.views(), known, grid, model=model, n_splits=3)
    links = Links.from_labels(known)
    trials = item_trials(data.views(), links, LabelFolds(3), protocol="transductive")
    settings = expand_grid(grid)
    expected = plain_scores(trials, settings, model)
    assert np.allclose(tuning.fold_scores, expected, atol=1e-9)
    assert len(np.unique(np.round(tuning.scores, 6))) > len(settings) // 2


@pytest.mark.parametrize(("model", "grid"), RIVALS_OF_PAIRS)
def test_rivals_of_pairs_share_work_and_score_as_single_fits_do(data, model, grid):
    links = pairs_of(data, 150)
    tuning = tune(data.views(), links, grid, model=model, n_splits=3)
    trials = trials_of_pairs(data, links)
    settings = expand_grid(grid)
    expected = plain_scores(trials, settings, model)
    assert np.allclose(tuning.fold_scores, expected, atol=1e-9)
    assert len(np.unique(np.round(tuning.scores, 6))) > len(settings) // 2


def test_the_best_model_is_a_copy_with_the_best_parameters(data, known):
    model = LinkSpreading(n_neighbors=8)
    tuning = tune(data.views(), known, GRID, model=model, n_splits=3)
    assert tuning.model.get_params()["beta"] == tuning.best_parameters["beta"]
    assert tuning.model.get_params()["n_neighbors"] == 8
    assert model.beta == 0.95 and model.alpha == 0.1
    assert tuning.best_score == tuning.scores.max()


def test_folds_hide_the_same_rows_of_matched_views(data, known):
    links = Links.from_labels(dict.fromkeys(known, known["text"]))
    trials = item_trials(data.views(), links, LabelFolds(3), protocol="transductive")
    for (trial,) in trials:
        (question,) = trial.questions
        assert np.array_equal(question.rows, question.cols)
        shown = trial.links.memberships("text").sum(axis=1)
        assert not np.any(shown[question.rows])


def test_every_labelled_item_is_hidden_once():
    y = np.array([0, 0, 0, 1, 1, 1, -1, -1])
    tests = [test for _, test in LabelFolds(3).split(y, y)]
    assert sorted(np.concatenate(tests)) == [0, 1, 2, 3, 4, 5]
    assert all(6 in train and 7 in train for train, _ in LabelFolds(3).split(y, y))


def test_inductive_queries_are_not_in_the_fit(data, known):
    links = Links.from_labels(known)
    trials = item_trials(data.views(), links, LabelFolds(4), protocol="inductive")
    for fold in trials:
        for trial in fold:
            (question,) = trial.questions
            own = {row.tobytes() for row in trial.views[question.source]}
            assert not own & {row.tobytes() for row in question.rows}


def test_pairs_given_twice_are_never_on_both_sides():
    pairs = [(0, 1, 1.0), (1, 0, -1.0), (0, 1, 1.0), (2, 2, 1.0), (0, 0, -1.0)]
    links = Links.from_pairs(pairs, between=("a", "b"))
    turned = Links.from_pairs([(1, 0, 1.0)], between=("b", "a"))
    links = (links + turned).resolve({"a": 3, "b": 3})
    trials = link_trials({}, links, n_splits=2, n_repeats=1, random_state=0)
    assert len(trials) == 2
    for (trial,) in trials:
        shown = trial.links.judged("a", "b").toarray() != 0
        for question in trial.questions:
            where = question.rows, question.cols
            asked = where if question.source == "a" else where[::-1]
            assert not shown[asked].any()


def test_matched_rows_must_find_their_partners(data):
    links = Links.from_matched(("text", "image"), 60)
    tuning = tune(data.views(), links, {"alpha": [0.3, 0.9]}, n_splits=3)
    assert np.all((tuning.fold_scores > 0) & (tuning.fold_scores <= 1))


def test_held_out_partners_are_ranked_among_all_items_without_a_link(rng):
    links = Links.from_pairs(
        [(0, 1), (2, 3), (4, 5), (2, 6), (7, 1)], between=("a", "b")
    ).resolve({"a": 20, "b": 15})
    F = rng.standard_normal((20, 15)).round(1)  # with equal scores
    trials = link_trials({}, links, n_splits=2, n_repeats=1, random_state=0)

    def reciprocal(row, j, candidates, partners):
        rivals = row[[c for c in candidates if c not in partners]]
        return 1 / (1 + np.sum(rivals > row[j]) + np.sum(rivals == row[j]) / 2)

    for (trial,) in trials:
        (question,) = trial.questions
        asked = list(zip(*question.held_out, strict=True))
        shown = trial.links.judged("a", "b").toarray() != 0
        assert len(asked) + shown.sum() == 5
        free_rows = {*np.flatnonzero(~shown.any(1)), *question.held_out[0]}
        free_cols = {*np.flatnonzero(~shown.any(0)), *question.held_out[1]}
        expected = [
            reciprocal(F[i], j, free_cols, {b for a, b in asked if a == i})
            for i, j in asked
        ] + [
            reciprocal(F[:, j], i, free_rows, {a for a, b in asked if b == j})
            for i, j in asked
        ]
        found = question.measure(lambda a, b, *, rows, cols: F[np.ix_(rows, cols)])
        assert np.isclose(found, np.mean(expected))


def test_no_item_finds_itself_when_partners_are_in_its_own_view():
    links = Links.from_pairs([(0, 1), (2, 3)], between=("a", "a")).resolve({"a": 6})
    trials = link_trials({}, links, n_splits=2, n_repeats=1, random_state=0)
    near = 10 * np.eye(6) + np.kron(np.eye(3), np.ones((2, 2)))
    for (trial,) in trials:
        (question,) = trial.questions
        score = question.measure(lambda a, b, *, rows, cols: near[np.ix_(rows, cols)])
        assert score == 1


def test_stages_start_from_the_best_before_them(data, known):
    stages = [{"n_neighbors": [5, 20]}, {"alpha": [0.1, 0.5]}, {"beta": [0.5]}]
    tuning = tune(data.views(), known, stages, n_splits=3)
    assert len(tuning.settings) == 5
    best = max((5, 20), key=lambda k: tuning.scores[[5, 20].index(k)])
    assert all(s["n_neighbors"] == best for s in tuning.settings[2:])


def test_any_model_with_the_same_face_can_be_tuned(data, known):
    class Renamed(LinkSpreading):
        """Another class, which takes the plain way."""

    ours = tune(
        data.views(), known, GRID, model=LinkSpreading(n_neighbors=8), n_splits=3
    )
    plain = tune(data.views(), known, GRID, model=Renamed(n_neighbors=8), n_splits=3)
    assert np.allclose(ours.scores, plain.scores, atol=1e-3)


def test_fitted_links_are_tuned_as_fitted(data, known):
    class Renamed(LinkSpreading):
        """Another class, which takes the plain way."""

    grid = {"objective": ["spread", "ridge"], "alpha": [0.3, 0.8], "ridge": [1.0]}
    both = [
        tune(data.views(), known, grid, model=model(n_neighbors=8), n_splits=3).scores
        for model in (LinkSpreading, Renamed)
    ]
    assert np.allclose(*both, atol=1e-3)
    assert not np.allclose(both[0][:2], both[0][2:], atol=1e-3)


def test_a_curve_goes_through_the_best_setting(data, known):
    tuning = tune(data.views(), known, GRID, n_splits=3)
    values, scores = tuning.curve("alpha text")
    assert values == [0.05, 0.6]
    assert scores.max() == tuning.best_score
    with pytest.raises(LinkspreadError, match="'alpha image'.*got 'gamma'"):
        tuning.curve("gamma")


def test_the_frame_has_a_row_for_each_setting(data, known):
    frame = tune(data.views(), known, GRID, n_splits=3).frame()
    assert list(frame.columns[:3]) == ["alpha text", "alpha image", "beta"]
    assert frame["mean"].is_monotonic_decreasing and len(frame) == 4


def test_scikit_learn_searches_with_our_folds_and_scorer(data):
    X, y = data.views()["text"], data.labels["text"]
    search = GridSearchCV(
        LinkSpreading(n_neighbors=8),
        {"alpha": [0.1, 0.5]},
        scoring=score_search,
        cv=LabelFolds(3),
    ).fit(X, y)
    train, test = next(LabelFolds(3).split(X, y))
    model = clone(search.estimator).set_params(alpha=0.1).fit(X[train], y[train])
    block = model.scores("X", "X", rows=X[test])
    expected = mean_average_precision(block, y[test], y[train])
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(expected)


@pytest.mark.parametrize("kind", [LinkSpreading, LabelSpreadingMatching])
def test_graphs_without_links_are_built_once(data, known, monkeypatch, kind):
    built = []
    real = GRAPHS["knn"]
    monkeypatch.setitem(GRAPHS, "knn", lambda *a, **k: built.append(1) or real(*a, **k))
    grid = {"n_neighbors": [5, 9], "alpha": [0.1, 0.3]}
    tune(data.views(), known, grid, model=kind(), n_splits=3)
    assert len(built) == 4
    kind(n_neighbors=5).fit(data.views(), known)
    assert len(built) == 6  # and outside of it as ever


def test_views_of_a_rival_are_learnt_once_for_each_setting_of_their_own(
    data, known, monkeypatch
):
    learnt = []
    real = SemanticMatching._learn_view
    monkeypatch.setattr(
        SemanticMatching,
        "_learn_view",
        lambda self, X, links, view, **own: (
            learnt.append((view, own["C"])) or real(self, X, links, view, **own)
        ),
    )
    costs = [0.1, 1.0, 10.0]
    grid = {"C": {"text": costs, "image": costs}}
    tuning = tune(data.views(), known, grid, model=SemanticMatching(), n_splits=2)
    assert tuning.fold_scores.shape == (9, 2)
    assert len(learnt) == 2 * 2 * 3


def test_settings_that_share_a_graph_are_grouped():
    settings = expand_grid({"n_neighbors": [5, 9], "alpha": [0.1, 0.2]})
    groups = group_settings(settings, ("alpha",))
    assert groups == [({"n_neighbors": 5}, [0, 1]), ({"n_neighbors": 9}, [2, 3])]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"protocol": "both"}, "`protocol` must be one of .*got 'both'"),
        ({"folds": "rows"}, "`folds` must be one of .*got 'rows'"),
        (
            {"grid": {"alpha": 0.1}},
            "list of values for 'alpha', got 0.1. Write",
        ),
        ({"grid": {"alpha": []}}, "at least one value for 'alpha'"),
        ({"grid": "alpha"}, "`grid` must map names of parameters"),
        ({"grid": []}, "at least one stage"),
        ({"grid": {"alfa": [0.1]}}, "parameters of LinkSpreading.*got 'alfa'"),
        ({"n_splits": 1}, "`n_splits` must be an integer from 2, got 1"),
        ({"n_splits": "5"}, "`n_splits` must be an integer from 2, got '5'"),
        ({"n_repeats": 0}, "`n_repeats` must be a positive integer, got 0"),
        ({"model": "knn"}, "`model` must be an estimator.*got 'knn'"),
    ],
)
def test_mistakes_are_told_in_a_sentence(data, known, change, message):
    with pytest.raises(LinkspreadError, match=message):
        tune(data.views(), known, **({"grid": GRID} | change))


def test_one_label_a_class_leaves_nothing_to_hold_out(data):
    y = {view: np.full(120, -1) for view in data.labels}
    for labels in y.values():
        labels[:3] = [0, 1, 2]
    with pytest.raises(LinkError, match="no class has more than 1"):
        tune(data.views(), y, GRID)


def test_pairs_cannot_be_held_out_inductively(data):
    with pytest.raises(LinkspreadError, match="'transductive' where pairs"):
        tune(data.views(), pairs_of(data, 30), GRID, protocol="inductive")


def test_a_single_must_link_cannot_be_held_out(data):
    links = Links.from_pairs([(0, 0, 1.0), (1, 0, -1.0), (0, 1, -1.0)],
                             between=("text", "image"))  # fmt: skip
    with pytest.raises(LinkError, match="got 1 must and 2 cannot"):
        tune(data.views(), links, GRID)


def test_folds_of_items_need_labels(data):
    links = Links.from_matched(("text", "image"), 60)
    with pytest.raises(LinkError, match="where no item has a label, got 'items'"):
        tune(data.views(), links, GRID, folds="items")


def test_new_items_are_searched_once_for_all_settings(data, known, monkeypatch):
    calls = []
    search = runners.similarities
    monkeypatch.setattr(
        runners, "similarities", lambda *a, **k: calls.append(1) or search(*a, **k)
    )
    asked = {"n_splits": 3, "protocol": "inductive"}
    model = LinkSpreading(n_neighbors=5)
    tune(data.views(), known, GRID, model=model, **asked)
    assert len(calls) == 3 * 2  # for each fold, queries of each view
