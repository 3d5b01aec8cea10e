"""Simulated judging: who answers, what is counted, and that tests stay unseen."""

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks_in_small import small_collection, write_wikipedia
from linkspread import LinkSpreading
from linkspread.cli import app
from linkspread.ground.errors import LinkspreadError
from linkspread.metrics import mean_average_precision
from linkspread.studies.budgets import (
    N_START,
    judging_learner,
    needed_judgements,
    run_judging,
)
from linkspread.studies.collections import random_links, resplit
from linkspread.studies.report.study import Study, read_study
from small_studies import make_budgets, make_cell

LEARNER = LinkSpreading(n_neighbors=12, alpha=0.9, rank=8)
EMPTY = Study("Judging", "", "", "small", {})


def quiet(text):
    """Tell nobody."""


@pytest.fixture(scope="module")
def collection():
    return small_collection()


@pytest.fixture(scope="module")
def splits(collection):
    return [resplit(collection.labels, 110, seed=seed) for seed in (0, 1)]


def test_every_amount_is_measured_for_both_on_every_split(collection, splits):
    kept, steps = [], []
    words = {"amounts": (20, 40), "keep": kept.append, "step": steps.append}
    study = run_judging(EMPTY, collection, splits, LEARNER, **words)
    assert study.methods == ("suggested pairs", "random pairs")
    assert [b.amount for b in study.budgets] == [20, 40]
    assert all(len(cell.runs) == 2 for cell in study.cells)
    assert len(steps) == len(kept) == 2 * 2
    assert kept[-1] == study and len(kept[0].cells) == 2


def test_random_pairs_are_measured_as_anyone_would(collection, splits):
    study = run_judging(
        EMPTY, collection, splits[:1], LEARNER, amounts=(40,), step=quiet
    )
    test, y = splits[0].test, collection.labels[splits[0].test]
    links = random_links(
        collection.labels, splits[0].train, ["text", "image"], 40, seed=0
    )
    block = LEARNER.fit(collection.views, links).scores("text", "image")
    block = block[np.ix_(test, test)]
    there = mean_average_precision(block, y, y)
    back = mean_average_precision(block.T.copy(), y, y)
    cell = study.cell(("links", 40), "random pairs")
    assert cell.mean == pytest.approx((there + back) / 2)
    n_musts = (
        links.resolve({"text": 150, "image": 150}).judged("text", "image") > 0
    ).sum()
    assert cell.runs[0].parameters == {"must-links": int(n_musts)}


class Watched(LinkSpreading):
    """A learner that notes the links it is given."""

    given = []  # shared by all copies, as a study fits clones

    def fit(self, views, links, *, ids=None):
        fitted = super().fit(views, links, ids=ids)
        self.given.append(self.links_.judged("text", "image").tocoo())
        return fitted


def test_labels_of_training_items_answer_as_many_pairs_as_counted(collection, splits):
    Watched.given.clear()
    learner = Watched(n_neighbors=12, alpha=0.9, rank=8)
    run_judging(EMPTY, collection, splits[:1], learner, amounts=(20, 50), step=quiet)
    assert [links.nnz for links in Watched.given] == [N_START, 20, 50, 20, 50]
    for links in Watched.given:
        assert set(links.row) | set(links.col) <= set(splits[0].train)
        same = collection.labels[links.row] == collection.labels[links.col]
        assert np.array_equal(links.data, np.where(same, 1.0, -1.0))


def test_permuted_test_labels_change_no_pair_that_is_judged(collection, splits):
    labels = collection.labels.copy()
    test = splits[0].test
    labels[test] = np.random.default_rng(1).permutation(labels[test])
    learner = Watched(n_neighbors=12, alpha=0.9, rank=8)
    given, studies = [], []
    for data in (collection, replace(collection, labels=labels)):
        Watched.given.clear()
        words = {"amounts": (30,), "step": quiet}
        studies.append(run_judging(EMPTY, data, splits[:1], learner, **words))
        given.append(list(Watched.given))
    for honest, blind in zip(*given, strict=True):
        assert np.array_equal(honest.toarray(), blind.toarray())
    assert studies[0].cells[0].mean != studies[1].cells[0].mean


def make_study(suggested, drawn):
    """Return a study with one score for each amount, by method."""
    rows = [("suggested pairs", suggested), ("random pairs", drawn)]
    cells = [
        make_cell("links", amount, method, score)
        for method, scores in rows
        for amount, score in scores.items()
    ]
    return make_budgets(*cells, ours="suggested pairs")


def test_needed_judgements_are_the_fewest_that_reach_the_mean():
    study = make_study({50: 0.2, 100: 0.31, 200: 0.4}, {50: 0.1, 100: 0.2, 200: 0.31})
    assert needed_judgements(study, 200) == 100
    assert needed_judgements(study, 100) == 50
    lower = make_study({50: 0.2}, {50: 0.1, 200: 0.31})
    assert needed_judgements(lower, 200) is None
    assert needed_judgements(lower, 300) is None


@pytest.mark.parametrize("amounts", [(), (5,), (20, 20), (40, 20)])
def test_amounts_must_increase(collection, splits, amounts):
    with pytest.raises(LinkspreadError, match="`amounts` must increase"):
        run_judging(EMPTY, collection, splits, LEARNER, amounts=amounts, step=quiet)


def test_the_learner_takes_the_usual_distance_of_each_view():
    learner = judging_learner({"a": ("cosine", "euclidean"), "b": ("chi2",)})
    assert learner.metric == {"a": "euclidean", "b": "chi2"}


def test_the_command_writes_a_report_and_tells_what_was_needed(tmp_path, monkeypatch):
    write_wikipedia(tmp_path)
    monkeypatch.setattr("linkspread.studies.budgets.AMOUNTS", (20, 40))
    output = tmp_path / "report"
    words = ["reproduce", "judging", "wikipedia", "--data", tmp_path,
             "--output", output, "--repetitions", 2]  # fmt: skip
    result = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    study = read_study(output / "study.json")
    assert [len(cell.runs) for cell in study.cells] == [2] * 4
    assert {path.name for path in output.iterdir()} == {
        "study.json", "tables.md", "index.html"
    }  # fmt: skip
    needed = needed_judgements(study, 40)
    told = "not reached with" if needed is None else f"reached with {needed}"
    assert f"40 random pairs are {told} suggested pairs." in result.output
