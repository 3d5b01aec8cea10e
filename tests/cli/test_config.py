"""Options in files: what is written is read again, and mistakes are named."""

import os
import string
import tomllib
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkspread.cli.opening import read_features, read_run
from linkspread.cli.options import gather_options, read_config, run_file, write_toml
from linkspread.ground.errors import LinkspreadError

WORDS = st.text(string.printable + 'äé"\\\x7f\u2028', max_size=12)
VALUES = st.one_of(WORDS, st.booleans(), st.integers(-99, 99), st.floats(-9, 9))
NAMES = st.text(string.ascii_lowercase + "_", min_size=1, max_size=6)


@given(st.dictionaries(NAMES, st.one_of(VALUES, st.lists(VALUES, max_size=3))))
def test_toml_is_read_as_it_was_written(options):
    assert tomllib.loads(write_toml(options)) == options


@given(st.dictionaries(st.text(min_size=1, max_size=4), VALUES, min_size=1))
def test_tables_have_keys_of_any_text(table):
    assert tomllib.loads(write_toml({"grid": table, "a": 1})) == {
        "grid": table,
        "a": 1,
    }


def test_what_is_typed_goes_before_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    path = tmp_path / "sub" / "fit.toml"
    path.write_text('view = ["a=a.npy"]\nlinks = "p.csv:l,r"\nbeta = 0.5\nrank = 3\n')
    typed = {"view": None, "links": [], "beta": 0.9, "rank": None}
    options = gather_options(typed, path)
    # Paths of a file are taken from its own folder.
    assert options == {
        "view": [f"a={tmp_path / 'sub' / 'a.npy'}"],
        "links": [f"{tmp_path / 'sub' / 'p.csv'}:l,r"],
        "beta": 0.9,
        "rank": 3,
    }
    again = tmp_path / "run.toml"
    again.write_text(run_file(options, tmp_path))
    assert tomllib.loads(again.read_text())["view"] == ["a=sub/a.npy"]
    assert gather_options(dict.fromkeys(typed), again) == options


def test_a_run_file_names_only_what_is_beside_it_from_there(tmp_path):
    outside = tmp_path / "text.npy"
    options = {
        "view": [f"text={outside}", f"image={tmp_path / 'model' / 'image.npy'}"],
        "links": [f"text,image={tmp_path / 'model' / 'sub' / 'p.csv'}:l,r"],
        "labels": [f"text={tmp_path / 'model.csv'}:label"],
        "features": str(tmp_path / "model" / "features"),
        "output": str(tmp_path / "model"),
        "beta": 0.5,
    }
    text = run_file(options, tmp_path / "model")
    written = tomllib.loads(text)
    assert written["view"] == [f"text={outside}", "image=image.npy"]
    assert written["links"] == ["text,image=sub/p.csv:l,r"]
    assert written["labels"] == options["labels"]
    assert (written["features"], written["output"]) == ("features", ".")
    # In another folder what was beside it is beside it again.
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "run.toml").write_text(text)
    read = read_config(tmp_path / "copy" / "run.toml", known=options)
    moved = {k: str(v).replace("/model/", "/copy/") for k, v in options.items()}
    moved["output"] = str(tmp_path / "copy")
    assert {k: str(v) for k, v in read.items()} == moved


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("views = 1", "must name options of the command, beta, view, got 'views'"),
        ("beta = ", "must be a TOML file"),
        ("view = [3]", "`--view` must be a name and a file, .*, got 3"),
    ],
)
def test_mistakes_in_a_file_are_named(tmp_path, text, message):
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(LinkspreadError, match=message):
        read_config(path, known=["view", "beta"])
    with pytest.raises(
        LinkspreadError, match="must be a TOML file, and .*No such file"
    ):
        read_config(tmp_path / "no.toml", known=[])


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = [", "\xff", None])
def test_a_run_file_that_is_none_is_refused(text, tmp_path):
    path = tmp_path / "run.toml"
    if text is None:
        os.mkfifo(path)
    else:
        path.write_text(text, encoding="latin-1")
    with pytest.raises(LinkspreadError, match=r"run.toml .* must be a TOML file"):
        read_run(SimpleNamespace(path=tmp_path))


def test_features_named_by_a_number_are_refused(tmp_path):
    (tmp_path / "run.toml").write_text("features = 7")
    with pytest.raises(LinkspreadError, match="`features` of run.toml .* got 7"):
        read_features(SimpleNamespace(path=tmp_path))
