"""`linkspread suggest` and its dialogue: each answer is stored, then learnt."""

import io
import json
import sys

import numpy as np
import pytest

import linkspread as ls
from judged_models import PAIRS, make_features, make_folder, run
from linkspread.cli import opening, output

ASK = {"source": "text", "target": "image"}


@pytest.fixture
def path(tmp_path):
    return make_folder(tmp_path / "model")


@pytest.fixture
def typed(monkeypatch):
    """Let lines be typed."""

    def type_lines(*lines):
        text = "".join(f"{line}\n" for line in lines)
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))

    monkeypatch.setenv("LINKSPREAD_WHO", "ann")
    return type_lines


def judgements(path, **options):
    """Return who said what of which pair."""
    with ls.ModelFolder(path).store() as store:
        return [
            (own.who, own.left_id, own.verdict, own.right_id)
            for own in store.judgements(after=len(PAIRS), **options)
        ]


def suggested(path, n, judge=""):
    left, right = ls.load(path).suggest_pairs(n, **ASK, judge=judge)
    return list(zip(left.tolist(), right.tolist(), strict=True))


def test_the_pairs_are_those_of_the_library(path, capsys):
    assert run("suggest", path, "-n", 5, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["source"], document["target"]) == ("text", "image")
    pairs = document["pairs"]
    named = [(own["source_id"], own["target_id"]) for own in pairs]
    assert named == suggested(path, 5)
    model = ls.load(path)
    left, right = zip(*named, strict=True)
    scores = np.diag(model.scores("text", "image", rows=left, cols=right))
    assert [own["score"] for own in pairs] == pytest.approx(scores.tolist(), rel=1e-5)
    gains = model.expected_gains(left, right, **ASK)
    assert [own["gain"] for own in pairs] == pytest.approx(gains.tolist())


def test_the_table_shows_both_items(path, tmp_path, capsys, monkeypatch):
    features = make_features(tmp_path)
    monkeypatch.setattr(opening, "read_features", lambda folder: features)
    # Long paths of temporary folders would be broken into lines.
    monkeypatch.setattr(output, "PIPED_WIDTH", 1000)
    assert run("suggest", path, "-n", 2) == 0
    printed = capsys.readouterr().out
    for left, right in suggested(path, 2):
        assert f"words of {left}" in printed
        assert f"{right}.png" in printed
    assert "gain" in printed


def test_answers_are_stored_and_learnt(path, typed, capsys):
    pairs = suggested(path, 4, "ann")
    typed("y", "N", "what", "u", "yes")
    assert run("suggest", path, "-n", 4, "--ask") == 0
    printed = capsys.readouterr()
    verdicts = ["must", "cannot", "unsure", "must"]
    wanted = [("ann", i, own, j) for (i, j), own in zip(pairs, verdicts, strict=True)]
    assert judgements(path) == wanted
    assert printed.out == ""
    assert "Please answer y, n, u, z or q." in printed.err
    assert "The model is up to date: 3 added." in printed.err
    links = [(*pairs[0], 1.0), (*pairs[1], -1.0), (*pairs[3], 1.0)]
    model = ls.load(path)
    kept = model.links_.judged("text", "image")
    i, j = (
        model.items_[view].positions([link[k] for link in links])
        for k, view in enumerate(("text", "image"))
    )
    assert np.asarray(kept[i, j]).ravel().tolist() == [1.0, -1.0, 1.0]
    # Nobody is asked twice, also not about what nobody can tell.
    assert not set(suggested_by_command(path, capsys)) & set(pairs)


def suggested_by_command(path, capsys):
    run("suggest", path, "-n", 4, "--json")
    document = json.loads(capsys.readouterr().out)
    return [(own["source_id"], own["target_id"]) for own in document["pairs"]]


def test_an_answer_can_be_undone_and_the_end_of_input_quits(path, typed, capsys):
    pairs = suggested(path, 3, "ann")
    typed("z", "y", "y", "z", "n")
    assert run("suggest", path, "-n", 3, "--ask", "--who", "bob", "--json") == 0
    printed = capsys.readouterr()
    assert "There is nothing to undo." in printed.err
    assert judgements(path) == [
        ("bob", pairs[0][0], "must", pairs[0][1]),
        ("bob", pairs[1][0], "cannot", pairs[1][1]),
    ]
    assert len(judgements(path, active_only=False)) == 3
    document = json.loads(printed.out)
    assert document["n_answers"] == 2
    verdicts = [own.get("verdict") for own in document["pairs"]]
    assert verdicts == ["must", "cannot", None]


def test_quitting_asks_no_further(path, typed, capsys):
    typed("y", "q", "y")
    assert run("suggest", path, "-n", 3, "--ask") == 0
    assert len(judgements(path)) == 1
    assert sys.stdin.read() == "y\n"


def test_what_was_answered_before_an_interrupt_stays(path, monkeypatch, capsys):
    class Interrupted(io.StringIO):
        def readline(self):
            line = super().readline()
            if not line:
                raise KeyboardInterrupt
            return line

    monkeypatch.setattr(sys, "stdin", Interrupted("y\nn\n"))
    assert run("suggest", path, "-n", 3, "--ask", "--who", "ann") not in (0, 2)
    assert len(judgements(path)) == 2
    capsys.readouterr()
    assert run("search", path, "--id", "t7") == 0
    assert "2 judgements are not in the model yet" in capsys.readouterr().err


def test_no_pair_left_is_status_1(tmp_path, capsys):
    data = ls.datasets.make_views({"text": 12, "image": 9}, random_state=0)
    model = ls.LinkSpreading(n_neighbors=4).fit(data.views(), data.labels)
    model.save(tmp_path)
    assert run("suggest", tmp_path, "--json") == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["pairs"] == []
    assert printed.err == "linkspread: there is no pair left to judge.\n"


def test_without_a_name_nobody_can_judge(path, typed, capsys, monkeypatch):
    def fail():
        raise OSError("no login")

    monkeypatch.delenv("LINKSPREAD_WHO")
    monkeypatch.setattr("getpass.getuser", fail)
    assert run("suggest", path, "--ask") == 2
    assert "`--who` must say who judges" in capsys.readouterr().err


def test_doubts_are_those_of_the_library(tmp_path, capsys):
    data = ls.datasets.make_views(90, n_classes=3, random_state=0)
    y, rng = data.labels["text"], np.random.default_rng(0)
    i, j = rng.permutation(90)[:60], rng.permutation(90)[:60]
    table = np.column_stack(
        [i, j, np.where(y[i] == data.labels["image"][j], 1.0, -1.0)]
    )
    links = ls.Links.from_pairs(table, between=("text", "image"))
    ls.CrossViewSearch().fit(data.views(), links).save(tmp_path / "model")
    assert run("doubts", tmp_path / "model", "-n", 3, "--json") == 0
    found = json.loads(capsys.readouterr().out)["doubts"]
    assert len(found) == 3
    for own, expected in zip(
        found, ls.load(tmp_path / "model").doubts(3, **ASK), strict=True
    ):
        assert own["probability"] == pytest.approx(expected.probability)
        assert own["verdict"] == expected.verdict
    assert run("doubts", tmp_path / "model") == 0
    assert "contradicted" in capsys.readouterr().out


def test_doubts_need_the_learner(path, capsys):
    assert run("doubts", path) == 2
    assert "CrossViewSearch" in capsys.readouterr().err


def test_progress_is_that_of_the_library(tmp_path, capsys, path):
    data = ls.datasets.make_views(90, n_classes=3, random_state=0)
    cells = np.random.default_rng(0).permutation(8100)[:80]
    i, j = np.divmod(cells, 90)
    is_same = data.labels["text"][i] == data.labels["image"][j]
    table = np.column_stack([i, j, np.where(is_same, 1.0, -1.0)])
    links = ls.Links.from_pairs(table, between=("text", "image"))
    ls.CrossViewSearch().fit(data.views(), links).save(tmp_path / "learner")
    assert run("progress", tmp_path / "learner", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    expected = ls.load(tmp_path / "learner").progress(**ASK)
    own = found["measures"]["precision at 10"]
    assert own["value"] == pytest.approx(expected.measures["precision at 10"].value)
    assert found["rule"] == expected.rule
    assert run("progress", tmp_path / "learner") == 0
    assert "precision at 10" in capsys.readouterr().out
    assert run("progress", path) == 2
    assert "CrossViewSearch" in capsys.readouterr().err
