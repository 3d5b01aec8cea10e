"""Approximate neighbours: nearly all found, and a graph like any other."""

import io
import logging
import sys

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import manhattan_distances

from linkspread.graphs import (
    NeighborGraph,
    approximate,
    knn,
    knn_graph,
    nearest_neighbors,
)
from linkspread.graphs.approximate import Cells, approximate_neighbors
from linkspread.graphs.neighbors import NeighborIndex
from linkspread.ground.errors import GraphError, MissingDependencyError

SMALL = {"n_neighbors": 5, "method": "approximate"}


@pytest.fixture
def clustered(rng):
    """Return 1,500 items in ten clusters, with an odd number of features."""
    centres = 3 * rng.standard_normal((10, 7))
    return centres[rng.integers(0, 10, 1500)] + rng.standard_normal((1500, 7))


@pytest.fixture
def searched(monkeypatch):
    """Record the calls of the approximate search."""
    pytest.importorskip("faiss")
    calls = []

    def record(*args, **kwargs):
        calls.append(kwargs)
        return approximate_neighbors(*args, **kwargs)

    monkeypatch.setattr("linkspread.graphs.knn.approximate_neighbors", record)
    return calls


def hide_faiss(monkeypatch):
    """Make the import of faiss fail as if it were not installed."""
    monkeypatch.setitem(sys.modules, "faiss", None)


def share_found(ids, expected):
    """Return the share of expected neighbours that were found."""
    pairs = zip(ids, expected, strict=True)
    return np.mean([np.isin(true, row).mean() for row, true in pairs])


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "hellinger"])
@pytest.mark.slow
def test_nearly_all_neighbors_are_found(rng, metric):
    pytest.importorskip("faiss")
    centres = rng.random((50, 32), dtype=np.float32)
    X = centres[rng.integers(0, 50, 3000)] + 0.5 * rng.random((3000, 32), "float32")
    index = NeighborIndex(X, metric=metric)
    ids, distances, recall = approximate_neighbors(index, n_neighbors=15)
    expected, exact = nearest_neighbors(X, n_neighbors=15, metric=metric)
    found = share_found(ids, expected)
    assert found >= 0.95
    assert recall == pytest.approx(found, abs=0.02)
    assert_array_equal(distances >= exact, True)
    assert ids.dtype == np.int32
    assert (ids != np.arange(3000)[:, None]).all()
    assert (np.diff(distances, axis=1) >= 0).all()


@pytest.mark.usefixtures("searched")
def test_the_graph_is_a_graph(clustered):
    graph = NeighborGraph(**SMALL).fit(clustered.astype(np.float32))
    W = graph.affinity_
    assert 0.9 <= graph.recall_ <= 1
    assert W.dtype == np.float32 and W.has_canonical_format
    assert abs(W - W.T).max() == 0
    assert_array_equal(W.diagonal(), 0)
    assert W.data.min() > 0 and W.data.max() <= 1
    assert np.diff(W.indptr).min() >= 5
    assert W.nnz == pytest.approx(knn_graph(clustered, n_neighbors=5).nnz, rel=0.05)


def test_the_same_items_give_the_same_bits(clustered, searched):
    first = knn_graph(clustered, **SMALL)
    again = knn_graph(clustered, n_jobs=1, **SMALL)
    assert_array_equal(again.data, first.data)
    assert_array_equal(again.indices, first.indices)
    assert [call["n_jobs"] for call in searched] == [None, 1]


@pytest.mark.usefixtures("searched")
def test_the_scale_of_the_items_does_not_matter(clustered):
    expected = knn_graph(clustered, weights="binary", **SMALL)
    far = knn_graph(2.0**40 * clustered, weights="binary", **SMALL)
    assert_array_equal(far.indices, expected.indices)


def test_duplicates_are_neighbors_and_no_item_is_its_own(rng):
    pytest.importorskip("faiss")
    X = np.vstack([np.repeat(rng.random((4, 6)), 300, axis=0), rng.random((200, 6))])
    index = NeighborIndex(X)
    ids, distances, recall = approximate_neighbors(index, n_neighbors=10)
    assert (ids != np.arange(len(X))[:, None]).all()
    assert_array_equal(distances[:1200], 0)
    assert all(len(set(row)) == 10 for row in ids)
    assert recall >= 0.95


def test_identical_items_make_a_graph(searched):
    graph = NeighborGraph(**SMALL).fit(np.ones((1100, 3)))
    assert len(searched) == 1
    assert graph.recall_ == 1
    assert_array_equal(graph.affinity_.data, 1)


def test_rows_without_enough_candidates_are_searched_exactly(clustered, monkeypatch):
    pytest.importorskip("faiss")
    search = Cells.search

    def search_poorly(self, queries, **kwargs):
        ids, distances = search(self, queries, **kwargs)
        ids[::7, 2:], distances[::7, 2:] = -1, np.inf
        return ids, distances

    monkeypatch.setattr(Cells, "search", search_poorly)
    index = NeighborIndex(clustered)
    ids, distances, _ = approximate_neighbors(index, n_neighbors=5)
    expected, exact = nearest_neighbors(clustered, n_neighbors=5)
    assert_array_equal(ids[::7], expected[::7])
    assert_allclose(distances[::7], exact[::7])
    assert ids.min() >= 0


def test_almost_all_items_can_be_neighbors(clustered, searched):
    X = clustered[:1000]
    graph = NeighborGraph(n_neighbors=999, method="approximate", weights="binary")
    assert graph.fit(X).affinity_.nnz == 1000 * 999
    assert graph.recall_ == 1 and len(searched) == 1


def test_few_items_are_searched_exactly(clustered, searched):
    graph = NeighborGraph(**SMALL).fit(clustered[:300])
    assert graph.recall_ is None and not searched
    assert_array_equal(
        graph.affinity_.toarray(), knn_graph(clustered[:300], n_neighbors=5).toarray()
    )


@pytest.mark.usefixtures("searched")
def test_new_items_are_searched_exactly_before_and_after_storage(clustered, rng):
    graph = NeighborGraph(bandwidth=1.0, **SMALL).fit(clustered)
    Q = clustered[:9] + 0.1 * rng.standard_normal((9, 7))
    rows = graph.extend(Q)
    exact = NeighborGraph(n_neighbors=5, bandwidth=1.0).fit(clustered)
    assert_array_equal(rows.toarray(), exact.extend(Q).toarray())
    stored = io.BytesIO()
    joblib.dump(graph, stored)
    stored.seek(0)
    loaded = joblib.load(stored)
    assert_array_equal(loaded.extend(Q).toarray(), rows.toarray())
    assert loaded.recall_ == graph.recall_


def test_the_recall_is_logged(clustered, caplog, monkeypatch):
    pytest.importorskip("faiss")
    with caplog.at_level(logging.INFO, logger="linkspread"):
        NeighborGraph(verbose=True, **SMALL).fit(clustered)
    assert "1500 items, approximate; an exact search: about" in caplog.messages[0]
    assert "recall 0.9" in caplog.messages[-1] or "recall 1.0" in caplog.messages[-1]
    caplog.clear()
    monkeypatch.setattr(approximate, "POOR_RECALL", 1.1)
    NeighborGraph(**SMALL).fit(clustered)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize(
    ("X", "parameters", "match"),
    [
        (np.eye(8), {"method": "fast"}, "`method` must be one of .*got 'fast'"),
        (np.eye(8), {"metric": "chi2"}, "must be euclidean, cosine or .*got chi2"),
        (np.eye(8), {"metric": manhattan_distances}, "got manhattan_distances"),
        (sp.csr_array(np.eye(8)), {}, "`X` must be dense .*got a sparse .*Truncated"),
    ],
)
def test_what_faiss_cannot_search_is_refused(X, parameters, match):
    with pytest.raises(GraphError, match=match):
        knn_graph(X, **{"n_neighbors": 2, "method": "approximate", **parameters})


def test_without_faiss_there_is_a_sentence(monkeypatch, clustered):
    hide_faiss(monkeypatch)
    with pytest.raises(MissingDependencyError, match=r"pip install faiss-cpu"):
        knn_graph(clustered, **SMALL)


def test_auto_is_exact_where_that_is_fast(clustered, searched, monkeypatch):
    assert NeighborGraph(n_neighbors=5).fit(clustered).recall_ is None
    monkeypatch.setattr(knn, "SLOW_SECONDS", 0.0)
    assert NeighborGraph(n_neighbors=5).fit(clustered).recall_ is not None
    exact = NeighborGraph(n_neighbors=5, method="exact").fit(clustered)
    assert exact.recall_ is None
    assert len(searched) == 1


@pytest.mark.parametrize("obstacle", ["chi2", "sparse", "few", "no faiss"])
def test_auto_is_exact_where_nothing_else_is_possible(
    clustered, searched, monkeypatch, caplog, obstacle
):
    monkeypatch.setattr(knn, "SLOW_SECONDS", 0.0)
    X = {"chi2": np.abs(clustered), "sparse": sp.csr_array(clustered)}.get(obstacle)
    X = clustered if X is None else X
    X = X[:500] if obstacle == "few" else X
    if obstacle == "no faiss":
        hide_faiss(monkeypatch)
    metric = "chi2" if obstacle == "chi2" else "euclidean"
    with caplog.at_level(logging.INFO, logger="linkspread"):
        graph = NeighborGraph(n_neighbors=5, metric=metric).fit(X)
    assert graph.recall_ is None and not searched
    assert ("not installed" in caplog.text) == (obstacle == "no faiss")


def test_faiss_keeps_its_number_of_threads(clustered):
    faiss = pytest.importorskip("faiss")
    before = faiss.omp_get_max_threads()
    knn_graph(clustered, n_jobs=1, **SMALL)
    assert faiss.omp_get_max_threads() == before
