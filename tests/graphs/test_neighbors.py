"""Neighbours: equal to brute force in float64, whatever the tiles."""

import threading
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_info

from brute_force import brute_distances, brute_neighbors, separated
from linkspread.graphs import nearest_neighbors, neighbors
from linkspread.graphs.distances import METRICS
from linkspread.graphs.neighbors import NeighborIndex, ProductTiles, RefinedTiles
from linkspread.ground.cores import count_threads
from linkspread.ground.errors import GraphError, ViewError

MAKERS = {"dense": np.asarray, "sparse": sp.csr_array}


@pytest.fixture
def small_tiles(monkeypatch):
    """Make tiles so small that a hundred items cross several of them."""
    monkeypatch.setattr(neighbors, "QUERY_TILE", 17)
    monkeypatch.setattr(neighbors, "ITEM_TILE", 13)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", MAKERS)
@pytest.mark.parametrize("metric", [*METRICS, euclidean_distances])
def test_neighbors_equal_brute_force(rng, metric, storage, dtype):
    X = (rng.random((101, 12)) * (rng.random((101, 12)) < 0.7)).astype(dtype)
    Q = rng.random((30, 12)).astype(dtype)
    make = MAKERS[storage]
    ids, distances = nearest_neighbors(make(X), n_neighbors=7, metric=metric)
    expected = brute_distances(metric, X, X)
    assert_array_equal(ids, brute_neighbors(expected, 7, exclude_self=True)[0])
    assert_allclose(distances**2, np.take_along_axis(expected, ids, 1) ** 2, atol=2e-7)
    ids, distances = nearest_neighbors(make(X), make(Q), n_neighbors=7, metric=metric)
    assert_array_equal(ids, brute_neighbors(brute_distances(metric, Q, X), 7)[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbors_equal_those_of_scikit_learn(rng, dtype):
    # Larger than one tile in both directions, and no multiple of either.
    X = rng.standard_normal((2500, 20)).astype(dtype)
    ids, distances = nearest_neighbors(X, n_neighbors=15)
    reference = NearestNeighbors(n_neighbors=15, algorithm="kd_tree").fit(X)
    expected = reference.kneighbors()
    assert_array_equal(ids, expected[1])
    assert_allclose(distances, expected[0], rtol=1e-6)
    assert (ids.dtype, distances.dtype) == (np.int32, np.float64)


def prove_everything(tiles, queries, worst):
    """Stand in for the bound: claim that no dropped item can be nearer."""
    return np.full(len(worst), np.inf)


@pytest.mark.usefixtures("small_tiles")
def test_the_certificate_repairs_single_precision(rng, monkeypatch):
    X = separated(rng)
    expected = brute_neighbors(brute_distances("euclidean", X, X), 5, exclude_self=True)
    assert_array_equal(nearest_neighbors(X, n_neighbors=5)[0], expected[0])
    monkeypatch.setattr(ProductTiles, "nearest_dropped", prove_everything)
    unrepaired = nearest_neighbors(X, n_neighbors=5)[0]
    assert np.mean(unrepaired == expected[0]) < 0.9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("spread", [0.0, 1e3, 1e6, 1e12])
@pytest.mark.slow
def test_the_bound_holds_for_every_item_that_could_be_dropped(rng, dtype, spread):
    X = rng.standard_normal((80, 30)) + spread * rng.integers(-1, 2, (80, 1))
    tiles = ProductTiles(X, METRICS["euclidean"], dtype)
    queries = tiles.queries(X, np.empty(0))
    keys = tiles.tile(queries, slice(0, 80), np.empty(6400, dtype)) + tiles.offsets
    distances = brute_distances("euclidean", X, X) / tiles.scale
    # Whatever the worst kept key is, no item of that key or a larger one may be nearer.
    slack = [
        distances[:, j] - tiles.nearest_dropped(queries, keys[:, j].astype(float))
        for j in range(80)
    ]
    assert np.min(slack) >= 0
    for j in range(80):
        within = queries._replace(reach=distances[:, j] * tiles.scale)
        assert (keys[:, j] <= tiles.largest_keys(within)[:, 0]).all()
    if spread == 0:
        # A bound of 0 would hold as well, and prove nothing.
        assert np.median(slack) < 1e-4 * np.median(distances)


@pytest.mark.usefixtures("small_tiles")
def test_ranking_again_repairs_the_order_of_the_candidates(rng, monkeypatch):
    # All items are candidates here, so that only their order can be wrong.
    X = separated(rng, n_items=10)
    expected = brute_neighbors(brute_distances("euclidean", X, X), 4, exclude_self=True)
    assert_array_equal(nearest_neighbors(X, n_neighbors=4)[0], expected[0])

    def trust_keys(tiles, queries, keys, ids, n_neighbors):
        order = np.argsort(keys, axis=1)[:, :n_neighbors]
        ids = np.take_along_axis(ids, order, 1)
        return ids, np.zeros(ids.shape), np.ones(len(ids), dtype=bool)

    monkeypatch.setattr(ProductTiles, "rank", trust_keys)
    assert np.mean(nearest_neighbors(X, n_neighbors=4)[0] == expected[0]) < 0.9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_large_offset_is_exact_and_still_proven_in_single_precision(rng, dtype):
    X = (rng.standard_normal((300, 16)) + 1e4).astype(dtype)
    index = NeighborIndex(X)
    ids, _ = index.search(n_neighbors=10)
    expected = brute_distances("euclidean", X, X)
    assert_array_equal(ids, brute_neighbors(expected, 10, exclude_self=True)[0])
    assert list(index._made) == [np.float32]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_ordinary_data_needs_only_the_first_stage(rng, metric):
    index = NeighborIndex(rng.standard_normal((700, 64)), metric=metric)
    index.search(n_neighbors=9)
    assert list(index._made) == [np.float32]


def test_items_that_are_all_candidates_need_no_later_stage():
    # Ties everywhere, but nothing was dropped that could have been nearer.
    index = NeighborIndex(np.ones((5, 2)))
    ids, _ = index.search([[0.0, 0.0]], n_neighbors=3)
    assert_array_equal(ids, [[0, 1, 2]])
    assert list(index._made) == [np.float32]


def test_duplicates_need_the_last_stage_and_keep_their_order(rng):
    X = np.repeat(rng.standard_normal((3, 4)), 40, axis=0)
    index = NeighborIndex(X)
    ids, distances = index.search(n_neighbors=5)
    assert_array_equal(distances, np.zeros((120, 5)))
    expected = brute_neighbors(brute_distances("euclidean", X, X), 5, exclude_self=True)
    assert_array_equal(ids, expected[0])
    assert list(index._made) == [np.float32, np.float64]


def test_the_last_stage_compares_only_items_within_reach(rng):
    X = rng.standard_normal((200, 6))
    _, distances = nearest_neighbors(X, n_neighbors=5)
    tiles = RefinedTiles(ProductTiles(X, METRICS["euclidean"], np.float64))
    sums = tiles.tile(
        tiles.queries(X, distances[:, -1]), slice(0, 200), np.empty(40_000)
    )
    # Each item, its neighbours, and nobody else.
    assert_array_equal(np.isfinite(sums).sum(axis=1), 6)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("storage", MAKERS)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("value", [0.0, 2.0])
def test_identical_items_are_each_others_neighbors(metric, storage, value):
    X = MAKERS[storage](np.full((40, 3), value))
    ids, distances = nearest_neighbors(X, n_neighbors=4, metric=metric)
    assert_array_equal(ids[:3], [[1, 2, 3, 4], [0, 2, 3, 4], [0, 1, 3, 4]])
    apart = np.sqrt(2) if metric == "cosine" and value == 0 else 0
    assert_allclose(distances, apart, rtol=1e-15)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("metric", METRICS)
def test_every_other_item_can_be_a_neighbor(rng, metric):
    X = rng.random((30, 4))
    ids, _ = nearest_neighbors(X, n_neighbors=29, metric=metric)
    expected = brute_neighbors(brute_distances(metric, X, X), 29, exclude_self=True)
    assert_array_equal(ids, expected[0])
    ids, _ = nearest_neighbors(X, X[:3], n_neighbors=30, metric=metric)
    assert_array_equal(ids, brute_neighbors(brute_distances(metric, X[:3], X), 30)[0])


@pytest.mark.parametrize("far", [1e6, 1e12])
def test_queries_far_outside_are_answered(rng, far):
    X = rng.standard_normal((50, 3))
    # So far out that rounding ties all items: then the smallest numbers win.
    ids, distances = nearest_neighbors(X, [[far, 0, 0]], n_neighbors=3)
    expected = np.sqrt(((X - [far, 0, 0]) ** 2).sum(axis=1))
    assert_allclose(distances[0], np.sort(expected)[:3], rtol=1e-14)
    if far > 1e50:
        assert_array_equal(ids, [[0, 1, 2]])


@pytest.mark.parametrize("scale", [1e-140, 1e-30, 1e14])
def test_scale_changes_no_neighbor(rng, scale):
    X = rng.standard_normal((60, 4))
    expected, distances = nearest_neighbors(X, n_neighbors=5)
    ids, scaled = nearest_neighbors(X * scale, n_neighbors=5)
    assert_array_equal(ids, expected)
    assert_allclose(scaled, distances * scale, rtol=1e-12)


def test_storage_of_queries_may_differ_from_that_of_items(rng):
    X, Q = rng.random((20, 5)), rng.random((6, 5))
    expected = nearest_neighbors(X, Q, n_neighbors=3)[0]
    for items, queries in [(sp.csr_array(X), Q), (X, sp.csr_array(Q))]:
        ids = nearest_neighbors(items, queries, n_neighbors=3)[0]
        assert_array_equal(ids, expected)


grids = arrays(np.float64, (23, 3), elements=st.integers(0, 4).map(float))


@given(X=grids, order=st.permutations(range(23)), metric=st.sampled_from([*METRICS]))
@pytest.mark.slow
def test_distances_follow_a_permutation_of_the_items(X, order, metric):
    before = X.copy()
    _, distances = nearest_neighbors(X, n_neighbors=6, metric=metric)
    _, permuted = nearest_neighbors(X[order], n_neighbors=6, metric=metric)
    assert_allclose(permuted, distances[order], atol=1e-14)
    assert_array_equal(X, before)
    expected = brute_neighbors(brute_distances(metric, X, X), 6, exclude_self=True)[1]
    assert_allclose(distances**2, expected**2, atol=1e-14)


@given(X=grids)
@pytest.mark.slow
def test_ties_go_to_the_smaller_index(X):
    ids, _ = nearest_neighbors(X, n_neighbors=6)
    # Squared distances of whole numbers are exact, so these ties are true ties.
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    assert_array_equal(ids, brute_neighbors(squared, 6, exclude_self=True)[0])


def test_the_number_of_threads_changes_no_bit(rng):
    X = rng.standard_normal((1500, 9))
    results = [nearest_neighbors(X, n_neighbors=4, n_jobs=n) for n in (None, 1, 2, 3)]
    for ids, distances in results[1:]:
        assert_array_equal(ids, results[0][0])
        assert_array_equal(distances, results[0][1])


def blas_threads():
    """Return the number of threads of every BLAS in this process."""
    return [pool["num_threads"] for pool in threadpool_info() if "blas" in str(pool)]


def test_searches_at_once_leave_blas_as_it_was(rng):
    X = rng.standard_normal((3000, 8))
    before = blas_threads()
    searches = [
        threading.Thread(target=nearest_neighbors, args=(X,), kwargs={"n_neighbors": k})
        for k in (3, 4, 5)
    ]
    for search in searches:
        search.start()
    for search in searches:
        search.join()
    assert blas_threads() == before


def test_no_square_array_is_made(rng):
    X = rng.standard_normal((6000, 4))
    tracemalloc.start()
    nearest_neighbors(X, n_neighbors=3, n_jobs=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6000**2  # a square array of single bytes


@pytest.mark.parametrize("n_neighbors", [0, -3, 2.5, True, "3", None])
def test_a_number_of_neighbors_that_is_none_is_refused(n_neighbors):
    with pytest.raises(GraphError, match="positive integer, got.*Use"):
        nearest_neighbors(np.eye(4), n_neighbors=n_neighbors)


def test_more_neighbors_than_items_are_refused():
    match = "smaller than the number of items, got n_neighbors=4 with 4.*n_neighbors=3"
    with pytest.raises(GraphError, match=match):
        nearest_neighbors(np.eye(4), n_neighbors=4)
    match = "at most the number of items, got n_neighbors=5 with 4.*n_neighbors=4 or"
    with pytest.raises(GraphError, match=match):
        nearest_neighbors(np.eye(4), np.eye(4), n_neighbors=5)
    with pytest.raises(GraphError, match="with 1 items. Add items"):
        nearest_neighbors([[1.0]], n_neighbors=1)


def test_queries_with_other_features_are_refused():
    with pytest.raises(ViewError, match="view 'Q' must have 4 columns.*got 2"):
        nearest_neighbors(np.eye(4), np.eye(2), n_neighbors=1)


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all"])
def test_a_number_of_threads_that_is_none_is_refused(n_jobs):
    with pytest.raises(GraphError, match="`n_jobs` must be None or an integer"):
        nearest_neighbors(np.eye(4), n_neighbors=1, n_jobs=n_jobs)


def test_negative_numbers_of_threads_count_from_all():
    assert count_threads(-1) == count_threads(None)
    assert count_threads(-2) == max(count_threads(None) - 1, 1)
    assert count_threads(-1000) == 1
    assert count_threads(7) == 7
