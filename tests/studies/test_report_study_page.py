import re

import numpy as np
import pytest

from linkspread.studies.report import (
    Card,
    Hit,
    MethodResult,
    ParameterCurve,
    Search,
    build_study_page,
    ink_data_uri,
)
from pages import NASTY, read
from small_studies import make_budgets, make_cell, make_run, make_study


def make_full(text="ours", other="rival"):
    """Return a study with everything in it, all texts made from one."""
    run = make_run(
        seconds={text: 1.0},
        parameters={text: text},
        per_class={"there": {text: 0.5}},
        curve={"there": [0.5] * 11},
    )
    card = Card(text, text, ink_data_uri(np.eye(4)))
    return make_study(
        MethodResult(text, text, {"there": 0.9}, (run,), text),
        MethodResult(other, other, None, (make_run(there=0.6),)),
        title=text,
        introduction=text,
        command=text,
        collection=text,
        curves=(ParameterCurve(text, text, (1, text), (0.1, 0.2), text),),
        examples=(Search(text, text, card, (Hit(card, 0.5, True),)),),
        environment={text: text},
    )


def make_full_budgets(text="ours", other="rival"):
    """Return a study of budgets with everything in it, all texts made from one."""
    cells = [
        make_cell("links", 10, text, 0.1, 0.3, parameters=({text: text},)),
        make_cell("links", 10, other, 0.5),
    ]
    names = dict.fromkeys(("title", "introduction", "command", "collection"), text)
    return make_budgets(*cells, ours=text, environment={text: text}, **names)


STUDIES = {"table": make_full, "budgets": make_full_budgets}


@pytest.mark.parametrize("make", STUDIES.values(), ids=STUDIES)
def test_the_page_is_whole_and_nothing_is_fetched(make):
    page = build_study_page(make())
    reader = read(page)
    assert not {"script", "link", "iframe", "object"} & set(reader.tags)
    assert all(a.startswith("data:image/png;base64,") for a in reader.addresses)
    # Addresses that only name the language of a figure are never opened.
    rest = re.sub(r'xmlns(:xlink)?="http://www\.w3\.org/[\w/]+"', "", page)
    assert not re.search(r"@import|url\((?!#)|https?:|<!DOCTYPE svg", rest)
    assert all(a.startswith("#") for a in re.findall(r'xlink:href="([^"]*)"', page))


@pytest.mark.parametrize("make", STUDIES.values(), ids=STUDIES)
def test_every_text_is_escaped(make):
    page = build_study_page(make(NASTY))
    assert "<script" not in page
    reader = read(page)
    assert "script" not in reader.tags
    assert NASTY in reader.text, "the reader sees the text as it is"


def test_a_table_shows_everything():
    reader = read(build_study_page(make_full()))
    for heading in (
        "Precision against recall",
        "Mean average precision by class",
        "Choosing parameters",
        "Examples of searches",
    ):
        assert heading in reader.text
    row = reader.text[reader.text.index("rival", reader.text.index("Method")) :]
    assert "0.600" in row and "(0.900)" in reader.text
    assert reader.tags.count("svg") == 3 and reader.tags.count("details") == 1
    assert "1 of 1 right" in reader.text


def test_budgets_show_ratio_figure_and_time():
    reader = read(build_study_page(make_full_budgets()))
    assert "0.40" in reader.text and "± 0.141 (2)" in reader.text
    assert reader.tags.count("svg") == 1 and reader.tags.count("details") == 2
    assert reader.text.count("10 links") == 2


def test_the_best_is_bold_whoever_it_is():
    page = build_study_page(make_full_budgets())
    assert re.findall(r"<strong>([\d.]+)</strong>", page) == ["0.500"]
    page = build_study_page(make_full())
    # Both are equal on the way back, the rival is ahead there and on average.
    assert re.findall(r"<strong>([\d.]+)</strong>", page) == [
        "0.200",
        "0.600",
        "0.200",
        "0.400",
    ]


@pytest.mark.parametrize("study", [make_study(), make_budgets()])
def test_an_empty_study_has_no_empty_parts(study):
    tags = set(read(build_study_page(study)).tags)
    assert not {"table", "svg", "details", "h2", "footer"} & tags


def test_the_same_study_gives_the_same_page():
    assert build_study_page(make_full()) == build_study_page(make_full())


def test_figures_are_legible_in_dark_rooms_and_on_phones():
    page = build_study_page(make_full())
    assert re.search(r"figure \{[^}]*background: #ffffff", page)
    assert re.search(r"figure svg \{[^}]*width: 100%", page)
    assert not re.search(r"<svg[^>]*\swidth=", page)
