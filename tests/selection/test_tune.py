"""Choosing parameters: every fast way against a plain fit of each setting."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from linkspread import Links, LinkSpreading
from linkspread.datasets import make_views
from linkspread.ground.errors import LinkError, LinkspreadError
from linkspread.metrics import mean_average_precision
from linkspread.models.spreading import GRAPHS
from linkspread.selection import runners, tune
from linkspread.selection.folds import item_trials, label_folds, link_trials
from linkspread.selection.tune import expand_grid, group_settings
from linkspread.studies.baselines import (
    BilinearRidge,
    CorrelationMatching,
    KernelSmoother,
    LabelSpreadingMatching,
    RowThenColumn,
    SemanticMatching,
)

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
@pytest.mark.slow
def test_a_grid_scores_as_single_fits_do(data, known, protocol, graph):
    model = LinkSpreading(
        n_neighbors=8, graph=graph, adjustment={"alpha": 0.1, "beta": 0.5}
    )
    tuning = tune(data.views(), known, GRID, model=model, n_splits=3, protocol=protocol)
    links = Links.from_labels(known)
    trials = item_trials(data.views(), links, n_splits=3, protocol=protocol)
    expected = plain_scores(trials, expand_grid(GRID), model)
    assert np.allclose(tuning.fold_scores, expected, atol=1e-3)


@pytest.mark.parametrize("n_pairs", [30, 600])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.slow
def test_pairs_score_as_single_fits_do(data, n_pairs, turned):
    model = LinkSpreading(n_neighbors=8)
    grid = {"alpha": [0.1, 0.7], "rank": [4, 30, None]}
    links = pairs_of(data, n_pairs)
    if turned:
        ((between, table),) = links.pair_tables
        links = Links(pairs=[(between[::-1], table.swapped())])
    tuning = tune(data.views(), links, grid, model=model, n_splits=3)
    trials = trials_of_pairs(data, links)
    expected = plain_scores(trials, expand_grid(grid), model)
    assert np.allclose(tuning.fold_scores, expected, atol=1e-3)


@pytest.mark.parametrize("max_bytes", [runners.MAX_BYTES, 0])
def test_many_pairs_score_as_the_fit_does(rng, monkeypatch, max_bytes):
    """Promised .923 and had .722: scores were not truncated as those of the fit."""
    monkeypatch.setattr(runners, "MAX_BYTES", max_bytes)
    data = make_views({"text": 330, "image": 250}, n_classes=3, random_state=0)
    i, j = rng.integers(0, 330, 900), rng.integers(0, 250, 900)
    same = data.labels["text"][i] == data.labels["image"][j]
    weights = np.where(same, 1.0, -1.0)
    links = Links.from_pairs(
        np.column_stack([i, j, weights]), between=("text", "image")
    )
    assert len(np.unique(i)) > 256
    model = LinkSpreading(n_neighbors=8)
    grid = {"alpha": [0.1], "rank": [None, 20]}
    tuning = tune(data.views(), links, grid, model=model, n_splits=2)
    resolved = links.resolve({"text": 330, "image": 250})
    trials = link_trials(
        data.views(), resolved, n_splits=2, n_repeats=1, random_state=0
    )
    expected = plain_scores(trials, expand_grid(grid), model)
    assert np.allclose(tuning.fold_scores, expected, atol=1e-3)
    assert abs(tuning.scores[0] - tuning.scores[1]) > 0.02


IDS = {v: [f"{v}-{k}" for k in range(60)] for v in ("text", "image")}
OF_PAIRS = [
    (LinkSpreading(n_neighbors=8), {"alpha": [0.1, 0.5], "rank": [None, 5]}),
    (BilinearRidge(), {"ridge": [0.01, 1.0]}),
]
OF_LABELS = [OF_PAIRS[0], (SemanticMatching(), {"C": [0.1, 1.0]})]


@pytest.mark.parametrize(("model", "grid"), OF_PAIRS)
def test_pairs_by_ids_are_tuned_as_those_by_position(model, grid):
    data = make_views(60, n_classes=3, random_state=0)
    i, j = np.divmod(np.random.default_rng(0).permutation(3600)[:40], 60)
    same = data.labels["text"][i] == data.labels["image"][j]
    weights = np.where(same, 1.0, -1.0)
    between = "text", "image"
    named = [(IDS["text"][a], IDS["image"][b], w)
             for a, b, w in zip(i, j, weights, strict=True)]  # fmt: skip
    plain = Links.from_pairs(np.column_stack([i, j, weights]), between=between)
    asked = {"model": model, "n_splits": 2}
    by_ids = tune(
        data.views(), Links.from_pairs(named, between=between), grid, ids=IDS, **asked
    )
    by_rows = tune(data.views(), plain, grid, **asked)
    np.testing.assert_allclose(by_ids.fold_scores, by_rows.fold_scores, atol=1e-6)


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
@pytest.mark.parametrize(("model", "grid"), OF_LABELS)
def test_labels_of_items_with_ids_are_tuned(model, grid, protocol):
    data = make_views(60, n_classes=3, random_state=0)
    asked = {"model": model, "n_splits": 2, "protocol": protocol}
    by_ids = tune(data.views(), data.labels, grid, ids=IDS, **asked)
    by_rows = tune(data.views(), data.labels, grid, **asked)
    np.testing.assert_allclose(by_ids.fold_scores, by_rows.fold_scores, atol=1e-6)


@pytest.mark.parametrize("by_view", [False, True])
def test_the_default_is_measured_and_stays_unless_it_is_beaten(data, known, by_view):
    model = LinkSpreading(n_neighbors=8, alpha=0.3)
    values = [0.0, 0.99]
    alpha = {"text": values, "image": values} if by_view else values
    tuning = tune(data.views(), known, {"alpha": alpha}, model=model, n_splits=3)
    links = Links.from_labels(known)
    trials = item_trials(data.views(), links, n_splits=3, protocol="transductive")
    expected = plain_scores(trials, [{}], model)[0]
    assert np.allclose(tuning.default_fold_scores, expected, atol=1e-3)
    assert tuning.default_score > tuning.scores.max() and tuning.keeps_default
    assert tuning.best_parameters == tuning.default
    assert tuning.default == {"alpha": {"text": 0.3, "image": 0.3} if by_view else 0.3}
    assert tuning.best_score == tuning.default_score
    assert tuning.model.get_params()["alpha"] == tuning.default["alpha"]
    assert f"default {tuning.default_score:.3f} ± " in str(tuning)
    assert "stays" in str(tuning)
    better = tune(
        data.views(), known, {"alpha": [0.3, 0.0]},
        model=LinkSpreading(n_neighbors=8, alpha=0.99), n_splits=3,
    )  # fmt: skip
    assert better.best_parameters == {"alpha": 0.3} and not better.keeps_default
    assert f"default {better.default_score:.3f} ± " in str(better)
    assert f"best {better.best_score:.3f} ± " in str(better)


def test_a_tie_goes_to_the_default(data, known):
    # Without `rank` both are the same scores.
    model = LinkSpreading(n_neighbors=8, backend="cpu")
    tuning = tune(data.views(), known, {"backend": ["auto"]}, model=model, n_splits=3)
    assert tuning.scores[0] == tuning.default_score
    assert tuning.keeps_default and tuning.best_parameters == {"backend": "cpu"}


def test_views_too_small_for_the_default_are_tuned_all_the_same():
    data = make_views(24, n_classes=2, random_state=0)
    tuning = tune(data.views(), data.labels, {"n_neighbors": [5]}, n_splits=2)
    assert np.isnan(tuning.default_score) and tuning.best_score == tuning.scores[0]
    assert tuning.best_parameters == {"n_neighbors": 5} and not tuning.keeps_default
    assert "too small for the default" in str(tuning)
    with pytest.raises(LinkspreadError, match="n_neighbors"):
        tune(data.views(), data.labels, {"n_neighbors": [30]}, n_splits=2)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda data: data.labels,
         "mean average precision of held-out labels over 3 folds, both directions"),
        (lambda data: pairs_of(data, 40),
         "average precision of held-out pairs over 3 folds"),
        (lambda data: Links.from_matched(("text", "image"), 60),
         "mean reciprocal rank of held-out partners over 3 folds, both directions"),
    ],
)  # fmt: skip
def test_a_tuning_says_of_what_it_is_the_mean(data, make, words):
    model = LinkSpreading(n_neighbors=8)
    grid = {"alpha": [0.3]}
    tuning = tune(data.views(), make(data), grid, model=model, n_splits=3)
    assert tuning.measure == words
    assert words in str(tuning)


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
    trials = item_trials(data.views(), links, n_splits=3, protocol="transductive")
    settings = expand_grid(grid)
    expected = plain_scores(trials, settings, model)
    assert np.allclose(tuning.fold_scores, expected, atol=1e-9)
    assert len(np.unique(np.round(tuning.scores, 6))) > len(settings) // 2


@pytest.mark.parametrize(("model", "grid"), RIVALS_OF_PAIRS)
@pytest.mark.slow
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
    assert tuning.best_score == max(tuning.scores.max(), tuning.default_score)


def test_folds_hide_the_same_rows_of_matched_views(data, known):
    links = Links.from_labels(dict.fromkeys(known, known["text"]))
    trials = item_trials(data.views(), links, n_splits=3, protocol="transductive")
    for (trial,) in trials:
        (test,) = trial.tests
        assert np.array_equal(test.rows, test.cols)
        shown = trial.links.memberships("text").sum(axis=1)
        assert not np.any(shown[test.rows])


def test_every_labelled_item_is_hidden_once():
    y = np.array([0, 0, 0, 1, 1, 1, -1, -1])
    tests = [test for _, test in label_folds(y, 3)]
    assert sorted(np.concatenate(tests)) == [0, 1, 2, 3, 4, 5]
    assert all(6 in train and 7 in train for train, _ in label_folds(y, 3))


def test_inductive_queries_are_not_in_the_fit(data, known):
    links = Links.from_labels(known)
    trials = item_trials(data.views(), links, n_splits=4, protocol="inductive")
    for fold in trials:
        for trial in fold:
            (test,) = trial.tests
            own = {row.tobytes() for row in trial.views[test.source]}
            assert not own & {row.tobytes() for row in test.rows}


def test_pairs_given_twice_are_never_on_both_sides():
    pairs = [(0, 1, 1.0), (1, 0, -1.0), (0, 1, 1.0), (2, 2, 1.0), (0, 0, -1.0)]
    links = Links.from_pairs(pairs, between=("a", "b"))
    turned = Links.from_pairs([(1, 0, 1.0)], between=("b", "a"))
    links = (links + turned).resolve({"a": 3, "b": 3})
    trials = link_trials({}, links, n_splits=2, n_repeats=1, random_state=0)
    assert len(trials) == 2
    for (trial,) in trials:
        shown = trial.links.judged("a", "b").toarray() != 0
        for test in trial.tests:
            where = test.rows, test.cols
            asked = where if test.source == "a" else where[::-1]
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
        (test,) = trial.tests
        asked = list(zip(*test.held_out, strict=True))
        shown = trial.links.judged("a", "b").toarray() != 0
        assert len(asked) + shown.sum() == 5
        free_rows = {*np.flatnonzero(~shown.any(1)), *test.held_out[0]}
        free_cols = {*np.flatnonzero(~shown.any(0)), *test.held_out[1]}
        expected = [
            reciprocal(F[i], j, free_cols, {b for a, b in asked if a == i})
            for i, j in asked
        ] + [
            reciprocal(F[:, j], i, free_rows, {a for a, b in asked if b == j})
            for i, j in asked
        ]
        found = test.measure(lambda a, b, *, rows, cols: F[np.ix_(rows, cols)])
        assert np.isclose(found, np.mean(expected))


def test_no_item_finds_itself_when_partners_are_in_its_own_view():
    links = Links.from_pairs([(0, 1), (2, 3)], between=("a", "a")).resolve({"a": 6})
    trials = link_trials({}, links, n_splits=2, n_repeats=1, random_state=0)
    near = 10 * np.eye(6) + np.kron(np.eye(3), np.ones((2, 2)))
    for (trial,) in trials:
        (test,) = trial.tests
        score = test.measure(lambda a, b, *, rows, cols: near[np.ix_(rows, cols)])
        assert score == 1


def test_stages_start_from_the_best_before_them(data, known):
    stages = [{"n_neighbors": [5, 20]}, {"alpha": [0.1, 0.5]}, {"beta": [0.5]}]
    model = LinkSpreading(n_neighbors=2)
    tuning = tune(data.views(), known, stages, model=model, n_splits=3)
    assert len(tuning.settings) == 5
    first = [tuning.default_score, *tuning.scores[:2]]
    best = (2, 5, 20)[int(np.argmax(first))]
    assert best != 2
    assert all(s["n_neighbors"] == best for s in tuning.settings[2:])


def test_stages_start_from_the_default_if_nothing_beats_it(data, known):
    stages = [{"n_neighbors": [1]}, {"alpha": [0.1, 0.5]}]
    model = LinkSpreading(n_neighbors=15)
    tuning = tune(data.views(), known, stages, model=model, n_splits=3)
    assert tuning.scores[0] < tuning.default_score
    assert [s["n_neighbors"] for s in tuning.settings] == [1, 15, 15]
    # The model's own alpha among them is the default, and does no better than it.
    assert tuning.scores[1] == pytest.approx(tuning.default_score, abs=1e-9)


def test_any_model_with_the_same_face_can_be_tuned(data, known):
    class Renamed(LinkSpreading):
        """Another class, which takes the plain way."""

    ours = tune(
        data.views(), known, GRID, model=LinkSpreading(n_neighbors=8), n_splits=3
    )
    plain = tune(data.views(), known, GRID, model=Renamed(n_neighbors=8), n_splits=3)
    assert np.allclose(ours.scores, plain.scores, atol=1e-3)


def test_a_curve_goes_through_the_best_setting(data, known):
    tuning = tune(data.views(), known, GRID, n_splits=3)
    values, scores = tuning.curve("alpha text")
    assert values == [0.05, 0.6]
    assert scores.max() == tuning.best_score
    with pytest.raises(LinkspreadError, match="'alpha image'.*got 'gamma'"):
        tuning.curve("gamma")


@pytest.mark.parametrize("kind", [LinkSpreading, LabelSpreadingMatching])
def test_graphs_without_links_are_built_once(data, known, monkeypatch, kind):
    built = []
    real = GRAPHS["knn"]
    monkeypatch.setitem(GRAPHS, "knn", lambda *a, **k: built.append(1) or real(*a, **k))
    grid = {"n_neighbors": [5, 9], "alpha": [0.1, 0.3]}
    tune(data.views(), known, grid, model=kind(n_neighbors=9), n_splits=3)
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
    assert groups == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"protocol": "both"}, "`protocol` must be one of .*got 'both'"),
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


def test_scikit_learn_searches_by_the_score_of_the_model(data):
    # Classes need not be numbered from 0, nor all be in every fold.
    X, y = data.views()["text"], np.array([3, 7, 20])[data.labels["text"]]
    y[:2] = [-1, 8]
    model = LinkSpreading(n_neighbors=8)
    search = GridSearchCV(model, {"alpha": [0.1, 0.5]}, cv=[*label_folds(y, 3)]).fit(
        X, y
    )
    train, test = next(label_folds(y, 3))
    model = clone(search.estimator).set_params(alpha=0.1).fit(X[train], y[train])
    known = y[train] >= 0
    block = model.scores("X", "X", rows=X[test], cols=known)
    expected = mean_average_precision(block, y[test], y[train][known])
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(expected)
    assert model.score(X[test], y[test]) == pytest.approx(expected)


def test_the_score_of_integer_ids_is_that_of_positions(data):
    X, y = data.views()["text"], data.labels["text"]
    model = LinkSpreading(n_neighbors=8)
    expected = model.fit(X[:90], y[:90]).score(X[90:], y[90:])
    model.fit({"X": X[:90]}, {"X": y[:90]}, ids={"X": np.arange(90)[::-1]})
    assert model.score(X[90:], y[90:]) == pytest.approx(expected)


def test_several_views_have_no_single_score(data, known):
    model = LinkSpreading(n_neighbors=8).fit(data.views(), known)
    with pytest.raises(LinkspreadError, match="`score` .* got views 'text', 'image'"):
        model.score(data.views()["text"], data.labels["text"])
