"""What two tables of texts have in common."""

import numpy as np
import pytest

from linkspread.features.catalogues import describe_catalogues, read_numbers
from linkspread.ground.errors import ViewError

OURS = {"name": ["red lamp", "blue chair", ""], "price": ["10", "$20.50", ""]}
THEIRS = {"name": ["lamp, red", "green chair"], "price": ["9.50 EUR", "1,200"]}


def test_texts_share_a_space_and_numbers_are_compared():
    found = describe_catalogues({"ours": OURS, "theirs": THEIRS})
    assert (found.texts, found.numbers) == (("name",), ("price",))
    ours, theirs = found.views.values()
    assert ours.shape == (3, 3)  # lamp, red, chair
    assert (ours @ theirs.T).toarray().argmax(axis=1).tolist() == [0, 1, 0]
    np.testing.assert_array_equal(found.compare["price"][0], [10, 20.5, np.nan])
    np.testing.assert_array_equal(found.compare["price"][1], [9.5, 1200])


def test_every_column_of_texts_is_compared_by_itself():
    more = [
        own | {"maker": ["a", "b", "c"][: len(own["name"])]} for own in (OURS, THEIRS)
    ]
    tables = dict(zip(("ours", "theirs"), more, strict=True))
    found = describe_catalogues(tables)
    assert list(found.compare) == ["price", "name", "maker"]
    chosen = describe_catalogues(tables, ["name"])
    assert chosen.texts == ("name",)
    assert list(chosen.compare) == ["price", "name", "maker"]


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["1", "2.5", ""], [1, 2.5, np.nan]),
        (["0", "3"], [np.nan, 3]),
        (["one", "two", "3"], None),
        (["", ""], None),
        (["KDL-52W4100", "A1"], None),
    ],
)
def test_numbers_are_recognised(values, numbers):
    found = read_numbers(values)
    if numbers is None:
        assert found is None
    else:
        np.testing.assert_array_equal(found, numbers)


def test_columns_must_be_of_both():
    with pytest.raises(ViewError, match="`columns`"):
        describe_catalogues({"ours": OURS, "theirs": THEIRS}, ["maker"])
