"""Rows as given, and their distances: scikit-learn, the formulas, sparse, callable."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances

from brute_force import brute_distances
from linkspread.graphs.distances import (
    METRICS,
    ProductDistances,
    check_rows,
    pairwise_distances,
    resolve_metric,
)
from linkspread.ground.errors import GraphError, ViewError


def product_distances(Q, X, *, metric):
    return ProductDistances(X, metric=metric)(Q)


@pytest.fixture
def tables(rng):
    """Return queries and items with zero rows, constant columns and duplicates."""
    X = rng.random((40, 6)) * (rng.random((40, 6)) < 0.6)
    X[:, 2] = 0.25
    X[5] = X[6] = 0
    X[7] = X[8]
    Q = np.vstack([rng.random((9, 6)), np.zeros((1, 6)), X[7:8]])
    return Q, X


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.coo_matrix])
@pytest.mark.parametrize("metric", METRICS)
def test_distances_match_the_formulas(tables, metric, make):
    Q, X = tables
    found = pairwise_distances(make(Q), make(X), metric=metric)
    assert_allclose(found, brute_distances(metric, Q, X), atol=3e-8)
    assert_allclose(found**2, brute_distances(metric, Q, X) ** 2, atol=1e-14)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.slow
def test_single_precision_rows_are_compared_in_double(tables, metric, make):
    Q, X = (table.astype(np.float32) for table in tables)
    found = pairwise_distances(make(Q), make(X), metric=metric)
    assert found.dtype == np.float64
    assert_allclose(found**2, brute_distances(metric, Q, X) ** 2, atol=1e-14)


@pytest.mark.parametrize("metric", METRICS)
def test_duplicates_are_at_distance_zero_exactly(tables, metric):
    Q, X = tables
    found = pairwise_distances(Q, X, metric=metric)
    assert_array_equal(found[10, [7, 8]], [0, 0])


def test_a_zero_row_has_cosine_zero_with_everything():
    rows = np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 4.0]])
    found = pairwise_distances(rows, rows, metric="cosine")
    assert_allclose(found, np.sqrt([[2, 2, 2], [2, 2, 2], [2, 2, 0]]), rtol=1e-15)


@pytest.mark.parametrize("metric", ["cosine", "hellinger"])
@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e14])
def test_metrics_without_scale_survive_extreme_scales(metric, scale):
    rows = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    expected = pairwise_distances(rows, rows, metric=metric)
    scaled = pairwise_distances(rows * scale, rows * scale, metric=metric)
    assert_allclose(scaled, expected, atol=2e-3 if scale < 1e-300 else 1e-12)


def test_multiples_of_a_row_are_at_cosine_distance_zero():
    row = np.array([[0.1, 0.7, 0.3]], dtype=np.float32)
    found = pairwise_distances(row, np.float32(4) * row, metric="cosine")
    assert found[0, 0] < 1e-15


def test_a_function_of_two_blocks_is_a_metric(tables):
    Q, X = tables
    found = pairwise_distances(Q, X, metric=manhattan_distances)
    assert_allclose(found, cdist(Q, X, "cityblock"), rtol=1e-12)


@pytest.mark.parametrize("distances", [pairwise_distances, product_distances])
@pytest.mark.parametrize("metric", ["hellinger", "chi2"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_negative_entries_are_refused(distances, metric, make):
    bad = make(np.array([[1.0, -0.5], [0.0, 1.0]]))
    with pytest.raises(ViewError, match=rf"`X` must have no negative.*{metric}.*-0.5"):
        distances([[1.0, 1.0]], bad, metric=metric)
    with pytest.raises(ViewError, match="`Q` must have no negative"):
        distances(bad, [[1.0, 1.0]], metric=metric)


@pytest.mark.parametrize("distances", [pairwise_distances, product_distances])
@pytest.mark.parametrize("metric", ["euclidean", "chi2", manhattan_distances])
def test_tables_of_other_features_are_refused(distances, metric):
    with pytest.raises(ViewError, match="view 'Q' must have 2 columns.*got 3"):
        distances(np.ones((1, 3)), np.ones((4, 2)), metric=metric)


@pytest.mark.parametrize("metric", ["manhattan", None, 3])
def test_unknown_metrics_list_the_choices(metric):
    match = "`metric` must be one of chi2, cosine, euclidean, hellinger.*got"
    with pytest.raises(GraphError, match=match):
        resolve_metric(metric)


def test_a_metric_that_returns_another_shape_is_refused():
    with pytest.raises(
        GraphError, match=r"\(1, 2\) here, got shape \(1,\) from paired"
    ):

        def paired(Q, X):
            return np.zeros(len(Q))

        pairwise_distances([[1.0]], [[1.0], [2.0]], metric=paired)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_a_metric_that_returns_no_distances_is_refused(value):
    with pytest.raises(GraphError, match="finite and at least 0.*not a similarity"):
        pairwise_distances([[1.0]], [[1.0]], metric=lambda Q, X: np.array([[value]]))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "hellinger", "chi2"])
def test_distances_from_products_are_those_from_differences(metric, make, rng):
    Q, X = make(rng.random((5, 7))), make(rng.random((9, 7)))
    exact = pairwise_distances(Q, X, metric=metric)
    assert_allclose(product_distances(Q, X, metric=metric), exact, atol=1e-7)


def test_products_do_without_a_metric_of_ones_own(rng):
    X = rng.random((4, 3))

    def cityblock(Q, X):
        return np.abs(Q[:, None] - X).sum(axis=2)

    assert_allclose(product_distances(X, X, metric=cityblock), cityblock(X, X))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.int64, np.float64),
        (np.bool_, np.float64),
    ],
)
def test_only_single_precision_stays_single(make, dtype, expected):
    table = np.array([[1, 0], [0, 1], [1, 1]], dtype=dtype)
    rows = check_rows(make(table))
    assert rows.dtype == expected
    assert_array_equal(rows.toarray() if sp.issparse(rows) else rows, table)


def test_lists_and_data_frames_are_tables():
    table = [[1, 2], [3, 4]]
    assert_array_equal(check_rows(table), table)
    assert_array_equal(check_rows(pd.DataFrame(table)), table)


def test_no_copy_is_made_of_a_table_that_fits():
    table = np.zeros((3, 2), dtype=np.float32)
    assert np.shares_memory(check_rows(table), table)


def test_sparse_duplicates_are_summed_in_a_copy():
    table = sp.csr_array(([1.0, 2.0], ([0, 0]), [0, 2]), shape=(1, 2))
    assert_array_equal(check_rows(table).toarray(), [[3, 0]])
    assert_array_equal(table.data, [1, 2])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_nan_and_infinity_are_refused(value, make):
    with pytest.raises(ViewError, match="view 'X' must be finite"):
        check_rows(make(np.array([[1.0, 0.0], [value, 0.0]])))


@pytest.mark.parametrize("table", [[1.0, 2.0], 3.0, np.zeros((0, 2)), np.zeros((2, 0))])
def test_tables_without_items_or_features_are_refused(table):
    with pytest.raises(ViewError, match="view 'X' must .*rows and columns, got"):
        check_rows(table)


@pytest.mark.parametrize("table", [[["a", "b"]], [[1, 2], [3]], [[1j, 2]]])
def test_tables_that_are_no_numbers_are_refused(table):
    with pytest.raises(ViewError, match="view 'X' must h"):
        check_rows(table)


def test_another_number_of_features_is_refused():
    with pytest.raises(ViewError, match="view 'Q' must have 3 columns.*got 2"):
        check_rows([[1.0, 2.0]], name="Q", n_features=3)
