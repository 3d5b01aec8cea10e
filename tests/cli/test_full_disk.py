"""A full disk, or an output that cannot be written, is one sentence and status 2."""

import shutil
import sys
from contextlib import contextmanager

import pytest

from example_files import command, prepare
from linkspread.cli import main
from linkspread.models import ModelFolder

resource = pytest.importorskip("resource")

FIT = "fit --view text=text.parquet --view image=image.parquet --links pairs.csv"
WRITING = {
    "fit": f"{FIT} --output new --quiet",
    "refit": f"{FIT} --output model --overwrite --quiet",
    "featurize": "featurize photos --output features --no-cache",
    "links add": "links add model t7 i3 --must",
    "links undo": "links undo model 1",
    "links import": "links import model held-out.csv",
    "links export": "links export model judged.csv",
    "explain": "explain model --id t7 --with i3 --output why.svg",
    **{f"export {kind}": f"export model --source text --output x.{kind}"
       for kind in ("parquet", "npz", "run")},
}  # fmt: skip


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Return a folder with files and a model."""
    folder = tmp_path_factory.mktemp("prepared")
    prepare(folder)
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert command(monkeypatch, folder, f"{FIT} --output model --quiet") == 0
    return folder


@pytest.fixture
def folder(prepared, tmp_path):
    """Return a copy of the folder."""
    return shutil.copytree(prepared, tmp_path / "work")


@contextmanager
def full_disk():
    """Let no file grow, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def contents(folder):
    """Return the files of a folder that a command must not change."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "judgements.db" not in path.name
    }


def judgements(folder):
    """Return the judgements that count."""
    with ModelFolder(folder / "model").store() as store:
        return [own.id for own in store.judgements()]


SLOW = pytest.param("featurize", marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [SLOW, *sorted(WRITING.keys() - {"featurize"})])
def test_a_full_disk_is_one_sentence_and_changes_nothing(
    name, folder, monkeypatch, capsys
):
    """Tracebacks ended `fit`, `featurize` and `links add`."""
    before, counted = contents(folder), judgements(folder)
    with full_disk():
        status = command(monkeypatch, folder, WRITING[name])
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert status == 2 and last.startswith("linkspread: "), last
    assert contents(folder) == before
    assert judgements(folder) == counted
    assert command(monkeypatch, folder, WRITING[name]) == 0


@pytest.mark.parametrize("line", ["info model", "search model --id t7 --json"])
def test_results_that_cannot_be_printed_are_one_sentence(
    line, folder, monkeypatch, capsys
):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["linkspread", *line.split()])
    with open("/dev/full", "w") as full, monkeypatch.context() as context:
        context.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as stopped:
            main()
    assert stopped.value.code == 2
    assert "No space left" in capsys.readouterr().err
