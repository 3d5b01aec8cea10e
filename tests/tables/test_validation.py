"""Tables at the door: what is accepted, and one sentence for each mistake."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from linkspread.ground.errors import LinkspreadError, ViewError
from linkspread.tables.validation import (
    check_columns,
    check_table,
    check_varied,
    check_views,
    column_names,
    per_view,
)

TABLE = np.array([[1.0, 0.0], [0.0, 2.5], [3.0, 4.0]])
FRAME = pd.DataFrame(TABLE, columns=["a", "b"])


@pytest.mark.parametrize(
    "table",
    [
        TABLE,
        TABLE.tolist(),
        TABLE.astype(object),
        TABLE.astype(str),
        TABLE.astype(np.longdouble),
        np.asfortranarray(TABLE),
        sparse.csr_array(TABLE),
        sparse.coo_matrix(TABLE),
        sparse.dok_array(TABLE),
        FRAME,
        FRAME.convert_dtypes(),
        pl.DataFrame({"a": TABLE[:, 0], "b": TABLE[:, 1]}),
        pa.table({"a": TABLE[:, 0], "b": TABLE[:, 1]}),
    ],
    ids=lambda table: f"{type(table).__module__}.{type(table).__name__}",
)
def test_tables_of_any_kind_are_read_alike(table):
    X = check_table(table, view="text")
    assert X.dtype == np.float64
    assert isinstance(X, sparse.csr_array if sparse.issparse(table) else np.ndarray)
    np.testing.assert_array_equal(X.toarray() if sparse.issparse(X) else X, TABLE)


@pytest.mark.parametrize(
    "dtype, wanted",
    [(np.float32, np.float32), (np.int8, np.float64), (bool, np.float64)],
)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_single_precision_stays_and_all_else_becomes_double(make, dtype, wanted):
    assert check_table(make(TABLE.astype(dtype)), view="text").dtype == wanted


def test_a_good_array_is_not_copied():
    assert check_table(TABLE, view="text") is TABLE


@pytest.mark.parametrize(
    "table, message",
    [
        ([[0.0], [np.nan]], "must be finite, but 1 entries are NaN.*first in row 1"),
        ([[np.inf, 1], [0, -np.inf]], "must be finite, but 2 entries.*row 0"),
        (sparse.csr_array([[0, 0], [0, np.nan], [np.inf, 0]]), "2 entries.*row 1"),
        (FRAME.replace(2.5, np.nan), "column 'b' must hold finite numbers.*in row 1"),
        (
            pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}),
            "'a' .*finite.*row 1",
        ),
        (
            pl.DataFrame({"a": [1.0, None]}),
            "finite numbers, got nothing in row 1 and 0",
        ),
        ([1.0, 2.0], r"must be a table with rows and columns, got shape \(2,\). Resh"),
        (np.zeros((2, 2, 2)), r"must be a table.*got shape \(2, 2, 2\).*pictures"),
        (3, "must be a table with rows and columns, got int"),
        (None, "must be a table with rows and columns, got NoneType"),
        (
            np.zeros((0, 3)),
            r"got 0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1",
        ),
        (np.zeros((3, 0)), r"got 0 feature\(s\) \(shape=\(3, 0\)\).*Leave out"),
        (sparse.csr_array((0, 3)), r"got 0 sample\(s\)"),
        ([["a", "b"]], "must hold numbers, got <U1 .*could not convert.*features"),
        ([[{"a": 1}]], "must hold numbers, got object"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), "must hold numbers.*dates"),
        ([[1.0 + 2.0j]], "must hold real numbers. Complex data not supported"),
        (sparse.csr_array([[1j]]), "must hold real numbers. Complex data"),
        ([[1.0, 2.0], [3.0]], "must have rows of equal length.*rectangular table"),
        (pl.DataFrame({"w": ["x"]}), r"got no numeric column. It has 'w' \(String\)"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "names, but 'a' occurs 2 times"),
    ],
)
def test_tables_that_cannot_be_used_are_one_sentence(table, message):
    with pytest.raises(ViewError, match=f"^view 'text'.*{message}"):
        check_table(table, view="text")


def test_sums_that_overflow_are_no_infinities():
    largest = np.full((3, 2), 1e15)
    assert check_table(largest, view="text") is largest
    with pytest.raises(ViewError, match="'text'.*1e-15 and 1e\\+15.*got 1.8e\\+308"):
        check_table(np.full((3, 2), np.finfo(np.float64).max), view="text")
    with pytest.raises(ViewError, match="1 entries.*row 2"):
        check_table(np.vstack([largest[:2], [[1.0, np.nan]]]), view="text")


def test_the_number_of_columns_must_be_that_of_the_fit():
    assert check_table(TABLE, view="text", n_features=2) is TABLE
    message = "view 'text' must have 3 columns as in the fit, got 2. Compute the same"
    with pytest.raises(ViewError, match=message):
        check_table(TABLE, view="text", n_features=3)


@pytest.mark.parametrize(
    "views, message",
    [
        ({}, r"`views` must map names to tables, got the names \[\].*Write"),
        ({0: TABLE}, r"`views` must map names to tables, got the names \[0\]"),
        ({"text": TABLE, "image": [1.0]}, "view 'image' must be a table"),
        ([1.0, 2.0], "view 'X' must be a table"),
    ],
)
def test_wrong_views_are_one_sentence(views, message):
    with pytest.raises(ViewError, match=message):
        check_views(views)


@pytest.mark.parametrize(
    "ids, message",
    [
        (
            {"image": [1, 2, 3]},
            r"`ids` must be for the given views, \['text'\], got \['im",
        ),
        ({"text": [1, 2]}, "ids of view 'text' must be as many as its rows, 3, got 2"),
        ({"text": 5}, r"ids of view 'text' must be.*got shape \(\). Give one id per"),
        ({"text": [[1], [2], [3]]}, r"ids of view 'text' must be.*shape \(3, 1\)"),
        ([1, 2, 3], "`ids` must map names of views to ids, got list. Write {'text'"),
        (np.arange(3), "`ids` must map names of views to ids, got ndarray"),
    ],
)
def test_wrong_ids_are_one_sentence(ids, message):
    with pytest.raises(ViewError, match=message):
        check_views({"text": TABLE}, ids)


def test_ids_come_from_the_argument_then_the_index_then_the_rows():
    indexed = FRAME.set_axis(["x", "y", "z"])
    views = {"a": indexed, "b": indexed, "c": FRAME, "d": TABLE, "e": FRAME[::-1]}
    read = check_views(views, {"b": pd.Series([7, 8, 9])})
    items = read.ids
    assert list(read.tables) == list(views)
    assert items["a"].tolist() == ["x", "y", "z"]
    assert items["b"].tolist() == [7, 8, 9]
    assert items["c"] == items["d"] == 3
    assert items["e"].tolist() == [2, 1, 0]


def test_a_bare_table_is_one_view():
    read = check_views(TABLE)
    assert list(read.tables) == ["X"]
    assert read.ids == {"X": 3}
    assert list(check_views(sparse.dok_array(TABLE)).tables) == ["X"]  # it is a dict


def test_one_value_or_one_for_each_view():
    views = {"text": TABLE, "image": TABLE}
    assert per_view(3, views, name="n") == {"text": 3, "image": 3}
    given = {"image": 2, "text": 1}
    got = per_view(given, views, name="n")
    assert list(got.items()) == [("text", 1), ("image", 2)]
    assert got is not given  # later changes of the parameter must not reach the fit
    W = sparse.dok_array(TABLE)
    assert per_view(W, views, name="graph") == {"text": W, "image": W}


@pytest.mark.parametrize("given", [{"text": 1}, {"text": 1, "image": 1, "x": 1}, {}])
def test_values_by_view_name_every_view(given):
    message = r"`n` given by view must name each of \['text', 'image'\] and no other"
    with pytest.raises(LinkspreadError, match=f"{message}, got .*Correct the names"):
        per_view(given, {"text": TABLE, "image": TABLE}, name="n")


def test_names_of_columns():
    assert column_names(FRAME) == ("a", "b")
    assert column_names(pl.from_pandas(FRAME)) == ("a", "b")
    assert column_names(pa.table({"a": [1], "b": [2]})) == ("a", "b")
    assert column_names(pd.DataFrame(TABLE)) == ("0", "1")


def test_the_columns_of_a_fit_are_taken_by_name():
    for names in (("a", "b"), ("b", "a"), ("b",), None):
        wanted = FRAME[list(names or FRAME.columns)].to_numpy()
        np.testing.assert_array_equal(check_columns(FRAME, names, view="text"), wanted)
    assert check_columns(TABLE, ("a", "b"), view="text") is TABLE  # has no names
    message = (
        "view 'text' must have the columns of the fit, but lacks 'c', got 'a', 'b'"
    )
    with pytest.raises(ViewError, match=message):
        check_columns(FRAME, ("a", "c"), view="text")


@pytest.mark.parametrize(
    "columns, message",
    [
        (
            {"sound": ["a"]},
            r"`columns` must be for the given views, \['text', 'array'\]",
        ),
        (["a"], "`columns` must map names of views to columns, got list"),
        ({"text": "a"}, "`columns` of view 'text' must be a list of names, got 'a'"),
        ({"text": [0]}, r"must be a list of names, got \[0\]. Write"),
        ({"array": ["a"]}, "must be of a DataFrame.*got ndarray for view 'array'"),
        (
            {"text": ["c"]},
            "view 'text': the table must have the column 'c' for the fea",
        ),
        (
            {"text": ["-c"]},
            "must have the column 'c' for the features, and has 'a', 'b'",
        ),
        ({"text": ["a", "-b"]}, "all to take or all to leave out, got 'a' and '-b'"),
        ({"text": ["a", "a"]}, "must have different names, but 'a' occurs 2 times"),
        ({"text": ["-a", "-b"]}, "view 'text': .* got no numeric column"),
    ],
)
def test_wrong_choices_of_columns_are_one_sentence(columns, message):
    with pytest.raises(ViewError, match=message):
        check_views({"text": FRAME, "array": TABLE}, columns=columns)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_rows_that_are_all_alike_are_refused(make):
    message = "view 'image' must have rows that differ, got 4 rows that are all equal"
    for value in (0.0, 3.5):
        with pytest.raises(ViewError, match=message):
            check_varied(make(np.full((4, 3), value)), view="image")
    alike = np.ones((4, 3))
    for row in range(4):
        varied = alike.copy()
        varied[row, 2] = 2.0
        check_varied(make(varied), view="image")
    check_varied(make(alike[:1]), view="image")  # refused elsewhere, for being alone


@pytest.mark.parametrize("index", [10**6, -5, 2])
def test_indices_of_sparse_tables_lie_inside(index):
    X = sparse.csr_array(np.eye(3)[:, :2])
    X.indices[0] = index
    with pytest.raises(LinkspreadError, match="view 'text'.*indices inside its shape"):
        check_table(X, view="text")


@pytest.mark.parametrize("size", [1e38, 1e-20])
def test_entries_whose_squares_overflow_or_vanish_are_refused(size):
    X = np.array([[1.0, 2.0], [3.0, 5.0]]) * size
    with pytest.raises(ViewError, match="view 'text'.*between 1e-15 and 1e\\+15"):
        check_varied(check_table(X, view="text"), view="text")
