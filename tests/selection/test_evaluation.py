"""How well a fitted model does on what it was not told."""

import numpy as np
import pytest

import linkspread as ls
from example_files import made_data
from linkspread.selection import evaluate_pairs, evaluate_search


def test_no_query_with_anything_to_find_is_said():
    data = made_data()
    model = ls.LinkSpreading(n_neighbors=5).fit(data.views(), data.labels)
    labels = {"text": np.zeros(60, dtype=int), "image": np.ones(40, dtype=int)}
    with pytest.raises(
        ls.ground.errors.LinkspreadError, match="some item of view 'image'"
    ):
        evaluate_search(model, labels, include_known=True)


def test_integer_ids_that_are_no_positions_are_evaluated_alike(rng):
    data = made_data()
    pairs = [(i, j, 1.0 if data.labels["text"][i] == data.labels["image"][j] else -1.0)
             for i in range(10) for j in range(10)]  # fmt: skip
    links = ls.Links.from_pairs(pairs, between=("text", "image"))
    plain = ls.LinkSpreading(n_neighbors=5).fit(data.views(), links)
    ids = {"text": 100 + np.arange(60)[::-1], "image": 7 * np.arange(40)}
    moved = [(ids["text"][i], ids["image"][j], w) for i, j, w in pairs]
    other = ls.Links.from_pairs(moved, between=("text", "image"))
    named = ls.LinkSpreading(n_neighbors=5).fit(data.views(), other, ids=ids)
    assert evaluate_search(named, data.labels) == evaluate_search(plain, data.labels)
    one = evaluate_pairs(plain, links, include_known=True)
    assert evaluate_pairs(named, other, include_known=True) == one
