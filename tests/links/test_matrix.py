"""Links as matrices, and the balance of must- and cannot-links."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from linkspread.ground.errors import LinkError
from linkspread.links import LinkMatrix, Links, as_dense, as_link_matrix
from linkspread.links.matrix import balance_classes, balance_pairs, check_balance

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


# How many items of each class the left and the right view have.
COUNTS = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        *2 * [st.lists(st.integers(0, 40), min_size=n, max_size=n).filter(any)]
    )
)


def links_of_counts(left, right):
    """Return label links of views with so many items of each class."""
    labels = {
        view: np.repeat(np.arange(len(counts)), counts)
        for view, counts in (("a", left), ("b", right))
    }
    return Links.from_labels(labels), labels


def kinds(labels):
    """Return which pairs are must-links."""
    return labels["a"][:, None] == labels["b"][None, :]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([4, 4, 4], [4, 4, 4]),
        ([3, 3], [9, 9]),
        ([1, 3], [2, 2]),
        # The training set of the Wikipedia benchmark.
        ([138, 272, 244, 248, 202, 178, 186, 144, 214, 347], None),
    ],
)
def test_rows_and_columns_sum_to_zero_where_nothing_is_capped(left, right):
    links, _ = links_of_counts(left, right or left)
    Z = links.between("a", "b")
    assert_allclose(Z @ np.ones(Z.shape[1]), 0, atol=1e-11)
    assert_allclose(Z.T @ np.ones(Z.shape[0]), 0, atol=1e-11)
    assert Z.norm() > 1


def test_unknown_items_do_not_count():
    with_unknown = Links.from_labels({"a": [0, 1, -1, -1], "b": [-1, 0, 1]})
    without = Links.from_labels({"a": [0, 1], "b": [0, 1]})
    Z = with_unknown.between("a", "b").toarray()
    assert_array_equal(Z[:2, 1:], without.between("a", "b").toarray())
    assert_array_equal(Z[2:], 0)


def test_centring_is_the_closed_form():
    """The projection that removes the means of rows and columns, before the cap."""
    links, labels = links_of_counts([5, 5, 4], [6, 5, 5])
    n, m = len(labels["a"]), len(labels["b"])
    remove_left = np.eye(n) - np.ones((n, n)) / n
    remove_right = np.eye(m) - np.ones((m, m)) / m
    expected = remove_left @ kinds(labels).astype(float) @ remove_right
    assert_allclose(links.between("a", "b").toarray(), expected, atol=1e-14)


@given(COUNTS)
def test_a_cannot_link_never_becomes_a_must_link(counts):
    links, labels = links_of_counts(*counts)
    Z, must = links.between("a", "b").toarray(), kinds(labels)
    assert np.all(Z[must] >= 0)
    assert np.all(Z[~must] <= 0)
    assert np.any(Z != 0)


@given(COUNTS)
def test_must_links_are_not_lost(counts):
    links, labels = links_of_counts(*counts)
    Z, must = links.between("a", "b").toarray(), kinds(labels)
    assert not must.any() or Z[must].sum() > 0
    assert must.all() or Z[~must].sum() < 0


def test_rare_classes_are_capped_at_zero():
    core = balance_classes(np.array([1.0, 1.0, 98.0]), np.array([1.0, 1.0, 98.0]))
    assert core[0, 1] == 0
    assert core[0, 2] < 0
    assert core[0, 0] > 0


def test_one_class_on_one_side_still_gives_links():
    """Centring alone made every link 0 here: all rows of Z are alike."""
    links, labels = links_of_counts([5, 0], [3, 7])
    Z, must = links.between("a", "b").toarray(), kinds(labels)
    assert_array_equal(Z[must], 1)
    assert_allclose(Z[~must], -3 / 7)
    assert_allclose(Z.sum(), 0, atol=1e-12)
    assert_array_equal(links.between("b", "a").toarray(), Z.T)


@pytest.mark.parametrize("balance", ["auto", "literal", 0.5])
def test_a_single_class_gives_must_links_only(balance):
    links, _ = links_of_counts([2], [3])
    assert_array_equal(links.between("a", "b", balance=balance).toarray(), 1)


def test_no_shared_class_gives_cannot_links_only():
    links, _ = links_of_counts([2, 0], [0, 3])
    assert_array_equal(links.between("a", "b").toarray(), -np.ones((2, 3)))


@given(COUNTS, st.sampled_from([0, 0.25, 1, 3.0]))
def test_a_number_multiplies_the_cannot_links(counts, balance):
    links, labels = links_of_counts(*counts)
    Z = links.between("a", "b", balance=balance).toarray()
    assert_array_equal(Z, np.where(kinds(labels), 1.0, -balance))


def pair_array(**options):
    """Return three must-links and cannot-links of total weight 6, balanced."""
    Z = sparse.csr_array([[1.0, 2.0, 0.0], [-5.0, 0.0, -1.0]])
    return balance_pairs(Z, **options).toarray()


def test_auto_makes_totals_of_pairs_equal():
    assert_array_equal(pair_array(), [[1, 2, 0], [-2.5, 0, -0.5]])


def test_literal_leaves_pairs_unchanged():
    assert_array_equal(pair_array(balance="literal"), [[1, 2, 0], [-5, 0, -1]])


def test_a_number_multiplies_cannot_pairs():
    assert_array_equal(pair_array(balance=2.0), [[1, 2, 0], [-10, 0, -2]])


def test_zero_drops_cannot_pairs():
    Z = balance_pairs(sparse.csr_array([[1.0, -1.0]]), 0.0)
    assert (Z.nnz, Z.toarray().tolist()) == (1, [[1.0, 0.0]])


@pytest.mark.parametrize("row", [[1.0, 2.0], [-1.0, -2.0], [0.0, 0.0]])
def test_pairs_of_one_kind_need_no_balance(row):
    assert_array_equal(balance_pairs(sparse.csr_array([row])).toarray(), [row])


def test_balancing_pairs_leaves_the_input_alone():
    Z = sparse.csr_array([[1.0, -4.0]])
    balance_pairs(Z, 0.0)
    assert_array_equal(Z.toarray(), [[1, -4]])


@pytest.mark.parametrize(
    ("balance", "expected"),
    [
        ("auto", "auto"),
        ("literal", "literal"),
        (2, 2.0),
        (np.float32(0.5), 0.5),
        (Fraction(1, 2), 0.5),
    ],
)
def test_right_balances(balance, expected):
    assert check_balance(balance) == expected
    assert type(check_balance(balance)) is type(expected)


@pytest.mark.parametrize("balance", ["fair", -1, np.nan, np.inf, True, None, [1]])
def test_a_wrong_balance_gets_a_sentence(balance):
    links = Links.from_labels({"a": [0], "b": [0]})
    with pytest.raises(
        LinkError,
        match="`balance` must be 'auto', 'literal' or a number of at least 0, got "
        r".*(fair|-1|nan|inf|True|None|\[1\]).*0 uses must-links only",
    ):
        links.between("a", "b", balance=balance)
