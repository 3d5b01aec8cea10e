"""Weights and widths: the formulas, the degenerate cases, the refusals."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import manhattan_distances

from brute_force import brute_distances
from linkspread.graphs import NeighborGraph
from linkspread.graphs.distances import METRICS, mean_distance, resolve_metric
from linkspread.graphs.knn import (
    WEIGHTS,
    check_bandwidth,
    exponents,
    lift_exponents,
    local_bandwidths,
)
from linkspread.ground.errors import GraphError, ViewError


def test_a_width_is_the_distance_of_the_seventh_neighbor():
    distances = np.sort(np.random.default_rng(1).random((4, 9)), axis=1)
    assert_array_equal(local_bandwidths(distances), distances[:, 6])
    assert_array_equal(local_bandwidths(distances[:, :5]), distances[:, 4])


def test_widths_of_zero_become_the_smallest_positive_one():
    distances = np.array([[0.0, 0.0], [0.0, 3.0], [1.0, 2.0]])
    assert_array_equal(local_bandwidths(distances), [2, 3, 2])
    assert_array_equal(local_bandwidths(distances, smallest=0.5), [0.5, 3, 2])
    assert_array_equal(local_bandwidths(np.zeros((3, 2))), [1, 1, 1])


def test_exponents_of_extreme_distances_are_not_nan():
    distances = np.array([[0.0, 1e150, 1e-170]])
    found = exponents(distances, 1e-170, 1e-170)
    assert_array_equal(found, [[0, np.inf, 1]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lifted_rows_keep_their_ratios_and_others_do_not_change(dtype):
    near = np.array([[0.0, 3.0], [10.0, 500.0]])
    assert_array_equal(lift_exponents(near, dtype), near)
    far = np.array([[5000.0, 5002.0], [1e9, 1e9 + 1]])
    weights = np.exp(-lift_exponents(far, dtype)).astype(dtype)
    assert_allclose(weights[:, 0], np.sqrt(np.finfo(dtype).tiny), rtol=1e-4)
    assert_allclose(weights[:, 1] / weights[:, 0], np.exp([-2, -1]), rtol=1e-5)


def test_rows_of_infinite_exponents_are_lifted_too():
    weights = np.exp(-lift_exponents(np.array([[np.inf, np.inf]]), np.float64))
    assert_allclose(weights, np.sqrt(np.finfo(np.float64).tiny))


CLOSED_FORMS = {
    "euclidean": lambda d: 1 / (1 + d),
    "cosine": lambda d: np.clip(1 - d**2 / 2, 0, None),
    "hellinger": lambda d: np.clip(1 - d**2, 0, None),
    "chi2": lambda d: np.clip(1 - d**2, 0, None),
    manhattan_distances: lambda d: 1 / (1 + d),
}


@pytest.mark.parametrize("metric", CLOSED_FORMS)
def test_similarities_are_those_of_the_metric(metric):
    distances = np.array([[0.0, 0.4, 1.0, 1.5, 2.0]])
    found = WEIGHTS["similarity"](distances, None, resolve_metric(metric))
    assert_allclose(found, CLOSED_FORMS[metric](distances), atol=1e-16)


@pytest.mark.parametrize("weights", ["heat", None, ["binary"]])
def test_unknown_weights_list_the_choices(weights):
    match = "`weights` must be one of 'binary', 'gaussian', 'similarity', got"
    with pytest.raises(GraphError, match=match):
        NeighborGraph(1, weights=weights).fit([[0.0], [1.0]])


@pytest.mark.parametrize(
    "bandwidth",
    [
        0,
        -1.0,
        np.inf,
        np.nan,
        "auto",
        None,
        True,
        "mean",
        "0 mean",
        "-1 mean",
        "x mean",
    ],
)
def test_bandwidths_that_are_no_width_are_refused(bandwidth):
    match = "`bandwidth` must be 'local', a positive number, or a multiple.*got"
    with pytest.raises(GraphError, match=match):
        check_bandwidth(bandwidth)


def test_a_width_in_mean_distances_is_that_width(rng):
    X = rng.random((30, 4))
    width = 0.5 * mean_distance(X)
    named = NeighborGraph(n_neighbors=5, bandwidth="0.5 mean").fit(X)
    given = NeighborGraph(n_neighbors=5, bandwidth=width).fit(X)
    assert named.bandwidths_ == given.bandwidths_ == width
    Q = rng.random((3, 4))
    assert np.array_equal(named.extend(Q).toarray(), given.extend(Q).toarray())


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("metric", [*METRICS, manhattan_distances])
def test_the_mean_distance_of_few_items_is_exact(rng, metric, make):
    X = rng.random((30, 4))
    pairs = brute_distances(metric, X, X)[np.triu_indices(30, k=1)]
    found = mean_distance(make(X), metric=metric)
    assert found == pytest.approx(pairs.mean(), rel=1e-7)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e14])
def test_the_mean_distance_of_items_nearly_alike_is_exact(rng, size):
    X = size * (1 + 1e-7 * rng.standard_normal((6, 4)))
    unscaled = size * pdist(X / size).mean()
    assert mean_distance(X) == pytest.approx(unscaled, rel=1e-6)
    assert mean_distance(np.full((6, 4), 0.1 * size)) == 0


def test_the_mean_distance_of_a_sample_is_near_and_repeatable(rng):
    X = rng.standard_normal((1500, 3))
    exact = pdist(X).mean()
    sampled = mean_distance(X)
    assert sampled == mean_distance(X) != exact
    assert sampled == pytest.approx(exact, rel=0.1)


def test_a_mean_distance_needs_two_items():
    with pytest.raises(ViewError, match="`X` must have at least 2 items.*got 1"):
        mean_distance([[1.0, 2.0]])
