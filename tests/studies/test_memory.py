"""What settings of a trial share is made once, and is what each would make alone."""

import gc
import weakref

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from linkspread import Links
from linkspread.selection import tune
from linkspread.selection.folds import PairTest, Trial, link_trials
from linkspread.selection.runners import ModelRunner
from linkspread.selection.tune import expand_grid
from linkspread.studies.baselines import KernelSmoother
from linkspread.studies.baselines.kernel_smoother import GaussianKernel
from linkspread.studies.baselines.matching import Memory, in_tiles

SIZES = {"text": 50, "image": 40}
# All that the vectors of a view depend on.
GRID = {
    "balance": ["auto", 0.0],
    "metric": {"text": ["euclidean", "cosine"], "image": ["euclidean"]},
    "width": {"text": [0.15, 1.0], "image": [0.3, 0.5]},
    "normalize": [True, False],
}


@pytest.fixture
def views(rng):
    return {view: rng.standard_normal((n, 3)) for view, n in SIZES.items()}


def make_pairs(share_must=0.4, below=SIZES):
    rng = np.random.default_rng(1)
    i, j = np.divmod(rng.choice(2000, 200, replace=False), 40)
    weights = np.where(rng.random(200) < share_must, 1.0, -1.0)
    table = np.column_stack([i, j, weights])[(i < below["text"]) & (j < below["image"])]
    return Links.from_pairs(table, between=("text", "image"))


def make_labels():
    rng = np.random.default_rng(2)
    return Links.from_labels({v: rng.integers(-1, 3, n) for v, n in SIZES.items()})


def plain_scores(model, views, links, setting):
    model = clone(model).set_params(**setting)
    return model.fit(views, links).scores("text", "image")


@pytest.mark.parametrize("max_bytes", [1e9, 10_000])
@pytest.mark.parametrize("kind", ["pairs", "labels", "mixture"])
def test_settings_that_share_a_memory_score_as_those_alone(views, kind, max_bytes):
    links = {"pairs": make_pairs(), "labels": make_labels()}.get(kind)
    links = links or make_pairs() + make_labels()
    shared, found = KernelSmoother().sharing_with(None), []
    shared._memory.max_bytes = max_bytes
    rows, cols = np.divmod(np.random.default_rng(3).choice(2000, 70), 40)
    for setting in expand_grid(GRID):
        model = KernelSmoother(**setting).sharing_with(shared).fit(views, links)
        expected = plain_scores(KernelSmoother(), views, links, setting)
        tolerance = 1e-12 * abs(expected).max()
        # Pairs come first, so that rows exist already when the rest is asked for.
        pairs = model.pair_scores("text", "image", rows, cols)
        assert_allclose(pairs, expected[rows, cols], atol=tolerance)
        assert_allclose(model.scores("text", "image"), expected, atol=tolerance)
        found.append(pairs)
    distinct = np.unique(np.round(found, 9), axis=0)
    assert len(distinct) == len(found), "a parameter of the grid changes nothing"


@pytest.mark.parametrize("share_must", [0.4, 1.0])
def test_tuning_scores_as_single_fits_do(views, share_must):
    links = make_pairs(share_must=share_must)
    grid = {name: GRID[name] for name in ("width", "normalize")}
    tuning = tune(views, links, grid, model=KernelSmoother(), n_splits=3)
    trials = link_trials(
        views, links.resolve(SIZES), n_splits=3, n_repeats=1, random_state=0
    )
    expected = [
        [
            trial.measure(KernelSmoother(**setting).fit(views, trial.links).scores)[0]
            for (trial,) in trials
        ]
        for setting in expand_grid(grid)
    ]
    assert_allclose(tuning.fold_scores, expected, atol=1e-9)


def test_questions_about_the_same_two_views_are_all_answered(views):
    back = Links.from_pairs([(3, 5, 1.0), (7, 2, -1.0)], between=("image", "text"))
    other = Links.from_pairs([(0, 1, 1.0), (2, 9, -1.0)], between=("text", "image"))
    trial = Trial(
        views,
        make_pairs().resolve(SIZES),
        tuple(
            PairTest(*between, *table.known_positions(between), table.weights)
            for links in (make_pairs(), other, back)
            for between, table in links.resolve(SIZES).pair_tables
        ),
    )
    (scores,) = ModelRunner().run(trial, [KernelSmoother(width=0.3)])
    plain = KernelSmoother(width=0.3).fit(views, trial.links).scores
    assert len(trial.tests) == 3
    for test in trial.tests:
        found, expected = test.pair_scores(scores), test.pair_scores(plain)
        assert_allclose(found, expected, atol=1e-12)


def test_new_items_are_scored_by_a_model_that_shares(views, rng):
    rows, links = rng.standard_normal((4, 3)), make_pairs()
    model = KernelSmoother().sharing_with(None).fit(views, links)
    expected = KernelSmoother().fit(views, links).scores("text", "image", rows=rows)
    assert_allclose(model.scores("text", "image", rows=rows), expected)


def test_averages_of_items_far_from_all_links_do_not_vanish(views):
    """The product of two sums could, where that of two averages does not."""
    for X in views.values():
        X[-1] = 1e3
    links = make_pairs(below={"text": 49, "image": 39})
    model = KernelSmoother(width=1.0).sharing_with(None).fit(views, links)
    found = model.pair_scores("text", "image", np.array([49]), np.array([39]))
    expected = plain_scores(KernelSmoother(), views, links, {"width": 1.0})[49, 39]
    assert expected != 0
    assert_allclose(found, expected)


def test_distances_of_a_view_are_measured_once_a_fold(views, monkeypatch):
    measured = []
    real = GaussianKernel.distances
    monkeypatch.setattr(
        GaussianKernel,
        "distances",
        lambda self, rows: measured.append(len(rows)) or real(self, rows),
    )
    grid = {name: GRID[name] for name in ("width", "normalize")}
    tune(views, make_pairs(), grid, model=KernelSmoother(), n_splits=2)
    assert len(measured) == 2 * 2


def test_a_memory_goes_with_the_last_model_that_shares_it(views):
    model = KernelSmoother().sharing_with(None).fit(views, make_pairs())
    model.scores("text", "image")
    watched = weakref.ref(model._memory)
    gc.disable()
    try:
        del model
        assert watched() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("n_rows", [1, 500, 1201])
def test_tiles_make_the_whole(n_rows):
    table = np.arange(2.0 * n_rows).reshape(n_rows, 2)
    assert np.array_equal(in_tiles(lambda rows: rows + 1, table), table + 1)


def test_a_full_memory_forgets_what_was_not_used_for_longest():
    memory = Memory(max_bytes=250)

    def hold(key):
        return memory.once(key, lambda: np.zeros(10))

    kept = {key: hold(key) for key in "abc"}
    hold("a")
    hold("d")
    assert hold("a") is kept["a"]
    assert hold("b") is not kept["b"]
