"""Row-then-column propagation against dense inverses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from linkspread import Links
from linkspread.graphs import NeighborGraph, normalize, normalize_rows
from linkspread.ground.errors import LinkspreadError
from linkspread.links import as_dense
from linkspread.studies.baselines import RowThenColumn
from reference import smoother

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
    with pytest.raises(LinkspreadError, match="new items of view 'text' learn from"):
        model.transform(views["text"], "text")
