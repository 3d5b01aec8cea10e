"""Labels that cannot be used get one sentence."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from linkspread.ground.errors import LinkspreadError
from linkspread.metrics.relevance import check_labels, relevant


def test_relevance_from_class_numbers():
    queries, items = check_labels([0, 1, -1], np.array([1, -1, 0], dtype=np.int8))
    table = relevant(queries, items)
    assert table.dtype == bool
    assert table.tolist() == [
        [False, False, True],
        [True, False, False],
        [False, False, False],
    ]


@pytest.mark.parametrize("sparse_queries", [False, True])
@pytest.mark.parametrize("sparse_items", [False, True])
def test_relevance_is_the_same_dense_and_sparse(rng, sparse_queries, sparse_items):
    queries, items = rng.random((6, 4)) < 0.3, rng.random((9, 4)) < 0.3
    expected = (queries[:, np.newaxis] & items).any(axis=2)
    given = check_labels(
        csr_array(queries) if sparse_queries else queries,
        csr_array(items) if sparse_items else items,
    )
    table = relevant(*given)
    assert type(table) is np.ndarray
    assert (table == expected).all()


@pytest.mark.parametrize("labels", [["a"], [0.5], [None], [np.nan]])
def test_labels_that_are_no_integers_are_refused(labels):
    with pytest.raises(LinkspreadError, match="`item_labels` must hold integers, got"):
        check_labels([0], labels)


@pytest.mark.parametrize("convert", [np.asarray, csr_array])
@pytest.mark.parametrize("value", [0.3, -1, 7])
def test_memberships_other_than_0_and_1_are_refused(convert, value):
    soft = convert(np.array([[0.0, value]]))
    with pytest.raises(LinkspreadError, match=f"memberships 0 or 1, got {value}. Ro"):
        check_labels(soft, [[0, 1]])


def test_memberships_with_nan_are_refused():
    with pytest.raises(LinkspreadError, match="memberships 0 or 1, got nan"):
        check_labels([[np.nan, 1]], [[0, 1]])


def test_memberships_that_are_no_numbers_are_refused():
    with pytest.raises(LinkspreadError, match="0 or 1, got values of type <U1"):
        check_labels([["a", "b"]], [[0, 1]])


@pytest.mark.parametrize("labels", [3, np.zeros((1, 1, 1), int)])
def test_labels_of_other_dimensions_are_refused(labels):
    with pytest.raises(LinkspreadError, match=r"`query_labels` must have shape \(n,\)"):
        check_labels(labels, [0])


@pytest.mark.parametrize("items", [[0, 1], np.eye(3)])
def test_labels_of_different_forms_are_refused(items):
    with pytest.raises(LinkspreadError, match=r"got shapes \(2, 2\) and"):
        check_labels(np.eye(2), items)
