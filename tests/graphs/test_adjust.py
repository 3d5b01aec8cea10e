"""Constrained weight adjustment against the paper's dense formula."""

import numpy as np
import pytest

from linkspread.graphs import adjust, adjust_weights, normalize
from linkspread.ground.errors import LinkError
from linkspread.links import Links
from reference import dense_filter, random_graph

N = 40


def dense_formula(W, Z, alpha, beta):
    """Steps (1) to (6) of the paper and eq. simadjust, on all pairs."""
    S = normalize(W)
    F = dense_filter(S, Z.toarray(), S, (alpha, alpha), beta)
    f = np.clip(F / F.max(), -1, 1)
    w = W.toarray() / max(W.max(), 1)
    adjusted = np.where(f >= 0, 1 - (1 - f) * (1 - w), (1 + f) * w)
    np.fill_diagonal(adjusted, 0)
    return adjusted


@pytest.fixture
def W(rng):
    return random_graph(rng, N, isolated=1) * 0.5


@pytest.fixture(params=["labels", "pairs"])
def links(request, rng):
    if request.param == "labels":
        return Links.from_labels({"text": rng.integers(-1, 3, N)})
    pairs = [(1, 2, 1.0), (3, 4, -1.0), (5, 9, 2.0), (1, 30, -0.5)]
    return Links.from_pairs(pairs, between=("text", "text")).resolve({"text": N})


@pytest.mark.parametrize("alpha, beta", [(0.0, 0.5), (0.1, 0.95), (0.6, 0.95)])
def test_on_edges_it_is_the_formula_restricted_to_those_edges(W, links, alpha, beta):
    got = adjust_weights(W, links, alpha=alpha, beta=beta, tol=1e-10)
    wanted = dense_formula(W, links.within("text"), alpha, beta)
    wanted[W.toarray() == 0] = 0
    np.testing.assert_allclose(got.toarray(), wanted, atol=1e-8)


def test_must_links_strengthen_and_cannot_links_weaken_edges(rng):
    labels = np.repeat([0, 1], N // 2)
    W = random_graph(rng, N, density=0.4) * 0.4
    adjusted = adjust_weights(W, Links.from_labels({"text": labels}))
    same = (labels[:, None] == labels[None, :]) & (W.toarray() > 0)
    apart = (labels[:, None] != labels[None, :]) & (W.toarray() > 0)
    change = adjusted.toarray() - W.toarray()
    assert np.all(change[same] > 0)
    assert np.all(change[apart] < 0)


def test_result_is_a_graph_and_inputs_are_kept(W, links):
    before = W.copy()
    adjusted = adjust_weights(W, links)
    assert (W != before).nnz == 0
    assert (adjusted != adjusted.T).nnz == 0
    assert adjusted.data.min() > 0
    assert adjusted.data.max() <= 1
    assert not adjusted.diagonal().any()
    assert adjusted[0].nnz == 0  # isolated items stay isolated


def test_a_cannot_link_removes_its_edge(rng):
    W = np.array([[0, 0.5, 0.5], [0.5, 0, 0], [0.5, 0, 0]])
    links = Links.from_pairs([(0, 1, 1), (0, 2, -1)], between=("a", "a"))
    adjusted = adjust_weights(W, links.resolve({"a": 3}), alpha=0)
    assert adjusted.nnz == 2
    assert adjusted[0, 1] == pytest.approx(1)


def test_weights_above_one_are_scaled_down(W, links):
    one = adjust_weights(W * (1 / W.max()), links, tol=1e-9)
    other = adjust_weights(W * (7 / W.max()), links, tol=1e-9)
    np.testing.assert_allclose(other.toarray(), one.toarray(), atol=1e-8)


def test_largest_entry_is_found_among_few_candidates(monkeypatch, rng, W):
    left, right = rng.standard_normal((N, 5)), rng.standard_normal((N, 5))
    F = adjust.Factored(left * rng.random((N, 1)), right)
    monkeypatch.setattr(adjust, "EDGE_BLOCK", 7)
    assert adjust._largest_entry(F, W) == pytest.approx(F.toarray().max())


def test_entries_at_edges_never_exceed_one(monkeypatch, W, links):
    monkeypatch.setattr(adjust, "MAX_SEARCHED", 1)
    assert adjust_weights(W, links).data.max() <= 1


def test_float32_stays(W, links):
    assert adjust_weights(W.astype(np.float32), links).dtype == np.float32


def test_errors(W):
    labels = Links.from_labels({"a": [0] * N, "b": [0, 1]})
    with pytest.raises(LinkError, match="links within one view.*Name the `view`"):
        adjust_weights(W, labels)
    with pytest.raises(LinkError, match="must be Links or a matrix, got NoneType"):
        adjust_weights(W, None)
    with pytest.raises(LinkError, match=r"among the 40 items.*got shape \(2, 2\)"):
        adjust_weights(W, labels, view="b")
