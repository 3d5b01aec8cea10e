"""`linkspread explain` says what `model.explain` says."""

import json
import math
from xml.etree import ElementTree

import pytest

import linkspread as ls
from judged_models import make_data, make_features, make_folder, run
from linkspread.cli import opening
from linkspread.judging import explanation_picture

ASK = {"source": "text", "target": "image"}


@pytest.fixture
def path(tmp_path):
    return make_folder(tmp_path / "model")


def test_the_document_is_the_explanation(path, capsys):
    given = ["--id", "t7", "--with", "i3", "-n", 4]
    assert run("explain", path, *given, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    why = ls.load(path).explain("t7", "i3", **ASK, n_links=4)
    for name in ("source", "target", "source_item", "target_item"):
        assert document[name] == getattr(why, name)
    assert document["score"] == pytest.approx(why.score)
    assert document.keys() >= why.splits.keys()
    for name, split in why.splits.items():
        parts = document[name]["parts"]
        total = math.fsum(part["amount"] for part in parts) + document[name]["rest"]
        assert total == pytest.approx(split.total)
        assert [part["amount"] for part in parts] == pytest.approx(
            [part.amount for part in split.parts]
        )
        named = [(part["source_item"], part["target_item"]) for part in parts]
        assert named == [(part.source_item, part.target_item) for part in split.parts]


def test_the_table_names_links_and_neighbours(path, tmp_path, capsys, monkeypatch):
    features = make_features(tmp_path)
    monkeypatch.setattr(opening, "read_features", lambda folder: features)
    assert run("explain", path, "--id", "i3", "--with", "t7", "-n", 2) == 0
    printed = capsys.readouterr()
    why = ls.load(path).explain("i3", "t7", source="image", target="text", n_links=2)
    assert printed.err == ""
    assert f"score {why.score:.4g}" in printed.out
    for part in why.contributions:
        assert part.kind in printed.out
        assert f"{part.target_item}: words of {part.target_item}" in printed.out
    assert f"{why.links.n_rest:,} more" in printed.out
    assert "Through neighbours of" in printed.out


def test_labels_are_explained_too(tmp_path, capsys):
    data = ls.datasets.make_views({"text": 40, "image": 30}, random_state=0)
    views, names = make_data()
    model = ls.LinkSpreading(n_neighbors=5)
    model.fit(views, data.labels, ids=names).save(tmp_path)
    given = ["--id", "t7", "--with", "i3"]
    assert run("explain", tmp_path, *given, "--json") == 0
    document = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    why = ls.load(tmp_path).explain("t7", "i3", **ASK)
    assert document["score"] == pytest.approx(why.score)
    assert run("explain", tmp_path, *given) == 0


def test_the_picture_is_that_of_the_report(path, tmp_path, capsys, monkeypatch):
    file = tmp_path / "why.svg"
    given = ["explain", path, "--id", "t7", "--with", "i3", "--output", file]
    assert run(*given, "--json") == 0
    printed = capsys.readouterr()
    json.loads(printed.out)
    assert printed.err == f"Picture: {file}\n"
    why = ls.load(path).explain("t7", "i3", **ASK, n_links=8)
    assert file.read_text() == explanation_picture(why, n_links=8)
    features = make_features(tmp_path)
    (tmp_path / "i3.png").write_bytes(b"damaged")
    monkeypatch.setattr(opening, "read_features", lambda folder: features)
    assert run(*given) == 0
    assert "a picture must be" in capsys.readouterr().err
    tree = ElementTree.parse(file)
    pictures = tree.findall(".//{http://www.w3.org/2000/svg}image")
    assert pictures and all(own.get("href").startswith("data:") for own in pictures)
    assert "words of t7" in file.read_text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--id", "t7", "--with", "i333"], "`--with` must be an item of view 'image'"),
        (["--id", "t777", "--with", "i3"], "none called 't777'. Similar: 't7"),
        (["--id", "t7", "--with", "i3", "--output", "a.png"], "must end in .svg, got"),
        (["--id", "t7"], "--with"),
    ],
)
def test_a_mistake_is_status_2(path, capsys, options, words):
    assert run("explain", path, *options) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.out == ""
