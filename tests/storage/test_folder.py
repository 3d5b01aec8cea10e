"""Model folders: replaced in one step, never over something else, by one at a time."""

import os
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from linkspread.ground.errors import ModelError
from linkspread.storage import folder
from linkspread.storage.folder import Content, read_folder, write_folder

fcntl = pytest.importorskip("fcntl")


def content(value):
    """Return what a small folder holds."""
    return Content(
        tree={"value": value},
        arrays={"a": np.full(4, float(value))},
        about={"who": "a test"},
    )


@pytest.fixture
def path(tmp_path):
    """Return a folder with a model."""
    write_folder(tmp_path / "deep" / "model", content(1))
    return tmp_path / "deep" / "model"


def names(path):
    return sorted(own.name for own in path.iterdir())


def assert_holds(path, value):
    found, expected = read_folder(path), content(value)
    assert (found.tree, found.about) == (expected.tree, expected.about)
    assert_array_equal(found.arrays["a"], expected.arrays["a"])


def test_what_is_written_is_read(path):
    assert_holds(path, 1)
    assert len(names(path)) == 2


def test_a_model_is_replaced_and_other_files_stay(path):
    (path / "notes.txt").write_text("mine")
    (path / "arrays-of-mine.safetensors").write_text("mine")
    write_folder(path, content(2))
    assert_holds(path, 2)
    assert len(names(path)) == 4
    write_folder(path, content(2))
    assert_holds(path, 2)
    assert len(names(path)) == 4


def test_a_link_to_a_folder_is_a_folder(path, tmp_path):
    (tmp_path / "link").symlink_to(path)
    write_folder(tmp_path / "link", content(3))
    assert_holds(path, 3)
    assert_holds(str(tmp_path / "link"), 3)


def test_an_empty_folder_and_what_a_killed_save_left_are_written_to(tmp_path):
    leftover = f".linkspread-{'a' * 16}.partial"
    (tmp_path / leftover).write_text("half")
    (tmp_path / f"arrays-{'b' * 32}.safetensors").write_text("whole")
    with pytest.raises(ModelError, match="manifest.json: .* first save was cut short"):
        read_folder(tmp_path)
    write_folder(tmp_path, content(1))
    assert_holds(tmp_path, 1)
    assert len(names(tmp_path)) == 2


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("thesis.tex", "all my work", "holds other files. Give another path"),
        ("manifest.json", '{"name": "my app"}', "manifest.json: .*got None. Give a"),
        ("manifest.json", "all my work", "manifest.json: it must be JSON"),
    ],
)
def test_another_folder_is_never_written_to(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(ModelError, match=message):
        write_folder(tmp_path, content(1))
    assert names(tmp_path) == [name]
    assert (tmp_path / name).read_text() == text


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "model").write_text("mine")
    with pytest.raises(ModelError, match="must be a folder, and .* is a file"):
        write_folder(tmp_path / "model", content(1))
    with pytest.raises(ModelError, match="must be a folder, and there is none at"):
        read_folder(tmp_path / "model")
    with pytest.raises(ModelError, match="must be a folder, and there is none at"):
        read_folder(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["fsync", "replace"])
@pytest.mark.parametrize("number", range(2))
def test_a_disk_that_fails_leaves_the_old_model(name, number, path, monkeypatch):
    before, calls = names(path), []
    operation = getattr(os, name)

    def fail(*arguments):
        calls.append(arguments)
        if len(calls) > number:
            raise OSError(28, "No space left on device")
        return operation(*arguments)

    monkeypatch.setattr(os, name, fail)
    with pytest.raises(ModelError, match="No space left on device. Free some space"):
        write_folder(path, content(2))
    monkeypatch.undo()
    assert_holds(path, 1)
    assert names(path) == before


@pytest.mark.parametrize("number", range(2))
def test_a_disk_that_fails_leaves_no_new_folder(number, tmp_path, monkeypatch):
    calls, replace = [], os.replace

    def fail(*arguments):
        calls.append(arguments)
        if len(calls) > number:
            raise OSError(28, "No space left on device")
        return replace(*arguments)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ModelError, match="No space left"):
        write_folder(tmp_path / "new", content(1))
    assert not (tmp_path / "new").exists()


def test_a_stop_after_the_one_step_leaves_the_new_model_whole(path, monkeypatch):
    replace = os.replace

    def replace_and_stop(source, target):
        replace(source, target)
        if str(target).endswith("manifest.json"):
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", replace_and_stop)
    with pytest.raises(KeyboardInterrupt):
        write_folder(path, content(2))
    assert_holds(path, 2)


def test_the_data_are_on_the_disk_before_the_manifest_names_them(path, monkeypatch):
    done = []
    for name in ("fsync", "replace"):
        operation = getattr(os, name)

        def record(*arguments, name=name, operation=operation):
            done.append((name, str(arguments[-1])))
            return operation(*arguments)

        monkeypatch.setattr(os, name, record)
    write_folder(path, content(2))
    kinds = [name for name, _ in done]
    # The arrays, the folder, the manifest, the folder.
    assert kinds == ["fsync", "replace", "fsync"] * 2
    assert done[-2][1].endswith("manifest.json")


def test_two_must_not_write_at_once(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(ModelError, match="another is saving"):
            write_folder(path, content(2))
    finally:
        os.close(handle)
    write_folder(path, content(2))
    assert_holds(path, 2)


def test_a_drive_without_locks_is_written_to(path, monkeypatch):
    def no_locks(handle, operation):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    write_folder(path, content(2))
    assert_holds(path, 2)


def test_a_reader_goes_on_when_the_model_is_replaced_meanwhile(path, monkeypatch):
    read_once, calls = folder.read_manifest, []

    def read_then_replace(*arguments, **options):
        found = read_once(*arguments, **options)
        calls.append(found)
        if len(calls) == 1:
            monkeypatch.setattr(folder, "read_manifest", read_once)
            write_folder(path, content(2))
            monkeypatch.setattr(folder, "read_manifest", read_then_replace)
        return found

    monkeypatch.setattr(folder, "read_manifest", read_then_replace)
    assert_holds(path, 2)
    assert len(calls) == 3


def test_what_was_read_outlives_its_files(path):
    found = read_folder(path)
    write_folder(path, content(2))
    for own in path.iterdir():
        own.unlink()
    assert_array_equal(found.arrays["a"], np.full(4, 1.0))


def test_a_tree_that_readers_would_refuse_is_not_written(path, monkeypatch):
    monkeypatch.setattr(folder, "MAX_MANIFEST", 2000)
    large = replace(content(2), about={"names": "x" * 2000})
    with pytest.raises(ModelError, match="must take at most 2.0 kB as JSON, got"):
        write_folder(path, large)
    nested: list = []
    for _ in range(30):
        nested = [nested]
    with pytest.raises(ModelError, match="must be nested at most 24 deep"):
        write_folder(path, replace(content(2), tree={"nested": nested}))
    assert_holds(path, 1)


def test_a_folder_of_a_newer_version_says_which(path, monkeypatch):
    monkeypatch.setattr(folder, "FORMAT_VERSION", 6)
    monkeypatch.setattr("linkspread.__version__", "9.8.7")
    write_folder(path, content(2))
    monkeypatch.undo()
    message = "`format_version` 5, got 6, written by linkspread '9.8.7'. Install that"
    with pytest.raises(ModelError, match=message):
        read_folder(path)
    # It is a model nevertheless, and may be replaced.
    write_folder(path, content(3))
    assert_holds(path, 3)


def test_sizes_are_compared_before_a_file_is_read(path, monkeypatch):
    (arrays,) = path.glob("*.safetensors")
    n_bytes = arrays.stat().st_size
    arrays.write_bytes(arrays.read_bytes() + b"more")
    monkeypatch.setattr(folder, "hash_file", None)
    message = f"{arrays.name}: the file must have {n_bytes} bytes, got {n_bytes + 4}"
    with pytest.raises(ModelError, match=message):
        read_folder(path)


def test_checksums_are_compared_unless_verify_is_false(path):
    (arrays,) = path.glob("*.safetensors")
    data = bytearray(arrays.read_bytes())
    data[-2] ^= 1
    arrays.write_bytes(data)
    with pytest.raises(ModelError, match=f"{arrays.name}: .*checksum"):
        read_folder(path)
    assert read_folder(path, verify=False).arrays["a"][-1] != 1.0
