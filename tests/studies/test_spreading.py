"""Label spreading and row-then-column propagation against dense closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.semi_supervised import LabelSpreading

from linkspread import Links
from linkspread.graphs import NeighborGraph, normalize, normalize_rows
from linkspread.ground.errors import LinkspreadError
from linkspread.links import as_dense
from linkspread.propagation.chebyshev import smooth_over_graph
from linkspread.studies.baselines import LabelSpreadingMatching, RowThenColumn
from reference import random_graph, smoother

WAY = {"source": "text", "target": "image"}

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
        other = "image" if view == "text" else "text"
        found = model.embed(queries, source=view, target=other)
        assert_allclose(found, new, atol=1e-6)
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


ALPHA = {"text": 0.3, "image": 0.7}


@pytest.fixture
def views(rng):
    return {
        "text": rng.standard_normal((40, 3)),
        "image": rng.standard_normal((30, 4)),
    }


def make_links(kind):
    rng = np.random.default_rng(1)
    labels = Links.from_labels(
        {"text": rng.integers(-1, 3, 40), "image": rng.integers(-1, 3, 30)}
    )
    i, j = np.divmod(rng.choice(1200, 150, replace=False), 30)
    weights = rng.choice([-1.0, 1.0, 0.5], 150)
    pairs = Links.from_pairs(
        np.column_stack([i, j, weights]), between=("text", "image")
    )
    return {"labels": labels, "pairs": pairs, "mixture": labels + pairs}[kind]


def fit(views, links, **parameters):
    model = RowThenColumn(n_neighbors=4, alpha=ALPHA, tol=1e-10, **parameters)
    return model.fit(views, links)


def closed_form(views, links, balance="auto"):
    """Return the dense smoothers, and the propagated links."""
    graphs = {v: NeighborGraph(n_neighbors=4).fit(X) for v, X in views.items()}
    P = {v: smoother(normalize(g.affinity_), ALPHA[v]) for v, g in graphs.items()}
    Z = as_dense(links.resolve({"text": 40, "image": 30}).between(
        "text", "image", balance=balance))  # fmt: skip
    return graphs, P["text"] @ Z @ P["image"]


@pytest.mark.parametrize("balance", ["auto", "literal", 0.3])
@pytest.mark.parametrize("kind", ["labels", "pairs", "mixture"])
def test_scores_are_the_closed_form(kind, balance, views):
    links = make_links(kind)
    model = fit(views, links, balance=balance)
    _, expected = closed_form(views, links, balance)
    assert_allclose(model.scores("text", "image"), expected, atol=1e-8)


@pytest.mark.parametrize("source", ["text", "image"])
def test_new_items_are_smoothed_over_their_neighbours(source, views, rng):
    links, target = make_links("pairs"), {"text": "image", "image": "text"}[source]
    model = fit(views, links)
    graphs, F = closed_form(views, links)
    rows = rng.standard_normal((5, views[source].shape[1]))
    degrees = graphs[source].affinity_.sum(axis=1)
    S = normalize_rows(graphs[source].extend(rows), degrees).toarray()
    expected = ALPHA[source] * S @ (F if source == "text" else F.T)
    assert_allclose(model.scores(source, target, rows=rows), expected, atol=1e-8)


def test_a_rank_keeps_the_best_directions(views):
    links = make_links("pairs")
    model = fit(views, links, rank=20)
    _, F = closed_form(views, links)
    singular = np.linalg.svd(F, compute_uv=False)
    missed = np.linalg.norm(model.scores("text", "image") - F)
    assert missed <= 1.05 * np.linalg.norm(singular[20:])


def test_without_spreading_new_items_learn_nothing(views):
    model = RowThenColumn(n_neighbors=4, alpha={"text": 0.0, "image": 0.5})
    model.fit(views, make_links("labels"))
    with pytest.raises(LinkspreadError, match="`alpha` of view 'text' must be above 0"):
        model.embed(views["text"], **WAY)
