"""Columns of ids: any ids come back, and any tool can read them."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from numpy.testing import assert_array_equal

from linkspread.ground.errors import MissingDependencyError, ModelError
from linkspread.storage import Content, id_columns, write_folder
from linkspread.storage.files import HashingFile
from linkspread.storage.id_columns import check_ids, read_ids, write_ids

# No id can have a code that is half of a letter, or end in the letter 0.
LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXTS = st.lists(st.text(LETTERS), min_size=1, unique=True)
NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, unique=True)


def write(path, ids):
    with open(path, "wb") as file:
        write_ids(HashingFile(file), ids)
    return path


def read(path, n_ids):
    with open(path, "rb") as file:
        return read_ids(file, path.stat().st_size, n_ids)


@given(TEXTS | NUMBERS)
def test_any_ids_come_back_and_pandas_reads_them(tmp_path_factory, ids):
    kind = str if isinstance(ids[0], str) else np.int64
    column = np.array(ids, dtype=kind)
    path = write(tmp_path_factory.mktemp("ids") / "ids.parquet", column)
    found = read(path, len(ids))
    assert found.dtype.kind == column.dtype.kind
    assert_array_equal(found, column)
    assert pd.read_parquet(path)["id"].tolist() == column.tolist()


def test_many_ids_are_read_in_pieces(tmp_path):
    ids = np.array([f"item {i}" for i in range(10_000)])
    assert_array_equal(read(write(tmp_path / "ids", ids), 10_000), ids)


def test_no_ids_are_no_ids(tmp_path):
    ids = np.zeros(0, dtype=np.int64)
    assert_array_equal(read(write(tmp_path / "ids", ids), 0), ids)


def test_one_long_id_must_not_widen_all_others(monkeypatch, tmp_path):
    ids = np.array(["x" * 1000, *(str(i) for i in range(500))])
    path = write(tmp_path / "ids", ids)
    assert_array_equal(read(path, 501), ids)
    monkeypatch.setattr(id_columns, "MAX_WIDENED", 0)
    message = "one of 1,000 letters among 501, which together would take 2.0 MB"
    with pytest.raises(ModelError, match=message):
        check_ids(ids)
    with pytest.raises(ModelError, match=message):
        read(path, 501)


def test_ids_that_unpack_to_more_than_their_file_are_refused(monkeypatch, tmp_path):
    path = write(tmp_path / "ids", np.array(["a", "b"]))
    monkeypatch.setattr(id_columns, "_check_metadata", lambda *arguments: None)
    table = pd.DataFrame({"id": ["x" * 10_000] * 1000})
    table.to_parquet(path, compression="gzip")
    with pytest.raises(ModelError, match="no more room than their file"):
        read(path, 1000)


def test_pyarrow_is_asked_for_before_anything_is_written(monkeypatch, tmp_path):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("linkspread.ground.errors.importlib.import_module", missing)
    content = Content({}, {}, {"ids": np.arange(3)}, {})
    with pytest.raises(MissingDependencyError, match=r"linkspread\[tables\]"):
        write_folder(tmp_path / "model", content)
    assert not (tmp_path / "model").exists()
    write_folder(tmp_path / "model", Content({}, {}, {}, {}))
