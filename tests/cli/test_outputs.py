"""What cannot be written is said before anything is computed, in one sentence."""

import errno
import os
import shutil

import pytest

import linkspread as ls
from example_files import command, prepare
from linkspread import datasets, manifests
from linkspread.cli.output import check_writable
from linkspread.ground.errors import LinkspreadError
from linkspread.models import model_folder

VIEWS = "--view text=text.parquet --view image=image.parquet"
FIT = f"fit {VIEWS} --links pairs.csv --model spreading --n-neighbors 5 --quiet"


@pytest.fixture
def folder(tmp_path):
    """Return a folder with all that the commands read, and a model."""
    prepare(tmp_path)
    return tmp_path


@pytest.fixture
def run(monkeypatch, folder):
    """Return a function that runs a command in the folder."""
    return lambda line: command(monkeypatch, folder, line)


@pytest.fixture
def never(monkeypatch):
    """Let everything that takes long fail the test."""

    def fail(*arguments, **options):
        raise AssertionError("something was computed")

    monkeypatch.setattr(ls.LinkSpreading, "fit", fail)
    monkeypatch.setattr(manifests, "featurize", fail)
    monkeypatch.setattr(datasets, "load_glyphs", fail)
    monkeypatch.setattr("linkspread.cli.export.open_model", fail)


def contents(folder):
    """Return every file but locks and what is in it."""
    files = (p for p in sorted(folder.rglob("*")) if p.name != model_folder.LOCK)
    return {p: p.read_bytes() for p in files if p.is_file()}


def one_sentence(capsys):
    """Return what was said, which must be one line."""
    err = capsys.readouterr().err
    assert err.startswith("linkspread: ") and err.count("\n") == 1, err
    return err


COMMANDS = {
    "fit": f"{FIT} --output pairs.csv/model",
    "fit, deep": f"{FIT} --output pairs.csv/a/b/model",
    "dry run": f"{FIT} --dry-run --output pairs.csv/model",
    "export": "export model --source text --output pairs.csv/a.npz",
    "featurize": "featurize photos --output pairs.csv/features",
    "demo": "demo --output pairs.csv/demo",
    "reproduce": "reproduce budgets glyphs --output pairs.csv/report",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_in_the_way_is_said_before_anything_is_computed(
    run, folder, never, capsys, name
):
    before = contents(folder)
    assert run(COMMANDS[name]) == 2
    err = one_sentence(capsys)
    assert "pairs.csv" in err and "Not a directory" in err
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["fit", "featurize", "export"])
def test_a_folder_that_takes_nothing_is_said_before_anything_is_computed(
    run, folder, never, capsys, monkeypatch, name
):
    # Whoever is root may write everywhere, so the system is spoken for.
    def refuse(*arguments, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("linkspread.storage.files.temporary_file", refuse)
    line = COMMANDS[name].replace("pairs.csv/", "")
    assert run(line.replace("--output model", "--output new")) == 2
    err = one_sentence(capsys)
    assert f"`--output` must be in a writable folder, and {str(folder)!r}" in err
    assert "Permission denied. Give another path." in err


@pytest.mark.skipif(
    hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere"
)
def test_permissions_bind(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(LinkspreadError, match="Permission denied"):
            check_writable(tmp_path / "model")
    finally:
        tmp_path.chmod(0o700)


def test_trying_leaves_nothing(tmp_path):
    (tmp_path / "file.csv").write_text("mine")
    for place in (".", "new", "a/b/c", "file.csv"):
        check_writable(tmp_path / place)
    assert [path.name for path in tmp_path.iterdir()] == ["file.csv"]


def test_an_export_that_may_not_replace_a_file_is_told_first(
    run, folder, never, capsys
):
    (folder / "older.npz").write_text("mine")
    assert run("export model --source text --output older.npz") == 2
    assert "exists. Choose another" in one_sentence(capsys)


@pytest.mark.parametrize("there", ["nothing", "an empty folder", "a model"])
@pytest.mark.parametrize("fails", ["model", "run.toml", "store"])
def test_a_full_disk_leaves_what_was_there(
    run, folder, capsys, monkeypatch, there, fails
):
    if there == "a model":
        assert run(f"{FIT} --output model") == 0
    elif there == "an empty folder":
        (folder / "model").mkdir()
    before, names = contents(folder), sorted(folder.rglob("*"))
    full = OSError(errno.ENOSPC, "No space left on device")
    if fails == "model":
        monkeypatch.setattr(os, "fsync", raiser(full))
    elif fails == "run.toml":
        monkeypatch.setattr(model_folder, "write_run", raiser(full))
    else:
        monkeypatch.setattr(model_folder, "_write_state", raiser(full))
    assert run(f"{FIT} --output model --alpha 0.6 --overwrite") == 2
    assert "No space left on device" in one_sentence(capsys)
    monkeypatch.undo()
    if there == "a model" and fails == "run.toml":
        # The model itself was replaced; it is whole.
        assert ls.load(folder / "model").alpha == 0.6
        return
    # The lock of a model stays.
    left = [p for p in sorted(folder.rglob("*")) if p.name != model_folder.LOCK]
    assert left == names
    judged = folder / "model" / "judgements.db"
    assert {p: b for p, b in contents(folder).items() if p != judged} == {
        p: b for p, b in before.items() if p != judged
    }


def raiser(error):
    """Return a function that fails."""

    def fail(*arguments, **options):
        raise error

    return fail


def test_an_empty_folder_that_cannot_be_moved_gets_the_model(run, folder, monkeypatch):
    # Such as one where another disk begins.
    (folder / "model").mkdir()
    monkeypatch.setattr(os, "rename", raiser(OSError(errno.EBUSY, "Device busy")))
    assert run(f"{FIT} --output model") == 0
    assert ls.load(folder / "model").n_neighbors == 5


def test_whatever_the_system_refuses_is_a_sentence(run, capsys, monkeypatch):
    refused = PermissionError(errno.EACCES, "Permission denied", "judgements.db")
    monkeypatch.setattr("linkspread.cli.inputs.read_inputs", raiser(refused))
    assert run(f"{FIT} --output model") == 2
    err = one_sentence(capsys)
    assert (
        "a file 'judgements.db' must be readable" in err and "Permission denied" in err
    )
    monkeypatch.setattr(
        "linkspread.cli.inputs.read_inputs", raiser(OSError("odd\nthing"))
    )
    assert run(f"{FIT} --output model") == 2
    assert "odd thing" in one_sentence(capsys)


def test_a_copied_model_is_refitted_in_its_own_folder(run, folder):
    assert run(f"{FIT} --output model") == 0
    shutil.copytree(folder / "model", folder / "copy")
    before = contents(folder / "model")
    assert run("fit --config copy/run.toml --alpha 0.6 --overwrite --quiet") == 0
    assert contents(folder / "model") == before
    assert ls.load(folder / "copy").alpha == 0.6
    # And where the original is no more.
    shutil.rmtree(folder / "model")
    assert run("fit --config copy/run.toml --alpha 0.5 --overwrite --quiet") == 0
    assert ls.load(folder / "copy").alpha == 0.5
    assert not (folder / "model").exists()
