"""NumPy and parquet files: read back bit for bit, refused when damaged or foreign."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from given_vectors import BETWEEN, damaged, make_given, same_embeddings
from linkspread.exchange import (
    read_numpy,
    read_parquet,
    take_embeddings,
    write_numpy,
    write_parquet,
)
from linkspread.ground.errors import LinkspreadError

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
            assert "Export it anew" in str(error)
            n_refused += 1
    assert n_refused > 150  # of 240


def test_foreign_files_are_refused(both, tmp_path):
    write, read = both
    path = tmp_path / "file"
    for content in (b"", b"id,vector\n1,2\n", b"PK\x03\x04", b"PAR1", b"\x93NUMPY"):
        path.write_bytes(content)
        with pytest.raises(LinkspreadError, match=f"written by `{write.__name__}`"):
            read(path)
    with pytest.raises(LinkspreadError, match="is no file. Correct the path"):
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
        ({"linkspread": "null"}, "format is 1"),
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
    with pytest.raises(LinkspreadError, match="does not say that its format is 1"):
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
