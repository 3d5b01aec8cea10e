"""What is exported: vectors of every model, whose products are its scores."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import linkspread
from given_vectors import BETWEEN, GivenVectors, make_given
from linkspread import LinkSpreading
from linkspread.datasets import make_views
from linkspread.exchange import take_embeddings
from linkspread.exchange.embeddings import describe, read_description
from linkspread.ground.errors import LinkspreadError
from matching_cases import BY_LABELS, SIZES, some_labels

MODELS = {
    "spread": LinkSpreading(n_neighbors=4),
    "rank": LinkSpreading(n_neighbors=4, rank=3),
    **BY_LABELS,
}
IDS = {view: [f"{view} {i}" for i in range(n)] for view, n in SIZES.items()}


def fitted(name):
    data = make_views(SIZES, n_classes=3, noise=0.5, dtype=np.float64)
    return clone(MODELS[name]).fit(data.views(), some_labels(data), ids=IDS)


@pytest.mark.parametrize("name", MODELS)
def test_products_of_both_roles_are_the_scores_of_every_model(name):
    model = fitted(name)
    searching = take_embeddings(model, **BETWEEN, role="searching")
    found = take_embeddings(model, **BETWEEN)
    scores = model.scores("text", "image")
    assert_allclose(searching.vectors @ found.vectors.T, scores, atol=1e-6)
    assert searching.ids.tolist() == IDS["text"]
    assert found.ids.tolist() == IDS["image"]


def test_the_role_says_whose_vectors_they_are():
    model = make_given(5, n_queries=3)
    found = take_embeddings(model, **BETWEEN)
    searching = take_embeddings(model, **BETWEEN, role="searching")
    assert (found.view, found.other_view, found.role) == ("image", "text", "found")
    assert (searching.view, searching.other_view) == ("text", "image")
    assert searching.role == "searching"
    assert_array_equal(found.vectors, model.found)
    assert_array_equal(searching.vectors, model.searching)


@pytest.mark.parametrize("dtype", ["float32", "float64", None])
@pytest.mark.parametrize("own", ["float32", "float64"])
def test_numbers_have_the_precision_asked_for(own, dtype):
    model = make_given(5, dtype=own)
    vectors = take_embeddings(model, **BETWEEN, dtype=dtype).vectors
    assert vectors.dtype == (dtype or own)
    assert_allclose(vectors, model.found, rtol=1e-7)


def test_vectors_without_dimensions_get_one_that_changes_no_score():
    model = GivenVectors(np.zeros((2, 0)), np.zeros((3, 0)))
    assert_array_equal(take_embeddings(model, **BETWEEN).vectors, np.zeros((3, 1)))


def test_the_description_says_what_the_vectors_mean():
    content = json.loads(describe(take_embeddings(make_given(2), **BETWEEN)))
    assert content.pop("scores").endswith("not cosines")
    assert content == {
        "format": 1,
        "linkspread": linkspread.__version__,
        "view": "image",
        "other_view": "text",
        "role": "found",
    }


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "null",
        "[1]",
        '{"format": 2, "view": "a", "other_view": "b", "role": "found"}',
        '{"format": 1, "view": "a", "role": "found"}',
        '{"format": 1, "view": "a", "other_view": "b", "role": "lost"}',
    ],
)
def test_other_descriptions_are_refused(text):
    with pytest.raises((ValueError, KeyError)):
        read_description(text)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"role": "lost"}, r"`role` must be one of 'found', 'searching', got 'lost'"),
        ({"dtype": "int8"}, r"`dtype` must be one of 'float32', 'float64', got 'int8'"),
    ],
)
def test_wrong_options_are_told(changes, message):
    with pytest.raises(LinkspreadError, match=message):
        take_embeddings(make_given(2), **BETWEEN, **changes)


def test_only_models_are_exported():
    with pytest.raises(
        LinkspreadError, match="`model` must be a fitted search .* dict"
    ):
        take_embeddings({}, **BETWEEN)
    with pytest.raises(NotFittedError):
        take_embeddings(LinkSpreading(), **BETWEEN)


def test_numbers_beyond_float32_are_told():
    model = GivenVectors(np.ones((1, 1)), np.array([[1e300]]))
    with pytest.raises(LinkspreadError, match="finite in float32, .* up to 1e\\+300"):
        take_embeddings(model, **BETWEEN, dtype="float32")


def test_ids_that_are_no_text_are_told():
    model = make_given(2, names=["fine", "broken \udc80"])
    with pytest.raises(LinkspreadError, match="ids of view 'image' must be Unicode"):
        take_embeddings(model, **BETWEEN)
