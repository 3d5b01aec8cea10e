import numpy as np
import pytest

from linkspread.ground.errors import LinkspreadError
from linkspread.studies.report.budgets import budget_text
from small_studies import make_budgets, make_cell


def test_mean_and_deviation_are_those_of_numpy(rng):
    scores = rng.random(7).tolist()
    cell = make_cell("links", 10, "ours", *scores)
    assert cell.mean == pytest.approx(np.mean(scores))
    assert cell.deviation == pytest.approx(np.std(scores, ddof=1))
    assert make_cell("links", 10, "ours", 0.5).deviation is None


def test_budgets_increase_kind_by_kind_and_all_comes_last():
    amounts = [None, 30, 1, 200]
    cells = [make_cell("links", amount, "ours", 0.5) for amount in amounts]
    cells += [make_cell("labels per class", 5, "rival", 0.5)]
    study = make_budgets(*cells)
    assert [amount for kind, amount in study.budgets] == [1, 30, 200, None, 5]
    assert study.methods == ("ours", "rival")
    assert study.kinds == ("links", "labels per class")


def test_best_and_ratio_are_about_the_best_rival_of_the_budget():
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


def test_variants_of_ours_are_no_rivals():
    study = make_budgets(
        make_cell("links", 10, "ours", 0.2),
        make_cell("links", 10, "ours (more)", 0.6),
        make_cell("links", 10, "ours, not", 0.5),
    )
    assert study.variants == ("ours", "ours (more)")
    assert study.ratio(("links", 10)) == pytest.approx(0.4)
    assert study.ratio(("links", 10), "ours (more)") == pytest.approx(1.2)


@pytest.mark.parametrize(
    ("method", "score"), [("ours", 0.5), ("rival", 0.5), ("rival", 0.0)]
)
def test_there_is_no_ratio_without_both_sides(method, score):
    elsewhere = make_cell("links", 1, "ours", 0.5)
    study = make_budgets(elsewhere, make_cell("links", 2, method, score))
    assert study.ratio(("links", 2)) is None
    assert study.cell(("links", 1), "rival") is None


def test_budgets_have_words_for_one_many_and_all():
    assert budget_text(("labels per class", 1)) == "1 label per class"
    assert budget_text(("links", 30000)) == "30,000 links"
    assert budget_text(("matched pairs", None)) == "all matched pairs"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: make_cell("link", 1, "a", 0.5), "`kind` must be one of.*got 'link'"),
        (lambda: make_cell("links", -1, "a", 0.5), "`amount` must not be negative"),
        (lambda: make_cell("links", 1, "a"), "`scores` of 'a' must have one.*none"),
        (
            lambda: make_budgets(*[make_cell("links", 1, "ours", 0.5)] * 2),
            r"cells must differ, but \('ours', 'links', 1\) occurs twice",
        ),
    ],
)
def test_budgets_that_contradict_themselves_are_refused(make, sentence):
    with pytest.raises(LinkspreadError, match=sentence):
        make()
