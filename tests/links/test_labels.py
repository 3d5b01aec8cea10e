import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from linkspread.ground.errors import LinkError, LinkspreadError
from linkspread.links import LinkMatrix, Links
from linkspread.links.labels import label_factors, memberships_of, number_classes

# Class numbers have gaps, and -1 is unknown.
LABELS = st.lists(st.sampled_from([-1, 0, 3, 4, 17, 1000]), min_size=1, max_size=9)
KNOWN = LABELS.filter(lambda labels: max(labels) >= 0)


def must_cannot(left, right):
    """Return the literal links of labels, one by one."""
    Z = np.zeros((len(left), len(right)))
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            if a >= 0 and b >= 0:
                Z[i, j] = 1.0 if a == b else -1.0
    return Z


def literal(labels, left="a", right="b"):
    """Return the literal links of two views as an array."""
    links = Links.from_labels(labels)
    return links.between(left, right, balance="literal").toarray()


@given(KNOWN, LABELS)
def test_literal_links_are_those_of_the_definition(left, right):
    assert_array_equal(literal({"a": left, "b": right}), must_cannot(left, right))
    assert_array_equal(literal({"b": right, "a": left}), must_cannot(left, right))


@given(KNOWN)
def test_links_within_a_view_are_symmetric(labels):
    links = Links.from_labels({"a": labels})
    assert_array_equal(literal({"a": labels}, "a", "a"), must_cannot(labels, labels))
    Z = links.between("a", "a").toarray()
    assert_allclose(Z, Z.T, atol=1e-15)


def test_soft_links_are_those_of_the_equation(rng):
    P, Q = rng.random((5, 3)), rng.random((4, 3))
    expected = 2 * P @ Q.T - np.outer(P.sum(axis=1), Q.sum(axis=1))
    assert_allclose(literal({"a": P, "b": Q}), expected, atol=1e-14)


def test_a_number_weighs_the_cannot_part_of_soft_links(rng):
    P, Q = rng.random((5, 3)), rng.random((4, 3))
    must = P @ Q.T
    cannot = np.outer(P.sum(axis=1), Q.sum(axis=1)) - must
    Z = Links.from_labels({"a": P, "b": Q}).between("a", "b", balance=0.25)
    assert_allclose(Z.toarray(), must - 0.25 * cannot, atol=1e-14)


@pytest.mark.parametrize("balance", ["auto", "literal", 0.5])
def test_one_hot_memberships_are_labels(balance):
    hard = {"a": [0, 2, 1, -1, 2], "b": [1, 1, 0, 2]}
    soft = {v: np.eye(4)[labels][:, :3] for v, labels in hard.items()}
    expected = Links.from_labels(hard).between("a", "b", balance=balance).toarray()
    mixtures = [
        soft,
        {"a": hard["a"], "b": soft["b"]},
        {"a": soft["a"], "b": hard["b"]},
    ]
    mixtures.append({v: sparse.csr_matrix(P) for v, P in soft.items()})
    for labels in mixtures:
        Z = Links.from_labels(labels).between("a", "b", balance=balance)
        assert_allclose(Z.toarray(), expected, atol=1e-15)


def test_rows_of_zeros_are_unknown():
    Z = literal({"a": [[0.5, 0.5], [0, 0]], "b": [[1, 0], [0, 0], [0.25, 0]]})
    assert_array_equal(Z, [[0, 0, 0], [0, 0, 0]])
    Z = literal({"a": [[1, 0], [0, 0]], "b": [[1, 0], [0, 0], [0, 0.25]]})
    assert_array_equal(Z, [[1, 0, -0.25], [0, 0, 0]])


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series([2, -1, 5]),
        [2.0, -1.0, 5.0],
        np.array([2, -1, 5], dtype=np.int8),
        (2, -1, 5),
    ],
)
def test_whole_numbers_of_any_type_are_labels(labels):
    assert_array_equal(literal({"a": labels, "b": [5, 2]}), [[-1, 1], [0, 0], [1, -1]])


def test_booleans_are_two_classes():
    assert_array_equal(literal({"a": [True, False], "b": [1]}), [[1], [-1]])
    assert_array_equal(literal({"a": [True, False], "b": ["True"]}), [[1], [-1]])
    assert_array_equal(
        literal({"a": [True, False, None], "b": [True]}), [[1], [-1], [0]]
    )


TEXTS = ["boat", None, "cat"]


@pytest.mark.parametrize(
    "labels",
    [
        TEXTS,
        [" boat ", "", "cat"],
        ["boat", float("nan"), "cat"],
        ["boat", -1, "cat"],
        np.array(["boat", "", "cat"]),
        np.array([b"boat", b"", b"cat"]),
        np.array(["boat", np.nan, "cat"]),
        np.array(TEXTS, dtype=object),
        pd.Series(TEXTS),
        pd.Series(TEXTS, dtype="string"),
        pd.Series(TEXTS, dtype="category"),
        pl.Series(TEXTS),
        pl.Series(TEXTS, dtype=pl.Categorical),
        pa.chunked_array([TEXTS]),
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_texts_of_any_type_are_labels(labels):
    expected = [[1, -1, -1], [0, 0, 0], [-1, -1, 1]]
    for other in (["boat", "dog", "cat"], pd.Series(["boat", "dog", "cat"])):
        assert_array_equal(literal({"a": labels, "b": other}), expected)


def test_classes_are_numbered_over_all_views():
    """Numbered view by view, a boat became a cat where one view has no ant."""
    labels = {"a": ["boat", "cat"], "b": ["ant", "boat", "cat", None]}
    numbers = number_classes(labels)
    assert {view: own.tolist() for view, own in numbers.items()} == {
        "a": [1, 2],
        "b": [0, 1, 2, -1],
    }
    assert_array_equal(literal(labels), [[-1, 1, -1, 0], [-1, -1, 1, 0]])


@given(
    st.lists(st.sampled_from(["x", "y", "zz", "10", "9", None]), min_size=1, max_size=9)
)
def test_named_links_are_those_of_the_definition(right):
    left = ["y", None, "10", "zz", "9"]
    expected = [[0 if None in (a, b) else 1 if a == b else -1 for b in right]
                for a in left]  # fmt: skip
    assert_array_equal(literal({"a": left, "b": right}), expected)


@pytest.mark.parametrize(
    "labels",
    [
        ["3", "10", ""],
        ["3.0", "10.0", "-1.0"],
        [3.0, 10.0, np.nan],
        [3, 10, None],
        pd.Series([3, 10, None], dtype="Int64"),
        pl.Series([3, 10, None]),
        pd.Series([3, 10, None]).astype(str),
    ],
)
def test_a_number_and_its_text_are_one_class(labels):
    """A table that lacks some labels is read as 3.0 where another has 3."""
    for other in ([10, 3, -1], ["10", "3", "-1"], [10.0, 3.0, np.nan]):
        expected = [[-1, 1, 0], [1, -1, 0], [0, 0, 0]]
        assert_array_equal(literal({"a": labels, "b": other}), expected)


def test_long_class_numbers_keep_apart():
    """As floats these two are one."""
    long = 2**60
    labels = {"a": [long, long + 1, None], "b": [long + 1]}
    assert_array_equal(literal(labels), [[-1], [1], [0]])


def test_missing_labels_beside_memberships():
    assert_array_equal(literal({"a": np.eye(2), "b": ["1", None]}), [[-1, 0], [1, 0]])


def test_labels_are_kept_as_thin_factors():
    n_items = 200_000  # as an array Z would take 320 GB
    labels = np.arange(n_items) % 3
    Z = Links.from_labels({"a": labels, "b": labels}).between("a", "b")
    assert isinstance(Z, LinkMatrix)
    assert Z.shape == (n_items, n_items)
    assert Z.thin_width() == 3
    assert_allclose(Z @ np.ones(n_items), 0, atol=1e-9)


def test_a_view_without_any_label_has_no_links():
    assert_array_equal(literal({"a": [-1, -1], "b": [0, 1]}), np.zeros((2, 2)))


def test_inputs_are_not_modified():
    labels, P = np.array([0, -1, 1]), np.array([[0.5, 0.5], [0.0, 0.0]])
    copies = labels.copy(), P.copy()
    Links.from_labels({"a": labels, "b": P}).between("a", "b")
    assert_array_equal(labels, copies[0])
    assert_array_equal(P, copies[1])


def test_no_factors_where_no_set_has_both_views():
    sets = [memberships_of({"a": [0]}), memberships_of({"b": [0]})]
    assert label_factors(sets, ("a", "b"), "auto") is None


@pytest.mark.parametrize(
    ("labels", "rule", "got", "remedy"),
    [
        ([0, 1], "`labels` must map each view's name", r"\[0, 1\]", 'Write {"text"'),
        ({}, "`labels` must map each view's name", r"\{\}", 'Write {"text"'),
        ({"a": [0, -2, -7]}, "view 'a' must be texts", "got -7", "-1 for unknown"),
        ({"a": [0, np.inf]}, "view 'a' must be texts", "got inf", "-1 for unknown"),
        ({"a": [0, 0.5]}, "view 'a' must be texts", "got 0.5", "name of its class"),
        ({"a": [None, 0.5]}, "view 'a' must be texts", "got 0.5", "name of its class"),
        (
            {"a": np.array([("x",), None], dtype=object)},
            "view 'a' must be texts",
            r"got \('x',\)",
            "name of its class",
        ),
        ({"a": [[7], [0]]}, "view 'a' must be a flat list", "up to 7", "ravel"),
        (
            {"a": np.eye(2), "b": ["cat"]},
            "beside memberships of 2 classes must be below 2",
            "got 'cat' in view 'b'",
            "Add columns",
        ),
        (
            {"a": np.zeros((2, 2, 2))},
            "must be a flat list",
            r"\(2, 2, 2\)",
            "one label",
        ),
        ({"a": 3}, "must be a flat list", r"shape \(\)", "one label per item"),
        (
            {"a": [[1, 0], [1]]},
            "flat list or a table",
            "different lengths",
            "Give each",
        ),
        ({"a": [["x", "y"]]}, "memberships of view 'a' must be numbers", "'x'", "Give"),
        ({"a": [[1, -0.5]]}, "finite and at least 0", r"got -0\.5", "row of zeros"),
        ({"a": [[1, np.nan]]}, "finite and at least 0", "got nan", "row of zeros"),
        (
            {"a": sparse.csr_array([[1.0, -0.5]])},
            "finite and at least 0",
            r"got -0\.5",
            "row of zeros",
        ),
        (
            {"a": np.ones((2, 2)), "b": np.ones((2, 3))},
            "must have the same classes",
            r"\{'a': 2, 'b': 3\} columns",
            "Give each view a column for every class",
        ),
        (
            {"a": np.ones((2, 2)), "b": [0, 2]},
            "beside memberships of 2 classes must be below 2",
            "got '2'",
            "Add columns to the memberships",
        ),
        ({"a": [-1], "b": [-1]}, "at least one item", r"\['a', 'b'\]", "Label a few"),
        ({"a": np.zeros((3, 2))}, "at least one item", r"none of views", "Label a few"),
        ({"a": np.zeros((3, 0))}, "at least one item", r"none of views", "Label a few"),
    ],
)
def test_wrong_labels_get_a_sentence(labels, rule, got, remedy):
    with pytest.raises(LinkError, match=f"{rule}.*{got}.*{remedy}") as caught:
        Links.from_labels(labels)
    assert isinstance(caught.value, LinkspreadError)
    assert len(str(caught.value)) < 300


def test_labels_beside_memberships_reach_their_last_class():
    assert_array_equal(literal({"a": np.eye(2), "b": [1]}), [[-1], [1]])
