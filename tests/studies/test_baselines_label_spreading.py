"""Label spreading in closed form against scikit-learn's iteration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.semi_supervised import LabelSpreading

from linkspread.graphs import NeighborGraph, normalize
from linkspread.propagation.smoothing import smooth_over_graph
from linkspread.studies.baselines import LabelSpreadingMatching
from reference import random_graph, smoother

SIZES = {"text": 60, "image": 45}
QUERIES = 9


@pytest.fixture
def problem(rng):
    views, labels = {}, {}
    for view, n in SIZES.items():
        y = rng.integers(0, 3, n)
        y[:3] = 0, 1, 2
        views[view] = rng.standard_normal((n, 4)) + 2 * y[:, None]
        labels[view] = np.where(rng.random(n) < 0.4, y, -1)
        labels[view][:3] = 0, 1, 2
    return views, labels


def scikit_learn_spreading(graph, queries, y, alpha):
    """Fit scikit-learn to the affinities of a graph, looked up by position."""
    affinity = np.vstack([graph.affinity_.toarray(), graph.extend(queries).toarray()])

    def look_up(A, B):
        rows, columns = B[:, 0].astype(int), A[:, 0].astype(int)
        return affinity[np.ix_(rows, columns)].T

    model = LabelSpreading(kernel=look_up, alpha=alpha, max_iter=20_000, tol=1e-13)
    n = graph.affinity_.shape[0]
    model.fit(np.arange(n)[:, None].astype(float), y)
    places = np.arange(n, n + len(queries))[:, None].astype(float)
    return model.label_distributions_, model.predict_proba(places)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.95])
def test_distributions_are_those_of_scikit_learn(alpha, problem, rng):
    views, labels = problem
    model = LabelSpreadingMatching(n_neighbors=6, alpha=alpha).fit(views, labels)
    sides = {}
    for view, X in views.items():
        queries = rng.standard_normal((QUERIES, 4)) + 2
        graph = NeighborGraph(n_neighbors=6).fit(X)
        fitted, new = scikit_learn_spreading(graph, queries, labels[view], alpha)
        assert_allclose(model.sides_[view].vectors, fitted, atol=1e-6)
        assert_allclose(model.transform(queries, view), new, atol=1e-6)
        sides[view] = fitted
    expected = sides["text"] @ sides["image"].T
    assert_allclose(model.scores("text", "image"), expected, atol=1e-6)


@given(st.integers(0, 10_000), st.floats(0, 0.99))
def test_smoothing_is_the_closed_form(seed, alpha):
    rng = np.random.default_rng(seed)
    S = normalize(random_graph(rng, 25, isolated=2))
    block = rng.standard_normal((25, 3))
    smoothed = smooth_over_graph(S, block, alpha=alpha, tol=1e-10)
    assert_allclose(smoothed, smoother(S, alpha) @ block, atol=1e-9)


def test_an_item_that_no_label_reaches_has_no_distribution(problem):
    views, labels = problem
    W = {view: random_graph(np.random.default_rng(0), n, isolated=1)
         for view, n in SIZES.items()}  # fmt: skip
    labels["text"][0] = -1
    model = LabelSpreadingMatching(graph="precomputed").fit(W, labels)
    assert np.all(model.scores("text", "image")[0] == 0)
    assert np.isfinite(model.scores("text", "image")).all()


def test_correlation_centres_the_distributions(problem):
    views, labels = problem
    dot = LabelSpreadingMatching(n_neighbors=6).fit(views, labels)
    model = LabelSpreadingMatching(n_neighbors=6, score="correlation")
    model.fit(views, labels)
    a, b = (dot.sides_[view].vectors for view in ("text", "image"))
    expected = np.corrcoef(a, b)[: len(a), len(a) :]
    assert_allclose(model.scores("text", "image"), expected, atol=1e-10)
