"""One class of studies: means, ratios, and what is refused."""

import numpy as np
import pytest

from linkspread.ground.errors import LinkspreadError
from linkspread.studies.report.study import Budget
from small_studies import make_budgets, make_cell, make_row, make_run, make_study


def test_mean_and_deviation_are_those_of_numpy(rng):
    scores = rng.random(7).tolist()
    cell = make_cell("links", 10, "ours", *scores)
    assert cell.mean == pytest.approx(np.mean(scores))
    assert cell.deviation == pytest.approx(np.std(scores, ddof=1))
    assert make_cell("links", 10, "ours", 0.5).deviation is None


def test_budgets_increase_kind_by_kind_and_all_comes_last():
    amounts = [None, 30, 1, 200]
    cells = [make_cell("links", amount, "ours", 0.5) for amount in amounts]
    cells += [make_cell("labels per class", 5, "baseline", 0.5)]
    study = make_budgets(*cells)
    assert [amount for kind, amount in study.budgets] == [1, 30, 200, None, 5]
    assert study.methods == ("ours", "baseline")
    assert study.kinds == ("links", "labels per class")


def test_best_and_ratio_are_about_the_best_baseline_of_the_budget():
    study = make_budgets(
        make_cell("links", 10, "ours", 0.2, 0.4),
        make_cell("links", 10, "weak", 0.1),
        make_cell("links", 10, "strong", 0.5, 0.7),
        make_cell("links", 20, "ours", 0.6),
        make_cell("links", 20, "strong", 0.5),
    )
    assert study.best(("links", 10)).method == "strong"
    assert study.ratio(("links", 10)) == pytest.approx(0.3 / 0.6)
    assert study.best(("links", 20)).method == "ours"
    assert study.ratio(("links", 20)) == pytest.approx(0.6 / 0.5)


@pytest.mark.parametrize(
    ("method", "score"), [("ours", 0.5), ("baseline", 0.5), ("baseline", 0.0)]
)
def test_there_is_no_ratio_without_both_sides(method, score):
    elsewhere = make_cell("links", 1, "ours", 0.5)
    study = make_budgets(elsewhere, make_cell("links", 2, method, score))
    assert study.ratio(("links", 2)) is None
    assert study.cell(("links", 1), "baseline") is None


def test_budgets_have_words_for_one_many_and_all():
    assert Budget("labels per class", 1).text == "1 label per class"
    assert Budget("links", 30000).text == "30,000 links"
    assert Budget("matched pairs", None).text == "all matched pairs"


CELL = make_cell("links", 1, "ours", 0.5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: make_cell("link", 1, "a", 0.5),
        lambda: make_cell("links", 1, "a"),
        lambda: make_row("ours", make_run(), make_run()),
        lambda: make_budgets(CELL, CELL),
        lambda: make_study(make_row("a", make_run()), directions=("there",)),
    ],
)
def test_results_that_contradict_themselves_are_refused(make):
    with pytest.raises(LinkspreadError, match="must .* Compute the study again"):
        make()


def test_the_standard_split_is_in_no_mean(rng):
    scores = rng.random((5, 2))
    resplits = tuple(make_run(f"split {i}", *row) for i, row in enumerate(scores))
    cell = make_row("ours", make_run(), *resplits)
    assert cell.standard == make_run() and cell.resplits == resplits
    assert cell.mean == pytest.approx(np.mean(scores))
    assert cell.deviation == pytest.approx(np.std(scores.mean(axis=1), ddof=1))
    assert cell.detail("back") == pytest.approx(np.mean(scores[:, 1]))


def test_one_resplit_has_no_deviation_and_none_has_no_mean():
    cell = make_row("ours", make_run("other"))
    assert cell.standard is None
    assert cell.mean == pytest.approx(0.3) and cell.deviation is None
    assert make_row("ours", make_run()).mean is None
