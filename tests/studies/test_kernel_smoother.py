"""Kernel smoothing against sums over all links."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from linkspread import Links
from linkspread.graphs.distances import mean_distance
from linkspread.links import as_dense
from linkspread.studies.baselines import KernelSmoother

SIZES = {"text": 25, "image": 20}


@pytest.fixture
def views(rng):
    return {view: rng.standard_normal((n, 3)) for view, n in SIZES.items()}


def make_links(kind):
    rng = np.random.default_rng(1)
    labels = Links.from_labels(
        {"text": rng.integers(-1, 3, 25), "image": rng.integers(-1, 3, 20)}
    )
    i, j = np.divmod(rng.choice(500, 30, replace=False), 20)
    weights = rng.choice([-1.0, 1.0, 0.5], 30)
    pairs = Links.from_pairs(
        np.column_stack([i, j, weights]), between=("text", "image")
    )
    return {"labels": labels, "pairs": pairs, "mixture": labels + pairs}[kind]


def dense_kernel(rows, X, width):
    return np.exp(-((cdist(rows, X) / (width * mean_distance(X))) ** 2))


@pytest.mark.parametrize("kind", ["labels", "pairs", "mixture"])
def test_scores_are_sums_over_all_links(kind, views, rng):
    links = make_links(kind)
    model = KernelSmoother(width=0.4, normalize=False).fit(views, links)
    rows = rng.standard_normal((6, 3))
    Z = as_dense(links.resolve(SIZES).between("text", "image"))
    left = dense_kernel(rows, views["text"], 0.4)
    right = dense_kernel(views["image"], views["image"], 0.4)
    expected = left @ Z @ right.T
    assert_allclose(model.scores("text", "image", rows=rows), expected, atol=1e-10)


@pytest.mark.parametrize("kind", ["labels", "pairs"])
def test_normalising_divides_by_the_links_near_each_item(kind, views):
    links = make_links(kind)
    width = {"text": 0.4, "image": 0.8}
    model = KernelSmoother(width=width).fit(views, links)
    Z = as_dense(links.resolve(SIZES).between("text", "image"))
    left, right = (dense_kernel(X, X, width[view]) for view, X in views.items())
    mass = left @ np.abs(Z).sum(axis=1), right @ np.abs(Z).sum(axis=0)
    expected = left @ Z @ right.T / np.outer(*mass)
    assert_allclose(model.scores("text", "image"), expected, atol=1e-10)


def test_far_queries_still_have_an_order(views):
    model = KernelSmoother(width=0.1).fit(views, make_links("pairs"))
    scores = model.scores("text", "image", rows=np.full((1, 3), 1e4))
    assert np.isfinite(scores).all()
    assert np.ptp(scores) > 0


def test_a_class_that_one_view_lacks_counts_for_nothing(views):
    labels = {"text": np.arange(25) % 3, "image": np.arange(20) % 2}
    model = KernelSmoother(balance=0.0).fit(views, labels)
    assert np.isfinite(model.scores("text", "image")).all()


def test_items_that_are_nearly_all_alike_do_not_divide_by_zero():
    views = {view: np.ones((n, 2)) for view, n in SIZES.items()}
    for X in views.values():
        X[-1] = 2.0
    model = KernelSmoother().fit(views, make_links("pairs"))
    assert np.isfinite(model.scores("text", "image")).all()
