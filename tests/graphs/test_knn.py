"""The neighbour graph: the formula, its invariants, and items that come later."""

import logging
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.neighbors import kneighbors_graph

from brute_force import brute_distances
from linkspread.graphs import NeighborGraph, knn_graph
from linkspread.graphs.distances import METRICS, mean_distance
from linkspread.graphs.knn import knn_cost
from linkspread.graphs.neighbors import NeighborIndex
from linkspread.ground.errors import GraphError, ViewError


def widths_of(distances, bandwidth):
    """Return the widths by definition, from sorted distances."""
    if bandwidth != "local":
        return np.full(len(distances), bandwidth)
    widths = distances[:, min(7, distances.shape[1]) - 1]
    smallest = widths[widths > 0].min() if (widths > 0).any() else 1.0
    return np.where(widths > 0, widths, smallest)


def brute_graph(X, *, n_neighbors, metric="euclidean", bandwidth="local"):
    """Return the dense Gaussian graph of the definition."""
    distances = brute_distances(metric, X, X)
    np.fill_diagonal(distances, np.inf)
    ids = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
    widths = widths_of(np.take_along_axis(distances, ids, 1), bandwidth)
    W = np.zeros(distances.shape)
    for i, row in enumerate(ids):
        W[i, row] = np.exp(-(distances[i, row] ** 2) / (widths[i] * widths[row]))
    return np.maximum(W, W.T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("bandwidth", ["local", 0.3])
@pytest.mark.parametrize("metric", [*METRICS, manhattan_distances])
def test_the_graph_is_the_formula(rng, metric, bandwidth, make, dtype):
    X = rng.random((60, 8)).astype(dtype)
    parameters = {"n_neighbors": 9, "metric": metric, "bandwidth": bandwidth}
    W = knn_graph(make(X), **parameters)
    tol = {"rtol": 1e-5, "atol": 1e-6} if dtype == np.float32 else {"rtol": 1e-10}
    assert_allclose(W.toarray(), brute_graph(X, **parameters), **tol)
    assert W.dtype == dtype


def test_binary_graphs_are_those_of_scikit_learn(rng):
    X = rng.standard_normal((80, 5))
    W = knn_graph(X, n_neighbors=6, weights="binary")
    A = kneighbors_graph(X, 6)
    assert_array_equal(W.toarray(), A.maximum(A.T).toarray())


def test_similarity_graphs_of_cosine_hold_cosines(rng):
    X = rng.standard_normal((40, 3))
    W = knn_graph(X, n_neighbors=30, metric="cosine", weights="similarity").toarray()
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert_allclose(W[W > 0], (unit @ unit.T)[W > 0], rtol=1e-9)
    assert (W == 0).sum() > 40  # negative cosines, besides the diagonal


def test_the_graph_is_canonical(rng):
    W = knn_graph(rng.random((50, 4)).astype(np.float32), n_neighbors=5)
    assert isinstance(W, sp.csr_array)
    assert W.has_canonical_format
    assert (W.indices.dtype, W.indptr.dtype) == (np.int32, np.int32)
    assert W.data.min() > 0


@given(
    seed=st.integers(0, 2**32 - 1),
    n_items=st.integers(3, 40),
    metric=st.sampled_from([*METRICS]),
    data=st.data(),
)
def test_a_permutation_of_the_items_permutes_the_graph(seed, n_items, metric, data):
    X = np.random.default_rng(seed).random((n_items, 4))
    order = data.draw(st.permutations(range(n_items)))
    n_neighbors = data.draw(st.integers(1, n_items - 1))
    W = knn_graph(X, n_neighbors=n_neighbors, metric=metric)
    permuted = knn_graph(X[order], n_neighbors=n_neighbors, metric=metric)
    assert_allclose(permuted.toarray(), W.toarray()[np.ix_(order, order)], rtol=1e-10)


@given(
    X=arrays(np.float64, (21, 3), elements=st.integers(0, 3).map(float)),
    n_neighbors=st.integers(1, 20),
    metric=st.sampled_from([*METRICS]),
    weights=st.sampled_from(["gaussian", "binary"]),
)
def test_graphs_of_data_full_of_ties_are_graphs(X, n_neighbors, metric, weights):
    before = X.copy()
    W = knn_graph(X, n_neighbors=n_neighbors, metric=metric, weights=weights)
    assert_array_equal(X, before)
    assert_array_equal(W.toarray(), W.T.toarray())
    assert_array_equal(W.diagonal(), 0)
    assert np.isfinite(W.data).all() and (W.data > 0).all() and (W.data <= 1).all()
    assert np.diff(W.indptr).min() >= n_neighbors


def test_identical_items_are_joined_with_weight_one():
    graph = NeighborGraph(n_neighbors=8).fit(np.ones((12, 3)))
    assert_array_equal(graph.bandwidths_, np.ones(12))
    assert_array_equal(graph.affinity_.data, 1)


def test_duplicates_take_the_smallest_positive_width(rng):
    X = np.vstack([np.zeros((9, 2)), rng.standard_normal((20, 2)) + 3])
    graph = NeighborGraph(n_neighbors=7).fit(X)
    assert_array_equal(graph.bandwidths_[:9], np.full(9, graph.bandwidths_[9:].min()))
    expected = brute_graph(X, n_neighbors=7)
    assert_allclose(graph.affinity_.toarray()[9:, 9:], expected[9:, 9:], rtol=1e-10)


def test_weights_that_underflow_leave_an_isolated_item():
    X = np.array([[0.0], [1.0], [1000.0]])
    W = knn_graph(X, n_neighbors=1, bandwidth=1.0)
    assert_array_equal(np.diff(W.indptr), [1, 1, 0])
    single = knn_graph(X.astype(np.float32) / 70, n_neighbors=1, bandwidth=1.0)
    assert_array_equal(np.diff(single.indptr), [1, 1, 0])


def brute_extension(X, Q, *, n_neighbors, metric, bandwidth):
    """Return the dense affinities of new items by definition."""
    fitted = brute_distances(metric, X, X)
    np.fill_diagonal(fitted, np.inf)
    fitted = widths_of(np.sort(fitted, axis=1)[:, :n_neighbors], bandwidth)
    distances = brute_distances(metric, Q, X)
    ids = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
    own = widths_of(np.take_along_axis(distances, ids, 1), bandwidth)
    rows = np.zeros(distances.shape)
    for q, row in enumerate(ids):
        rows[q, row] = np.exp(-(distances[q, row] ** 2) / (own[q] * fitted[row]))
    return rows


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("bandwidth", ["local", 0.3])
@pytest.mark.parametrize("metric", [*METRICS, manhattan_distances])
def test_extension_is_the_formula(rng, metric, bandwidth, make):
    X, Q = rng.random((50, 6)), rng.random((11, 6))
    parameters = {"n_neighbors": 8, "metric": metric, "bandwidth": bandwidth}
    rows = NeighborGraph(**parameters).fit(make(X)).extend(make(Q))
    assert rows.shape == (11, 50)
    expected = brute_extension(X, Q, **parameters)
    assert_allclose(rows.toarray(), expected, rtol=1e-10)


@pytest.mark.parametrize("weights", ["gaussian", "binary", "similarity"])
def test_a_query_that_is_a_fitted_item_finds_it_with_weight_one(rng, weights):
    X = rng.standard_normal((30, 4)).astype(np.float32)
    rows = NeighborGraph(n_neighbors=5, weights=weights).fit(X).extend(X[3:5])
    assert rows.dtype == np.float32
    assert (rows[0, 3], rows[1, 4]) == (1, 1)
    assert_array_equal(np.diff(rows.indptr), [5, 5])


def test_a_query_beside_seven_duplicates_has_a_width(rng):
    X = np.vstack([np.zeros((8, 2)), rng.standard_normal((20, 2)) + 1])
    graph = NeighborGraph(n_neighbors=9).fit(X)
    row = graph.extend(np.zeros((1, 2))).toarray()[0]
    assert_array_equal(row[:8], 1)
    # Its own width would be 0, so that the smallest width of the fit stands in.
    nearest = 8 + np.linalg.norm(X[8:], axis=1).argmin()
    widths = graph.bandwidths_.min() * graph.bandwidths_[nearest]
    assert row[nearest] == pytest.approx(np.exp(-(X[nearest] ** 2).sum() / widths))


def test_weights_of_zero_are_not_stored(rng):
    X = rng.standard_normal((30, 3))
    graph = NeighborGraph(n_neighbors=25, metric="cosine", weights="similarity").fit(X)
    rows = graph.extend(rng.standard_normal((5, 3)))
    assert 0 < rows.nnz < 5 * 25
    assert rows.data.min() > 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bandwidth", ["local", 0.5])
def test_a_query_far_away_still_ranks_its_neighbors(rng, dtype, bandwidth):
    X = rng.random((40, 2)).astype(dtype)
    graph = NeighborGraph(n_neighbors=10, bandwidth=bandwidth).fit(X)
    rows = graph.extend(np.array([[1e4, 0.0], [0.0, 1e9]], dtype=dtype)).toarray()
    assert np.isfinite(rows).all()
    assert_allclose(rows.max(axis=1), np.sqrt(np.finfo(dtype).tiny), rtol=1e-3)
    if bandwidth != "local":
        assert rows[0].argmax() == X[:, 0].argmax()


def test_a_new_item_does_not_change_the_fit(rng):
    X = rng.random((30, 3))
    graph = NeighborGraph(n_neighbors=4).fit(X)
    before = graph.affinity_.toarray()
    one_by_one = sp.vstack([graph.extend(row[None]) for row in X[:5] + 0.1])
    assert_allclose(one_by_one.toarray(), graph.extend(X[:5] + 0.1).toarray())
    assert_array_equal(graph.affinity_.toarray(), before)


def test_a_graph_fitted_before_is_taken_up_without_a_search(rng, monkeypatch):
    X, Q = rng.random((30, 3)), rng.random((4, 3))
    graph = NeighborGraph(n_neighbors=4).fit(X)
    with monkeypatch.context() as patch:
        patch.delattr(NeighborIndex, "search")
        resumed = clone(graph).resume(X, graph.affinity_, graph.bandwidths_)
    assert_array_equal(resumed.extend(Q).toarray(), graph.extend(Q).toarray())
    assert resumed.affinity_ is graph.affinity_
    assert resumed.n_features_in_ == 3


def test_extension_checks_its_queries(rng):
    graph = NeighborGraph(n_neighbors=2)
    with pytest.raises(NotFittedError, match="is not fitted"):
        graph.extend([[1.0]])
    graph.fit(rng.random((5, 3)))
    with pytest.raises(ViewError, match="view 'Q' must have 3 columns.*got 2"):
        graph.extend([[1.0, 2.0]])
    with pytest.raises(ViewError, match="view 'Q' must be finite"):
        graph.extend([[1.0, 2.0, np.nan]])


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"n_neighbors": 5}, "smaller than the number of items, got n_neighbors=5"),
        ({"metric": "taxi"}, "`metric` must be one of chi2"),
        ({"bandwidth": -1}, "`bandwidth` must be 'local', a positive number.*got -1"),
        ({"weights": "cosine"}, "`weights` must be one of 'binary'"),
        ({"n_jobs": 0}, "`n_jobs` must be None or an integer other than 0"),
    ],
)
def test_wrong_parameters_are_refused(parameters, match):
    with pytest.raises(GraphError, match=match):
        knn_graph(np.eye(5), **{"n_neighbors": 2, **parameters})


def test_a_bandwidth_from_the_mean_distance_fits(rng):
    X = rng.random((40, 5))
    width = 0.5 * mean_distance(X)
    graph = NeighborGraph(n_neighbors=6, bandwidth=width).fit(X)
    assert graph.bandwidths_ == width
    expected = brute_graph(X, n_neighbors=6, bandwidth=width)
    assert_allclose(graph.affinity_.toarray(), expected, rtol=1e-10)


@pytest.mark.parametrize("shape", [(4000, 16, 10), (3000, 300, 5), (6000, 8, 60)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_memory_is_as_announced(rng, shape, dtype):
    n_items, n_features, n_neighbors = shape
    X = rng.standard_normal((n_items, n_features)).astype(dtype)
    _, announced = knn_cost(n_items, n_features, n_neighbors)
    tracemalloc.start()
    knn_graph(X, n_neighbors=n_neighbors)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert announced / 2 < peak < announced * 2


def test_the_time_grows_with_the_square_of_the_items():
    seconds = [knn_cost(n_items, 64, 10)[0] for n_items in (1000, 2000)]
    assert seconds[1] == pytest.approx(4 * seconds[0])


def test_a_fit_says_beforehand_what_it_will_take(rng, caplog):
    with caplog.at_level(logging.INFO, logger="linkspread"):
        NeighborGraph(n_neighbors=3, verbose=True).fit(rng.random((20, 2)))
    assert caplog.messages[0].startswith("neighbours of 20 items: about 0.0 s and")
    assert "neighbours: done" in caplog.messages[1]
