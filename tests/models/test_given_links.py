"""Labels and pairs as people have them, given to a fit."""

import numpy as np
import pandas as pd
import pytest

import linkspread as ls
from linkspread import Links, LinkSpreading
from linkspread.ground.errors import UnknownItemError, UnknownItemWarning
from linkspread.selection import evaluate_search

NAMES = np.array(["ant", "boat", "cat"])
BETWEEN = ("text", "image")


@pytest.fixture(scope="module")
def data():
    """Return two views of few items in three classes."""
    return ls.datasets.make_views({"text": 40, "image": 30}, n_classes=3, n_features=5)


def make_model():
    return LinkSpreading(n_neighbors=5)


def test_named_classes_are_those_of_numbers(data):
    """Text labels were refused with advice that made other links."""
    # The texts lack the first class: numbered by themselves, boats would be ants.
    y = {
        v: np.where(np.arange(len(own)) < 15, own, -1) for v, own in data.labels.items()
    }
    y["text"][y["text"] == 0] = -1
    named = {v: [NAMES[c] if c >= 0 else None for c in own] for v, own in y.items()}
    named["text"] = pd.Series(named["text"])
    expected = make_model().fit(data.views(), y)
    found = make_model().fit(data.views(), named)
    np.testing.assert_array_equal(found.scores(*BETWEEN), expected.scores(*BETWEEN))
    all_named = {view: NAMES[own] for view, own in data.labels.items()}
    assert evaluate_search(found, all_named) == evaluate_search(found, data.labels)


def test_a_fit_skips_links_of_unknown_items_if_asked(data):
    ids = {
        view: [f"{view}{i}" for i in range(len(y))] for view, y in data.labels.items()
    }
    known = [(f"text{i}", f"image{i}", i % 2) for i in range(12)]
    pairs = Links.from_pairs([*known, ("gone", "image3", 1)], between=BETWEEN)
    expected = make_model().fit(
        data.views(), Links.from_pairs(known, between=BETWEEN), ids=ids
    )
    with pytest.raises(UnknownItemError, match="'gone', 1 of 13 .*`unknown='skip'`"):
        make_model().fit(data.views(), pairs, ids=ids)
    with pytest.warns(UnknownItemWarning, match="1 of 13 pairs .*: text 'gone'"):
        model = make_model().fit(data.views(), pairs, ids=ids, unknown="skip")
    assert model.links_.judged(*BETWEEN).nnz == 12
    np.testing.assert_array_equal(model.scores(*BETWEEN), expected.scores(*BETWEEN))
