import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from linkspread.links import LinkMatrix, Links, as_dense, as_link_matrix

LABELS = Links.from_labels({"a": [0, 1, 2, -1, 0, 1, 1], "b": [2, 1, 0, 0, -1]})
PAIRS = Links.from_pairs(
    [(0, 0, 2.0), (0, 3, -1.5), (5, 3, -0.5), (6, 3, 4.0)], between=("a", "b")
)
ITEMS = {"a": 7, "b": 5}


def soft_and_wide():
    """Return parts with dense memberships and a core that is not square."""
    rng = np.random.default_rng(1)
    pairs = sparse.random_array((7, 5), density=0.2, rng=rng, format="csr")
    return LinkMatrix(
        rng.random((7, 2)), rng.standard_normal((2, 3)), rng.random((5, 3)), pairs
    )


def two_label_sets():
    """Return two sets of soft memberships, each with its own classes."""
    rng = np.random.default_rng(2)
    first = Links.from_labels({"a": rng.random((7, 2)), "b": rng.random((5, 2))})
    second = Links.from_labels({"a": rng.random((7, 3)), "b": rng.random((5, 3))})
    return (first + second).between("a", "b")


MATRICES = {
    "labels": LABELS.between("a", "b"),
    "labels and pairs": (LABELS + PAIRS).resolve(ITEMS).between("a", "b"),
    "pairs": as_link_matrix(PAIRS.resolve(ITEMS).between("a", "b")),
    "nothing": as_link_matrix(np.zeros((7, 5))),
    "soft and wide": soft_and_wide(),
    "two label sets": two_label_sets(),
}


@pytest.fixture(params=MATRICES)
def matrix(request):
    """Return links in parts, and with rows and columns exchanged."""
    return MATRICES[request.param]


def whole(matrix):
    """Return Z by its definition."""
    return (
        as_dense(matrix.left) @ matrix.core @ as_dense(matrix.right).T
        + matrix.pairs.toarray()
    )


def test_toarray_is_the_definition(matrix):
    assert matrix.shape == (7, 5)
    assert_allclose(matrix.toarray(), whole(matrix), atol=1e-14)
    assert type(matrix.toarray()) is np.ndarray


def test_products_are_those_of_the_array(matrix, rng):
    block = rng.standard_normal((5, 3))
    for right in (block, block[:, 0]):
        product = matrix @ right
        assert_allclose(product, whole(matrix) @ right, atol=1e-13)
        assert type(product) is np.ndarray


def test_the_transpose_is_that_of_the_array(matrix, rng):
    assert matrix.T.shape == (5, 7)
    assert_allclose(matrix.T.toarray(), whole(matrix).T, atol=1e-14)
    block = rng.standard_normal((7, 2))
    assert_allclose(matrix.T @ block, whole(matrix).T @ block, atol=1e-13)


@pytest.mark.parametrize("turned", [False, True])
def test_thin_factors_give_the_whole(matrix, turned):
    matrix = matrix.T if turned else matrix
    left, core, right = matrix.thin()
    product = as_dense(left) @ core @ as_dense(right).T
    assert_allclose(product, whole(matrix), atol=1e-14)
    assert (left.shape[1], right.shape[1]) == core.shape
    assert matrix.thin_width() == max(core.shape)


def test_thin_takes_the_side_with_fewer_linked_items():
    Z = sparse.csr_array([[1.0, 0], [2.0, 0], [-3.0, 0]])
    assert as_link_matrix(Z).thin_width() == 1
    assert as_link_matrix(Z.T).thin_width() == 1
    assert as_link_matrix(np.eye(3)).thin_width() == 3


def test_the_norm_is_that_of_the_array(matrix):
    assert_allclose(matrix.norm(), np.linalg.norm(whole(matrix)), atol=1e-12)


def test_the_norm_of_what_cancels_is_not_nan():
    Z = LinkMatrix(np.eye(2), np.eye(2), np.eye(2), sparse.csr_array(-np.eye(2)))
    assert_allclose(Z.norm(), 0, atol=1e-7)


def test_a_link_matrix_stays_what_it_is(matrix):
    assert as_link_matrix(matrix) is matrix


@pytest.mark.parametrize(
    "form", [np.array, np.ndarray.tolist, sparse.csr_array, sparse.coo_matrix]
)
def test_every_form_is_the_same_links(form):
    Z = np.array([[1, 0, -2], [0, 0, 3]])
    assert_array_equal(as_link_matrix(form(Z)).toarray(), Z)
    assert_array_equal(as_dense(form(Z)), Z)
    assert as_dense(form(Z)).dtype == np.float64
    assert as_link_matrix(form(Z)).norm() == np.sqrt(14)


def test_links_in_parts_become_dense(matrix):
    assert_allclose(as_dense(matrix), whole(matrix), atol=1e-14)


def test_the_repr_shows_no_array():
    text = repr(MATRICES["labels and pairs"])
    assert text == "LinkMatrix(7 x 5, 3 classes, 4 pairs)"


def test_links_can_be_compared_and_kept_in_sets():
    """Comparing the arrays of two matrices raised numpy's error on truth values."""
    one, other = LABELS.between("a", "b"), LABELS.between("a", "b")
    assert one != other
    assert len({one, other, one}) == 2
