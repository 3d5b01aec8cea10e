"""Tables of studies, as data and as Markdown."""

import pytest

from linkspread.studies.report.tables import (
    parameter_list,
    parameters_markdown,
    parameters_text,
    results_markdown,
    results_table,
    seconds_table,
)
from small_studies import make_budgets, make_cell, make_row, make_run, make_study


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
    ours = make_run(there=0.4, back=0.1, seconds={"fit": 1.0, "score": 0.25})
    return make_study(
        make_row("ours", ours),
        make_row("baseline", make_run(back=0.3)),
        make_row("late", make_run("s", 0.1, 0.1)),
        make_row("often", make_run(), *resplits),
        groups={"ours": "new", "baseline": "old", "late": "new", "often": "old"},
        printed={
            "baseline": {"there": 0.3, "back": 0.2},
            "late": {"average": 0.7},
            "often": {"there": 0.9},
        },
    )


def test_rows_of_one_group_stand_together(study):
    rows = results_table(study).rows
    assert [row.name for row in rows] == ["ours", "late", "baseline", "often"]
    assert [row.group for row in rows] == ["new", "new", "old", "old"]


def test_the_standard_split_has_a_column_per_direction_and_an_average(study):
    table = results_table(study)
    assert table.head[1:4] == ("there", "back", "average")
    assert texts(table)["ours"] == ["0.400", "0.100", "0.250", "–", "1.2"]
    assert texts(table)["late"] == ["–", "–", "–", "0.100", "–"]


def test_printed_figures_stand_beside_the_measured_ones(study):
    found = remarks(results_table(study))
    assert found["baseline"][:3] == ["(0.300)", "(0.200)", "(0.250)"]
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
    assert there == ["ours", "baseline", "often"], "the same figure is as good"
    assert (back, average, resplits, seconds) == (
        ["baseline"],
        ["baseline"],
        ["often"],
        [],
    )


def test_columns_that_would_be_empty_are_left_out():
    table = results_table(make_study(make_row("a", make_run())))
    assert table.head == ("Method", "there", "back", "average", "seconds")
    assert "paper" not in table.caption and "Re-splits" not in table.caption


def test_budgets_are_rows_and_the_last_column_is_the_ratio():
    study = make_budgets(
        make_cell("links", 10, "baseline", 0.5, 0.7),
        make_cell("links", 10, "ours", 0.3),
        make_cell("links", None, "ours", 0.4, seconds=123.4),
    )
    table = results_table(study)
    assert table.head[:3] == ("Given", "baseline", "ours")
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
    def text(*choices):
        return parameters_text([make_run(parameters=own) for own in choices])

    alphas = [{"alpha": alpha, "k": 3} for alpha in (0.1, 0.05, 0.1)]
    assert text(*alphas) == "alpha 0.1 (2×) or 0.05 (1×), k 3"
    assert text({"a": {"x": 0.5}, "b": [1, None]}) == "a x 0.5, b 1/None"
    assert text({"a": 1}, {}) == "a 1 (1×)"
    assert text() == ""


def test_choices_name_parameters_and_times():
    run = make_run(parameters={"alpha": 0.1}, seconds={"fit": 12.3, "score": 0.04})
    other = make_run("other", parameters={"alpha": 0.2})
    study = make_study(
        make_row("a", run, other), make_row("nothing was chosen", make_run())
    )
    expected = "alpha 0.1; fit 12 s, score 0.04 s; re-splits: alpha 0.2"
    assert parameter_list(study) == [("a", expected)]


def test_choices_of_budgets_name_method_and_budget():
    cell = make_cell("links", 1, "ours", 0.5, parameters=({"alpha": 0.1},))
    study = make_budgets(cell, make_cell("links", 2, "ours", 0.5))
    assert parameter_list(study) == [("ours, 1 link", "alpha 0.1")]


def test_a_table_has_groups_printed_figures_and_bold():
    study = make_study(
        make_row("ours", make_run(there=0.1)),
        make_row("baseline", make_run()),
        groups={"ours": "new", "baseline": "old"},
        printed={"baseline": {"there": 0.3}},
    )
    lines = results_markdown(study).splitlines()
    assert lines[:6] == [
        "| Method | there | back | average | seconds |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| *new* |  |  |  |  |",
        "| ours | 0.100 | **0.200** | 0.150 | – |",
        "| *old* |  |  |  |  |",
        "| baseline | **0.400** (0.300) | **0.200** | **0.300** | – |",
    ]
    assert lines[6] == "" and lines[7].startswith("Mean average precision")


def test_budgets_are_rows_in_markdown_too():
    study = make_budgets(
        make_cell("links", 10, "ours", 0.5, 0.7),
        make_cell("links", 10, "baseline", 0.4),
    )
    assert results_markdown(study).splitlines()[:3] == [
        "| Given | ours | baseline | ratio to best baseline |",
        "| --- | ---: | ---: | ---: |",
        "| 10 links | **0.600** ± 0.141 (2) | 0.400 (1) | 1.50 |",
    ]


def test_no_sign_of_a_name_is_markup():
    run = make_run(parameters={"n_neighbors": 3, "_a_": "x|y"})
    study = make_study(make_row("a|b *c*\n<d>", run))
    row = results_markdown(study).splitlines()[2]
    assert row.startswith(r"| a\|b \*c\* \<d\> | **0.400** |")
    expected = r"- a\|b \*c\* \<d\>: n_neighbors 3, \_a\_ x\|y"
    assert parameters_markdown(study) == expected
