"""Commands open a model whatever its store is like, and say what it lacks."""

import json

import pytest

import linkspread as ls
from judged_models import BETWEEN, make_folder, run
from linkspread.cli.opening import read_features, report_pending
from linkspread.ground.errors import ModelError


@pytest.fixture
def path(tmp_path):
    """Return a folder whose pairs are all stored and applied."""
    return make_folder(tmp_path / "model")


def test_what_is_pending_is_told_with_the_remedy(path, capsys):
    folder = ls.ModelFolder(path)
    report_pending(folder)
    assert capsys.readouterr() == ("", "")
    pairs = [("t30", "i4", 1.0), ("t30", "i5", 1.0)]
    folder.judge_pairs(pairs, between=BETWEEN, who="ann")
    report_pending(folder)
    told = capsys.readouterr()
    assert "2 judgements are not in the model yet" in told.err
    assert f"linkspread links apply {path}" in told.err
    assert told.out == ""


def test_a_store_that_cannot_be_read_does_not_stop_a_search(path, capsys):
    (path / "judgements.db").write_bytes(b"no database at all" * 99)
    assert run("search", path, "--id", "t7", "--json") == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["queries"]
    assert "unknown whether the model has all judgements: a link store" in told.err
    assert run("links", "list", path) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_store_that_is_not_there_is_not_made_by_looking(path, tmp_path, capsys):
    place = tmp_path / "elsewhere.db"
    assert run("links", "list", path, "--store", place) == 1
    assert run("search", path, "--id", "t7", "--store", place) == 0
    assert not place.exists()


def test_a_run_file_names_the_features(path):
    folder = ls.ModelFolder(path)
    assert read_features(folder) is None
    (path / "run.toml").write_text("graph = 'knn'\n")
    assert read_features(folder) is None
    (path / "run.toml").write_text("graph = \n")
    with pytest.raises(ModelError, match="run.toml of .* must be a TOML file"):
        read_features(folder)
