"""Vectors as parquet, NumPy archives and faiss indexes, read by other programs."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from given_vectors import BETWEEN, make_given, read_vectors, same_embeddings
from linkspread.exchange import vectors, write_vectors
from linkspread.exchange.vectors import take_embeddings
from linkspread.ground.errors import LinkspreadError
from small_views import fitted

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map(
    # NumPy's own strings of fixed width cannot end with this.
    lambda text: text.rstrip("\0")
)
IDS = st.one_of(
    st.lists(TEXTS, min_size=1, max_size=9, unique=True),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=9, unique=True),
)


@pytest.mark.parametrize("form", ["npz", "parquet"])
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=IDS,
    width=st.integers(1, 6),
    dtype=st.sampled_from(["float32", "float64"]),
    role=st.sampled_from(["searching", "found"]),
)
def test_files_hold_what_was_written(form, tmp_path, names, width, dtype, role):
    model = make_given(len(names), width=width, names=names, dtype=dtype)
    path = tmp_path / f"file.{form}"
    assert write_vectors(model, path, **BETWEEN, role=role, overwrite=True) == path
    wanted = take_embeddings(model, *BETWEEN.values(), role=role)
    assert same_embeddings(read_vectors(path), wanted)


@pytest.mark.parametrize("form", ["npz", "parquet"])
def test_precision_can_be_halved(form, tmp_path):
    model = make_given(5)
    path = write_vectors(model, tmp_path / f"f.{form}", **BETWEEN, dtype="float32")
    wanted = take_embeddings(model, *BETWEEN.values(), dtype="float32")
    assert same_embeddings(read_vectors(path), wanted)


def test_a_data_frame_reads_the_vectors(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    model = make_given(3, names=["a", "b", "c"], dtype="float32")
    path = write_vectors(model, tmp_path / "images.parquet", **BETWEEN)
    frame = polars.read_parquet(path)
    assert frame["id"].to_list() == ["a", "b", "c"]
    assert frame.schema["vector"] == polars.Array(polars.Float32, 4)
    assert_array_equal(frame["vector"].to_numpy(), model.found)
    schema = arrow.parquet.read_schema(path)
    assert schema.field("vector").type == arrow.list_(arrow.float32(), 4)
    assert b"not cosines" in schema.metadata[b"linkspread"]


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("a.txt", {}, "must end in .parquet, .npz, .faiss, got 'a.txt'"),
        ("a.npz", {"index": "hnsw"}, "`index` must be left out for .npz"),
        ("a.faiss", {"index": "flat"}, "`index` must be one of 'exact', 'hnsw'"),
        ("a.faiss", {"dtype": "float64"}, "`dtype` must be one of 'float32'"),
    ],
)
def test_wrong_arguments_are_told(tmp_path, name, changes, words):
    with pytest.raises(LinkspreadError, match=words):
        write_vectors(make_given(9), tmp_path / name, **BETWEEN, **changes)
    assert list(tmp_path.iterdir()) == []


faiss = pytest.importorskip("faiss")

NAMES = [f"image {i}" for i in range(500)]


@pytest.mark.parametrize("index", [None, "hnsw"])
@pytest.mark.parametrize("names", [None, NAMES, list(range(1000, 500, -1))])
def test_the_index_finds_what_the_model_finds(index, names, tmp_path):
    model = make_given(500, n_queries=100, names=names, dtype="float32")
    path = write_vectors(model, tmp_path / "i.faiss", **BETWEEN, index=index)
    about = json.loads((tmp_path / "i.faiss.json").read_text())
    scores, rows = faiss.read_index(str(path)).search(model.searching, 10)
    wanted_ids, wanted_scores = model.search(range(100), **BETWEEN)
    assert_array_equal(np.array(about["ids"])[rows], wanted_ids)
    assert_allclose(scores, wanted_scores, rtol=1e-5)
    assert (about["view"], about["other_view"], about["role"]) == (
        "image",
        "text",
        "found",
    )


@pytest.mark.parametrize("kind", ["labels", "many pairs"])
def test_the_index_of_a_fitted_model_gives_its_scores(kind, tmp_path):
    model = fitted(kind)
    path = write_vectors(model, tmp_path / "images.faiss", **BETWEEN)
    searching, _ = model.embeddings("text", "image")
    scores, _ = faiss.read_index(str(path)).search(searching.astype("float32"), 5)
    _, wanted = model.search(range(len(searching)), **BETWEEN, n_results=5)
    assert_allclose(scores, wanted, atol=1e-5)


def test_the_graph_is_that_of_inner_products(tmp_path):
    path = write_vectors(make_given(5), tmp_path / "i.faiss", **BETWEEN, index="hnsw")
    index = faiss.read_index(str(path))
    assert isinstance(index, faiss.IndexHNSWFlat)
    assert index.metric_type == faiss.METRIC_INNER_PRODUCT


def test_ids_that_are_there_are_not_replaced(tmp_path):
    (tmp_path / "i.faiss.json").write_text("mine")
    with pytest.raises(LinkspreadError, match=r"i.faiss.json' exists"):
        write_vectors(make_given(9), tmp_path / "i.faiss", **BETWEEN)
    assert [path.name for path in tmp_path.iterdir()] == ["i.faiss.json"]


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    def fail(index, path):
        raise RuntimeError("Error: write error: No space left on device\nat file.cpp")

    monkeypatch.setattr(vectors.load_faiss("A test"), "write_index", fail)
    with pytest.raises(LinkspreadError, match="can be written, .* No space left"):
        write_vectors(make_given(9), tmp_path / "i.faiss", **BETWEEN)
    assert list(tmp_path.iterdir()) == []
