"""Remembered searches give the graphs that fresh searches give, and search less."""

import numpy as np
import pytest
from scipy import sparse

from linkspread.graphs import NeighborGraph
from linkspread.graphs.neighbors import NeighborIndex, cache_tables, same_table

PARAMETERS = [
    {"n_neighbors": 5},
    {"n_neighbors": 12, "bandwidth": 0.7},
    {"n_neighbors": 5, "weights": "binary", "metric": "cosine"},
    {"n_neighbors": 3, "metric": "cosine"},
    {"n_neighbors": 39},
]


@pytest.fixture
def n_searches(monkeypatch):
    """Count the searches for the neighbours of all items."""
    calls = []
    search = NeighborIndex.search
    monkeypatch.setattr(
        NeighborIndex,
        "search",
        lambda self, *a, **k: calls.append(1) or search(self, *a, **k),
    )
    return lambda: len(calls)


@pytest.mark.parametrize("as_table", [np.asarray, sparse.csr_array])
def test_graphs_are_those_of_fresh_searches(rng, as_table):
    # Rounded, so that ties show whether wider lists keep the order.
    X = as_table(rng.integers(1, 4, (40, 3)).astype(float))
    fresh = [NeighborGraph(**parameters).fit(X).affinity_ for parameters in PARAMETERS]
    with cache_tables():
        for parameters, expected in zip(PARAMETERS, fresh, strict=True):
            graph = NeighborGraph(**parameters).fit(X)
            assert (graph.affinity_ != expected).nnz == 0


def test_a_table_is_searched_once_for_each_metric(rng, n_searches):
    X = rng.random((40, 3))
    with cache_tables():
        for parameters in PARAMETERS:
            NeighborGraph(**parameters).fit(X)
        assert n_searches() == 2
        NeighborGraph(n_neighbors=5).fit(X.copy())
        assert n_searches() == 3
    NeighborGraph(n_neighbors=5).fit(X)
    assert n_searches() == 4


def test_large_tables_are_not_searched_wider_than_asked(rng, monkeypatch):
    monkeypatch.setattr("linkspread.graphs.knn.WIDE_ITEMS", 10)
    widths = []
    search = NeighborIndex.search
    monkeypatch.setattr(
        NeighborIndex,
        "search",
        lambda self, *a, **k: widths.append(k["n_neighbors"]) or search(self, *a, **k),
    )
    X = rng.random((40, 3))
    with cache_tables():
        for k in (5, 3, 12):
            NeighborGraph(n_neighbors=k).fit(X)
    assert widths == [5, 12]


def test_views_of_one_array_are_distinguished(rng):
    X = rng.random((6, 4))
    assert same_table(X, X[:])
    assert not same_table(X[:3], X[3:])
    assert not same_table(X, X.copy())
    assert not same_table(X, sparse.csr_array(X))
    assert not same_table(X.T, X.reshape(4, 6))
    assert not same_table(X.view(np.int64), X)
    assert not same_table([[1.0]], [[1.0]])
