"""`linkspread fit`: the model of the library, whole or not at all."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib

import numpy as np
import pandas
import pytest
from typer.testing import CliRunner

import linkspread as ls
from example_files import command, made_data, write_pairs, write_views
from linkspread.cli import app
from linkspread.cli.inputs import Judged, add_up
from linkspread.ground.errors import MissingDependencyError
from linkspread.links.pairs import PairTable
from linkspread.models.search_pairs import plan_search
from linkspread.storage import Judgement, LinkStore

VIEWS = "--view text=text.parquet --view image=image.parquet"
FIT = f"fit {VIEWS} --links pairs.csv"
QUICK = f"{FIT} --model spreading --n-neighbors 5"


@pytest.fixture
def folder(tmp_path):
    """Return a folder with the tables and pairs of two views."""
    write_views(tmp_path, made_data())
    write_pairs(tmp_path, made_data())
    return tmp_path


@pytest.fixture
def run(monkeypatch, folder):
    """Return a function that runs a command in the folder."""
    return lambda line: command(monkeypatch, folder, line)


def scores(model):
    """Return all scores of a model, by ids."""
    return model.scores("text", "image")


def library(folder, make):
    """Return what the library makes of the same files."""
    tables = {v: pandas.read_parquet(folder / f"{v}.parquet").set_index("id")
              for v in ("text", "image")}  # fmt: skip
    pairs = pandas.read_csv(folder / "pairs.csv").rename(columns={"verdict": "weight"})
    links = ls.Links.from_pairs(pairs, between=("text", "image"))
    views = {v: t.filter(regex="^x").to_numpy() for v, t in tables.items()}
    ids = {v: np.asarray(t.index, dtype=str) for v, t in tables.items()}
    return make(views, links, ids)


@pytest.mark.slow
def test_a_bare_fit_is_the_default_one_and_runs_again(run, folder, capsys):
    assert run(f"{FIT} --output model") == 0
    out = capsys.readouterr().out
    model = ls.load(folder / "model")
    plain = library(folder, lambda X, L, ids: ls.CrossViewSearch().fit(X, L, ids=ids))
    # Sums of several threads differ in their last digits.
    np.testing.assert_allclose(scores(model), scores(plain), atol=1e-5)
    assert model.summary_ in out
    next_line = out.splitlines()[-1]
    assert next_line == (
        "Next: linkspread search model --source text --target image --id t0"
    )
    assert run("fit --config model/run.toml --output again --quiet") == 0
    np.testing.assert_array_equal(scores(ls.load(folder / "again")), scores(model))
    assert capsys.readouterr() == ("", "")
    assert run(next_line.removeprefix("Next: linkspread ")) == 0


def test_parameters_are_those_of_the_library(run, folder):
    typed = "--model spreading --n-neighbors text=7 --n-neighbors 5 --alpha 0.3"
    typed += " --beta 0.6 --metric image=cosine --rank 20"
    assert run(f"{FIT} {typed} --output model") == 0
    expected = library(
        folder,
        lambda X, L, ids: ls.LinkSpreading(
            n_neighbors={"text": 7, "image": 5},
            alpha=0.3,
            beta=0.6,
            metric={"text": "euclidean", "image": "cosine"},
            rank=20,
        ).fit(X, L, ids=ids),
    )
    np.testing.assert_array_equal(scores(ls.load(folder / "model")), scores(expected))
    stored = tomllib.loads((folder / "model" / "run.toml").read_text())
    assert stored["n_neighbors"] == ["text=7", "5"]
    assert stored["command"] == "fit"


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("--output held-out.csv", "must be a new folder, an empty one"),
        ("--output full", "holds other files. Give another."),
        ("", "`--output` must be a folder for a model, and was not given"),
        ("--output m --metric sound=cosine", "`--metric` must be one value, or a value "
         "for each of the views 'text', 'image', got 'sound'"),
        ("--output m --metric a --metric b", "got 2 values for all"),
        ("--output m --model spreading --balance fair", "`balance` must be 'auto', "
         "'literal'"),
        ("--output m --links none.csv", "a table must exist, and there is none at"),
        ("--output m --model cosine", "`--model` must be search or spreading, got"),
        ("--output m --alpha 0.3", "`--alpha` must go with --model spreading, got it"),
        ("--output m --shards", "Leave --shards out, or add --model spreading."),
        ("--output m --metric chi2", "`metric` must be"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_and_write_nothing(run, folder, capsys, typed, message):
    (folder / "full").mkdir()
    (folder / "full" / "mine.txt").write_text("mine")
    before = sorted(folder.rglob("*"))
    assert run(f"{FIT} --quiet {typed}") == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.startswith("linkspread: ") and err.count("\n") == 1
    assert sorted(folder.rglob("*")) == before


def test_ratings_and_stale_ids_are_fitted_when_told_how(run, folder, capsys):
    """Stars gave must-links only, and one stale id stopped the fit."""
    assert run(f"{QUICK} --output model --quiet") == 0
    text = (folder / "pairs.csv").read_text()
    text = text.replace("must", "5").replace("cannot", "1") + "t999,i0,5\nt0,i0,3\n"
    (folder / "pairs.csv").write_text(text)
    typed = f"{QUICK} --output stars --quiet"
    for option, remedy in (
        ("", "--must-above 3"),
        ("--must-above 3", "--skip-unknown"),
    ):
        assert run(f"{typed} {option}") == 2
        assert remedy in capsys.readouterr().err
    typed = typed.replace("--quiet", "--must-above 3 --skip-unknown")
    assert run(typed) == 0
    told = capsys.readouterr().err
    assert (
        "1 of 41 pairs name items that no view has and were skipped: text 't999'"
        in (told)
    )
    assert "1 row is unsure and not counted." in told
    expected = scores(ls.load(folder / "model"))
    np.testing.assert_array_equal(scores(ls.load(folder / "stars")), expected)
    assert run("fit --config stars/run.toml --output again --quiet") == 0
    np.testing.assert_array_equal(scores(ls.load(folder / "again")), expected)


def test_an_older_model_is_replaced_only_when_asked(run, folder, capsys):
    assert run(f"{QUICK} --output model --quiet") == 0
    (folder / "model" / "mine.txt").write_text("mine")
    old = scores(ls.load(folder / "model"))
    assert run(f"{QUICK} --output model --quiet") == 2
    assert "holds a model. Add --overwrite" in capsys.readouterr().err
    assert run(f"{QUICK} --alpha 0.6 --output model --overwrite --quiet") == 0
    assert not np.allclose(scores(ls.load(folder / "model")), old)
    assert (folder / "model" / "mine.txt").read_text() == "mine"


def test_the_pairs_are_in_the_store_and_in_the_model(run, folder):
    assert run(f"{QUICK} --output model --quiet") == 0
    opened = ls.ModelFolder(folder / "model")
    assert opened.pending() == 0
    with opened.store() as store:
        rows = list(store.judgements())
    pairs = pandas.read_csv(folder / "pairs.csv")
    told = {(row.left_id, row.right_id, row.verdict) for row in rows}
    assert told == set(pairs.itertuples(index=False, name=None))
    assert {row.who for row in rows} == {"import"}
    # Importing the same file says nothing new.
    assert run("links import model pairs.csv") == 0
    assert opened.pending() == 0


def test_a_fit_over_a_model_takes_up_what_people_judged(run, folder):
    assert run(f"{QUICK} --output model --quiet") == 0
    opened = ls.ModelFolder(folder / "model")
    pairs = pandas.read_csv(folder / "pairs.csv")
    pair = dict(left_view="text", left_id="t59", right_view="image", right_id="i39")
    with opened.store() as store:
        first = next(iter(store.judgements()))
        store.undo(first.id, who="ann")
        store.add(Judgement(who="ann", verdict="must", **pair))
    # The files lose a pair, which the store then takes back.
    pairs.iloc[:-1].to_csv(folder / "pairs.csv", index=False)
    assert run("fit --config model/run.toml --overwrite --quiet") == 0
    model = ls.load(folder / "model")
    given = pairs.iloc[:-1].replace({"must": 1.0, "cannot": -1.0})
    expected = {(t, i): w for t, i, w in given.itertuples(index=False, name=None)}
    del expected[first.left_id, first.right_id]
    block = model.links_.resolve(model.items_).judged("text", "image").tocoo()
    entries = zip(block.row, block.col, block.data, strict=True)
    found = {(f"t{i}", f"i{j}"): w for i, j, w in entries}
    assert found == expected | {("t59", "i39"): 1.0}
    assert opened.pending() == 0
    # The file says the lost pair again, and the store too.
    pairs.to_csv(folder / "pairs.csv", index=False)
    assert run("fit --config model/run.toml --overwrite --quiet") == 0
    block = ls.load(folder / "model").links_.judged("text", "image")
    assert block.nnz == len(expected) + 2


def test_pairs_that_repeat_are_added_up_for_the_store():
    def judged(between, *pairs):
        return Judged(between, PairTable(*map(np.array, zip(*pairs, strict=True))))

    tables = [
        judged(("a", "b"), (0, 1, 1.0), (0, 1, 0.5), (2, 2, 1.0)),
        judged(("b", "a"), (2, 2, -1.0), (7, 8, -1.0)),
    ]
    assert add_up(tables) == {("a", "b"): [(0, 1, 1.5), (8, 7, -1.0)]}


def test_a_dry_run_tells_the_plan_and_writes_nothing(run, folder, capsys):
    before = sorted(folder.rglob("*"))
    assert run(f"{FIT} --output model --dry-run") == 0
    told = capsys.readouterr().out
    assert "text: 60 items, 8 features" in told
    assert "all parameters as by default" in told
    assert run(f"{QUICK} --output model --dry-run") == 0
    told = capsys.readouterr().out
    assert "n_neighbors ['5']" in told
    assert "14 must, 26 cannot" in told
    assert sorted(folder.rglob("*")) == before


PROGRAM = """
import signal, sys, time
# Programs that a shell starts in the background ignore interrupts, and so would this.
signal.signal(signal.SIGINT, signal.default_int_handler)
from linkspread.cli import main
from linkspread.models import LinkSpreading
save = LinkSpreading.save
def slow_save(model, path):
    save(model, path)
    print("saving", flush=True)
    time.sleep(60)
LinkSpreading.save = slow_save
sys.argv = ["linkspread", *sys.argv[1:]]
main()
"""


@pytest.mark.slow
def test_an_interrupt_leaves_nothing_half_written(folder):
    before = sorted(folder.rglob("*"))
    words = f"{QUICK} --output new/model --quiet".split()
    (folder / "new").mkdir()
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "saving\n"
    assert any((folder / "new").iterdir())  # the model that is not yet in its place
    time.sleep(0.1)
    os.kill(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "Traceback" not in err
    assert sorted(folder.rglob("*")) == sorted([*before, folder / "new"])


def test_lines_tell_the_steps_without_a_terminal(run, capsys):
    assert run(f"{QUICK} --output model") == 0
    err = capsys.readouterr().err
    for step in ("1/3 Reading", "2/3 Fitting", "3/3 Saving"):
        assert step in err


def write_with_more(folder):
    """Write the text view once more, with an index, a year and a customer."""
    rng = np.random.default_rng(0)
    frame = pandas.read_parquet(folder / "text.parquet")
    frame.to_csv(folder / "plain.csv", index=False)
    frame["year"] = rng.integers(1990, 2020, len(frame))
    frame["customer id"] = rng.permutation(len(frame))
    frame.to_csv(folder / "more.csv", index=True)


MORE = "fit --view text=more.csv --view image=image.parquet --links pairs.csv"


def test_a_fit_says_which_columns_it_uses_and_doubts_some(run, folder, capsys):
    write_with_more(folder)
    assert run(f"{MORE} --output model") == 0
    out, err = capsys.readouterr()
    assert (
        "text: 11 features: '', x0 to x7, year, 'customer id'; left out: label" in out
    )
    assert "image: 8 features: x0 to x7; left out: label" in out
    notes = [line for line in err.splitlines() if "misled" in line]
    assert notes == [
        "linkspread: view 'text' may be misled by its columns: '' counts the rows, "
        "'year' looks like a date, 'customer id' looks like an id. Leave them out with "
        "--columns 'text=-,-year,-customer id', or name the columns to use."
    ]
    assert run(f"{MORE} --output other --dry-run") == 0
    out, err = capsys.readouterr()
    assert "11 features: '', x0 to x7, year" in out and notes[0] in err


def test_columns_that_are_left_out_change_nothing(run, folder, capsys, monkeypatch):
    write_with_more(folder)
    assert run(f"{MORE.replace('more', 'plain')} --output plain") == 0
    (folder / "columns.toml").write_text('columns = ["text=-,-year,-customer id"]\n')
    assert run(f"{MORE} --config columns.toml --output model") == 0
    out, err = capsys.readouterr()
    assert "text: 8 features: x0 to x7; left out: '', label, year, 'customer id'" in out
    assert "misled" not in err
    model = ls.load(folder / "model")
    expected = ls.load(folder / "plain")
    np.testing.assert_array_equal(scores(model), scores(expected))
    stored = tomllib.loads((folder / "model" / "run.toml").read_text())
    assert stored["columns"] == ["text=-,-year,-customer id"]
    # New rows have the other columns too, and are searched by those of the fit.
    found = {}
    for name, file in (("model", "more.csv"), ("plain", "plain.csv")):
        ask = f"search {name} --source text --query-file {file} --row t5 --json"
        assert run(ask) == 0
        found[name] = json.loads(capsys.readouterr().out)
    hits = [
        [hit["id"] for hit in own["queries"][0]["results"]] for own in found.values()
    ]
    assert hits[0] == hits[1]


def test_a_store_elsewhere_is_taken_up(run, folder):
    pair = dict(left_view="text", left_id="t59", right_view="image", right_id="i39")
    with LinkStore.open(folder / "far.db") as store:
        store.add(Judgement(who="ann", verdict="must", **pair))
        store.add(Judgement(who="ann", verdict="must", **pair | {"left_id": "gone"}))
    assert run(f"{QUICK} --output model --store far.db --quiet") == 0
    opened = ls.ModelFolder(folder / "model", store=str(folder / "far.db"))
    assert opened.pending() == 0
    assert not (folder / "model" / "judgements.db").exists()
    block = opened.model.links_.judged("text", "image")
    assert block[59, 39] == 1 and block.nnz == 41


def test_pairs_without_a_store_are_noted(run, folder, capsys, monkeypatch):
    def refuse(*_, **__):
        raise MissingDependencyError("The link store needs the package sqlalchemy.")

    monkeypatch.setattr(LinkStore, "open", refuse)
    assert run(f"{QUICK} --output model") == 0
    assert "the pairs are in the model, but in no store: The" in capsys.readouterr().err
    assert ls.load(folder / "model").links_.judged("text", "image").nnz == 40


def test_shells_can_complete_the_commands():
    done = subprocess.run(
        [sys.executable, "-m", "linkspread"],
        capture_output=True,
        text=True,
        env={**os.environ, "_LINKSPREAD_COMPLETE": "complete_bash",
             "COMP_WORDS": "linkspread ev", "COMP_CWORD": "1"},
    )  # fmt: skip
    assert done.stdout.split() == ["evaluate"]
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "--install-completion" in shown


def test_views_with_one_space_are_fitted_without_a_judgement(run, folder, capsys):
    assert run(f"fit {VIEWS} --output model") == 0
    assert "share a space; 0 pairs are known" in capsys.readouterr().out
    plain = ls.CrossViewSearch().fit(ls.load(folder / "model")._tables)
    np.testing.assert_allclose(scores(ls.load(folder / "model")), scores(plain))
    # Once judged, it learns; and without a common space something must be judged.
    assert run("links add model t7 i3 --must") == 0
    assert ls.load(folder / "model").links_.judged("text", "image").nnz == 1
    some = f"fit {VIEWS} --columns text=x0,x1,x2 --output none"
    assert run(some) == 2
    assert "must be joined by links" in capsys.readouterr().err
    assert run(f"{some} --model spreading") == 2
    assert "links, labels or matched items" in capsys.readouterr().err


def test_a_dry_run_says_what_a_search_will_take(run, folder, capsys):
    plans = {
        " --links pairs.csv": "chosen on held-out judgements",
        "": "the cosine alone, as there are no links",
        " --columns text=x0,x1": "no two views share a space",
    }
    for rest, told in plans.items():
        assert run(f"fit {VIEWS}{rest} --output model --dry-run") == 0
        shown = capsys.readouterr().out
        assert told in shown and "beyond the tables: features of each item" in shown
    widths = {v: m.values.shape[1] for v, m in library(
        folder, lambda X, L, ids: ls.CrossViewSearch().fit(X, L, ids=ids)
    )._maps.items()}  # fmt: skip
    planned = library(folder, lambda X, L, ids: plan_search(X, L, ids=ids).widths)
    assert planned == widths
    assert not (folder / "model").exists()
