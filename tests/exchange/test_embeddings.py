"""What is exported: vectors of every model, whose products are its scores."""

import os

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import linkspread
from given_vectors import BETWEEN, GivenVectors, make_given
from linkspread import LinkSpreading, exchange
from linkspread.datasets import make_views
from linkspread.exchange.vectors import take_embeddings as take
from linkspread.ground.errors import LinkspreadError
from linkspread.storage.files import new_file
from matching_cases import BY_LABELS, SIZES, some_labels

MODELS = {
    "spread": LinkSpreading(n_neighbors=4),
    "rank": LinkSpreading(n_neighbors=4, rank=3),
    **BY_LABELS,
}
IDS = {view: [f"{view} {i}" for i in range(n)] for view, n in SIZES.items()}


def take_embeddings(model, *, source, target, **chosen):
    return take(model, source, target, **chosen)


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
    content = take_embeddings(make_given(2), **BETWEEN).describe()
    assert content.pop("scores").endswith("not cosines")
    assert content == {
        "format": 1,
        "linkspread": linkspread.__version__,
        "view": "image",
        "other_view": "text",
        "role": "found",
    }


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


@pytest.fixture(params=["npz", "parquet", "faiss", "run"])
def form(request):
    if request.param == "faiss":
        pytest.importorskip("faiss")
    return request.param


@pytest.fixture
def write(form):
    return exchange.write_run if form == "run" else exchange.write_vectors


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_file_that_is_there_is_replaced_only_if_told(write, form, tmp_path):
    path = tmp_path / f"export.{form}"
    assert write(make_given(3), path, **BETWEEN) == path
    old = contents(tmp_path)
    with pytest.raises(LinkspreadError, match="`path` must be new .* overwrite=True"):
        write(make_given(4), path, **BETWEEN)
    assert contents(tmp_path) == old
    write(make_given(4), path, **BETWEEN, overwrite=True)
    assert contents(tmp_path).keys() == old.keys()
    assert contents(tmp_path)[path.name] != old[path.name]


def test_a_failure_half_way_leaves_the_old_file_and_nothing_else(
    write, form, tmp_path, monkeypatch
):
    path = tmp_path / f"export.{form}"
    write(make_given(3), path, **BETWEEN)
    old = contents(tmp_path)

    def fail(*paths):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(LinkspreadError, match="can be written, .* No space left"):
        write(make_given(4), path, **BETWEEN, overwrite=True)
    assert contents(tmp_path) == old


def test_an_interruption_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        with new_file(tmp_path / "export", overwrite=False) as temporary:
            temporary.write_bytes(b"half")
            raise KeyboardInterrupt
    assert contents(tmp_path) == {}


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "export"
    with pytest.raises(LinkspreadError, match="must be new"):
        with new_file(path, overwrite=False):
            path.write_bytes(b"of somebody else")
    assert contents(tmp_path) == {"export": b"of somebody else"}


def test_folders_are_made_and_a_folder_is_no_file(write, form, tmp_path):
    path = tmp_path / "new" / "folder" / f"export.{form}"
    assert write(make_given(2), str(path), **BETWEEN).is_file()
    with pytest.raises(LinkspreadError, match="`path` must be a file, got the folder"):
        path.parent.joinpath(f"b.{form}").mkdir()
        write(make_given(2), path.parent / f"b.{form}", **BETWEEN, overwrite=True)


def test_a_file_within_a_file_is_told(write, form, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(LinkspreadError, match="can be written, got .*Choose another"):
        write(make_given(2), tmp_path / "file" / f"export.{form}", **BETWEEN)


def test_a_model_that_fails_leaves_nothing(write, form, tmp_path):
    broken = GivenVectors(np.ones((1, 2)), np.array([[1.0, 2.0]]))
    broken.found = None
    with pytest.raises((TypeError, AttributeError)):
        write(broken, tmp_path / f"export.{form}", **BETWEEN)
    assert contents(tmp_path) == {}


def test_a_link_that_leads_nowhere_counts_as_there(tmp_path):
    path = tmp_path / "export.npz"
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(LinkspreadError, match="must be new"):
        exchange.write_vectors(make_given(2), path, **BETWEEN)
