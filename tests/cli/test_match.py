"""`linkspread match`: two tables of texts or a model, and its dialogue."""

import csv
import io
import json
import os
import sys

import numpy as np
import pytest

import linkspread as ls
from example_files import write_catalogues
from linkspread.cli import main
from linkspread.cli import match as command


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_catalogues(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(monkeypatch, line, typed=None):
    """Run a command as it is typed, and return its exit status."""
    monkeypatch.setattr(sys, "argv", ["linkspread", "match", *line.split()])
    if typed is not None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{k}\n" for k in typed)))
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code or 0


def rows_of(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_two_tables_are_matched_in_one_command(folder, monkeypatch, capsys):
    line = "ours.csv theirs.csv --judged rows.csv --output m.csv"
    assert run(monkeypatch, line) == 0
    rows = rows_of(folder / "m.csv")
    pairs = [row for row in rows if row["ours"] and row["theirs"]]
    right = [row["ours"][1:] == row["theirs"][1:] for row in pairs]
    assert np.mean(right) > 0.9
    assert len(pairs) > 30
    assert all(0 < float(row["probability"]) <= 1 for row in pairs)
    captured = capsys.readouterr()
    assert "Texts: title. Numbers: price." in captured.err
    assert "of them are right" in captured.out


def test_without_judgements_there_is_no_probability(folder, monkeypatch, capsys):
    assert run(monkeypatch, "ours.csv theirs.csv --json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["precision"] is None
    assert all(row["probability"] is None for row in document["matches"])


def test_each_answer_is_stored_before_the_next_pair(folder, monkeypatch, capsys):
    seen = []
    monkeypatch.setattr(
        command.Tables,
        "describe",
        lambda self, view, item: seen.append(
            self.judged.read_text() if self.judged.exists() else ""
        ),
    )
    line = "ours.csv theirs.csv --judged asked.csv --ask --output m.csv"
    assert run(monkeypatch, line, ["y", "n", "z", "u", "?", "q"]) == 0
    text = (folder / "asked.csv").read_text().splitlines()
    assert text[0] == "ours,theirs,verdict"
    assert [row.rpartition(",")[2] for row in text[1:]] == ["must", "unsure"]
    # Two cells of each pair; before the first pair the file is not there.
    assert [own.count("\n") for own in seen[::2]] == [0, 2, 3, 2, 3, 3]
    assert "undone" in capsys.readouterr().err


def test_answers_are_learnt_and_not_asked_again(folder, monkeypatch):
    line = "ours.csv theirs.csv --judged asked.csv --ask --output m.csv --overwrite"
    run(monkeypatch, line, ["y"] * 12)
    first = rows_of(folder / "asked.csv")
    run(monkeypatch, line, ["n"] * 5)
    both = rows_of(folder / "asked.csv")
    assert len(first) == 12
    pairs = [(row["ours"], row["theirs"]) for row in both]
    assert len(set(pairs)) == len(pairs) == 17
    kept = {(row["ours"], row["theirs"]) for row in rows_of(folder / "m.csv")}
    assert set(pairs[:12]) <= kept
    assert not set(pairs[12:]) & kept


def test_a_model_is_matched_and_asks(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    views = {"ours": X, "theirs": X + 0.2 * rng.normal(size=X.shape)}
    ids = {view: [f"{view[0]}{i}" for i in range(40)] for view in views}
    model = ls.CrossViewSearch().fit(views, ids=ids)
    path = tmp_path / "model"
    ls.ModelFolder.create(path, model)
    output = tmp_path / "m.json"
    line = f"{path} --ask --who ann --output {output}"
    assert run(monkeypatch, line, ["y", "n", "z", "q"]) == 0
    with ls.ModelFolder(path).store() as store:
        assert [own.verdict for own in store.judgements()] == ["must"]
    document = json.loads(output.read_text())
    assert sum(row["judged"] for row in document["matches"]) == 1
    assert "They are not calibrated" in capsys.readouterr().out


def test_renamed_columns_and_other_ids(folder, monkeypatch, capsys):
    (folder / "other.csv").write_text(
        (folder / "theirs.csv").read_text().replace("id,title", "code,label")
    )
    assert run(monkeypatch, "ours.csv other.csv --columns title=label --json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["matches"][0]["other"].isdecimal()
    (folder / "coded.csv").write_text(
        (folder / "theirs.csv").read_text().replace("id,title", "code,title")
    )
    (folder / "mine.csv").write_text(
        (folder / "ours.csv").read_text().replace("id,title", "code,title")
    )
    assert run(monkeypatch, "mine.csv coded.csv --id-column code --json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["matches"][0]["coded"].startswith("t")


BAD = {
    "no common column": ("id,a\n1,x\n", "id,b\n1,x\n", "share a column"),
    "only numbers": ("id,a\n1,5\n", "id,a\n1,6\n", "share a column of texts"),
    "no common word": ("id,a\n1,x y\n", "id,a\n1,z\n", "words in common"),
    "empty": ("id,a\n", "id,a\n1,x\n", "at least one row"),
    "nothing at all": ("", "id,a\n1,x\n", "column names"),
    "duplicate ids": ("id,a\n1,x\n1,y\n", "id,a\n1,x\n", "distinct"),
    "ragged": ("id,a\n1,x,y\n", "id,a\n1,x\n", "line 2"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_tables_get_one_sentence(tmp_path, monkeypatch, capsys, kind):
    first, second, words = BAD[kind]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(first)
    (tmp_path / "b.csv").write_text(second)
    assert run(monkeypatch, "a.csv b.csv") == 2
    *_, line = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("linkspread: ")
    assert words in line


def test_a_huge_file_is_refused_before_it_is_read(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("id,a\n1,x\n")
    with (tmp_path / "b.csv").open("wb") as file:
        os.truncate(file.fileno(), 10 << 30)
    assert run(monkeypatch, "a.csv b.csv") == 2
    assert "at most 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ours.csv theirs.csv --ask", "--judged"),
        ("ours.csv theirs.csv --output m.xls", "must end in"),
        ("ours.csv theirs.csv --columns nope", "`columns`"),
        ("ours.csv theirs.csv --id-column nope", "`--id-column`"),
        ("ours.csv theirs.csv --precision 0.9", "`precision`"),
        ("ours.csv theirs.csv --judged ours.csv", "ours"),
        ("ours.csv nothing.csv", "must exist"),
        ("nothing", "nothing"),
    ],
)
def test_wrong_options_get_one_sentence(folder, monkeypatch, capsys, line, words):
    assert run(monkeypatch, line) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("linkspread: ")
    assert words in last


def test_answers_need_a_file_of_their_form(folder, monkeypatch, capsys):
    (folder / "asked.csv").write_text("a,ours,theirs,verdict\n1,o1,t1,must\n")
    line = "ours.csv theirs.csv --judged asked.csv --ask"
    assert run(monkeypatch, line, ["y"]) == 2
    assert "for --ask" in capsys.readouterr().err
