import numpy as np
import pytest
from numpy.testing import assert_array_equal

from linkspread.datasets import make_neighbor_graph
from linkspread.ground.errors import GraphError


def edges(W):
    return np.repeat(np.arange(W.shape[0]), np.diff(W.indptr)), W.indices


@pytest.fixture(scope="module")
def labels():
    return np.random.default_rng(0).integers(10, size=5000)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("n_neighbors", [1, 7, 20])
def test_graph_is_symmetric_without_loops(labels, shuffled, n_neighbors):
    W = make_neighbor_graph(labels, n_neighbors=n_neighbors, shuffled=shuffled)
    assert (W != W.T).nnz == 0
    assert not W.diagonal().any()
    assert W.has_canonical_format
    assert W.dtype == np.float32
    assert W.data.min() > 0 and W.data.max() <= 1
    assert W.nnz / len(labels) == pytest.approx(n_neighbors, rel=0.02)


@pytest.mark.parametrize("purity", [0.0, 0.5, 0.9, 1.0])
def test_purity_is_the_fraction_within_classes(labels, purity):
    rows, columns = edges(make_neighbor_graph(labels, purity=purity))
    assert np.mean(labels[rows] == labels[columns]) == pytest.approx(purity, abs=0.01)


def test_no_item_is_isolated(labels):
    assert np.diff(make_neighbor_graph(labels).indptr).min() > 5


def test_sorted_items_have_near_neighbours_shuffled_ones_far():
    ordered = np.sort(np.random.default_rng(0).integers(10, size=20_000))
    near, far = (
        np.abs(np.subtract(*edges(make_neighbor_graph(ordered, shuffled=s))))
        for s in (False, True)
    )
    assert np.median(near) < 25 < 300 < np.median(far)


def test_same_seed_same_bits(labels):
    first, again = (make_neighbor_graph(labels, random_state=5) for _ in range(2))
    other = make_neighbor_graph(labels, random_state=6)
    assert_array_equal(first.indices, again.indices)
    assert_array_equal(first.data, again.data)
    assert (first != other).nnz > 0


def test_one_class_keeps_every_edge_within():
    W = make_neighbor_graph(np.zeros(100, dtype=int), n_neighbors=4, purity=0.0)
    assert W.nnz == pytest.approx(400, rel=0.1)


def test_classes_smaller_than_the_neighbourhood():
    W = make_neighbor_graph([0, 0, 1, 1, 2], n_neighbors=20)
    assert (W != W.T).nnz == 0
    assert not W.diagonal().any()


def test_labels_are_not_modified(labels):
    before = labels.copy()
    make_neighbor_graph(labels, shuffled=True)
    assert_array_equal(labels, before)


@pytest.mark.parametrize(
    ("labels", "parameters", "message"),
    [
        ([0], {}, r"at least two items, got shape \(1,\)"),
        ([[0, 1]], {}, r"one-dimensional.*got shape \(1, 2\)"),
        ([0, 1], {"n_neighbors": 0}, "`n_neighbors` must be.*got 0"),
        ([0, 1], {"purity": 1.5}, "`purity` must lie.*got 1.5"),
    ],
)
def test_bad_input_is_refused(labels, parameters, message):
    with pytest.raises(GraphError, match=message):
        make_neighbor_graph(labels, **parameters)
