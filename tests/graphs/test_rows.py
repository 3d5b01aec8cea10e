"""Tables at the door: precision kept, bad ones refused in one sentence."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from linkspread.graphs.rows import check_rows
from linkspread.ground.errors import ViewError


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
    with pytest.raises(ViewError, match="`X` must be finite, got 1 entries.*Impute"):
        check_rows(make(np.array([[1.0, 0.0], [value, 0.0]])))


def test_entries_whose_squares_overflow_are_refused():
    with pytest.raises(ViewError, match=r"below 1e\+150 in size, got 1e\+151. Divide"):
        check_rows([[-1e151]])


@pytest.mark.parametrize("table", [[1.0, 2.0], 3.0, np.zeros((0, 2)), np.zeros((2, 0))])
def test_tables_without_items_or_features_are_refused(table):
    with pytest.raises(ViewError, match="`X` must be a table of at least.*got shape"):
        check_rows(table)


@pytest.mark.parametrize("table", [[["a", "b"]], [[1, 2], [3]], [[1j, 2]]])
def test_tables_that_are_no_numbers_are_refused(table):
    with pytest.raises(
        ViewError, match="`X` must be a table of real numbers, got list"
    ):
        check_rows(table)


def test_another_number_of_features_is_refused():
    with pytest.raises(ViewError, match="`Q` must have the 3 features.*got 2"):
        check_rows([[1.0, 2.0]], name="Q", n_features=3)
