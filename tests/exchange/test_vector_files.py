"""Vectors as parquet, NumPy archives and faiss indexes: written, read, refused."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from given_vectors import BETWEEN, GivenVectors, damaged, make_given, same_embeddings
from linkspread.exchange import (
    read_faiss,
    read_numpy,
    read_parquet,
    take_embeddings,
    vector_files,
    write_faiss,
    write_numpy,
    write_parquet,
)
from linkspread.ground.errors import LinkspreadError
from small_views import fitted

FORMATS = {"numpy": (write_numpy, read_numpy), "parquet": (write_parquet, read_parquet)}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map(
    # NumPy's own strings of fixed width cannot end with this.
    lambda text: text.rstrip("\0")
)
IDS = st.one_of(
    st.lists(TEXTS, min_size=1, max_size=9, unique=True),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=9, unique=True),
)


@pytest.fixture(params=FORMATS)
def both(request):
    if request.param == "parquet":
        pytest.importorskip("pyarrow")
    return FORMATS[request.param]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=IDS,
    width=st.integers(1, 6),
    dtype=st.sampled_from(["float32", "float64"]),
    role=st.sampled_from(["searching", "found"]),
)
def test_files_give_back_what_was_written(both, tmp_path, names, width, dtype, role):
    write, read = both
    model = make_given(len(names), width=width, names=names, dtype=dtype)
    path = write(model, tmp_path / "file", **BETWEEN, role=role, overwrite=True)
    assert same_embeddings(read(path), take_embeddings(model, **BETWEEN, role=role))


def test_precision_can_be_halved(both, tmp_path):
    write, read = both
    model = make_given(5)
    path = write(model, tmp_path / "file", **BETWEEN, dtype="float32")
    wanted = take_embeddings(model, **BETWEEN, dtype="float32")
    assert same_embeddings(read(path), wanted)
    assert not same_embeddings(read(path), take_embeddings(model, **BETWEEN))


def test_a_damaged_file_is_refused_and_never_read_wrongly(both, tmp_path):
    write, read = both
    names = [f"image {i}" for i in range(30)]
    path = write(make_given(30, names=names), tmp_path / "file", **BETWEEN)
    whole, wanted = path.read_bytes(), read(path)
    n_refused = 0
    for content in damaged(whole):
        path.write_bytes(content)
        try:
            # Some bytes of a file, such as times of its parts, mean nothing here.
            assert same_embeddings(read(path), wanted)
        except LinkspreadError as error:
            assert "Export it again" in str(error)
            n_refused += 1
    assert n_refused > 150  # of 240


def test_foreign_files_are_refused(both, tmp_path):
    write, read = both
    path = tmp_path / "file"
    for content in (b"", b"id,vector\n1,2\n", b"PK\x03\x04", b"PAR1", b"\x93NUMPY"):
        path.write_bytes(content)
        with pytest.raises(LinkspreadError, match=f"written by `{write.__name__}`"):
            read(path)
    with pytest.raises(LinkspreadError, match="is no file"):
        read(tmp_path / "nowhere")
    with pytest.raises(LinkspreadError, match="cannot be read"):
        read(tmp_path)


def test_arrays_of_somebody_else_are_refused(tmp_path):
    path = tmp_path / "file.npz"
    text = '{"format": 1, "view": "a", "other_view": "b", "role": "found"}'
    good = {"ids": np.arange(2), "vectors": np.ones((2, 3)), "linkspread": text}
    np.savez(path, **good)
    assert read_numpy(path).view == "a"
    for changes, reason in [
        ({"linkspread": "null"}, "format is not 1"),
        ({"ids": np.arange(3)}, r"3 ids for vectors \(2, 3\)"),
        ({"vectors": np.ones(2)}, r"2 ids for vectors \(2,\)"),
        ({"ids": np.array(["a", None])}, "allow_pickle=False"),
    ]:
        np.savez(path, **{**good, **changes})
        with pytest.raises(LinkspreadError, match=reason):
            read_numpy(path)
    np.save(path.with_suffix(".npy"), np.ones((2, 3)))
    with pytest.raises(LinkspreadError, match="a NumPy archive written by"):
        read_numpy(path.with_suffix(".npy"))


def test_a_table_of_somebody_else_is_refused(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "file.parquet"
    parquet.write_table(arrow.table({"id": [1], "vector": [[1.0]]}), path)
    with pytest.raises(LinkspreadError, match="its format is not 1"):
        read_parquet(path)


def test_other_programs_read_the_files(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    model = make_given(3, names=["a", "b", "c"], dtype="float32")
    path = write_parquet(model, tmp_path / "images.parquet", **BETWEEN)
    frame = polars.read_parquet(path)
    assert frame["id"].to_list() == ["a", "b", "c"]
    assert frame.schema["vector"] == polars.Array(polars.Float32, 4)
    np.testing.assert_array_equal(frame["vector"].to_numpy(), model.found)
    schema = arrow.parquet.read_schema(path)
    assert schema.field("vector").type == arrow.list_(arrow.float32(), 4)
    assert b"not cosines" in schema.metadata[b"linkspread"]
    archive = np.load(write_numpy(model, tmp_path / "images.npz", **BETWEEN))
    np.testing.assert_array_equal(archive["vectors"], model.found)


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


@pytest.mark.slow
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
    faiss = vector_files.load_faiss("A test")
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
        with pytest.raises(LinkspreadError, match="Export it again"):
            read_faiss(path)


def test_index_and_ids_of_two_exports_are_refused(tmp_path):
    first = write_faiss(make_given(9), tmp_path / "first", **BETWEEN)
    second = write_faiss(make_given(9, seed=1), tmp_path / "second", **BETWEEN)
    first.write_bytes(second.read_bytes())
    with pytest.raises(LinkspreadError, match="does not belong to the ids"):
        read_faiss(first)


@pytest.mark.parametrize("name", ["i", "i.json"])
def test_a_missing_file_is_told(name, tmp_path):
    path = write_faiss(make_given(9), tmp_path / "i", **BETWEEN)
    (tmp_path / name).unlink()
    with pytest.raises(LinkspreadError, match=f"{name}.*is no file"):
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

    monkeypatch.setattr(vector_files.load_faiss("A test"), "write_index", fail)
    with pytest.raises(LinkspreadError, match="can be written, .* No space left"):
        write_faiss(make_given(9), tmp_path / "i", **BETWEEN)
    assert list(tmp_path.iterdir()) == []
