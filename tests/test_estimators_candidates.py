"""The kernels that are tried: fewer for a large view, and none beside a given graph."""

import numpy as np
import pytest

from linkspread import Links, LinkSpreading
from linkspread.estimators import candidates
from linkspread.estimators.candidates import (
    Material,
    label_candidates,
    other_metric,
    pair_candidates,
)
from linkspread.fitting import kernel_choice, view_kernels
from linkspread.graphs import NeighborGraph, normalize

N = 60
LIMITED = (candidates, kernel_choice, view_kernels)


def limit(monkeypatch, n_items):
    """Let views of more items than this be large."""
    for module in LIMITED:
        monkeypatch.setattr(module, "DENSE_ITEMS", n_items)
    monkeypatch.setattr(kernel_choice, "N_LANDMARKS", 20)


def made_of(metric="euclidean", n=N):
    """Return what the kernels of a view without histograms are made of."""
    X = np.random.default_rng(0).standard_normal((n, 4))
    graph = NeighborGraph(n_neighbors=5, metric=metric).fit(X)
    S = normalize(graph.affinity_)
    return Material(view="text", X=X, graph=graph, S=S, metric=metric)


def match_candidates(material):
    return pair_candidates(material, centred=False, diffusing=False)


def many_pair_candidates(material):
    return pair_candidates(material, centred=True, diffusing=False)


def few_pair_candidates(material):
    return pair_candidates(material, centred=True, diffusing=True)


LEFT_OUT = {
    label_candidates: {
        "denser graph, far",
        "graph, cosine",
        "affinity 0.5, cosine",
        "affinity 1, cosine",
    },
    match_candidates: {"denser graph"},
    many_pair_candidates: {"denser graph"},
    few_pair_candidates: {"denser graph"},
}


@pytest.mark.parametrize("tried", LEFT_OUT)
def test_a_large_view_is_spared_further_graphs_and_distances(tried, monkeypatch):
    material = made_of()
    limit(monkeypatch, N)  # the largest that is not large
    small = dict(tried(material))
    limit(monkeypatch, N - 1)
    large = dict(tried(material))
    assert small.keys() - large.keys() == LEFT_OUT[tried]
    assert list(large) == [name for name in small if name in large]  # in one order
    assert len(large) >= 4
    assert {kernel.n_items for kernel in large.values()} == {N}
    # None of them holds a matrix of all pairs of items.
    plain = [getattr(kernel, "kernel", kernel) for kernel in large.values()]
    arrays = [
        own for kernel in plain for own in vars(kernel).values()
        if isinstance(own, np.ndarray)
    ]  # fmt: skip
    assert arrays and all(own.shape != (N, N) for own in arrays)


def test_a_large_and_a_small_view_share_the_kernels_that_both_have(monkeypatch, rng):
    limit(monkeypatch, 50)
    views = {v: rng.standard_normal((n, 4)) for v, n in (("text", 60), ("image", 40))}
    pairs = [(k, k, 1.0 if k % 3 else -1.0) for k in range(30)]
    links = Links.from_pairs(pairs, between=("text", "image"))
    model = LinkSpreading(n_neighbors=5, objective="auto").fit(views, links)
    assert "components" in model.choice_ and "denser" not in model.choice_
    labels = {v: np.arange(len(X)) % 3 for v, X in views.items()}
    model.fit(views, Links.from_labels(labels))
    text, image = sorted(model.choice_.split(". "), key=lambda told: "image" in told)
    assert "text" in text and "image" in image
    assert not any(name in text for name in LEFT_OUT[label_candidates])


@pytest.mark.parametrize(
    ("metric", "histograms", "expected"),
    [
        ("euclidean", False, "cosine"),
        ("cosine", False, "euclidean"),
        ("euclidean", True, "hellinger"),
        ("hellinger", True, "euclidean"),
        (len, False, None),
    ],
)
def test_the_second_distance_suits_the_features(metric, histograms, expected, rng):
    X = rng.standard_normal((5, 3))
    assert other_metric(np.abs(X) if histograms else X, metric) == expected
