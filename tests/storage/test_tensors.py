"""The safetensors format: the package of that name agrees in both directions."""

import io

import hypothesis.extra.numpy as arrays_of
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_array_equal

from linkspread.ground.errors import ModelError
from linkspread.storage.files import HashingFile, hash_file
from linkspread.storage.tensors import DTYPES, as_tensor, read_tensors, write_tensors

numpy_safetensors = pytest.importorskip("safetensors.numpy")

NUMBERS = st.sampled_from(sorted(DTYPES.values(), key=str))
SHAPES = arrays_of.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=5)
ARRAYS = NUMBERS.flatmap(
    lambda dtype: arrays_of.arrays(
        dtype,
        SHAPES,
        elements=arrays_of.from_dtype(dtype, allow_nan=False, allow_infinity=False),
    )
)
NAMED = st.dictionaries(st.text(min_size=1, max_size=8), ARRAYS, max_size=6)


def write(path, arrays):
    """Write arrays to a file; return its checksum as known when it was written."""
    with open(path, "wb") as file:
        hashing = HashingFile(file)
        write_tensors(hashing, arrays)
    assert hashing.n_bytes == path.stat().st_size
    return hashing.sha256


def read(path):
    with open(path, "rb") as file:
        return read_tensors(file)


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert_array_equal(found[name], array)


@given(NAMED)
def test_what_is_written_is_read_and_the_package_reads_it_too(tmp_path_factory, arrays):
    path = tmp_path_factory.mktemp("tensors") / "arrays.safetensors"
    sha256 = write(path, arrays)
    assert_same(read(path), arrays)
    assert_same(numpy_safetensors.load_file(path), arrays)
    with open(path, "rb") as file:
        assert hash_file(file) == sha256


@given(NAMED)
def test_what_the_package_writes_is_read(tmp_path_factory, arrays):
    path = tmp_path_factory.mktemp("tensors") / "arrays.safetensors"
    numpy_safetensors.save_file(arrays, path, metadata={"by": "somebody else"})
    assert_same(read(path), arrays)


def test_arrays_lie_at_multiples_of_their_width(tmp_path, rng):
    arrays = {
        "bytes": np.arange(3, dtype=np.int8),
        "halves": np.arange(5, dtype=np.float32),
        "doubles": rng.random((3, 3)),
    }
    write(tmp_path / "arrays", arrays)
    for array in read(tmp_path / "arrays").values():
        assert array.flags.aligned
        assert array.flags.writeable


def test_any_order_in_memory_is_stored(tmp_path, rng):
    whole = rng.random((6, 4))
    arrays = {
        "turned": whole.T,
        "every second": whole[::2, ::-1],
        "repeated": np.broadcast_to(whole[0], (3, 4)),
        "swapped bytes": whole.astype(">f8"),
    }
    write(tmp_path / "arrays", arrays)
    for name, array in read(tmp_path / "arrays").items():
        assert_array_equal(array, arrays[name])


@pytest.mark.parametrize(
    "array",
    [np.array(["text"]), np.array([None]), np.zeros(2, complex), np.zeros((1, 1, 1))],
)
def test_arrays_that_are_no_plain_numbers_are_refused(array):
    with pytest.raises(ModelError, match="must be of plain numbers in at most 2"):
        as_tensor(array, "a")


def test_a_header_that_readers_would_refuse_is_not_written(monkeypatch):
    monkeypatch.setattr("linkspread.storage.tensors.MAX_HEADER", 100)
    with pytest.raises(ModelError, match="a header of at most 100 bytes"):
        write_tensors(
            HashingFile(io.BytesIO()), {"a" * 50: np.zeros(1), "b" * 50: np.zeros(1)}
        )
