"""Normalisation: the dense formula, isolated items, and graphs that are none."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from linkspread.graphs import normalize, normalize_rows
from linkspread.graphs.normalize import check_graph
from linkspread.ground.errors import GraphError


@pytest.fixture
def W(rng):
    """Return a dense symmetric graph whose third item is isolated."""
    W = rng.random((9, 9)) * (rng.random((9, 9)) < 0.5)
    W = W + W.T
    W[2] = W[:, 2] = 0
    return W


@pytest.mark.parametrize(
    "make", [np.asarray, sp.csr_array, sp.csr_matrix, sp.coo_array, sp.lil_matrix]
)
@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-14), (np.float32, 1e-6)])
def test_normalization_matches_the_dense_formula(W, make, dtype, tol):
    D = W.sum(axis=1)
    expected = np.zeros_like(W)
    linked = np.ix_(D > 0, D > 0)
    roots = np.diag(D[D > 0] ** -0.5)
    expected[linked] = roots @ W[linked] @ roots
    S = normalize(make(W.astype(dtype)))
    assert_allclose(S.toarray(), expected, atol=tol)
    assert isinstance(S, sp.csr_array)
    assert S.dtype == dtype


def test_eigenvalues_lie_within_one(W):
    eigenvalues = np.linalg.eigvalsh(normalize(W).toarray())
    assert eigenvalues[-1] == pytest.approx(1)
    assert eigenvalues[0] > -1 - 1e-12


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e308])
def test_extreme_weights_do_not_overflow(scale):
    W = np.ones((3, 3)) - np.eye(3)
    assert_allclose(normalize(W * scale).toarray(), W / 2, rtol=1e-12)


def test_a_graph_without_edges_stays_empty():
    S = normalize(np.zeros((4, 4)))
    assert S.shape == (4, 4)
    assert S.nnz == 0


def test_rows_of_fitted_items_are_normalized_as_in_the_fit(W):
    rows = normalize_rows(W, W.sum(axis=1))
    assert_allclose(rows.toarray(), normalize(W).toarray(), atol=1e-15)


def test_rows_of_new_items_follow_the_formula(rng, W):
    rows = rng.random((5, 9)) * (rng.random((5, 9)) < 0.5)
    rows[3] = 0
    D = W.sum(axis=1)
    found = normalize_rows(sp.csr_array(rows), D).toarray()
    for q, row in enumerate(rows):
        for j, weight in enumerate(row):
            expected = weight / np.sqrt(row.sum() * D[j]) if weight and D[j] else 0
            assert found[q, j] == pytest.approx(expected, rel=1e-14)


def test_rows_keep_single_precision():
    rows = normalize_rows(np.ones((1, 2), dtype=np.float32), [1.0, 4.0])
    assert rows.dtype == np.float32
    assert_allclose(rows.toarray(), [[0.5**0.5, 0.5**0.5 / 2]], rtol=1e-6)


def test_rows_that_do_not_fit_are_refused():
    with pytest.raises(GraphError, match=r"one entry per column.*2 here, got.*\(3,\)"):
        normalize_rows(np.ones((1, 2)), np.ones(3))
    with pytest.raises(
        GraphError, match="`rows` must have no negative weights.*got -1"
    ):
        normalize_rows([[-1.0, 1.0]], [1.0, 1.0])
    with pytest.raises(GraphError, match="`degrees` must have no negative"):
        normalize_rows([[1.0, 1.0]], [np.nan, 1.0])


@pytest.mark.parametrize("dtype", [np.int64, np.bool_, np.float16])
def test_other_numbers_become_double(dtype):
    graph = check_graph(np.array([[1, 1], [1, 0]], dtype=dtype))
    assert graph.dtype == np.float64
    assert_array_equal(graph.toarray(), [[1, 1], [1, 0]])


def test_duplicates_are_summed_and_the_input_is_not_modified():
    W = sp.csr_array(([1.0, 2.0, 3.0, 0.0], [1, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
    graph = check_graph(W)
    assert_array_equal(graph.toarray(), [[0, 3], [3, 0]])
    assert graph.nnz == 2
    assert_array_equal(W.data, [1, 2, 3, 0])
    graph.data[:] = 7
    assert_array_equal(W.data, [1, 2, 3, 0])


def test_the_input_of_normalize_is_not_modified(W):
    given = sp.csr_array(W)
    before = given.copy()
    normalize(given)
    assert_array_equal(given.toarray(), before.toarray())


def test_asymmetry_by_rounding_is_removed():
    W = np.array([[0, 0.1 + 0.2], [0.3, 0]])
    assert W[0, 1] != W[1, 0]
    graph = check_graph(W).toarray()
    assert graph[0, 1] == graph[1, 0]


@pytest.mark.parametrize("other", [0.3001, 0.0])
def test_asymmetric_graphs_are_refused(other):
    with pytest.raises(GraphError, match=r"must be symmetric, got.*\(W \+ W.T\) / 2"):
        check_graph([[0, 0.3], [other, 0]])


@pytest.mark.parametrize(
    ("W", "match"),
    [
        (np.zeros((2, 3)), r"`graph` must be square, got shape \(2, 3\)"),
        (np.zeros(3), "`graph` must be a square matrix of real numbers, got ndarray"),
        ([["a", "b"], ["c", "d"]], "`graph` must be a square matrix of real numbers"),
        (np.eye(2) * 1j, "`graph` must be a square matrix of real numbers"),
        (-np.eye(5), "`graph` must have no negative weights.*got -1"),
        (np.diag([np.nan] * 5), "`graph` must have no negative weights, NaN.*got nan"),
        (np.diag([np.inf] * 5), "`graph` must have no negative weights, NaN.*to inf"),
    ],
)
def test_graphs_that_are_none_are_refused(W, match):
    with pytest.raises(GraphError, match=match):
        check_graph(W)
