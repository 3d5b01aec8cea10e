import pytest

from linkspread.studies.report import MethodResult
from linkspread.studies.report.tables import (
    parameter_list,
    parameters_text,
    results_table,
    seconds_table,
)
from small_studies import make_budgets, make_cell, make_run, make_study


def texts(table):
    """Return a table as a dict from the name of a row to the texts of its cells."""
    return {row.name: [cell.text for cell in row.cells] for row in table.rows}


def remarks(table):
    """Return a table as a dict from the name of a row to the remarks of its cells."""
    return {row.name: [cell.remark for cell in row.cells] for row in table.rows}


def best_rows(table):
    """Return the names of the best rows of each column."""
    n_columns = len(table.rows[0].cells)
    return [
        [row.name for row in table.rows if row.cells[column].is_best]
        for column in range(n_columns)
    ]


@pytest.fixture
def study():
    resplits = [make_run(f"split {i}", 0.3, 0.1 + i / 10) for i in range(3)]
    ours = (make_run(there=0.4, back=0.1, seconds={"fit": 1.0, "score": 0.25}),)
    return make_study(
        MethodResult("ours", "new", None, ours),
        MethodResult(
            "rival", "old", {"there": 0.3, "back": 0.2}, (make_run(back=0.3),)
        ),
        MethodResult("late", "new", {"average": 0.7}, (make_run("s", 0.1, 0.1),)),
        MethodResult("often", "old", {"there": 0.9}, (make_run(), *resplits)),
    )


def test_rows_of_one_group_stand_together(study):
    rows = results_table(study).rows
    assert [row.name for row in rows] == ["ours", "late", "rival", "often"]
    assert [row.group for row in rows] == ["new", "new", "old", "old"]


def test_the_standard_split_has_a_column_per_direction_and_an_average(study):
    table = results_table(study)
    assert table.head[1:4] == ("there", "back", "average")
    assert texts(table)["ours"] == ["0.400", "0.100", "0.250", "–", "1.2"]
    assert texts(table)["late"] == ["–", "–", "–", "0.100", "–"]


def test_printed_figures_stand_beside_the_measured_ones(study):
    found = remarks(results_table(study))
    assert found["rival"][:3] == ["(0.300)", "(0.200)", "(0.250)"]
    assert found["late"][:3] == ["", "", "(0.700)"]
    assert found["often"][:3] == ["(0.900)", "", ""], "one direction is no average"


def test_resplits_have_mean_deviation_and_number(study):
    table = results_table(study)
    # Averages 0.2, 0.25 and 0.3.
    assert texts(table)["often"][3] == "0.250"
    assert remarks(table)["often"][3] == "± 0.050 (3)"
    assert remarks(table)["late"][3] == "(1)"


def test_the_best_of_each_column_is_marked_whoever_it_is(study):
    there, back, average, resplits, seconds = best_rows(results_table(study))
    assert there == ["ours", "rival", "often"], "the same figure is as good"
    assert (back, average, resplits, seconds) == (["rival"], ["rival"], ["often"], [])


def test_columns_that_would_be_empty_are_left_out():
    table = results_table(make_study(MethodResult("a", "", None, (make_run(),))))
    assert table.head == ("Method", "there", "back", "average", "seconds")
    assert "paper" not in table.caption and "Re-splits" not in table.caption


def test_budgets_are_rows_and_the_last_column_is_the_ratio():
    study = make_budgets(
        make_cell("links", 10, "rival", 0.5, 0.7),
        make_cell("links", 10, "ours", 0.3),
        make_cell("links", None, "ours", 0.4, seconds=123.4),
    )
    table = results_table(study)
    assert table.head[:3] == ("Given", "rival", "ours")
    assert texts(table) == {
        "10 links": ["0.600", "0.300", "0.50"],
        "all links": ["–", "0.400", "–"],
    }
    assert remarks(table)["10 links"] == ["± 0.141 (2)", "(1)", ""]
    assert [[c.is_best for c in row.cells] for row in table.rows] == [
        [True, False, False],
        [False, True, False],
    ]
    assert texts(seconds_table(study))["all links"] == ["–", "123"]


def test_parameters_are_counted_where_they_differ():
    choices = [{"alpha": 0.1, "k": 3}, {"alpha": 0.05, "k": 3}, {"alpha": 0.1, "k": 3}]
    assert parameters_text(choices) == "alpha 0.1 (2×) or 0.05 (1×), k 3"
    assert parameters_text([{"a": {"x": 0.5}, "b": [1, None]}]) == "a x 0.5, b 1/None"
    assert parameters_text([{"a": 1}, {}]) == "a 1 (1×)"
    assert parameters_text([]) == ""


def test_choices_name_parameters_times_and_notes():
    run = make_run(parameters={"alpha": 0.1}, seconds={"fit": 12.3, "score": 0.04})
    other = make_run("other", parameters={"alpha": 0.2})
    study = make_study(
        MethodResult("a", "", None, (run, other), "A note."),
        MethodResult("nothing to tell", "", None, (make_run(),)),
    )
    expected = "alpha 0.1; fit 12 s, score 0.04 s; re-splits: alpha 0.2; A note."
    assert parameter_list(study) == [("a", expected)]


def test_choices_of_budgets_name_method_and_budget():
    cell = make_cell("links", 1, "ours", 0.5, parameters=({"alpha": 0.1},))
    study = make_budgets(cell, make_cell("links", 2, "ours", 0.5))
    assert parameter_list(study) == [("ours, 1 link", "alpha 0.1")]


@pytest.mark.parametrize("function", [results_table, parameter_list])
def test_only_studies_have_tables(function):
    with pytest.raises(TypeError, match="`study` must be a study, got dict"):
        function({})
