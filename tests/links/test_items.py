import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from linkspread.ground.errors import LinkError, UnknownItemError, ViewError
from linkspread.links import Items
from linkspread.links.pairs import as_ids

NUMBERS = st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=12, unique=True)
TEXTS = st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=12, unique=True)


@given(NUMBERS, st.data())
def test_positions_are_those_of_a_dictionary(ids, data):
    wanted = data.draw(st.lists(st.sampled_from(ids), max_size=12))
    expected = [ids.index(i) for i in wanted]
    items = Items(ids, view="text")
    assert_array_equal(items.positions(wanted), expected)
    assert_array_equal(items.positions([str(i) for i in wanted]), expected)
    as_strings = Items([str(i) for i in ids], view="text")
    assert_array_equal(as_strings.positions(wanted), expected)


@given(TEXTS, st.data())
def test_strings_are_found_exactly(ids, data):
    # NumPy's strings cannot end in a null character.
    ids = list(dict.fromkeys(i.rstrip("\0") for i in ids))
    wanted = data.draw(st.lists(st.sampled_from(ids), max_size=12))
    positions = Items(ids, view="text").positions(wanted)
    assert_array_equal(positions, [ids.index(i) for i in wanted])


@pytest.mark.parametrize(
    "ids",
    [
        ["t1", "t2", "t3"],
        np.array(["t1", "t2", "t3"]),
        np.array(["t1", "t2", "t3"], dtype=object),
        np.array(["t1", "t2", "t3"], dtype=np.dtypes.StringDType()),
        pd.Series(["t1", "t2", "t3"]),
        pd.Series(["t1", "t2", "t3"]).astype("category"),
        pd.Index(["t1", "t2", "t3"]),
    ],
    ids=["list", "str", "object", "variable", "series", "category", "index"],
)
def test_ids_of_any_form(ids):
    items = Items(ids, view="text")
    assert items.n_items == 3
    assert items.has_ids
    assert items.ids.tolist() == ["t1", "t2", "t3"]
    assert items.positions(["t3", "t1"]).tolist() == [2, 0]


def test_a_number_of_items_has_positions_as_ids():
    items = Items(np.int64(4), view="text")
    assert not items.has_ids
    assert items.ids.tolist() == [0, 1, 2, 3]
    # Counted once: pages look up the ids of single items.
    assert items.ids is items.ids
    for wanted in ([3, 0], ["3", "0"], [3.0, 0.0], pd.Series([3, 0], dtype="Int64")):
        assert items.positions(wanted).tolist() == [3, 0]


@pytest.mark.parametrize("wanted", [[-1], [4], ["x"], ["-1"], ["4"], ["1.0"], [""]])
def test_positions_outside_are_unknown(wanted):
    with pytest.raises(UnknownItemError, match="Its 4 ids are 0, 1, 2 and 1 more"):
        Items(4, view="text").positions(wanted)


def test_a_word_is_not_the_id_minus_one():
    """Words that are no numbers used to stand for -1, which is an id here."""
    items = Items([-1, 5], view="text")
    assert items.positions(["-1", "5"]).tolist() == [0, 1]
    with pytest.raises(UnknownItemError, match="not have '--1', '1-', 'word'"):
        items.positions(["word", "--1", "1-"])


def test_numbers_too_large_for_an_integer():
    large = [2**63 + 1, 2**64 - 1, 7]
    items = Items(np.array(large, dtype=np.uint64), view="text")
    assert items.positions([str(i) for i in large]).tolist() == [0, 1, 2]
    assert Items([2**70, 3], view="text").positions([2**70]).tolist() == [0]
    with pytest.raises(UnknownItemError, match="not have '1000000000000000000000'"):
        Items([1, 2], view="text").positions(["1" + "0" * 21])


def test_no_wanted_ids():
    for items in (Items(3, view="text"), Items(["a"], view="text")):
        assert items.positions([]).tolist() == []


def test_a_view_without_items_has_none():
    for ids in (0, []):
        with pytest.raises(UnknownItemError, match="Its 0 ids are none; correct"):
            Items(ids, view="text").positions([0])


def test_unknown_ids_are_listed_and_counted():
    with pytest.raises(
        UnknownItemError,
        match=r"queries must name items of view 'text', which does not have 'x1', "
        r"'x2', 'x3' and 1,997 more, 2,001 of 2,002 in all\. Its 2 ids are 't1', 't2'",
    ):
        wanted = ["t1", "x3", "x2", "x1", "x1", *(f"y{i}" for i in range(1997))]
        Items(["t1", "t2"], view="text").positions(wanted, what="queries")


@pytest.mark.parametrize(
    ("ids", "repeated"), [(["b", "a", "b", "a"], "'a', 'b'"), ([7, 3, 7.0], "7")]
)
def test_repeated_ids_are_refused(ids, repeated):
    with pytest.raises(
        ViewError,
        match=f"must be distinct, but view 'text' has {repeated} more than once. Drop",
    ):
        Items(ids, view="text")


@pytest.mark.parametrize("ids", [[["a", "b"]], "t1", 1.5])
def test_ids_must_be_flat(ids):
    with pytest.raises(
        ViewError, match=r"one flat list, got shape \(.*\). Give one id"
    ):
        Items(ids, view="text")


def test_a_number_of_items_cannot_be_negative():
    with pytest.raises(
        ViewError, match="view 'text' must have 0 items or more, got -5"
    ):
        Items(-5, view="text")


@pytest.mark.parametrize(
    ("ids", "got"),
    [
        ([1.0, 2.5], "2.5 in 1 rows"),
        ([1.0, np.nan, np.nan], "nan in 2 rows"),
        ([1.0, np.inf], "inf in 1"),
        ([1e300], r"1e\+300 in 1"),
        (["a", None], "None in 1"),
        (pd.Series(["a", None]), "(nan|None) in 1"),
        (pd.Series(["a", pd.NA], dtype=object), "<NA> in 1"),
        ([True, False], "True in 2"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "2020-01-01 in 1"),
    ],
)
def test_what_is_no_id_is_refused(ids, got):
    with pytest.raises(
        LinkError,
        match=f"ids of view 'text' must be integers or strings, got {got}.*Drop rows",
    ):
        Items(ids, view="text")


def test_ids_are_integers_or_strings():
    assert as_ids([1.0, 2.0], "text").dtype == np.int64
    assert as_ids(np.array([1, 2], dtype=np.uint8), "text").dtype == np.int64
    assert as_ids(np.array([1, 2], dtype=object), "text").dtype == np.int64
    assert as_ids([1, "a"], "text").tolist() == ["1", "a"]
    assert as_ids([], "text").dtype == np.int64


@pytest.mark.parametrize("ids", [["t7", "t9", "7"], [3, 7, 12], 8])
def test_ids_that_are_there_are_those_with_a_position(ids):
    items = Items(ids, view="text")
    wanted = ["t7", "7", "8", "x", "3"]

    def has_position(name):
        try:
            return items.positions([name]) >= 0
        except UnknownItemError:
            return False

    assert items.contains(wanted).tolist() == [bool(has_position(w)) for w in wanted]
    assert items.contains([]).tolist() == []


def test_similar_spellings_are_found_the_nearest_first():
    items = Items(["green-apple", "apple", "maple", "apples", "zebra"], view="text")
    assert items.similar_ids("appel", n=2) == ["apple", "apples"]
    assert items.similar_ids("%%%") == []
    assert Items([100, 101, 7], view="text").similar_ids("1000", n=1) == [100]
    assert Items(0, view="text").similar_ids("a") == []
