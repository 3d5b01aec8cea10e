"""Every export is written whole or not at all, and replaces nothing unasked."""

import os

import numpy as np
import pytest

from given_vectors import BETWEEN, GivenVectors, make_given
from linkspread import exchange
from linkspread.exchange.files import reading
from linkspread.ground.errors import LinkspreadError, MissingDependencyError
from linkspread.storage.files import new_file

WRITERS = {
    "numpy": exchange.write_numpy,
    "parquet": exchange.write_parquet,
    "faiss": exchange.write_faiss,
    "run": exchange.write_run,
}


@pytest.fixture(params=WRITERS)
def write(request):
    package = {"parquet": "pyarrow", "faiss": "faiss"}.get(request.param)
    if package:
        pytest.importorskip(package)
    return WRITERS[request.param]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_file_that_is_there_is_replaced_only_if_told(write, tmp_path):
    path = tmp_path / "export"
    assert write(make_given(3), path, **BETWEEN) == path
    old = contents(tmp_path)
    with pytest.raises(LinkspreadError, match="`path` must be new .* overwrite=True"):
        write(make_given(4), path, **BETWEEN)
    assert contents(tmp_path) == old
    write(make_given(4), path, **BETWEEN, overwrite=True)
    assert contents(tmp_path).keys() == old.keys()
    assert contents(tmp_path)["export"] != old["export"]


def test_a_failure_half_way_leaves_the_old_file_and_nothing_else(
    write, tmp_path, monkeypatch
):
    path = tmp_path / "export"
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


def test_folders_are_made_and_a_folder_is_no_file(write, tmp_path):
    path = tmp_path / "new" / "folder" / "export"
    assert write(make_given(2), str(path), **BETWEEN).is_file()
    with pytest.raises(LinkspreadError, match="`path` must be a file, got the folder"):
        write(make_given(2), path.parent, **BETWEEN, overwrite=True)


def test_a_file_within_a_file_is_told(write, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(LinkspreadError, match="can be written, got .*Choose another"):
        write(make_given(2), tmp_path / "file" / "export", **BETWEEN)


def test_a_model_that_fails_leaves_nothing(write, tmp_path):
    broken = GivenVectors(np.ones((1, 2)), np.array([[1.0, 2.0]]))
    broken.found = None
    with pytest.raises((TypeError, AttributeError)):
        write(broken, tmp_path / "export", **BETWEEN)
    assert contents(tmp_path) == {}


def test_a_link_that_leads_nowhere_counts_as_there(tmp_path):
    path = tmp_path / "export"
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(LinkspreadError, match="must be new"):
        exchange.write_numpy(make_given(2), path, **BETWEEN)


def test_a_missing_package_is_told_as_such():
    with pytest.raises(MissingDependencyError):
        with reading("file", what="a file", writer="write"):
            raise MissingDependencyError("Install it.")
