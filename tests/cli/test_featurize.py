"""``linkspread featurize``: what the library does, and what is said about it."""

import json
import sys

import numpy as np
import pytest

from linkspread.cli import main
from linkspread.features import TagFeatures, TextFeatures
from linkspread.manifests import load_features, read_collection
from manifest_collections import picture, write_items, write_table

TEXTS = ["sea and sky", "sky and sun", "bear in grass", "grass and tree"]


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Return what runs the command: its exit status, output and messages."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        given = ["linkspread", "featurize", *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", given)
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = capsys.readouterr()
        return stopped.value.code or 0, captured.out, captured.err

    return command


@pytest.fixture
def texts(tmp_path):
    """Return a folder of texts, one of them damaged."""
    folder = tmp_path / "texts"
    folder.mkdir()
    for i, text in enumerate(TEXTS):
        (folder / f"{i}.txt").write_text(text)
    (folder / "bad.txt").write_bytes(b"\xff\xfe\xff")
    return folder


def test_rows_are_those_of_the_library(run, texts):
    status, out, err = run(texts, "--output", "features")
    assert status == 0
    assert "text: items 4, features 8, metric cosine, left out 1" in out
    assert "undecodable: files 1" in out
    assert "text bad: 'bad.txt' must be text in UTF-8" in err
    assert "Written: features" in err
    features = load_features("features")
    X = TextFeatures().fit_transform(TEXTS).astype(np.float32)
    assert (features.views["text"] != X).nnz == 0
    assert features.ids["text"].tolist() == ["0", "1", "2", "3"]


def test_the_summary_as_json(run, texts):
    status, out, _ = run(texts, "--output", "features", "--text", "tags", "--json")
    document = json.loads(out)
    assert status == 0 and document["output"] == "features"
    view = {"kind": "text", "items": 4, "features": 8, "metric": "hellinger"}
    assert document["views"] == {"text": view}
    assert document["problems"] == {"undecodable": 1}
    assert document["left_out"][0]["id"] == "bad"
    assert type(load_features("features").transformers["text"]) is TagFeatures


def test_a_second_run_keeps_what_was_learnt_until_it_is_refreshed(run, texts):
    run(texts, "--output", "features")
    (texts / "0.txt").write_text("a volcano in the sea")
    _, out, err = run(texts, "--output", "features")
    assert "features 8," in out and "Learnt by an earlier run: text" in err
    _, out, err = run(texts, "--output", "features", "--refresh")
    assert "features 11," in out and "earlier" not in err
    # Other parameters, and another collection, never take it up.
    _, out, err = run(texts, "--output", "features", "--text", "tags")
    assert "earlier" not in err
    write_table(texts.parent / "t.csv", [("a", "one fish")], ("id", "text"))
    _, out, err = run(texts.parent / "t.csv", "--output", "features", "--text", "tags")
    assert "features 2," in out and "earlier" not in err


def test_a_dry_run_writes_nothing(run, texts, tmp_path):
    (texts / "p.jpg").write_bytes(picture(0))
    status, out, err = run(texts, "--dry-run")
    assert status == 0
    assert "text: items 5 texts, by TextFeatures\n" in out
    assert "image: items 1 pictures, by PictureFeatures" in out
    assert "Nothing is written" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["texts"]
    _, out, _ = run(texts, "--dry-run", "--json")
    plan = json.loads(out)["views"]["image"]
    assert plan == {"items": 1, "kind": "picture", "by": "PictureFeatures"}


def test_nothing_usable_is_status_1(run, tmp_path):
    (tmp_path / "items").mkdir()
    (tmp_path / "items" / "a.jpg").write_bytes(b"no picture")
    status, out, err = run("items", "--output", "features")
    assert status == 1
    assert "not a picture: files 1" in out and "nothing was written" in err
    assert not (tmp_path / "features").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone", "--output", "f"], "got 'gone', which is neither"),
        (["texts"], "`--output` must be a folder for the features"),
        (["texts", "--output", "texts"], "holds other files"),
        (["texts", "--output", "f", "--text", "poems"], "`text` must be one of"),
        (["texts", "--output", "f", "--jobs", "0"], "`n_jobs` must be None"),
    ],
)
def test_wrong_input_is_one_sentence_and_status_2(run, texts, arguments, message):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert message in err and err.startswith("linkspread: ") and err.count("\n") == 1


def test_paths_outside_need_an_option(run, tmp_path):
    write_items(tmp_path / "items", 2)
    (tmp_path / "own").mkdir()
    rows = [("a", "../items/0.txt"), ("b", "../items/1.txt")]
    write_table(tmp_path / "own" / "t.csv", rows, ("id", "text"))
    status, _, err = run("own/t.csv", "--output", "features")
    assert status == 2 and "leads outside" in err
    status, _, _ = run("own/t.csv", "--output", "features", "--allow-outside")
    assert status == 0


def test_an_interrupt_leaves_nothing_but_the_cache(run, texts, monkeypatch, tmp_path):
    def interrupted(self, texts):
        raise KeyboardInterrupt

    monkeypatch.setattr(TextFeatures, "transform", interrupted)
    status, _, err = run(texts, "--output", "features")
    assert status == 130
    assert "stopped; nothing was written to the output. Rows made so far" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "texts"]


def test_a_damaged_cache_is_told_in_a_sentence(run, texts, tmp_path):
    (tmp_path / "rows.sqlite").write_bytes(b"no database" * 1000)
    status, _, err = run(texts, "--output", "features", "--cache", "rows.sqlite")
    assert status == 0 and "linkspread: the cache 'rows.sqlite' must be" in err
    assert "Warning" not in err


def test_without_a_cache_none_is_made(run, texts, tmp_path):
    assert run(texts, "--output", "features", "--no-cache")[0] == 0
    assert not (tmp_path / "cache").exists()


def test_names_cannot_steer_the_terminal(run, tmp_path):
    (tmp_path / "items").mkdir()
    (tmp_path / "items" / "a.txt").write_text("fish")
    (tmp_path / "items" / "\x1b[31mred.txt").write_bytes(b"")
    _, out, err = run("items", "--output", "features")
    assert "\x1b" not in out + err


def test_help_has_an_example(run):
    status, out, _ = run("--help")
    assert status == 0
    assert "Example: linkspread featurize photos --output features" in out


@pytest.mark.slow
def test_a_mixed_folder_becomes_two_views(run, tmp_path):
    write_items(tmp_path / "items", 4)
    status, out, _ = run("items", "--output", "features", "--picture", "histograms")
    assert status == 0
    assert "image: items 4, features 4,440, metric hellinger, left out 0" in out
    features = load_features("features")
    collection = read_collection("items")
    assert features.ids["image"].tolist() == collection.views["image"].ids.tolist()
