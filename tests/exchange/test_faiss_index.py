"""Index files of faiss find what the model finds, under its ids."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from given_vectors import BETWEEN, GivenVectors, damaged, make_given
from linkspread.exchange import faiss_index as module
from linkspread.exchange import read_faiss, write_faiss
from linkspread.ground.errors import LinkspreadError
from small_views import fitted

pytest.importorskip("faiss")

NAMES = [f"image {i}" for i in range(500)]


@pytest.mark.parametrize("index", ["exact", "hnsw"])
@pytest.mark.parametrize("names", [None, NAMES, list(range(1000, 500, -1))])
def test_the_index_finds_what_the_model_finds(index, names, tmp_path):
    model = make_given(500, n_queries=100, names=names, dtype="float32")
    path = write_faiss(model, tmp_path / "images.faiss", **BETWEEN, index=index)
    ids, scores = read_faiss(path).search(model.searching)
    wanted_ids, wanted_scores = model.search(range(100), **BETWEEN)
    assert_array_equal(ids, wanted_ids)
    assert_allclose(scores, wanted_scores, rtol=1e-5)


@pytest.mark.parametrize("kind", ["labels", "many pairs"])
def test_the_index_of_a_fitted_model_gives_its_scores(kind, tmp_path):
    model = fitted(kind)
    path = write_faiss(model, tmp_path / "images.faiss", **BETWEEN)
    searching, _ = model.embeddings("text", "image")
    _, scores = read_faiss(path).search(searching, n_results=5)
    _, wanted = model.search(range(len(searching)), **BETWEEN, n_results=5)
    assert_allclose(scores, wanted, atol=1e-5)


def test_one_vector_gives_one_row_and_results_end_with_the_items(tmp_path):
    model = make_given(6, names=NAMES[:6])
    index = read_faiss(write_faiss(model, tmp_path / "i", **BETWEEN))
    ids, scores = index.search(model.searching[0], n_results=99)
    assert ids.shape == scores.shape == (6,)
    assert set(ids) == set(NAMES[:6])
    assert index.search(model.searching[:0])[0].shape == (0, 6)
    assert (index.view, index.other_view, index.role) == ("image", "text", "found")


def test_what_the_graph_does_not_reach_is_found_by_comparing_all(tmp_path):
    # Equal items make a graph of HNSW fall apart: it reaches only some of them.
    found = np.ones((3000, 2), dtype=np.float32)
    model = GivenVectors(np.ones((2, 2), dtype=np.float32), found)
    path = write_faiss(model, tmp_path / "i", **BETWEEN, index="hnsw")
    index = read_faiss(path)
    index.index.hnsw.efSearch = 1
    ids, scores = index.search(model.searching, n_results=3000)
    assert_array_equal(np.sort(ids, axis=1), [np.arange(3000)] * 2)
    assert_allclose(scores, 2)


def test_the_graph_is_that_of_inner_products(tmp_path):
    faiss = module.load_faiss("A test")
    path = write_faiss(make_given(5), tmp_path / "i", **BETWEEN, index="hnsw")
    index = read_faiss(path).index
    assert isinstance(index, faiss.IndexHNSWFlat)
    assert index.metric_type == faiss.METRIC_INNER_PRODUCT


@pytest.mark.parametrize("name", ["images.faiss", "images.faiss.json"])
def test_a_damaged_file_is_refused(name, tmp_path):
    path = write_faiss(make_given(9, names=NAMES[:9]), tmp_path / "images.faiss",
                       **BETWEEN)  # fmt: skip
    content = (tmp_path / name).read_bytes()
    for changed in damaged(content):
        (tmp_path / name).write_bytes(changed)
        with pytest.raises(LinkspreadError, match="Export it anew"):
            read_faiss(path)


def test_index_and_ids_of_two_exports_are_refused(tmp_path):
    first = write_faiss(make_given(9), tmp_path / "first", **BETWEEN)
    second = write_faiss(make_given(9, seed=1), tmp_path / "second", **BETWEEN)
    first.write_bytes(second.read_bytes())
    with pytest.raises(LinkspreadError, match="not the one that its ids were written"):
        read_faiss(first)


@pytest.mark.parametrize("name", ["i", "i.json"])
def test_a_missing_file_is_told(name, tmp_path):
    path = write_faiss(make_given(9), tmp_path / "i", **BETWEEN)
    (tmp_path / name).unlink()
    with pytest.raises(LinkspreadError, match=f"{name}' is no file"):
        read_faiss(path)


def test_ids_that_are_there_are_not_replaced(tmp_path):
    (tmp_path / "i.json").write_text("mine")
    with pytest.raises(LinkspreadError, match="i.json' exists"):
        write_faiss(make_given(9), tmp_path / "i", **BETWEEN)
    assert [path.name for path in tmp_path.iterdir()] == ["i.json"]


def test_wrong_arguments_are_told(tmp_path):
    model = make_given(9)
    with pytest.raises(LinkspreadError, match="`index` must be one of 'exact', 'hnsw'"):
        write_faiss(model, tmp_path / "i", **BETWEEN, index="flat")
    index = read_faiss(write_faiss(model, tmp_path / "i", **BETWEEN))
    with pytest.raises(LinkspreadError, match=r"must have 4 columns .* \(2, 3\)"):
        index.search(np.ones((2, 3)))
    with pytest.raises(LinkspreadError, match="`n_results` must be a positive integer"):
        index.search(model.searching, n_results=0)


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    def fail(index, path):
        raise RuntimeError("Error: write error: No space left on device\nat file.cpp")

    monkeypatch.setattr(module.load_faiss("A test"), "write_index", fail)
    with pytest.raises(LinkspreadError, match="can be written, .* No space left"):
        write_faiss(make_given(9), tmp_path / "i", **BETWEEN)
    assert list(tmp_path.iterdir()) == []
