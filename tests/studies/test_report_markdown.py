import pytest

from linkspread.ground.errors import LinkspreadError
from linkspread.studies.report import (
    MethodResult,
    parameters_markdown,
    replace_between,
    results_markdown,
)
from small_studies import make_budgets, make_cell, make_run, make_study


def test_a_table_has_groups_printed_figures_and_bold():
    study = make_study(
        MethodResult("ours", "new", None, (make_run(there=0.1),)),
        MethodResult("rival", "old", {"there": 0.3}, (make_run(),)),
    )
    lines = results_markdown(study).splitlines()
    assert lines[:6] == [
        "| Method | there | back | average | seconds |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| *new* |  |  |  |  |",
        "| ours | 0.100 | **0.200** | 0.150 | – |",
        "| *old* |  |  |  |  |",
        "| rival | **0.400** (0.300) | **0.200** | **0.300** | – |",
    ]
    assert lines[6] == "" and lines[7].startswith("Mean average precision")


def test_budgets_are_rows():
    study = make_budgets(
        make_cell("links", 10, "ours", 0.5, 0.7), make_cell("links", 10, "rival", 0.4)
    )
    assert results_markdown(study).splitlines()[:3] == [
        "| Given | ours | rival | ratio to best rival |",
        "| --- | ---: | ---: | ---: |",
        "| 10 links | **0.600** ± 0.141 (2) | 0.400 (1) | 1.50 |",
    ]


def test_no_sign_of_a_name_is_markup():
    run = make_run(parameters={"n_neighbors": 3, "_a_": "x|y"})
    study = make_study(MethodResult("a|b *c*\n<d>", "", None, (run,)))
    row = results_markdown(study).splitlines()[2]
    assert row.startswith(r"| a\|b \*c\* \<d\> | **0.400** |")
    expected = r"- a\|b \*c\* \<d\>: n_neighbors 3, \_a\_ x\|y"
    assert parameters_markdown(study) == expected


PAGE = (
    "a\n<!-- one: by x -->\nold\n<!-- end of one -->\nb <!-- two --><!-- end of two -->"
)


def test_only_the_named_part_is_replaced():
    found = replace_between(PAGE, "one", r"new \1 \g<0>")
    start, end = PAGE.split("\nold\n")
    assert found == f"{start}\n\nnew \\1 \\g<0>\n\n{end}"
    assert replace_between(found, "one", "old") == replace_between(PAGE, "one", "old")
    assert replace_between(PAGE, "two", "x").endswith(
        "b <!-- two -->\n\nx\n\n<!-- end of two -->"
    )


@pytest.mark.parametrize(("page", "n_found"), [("", 0), (PAGE * 2, 2)])
def test_a_page_needs_the_part_once(page, n_found):
    with pytest.raises(LinkspreadError, match=f"part named 'one', got {n_found}. Mark"):
        replace_between(page, "one", "new")
