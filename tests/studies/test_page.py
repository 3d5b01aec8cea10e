"""Pages of a demonstration and of studies: whole, escaped, legible everywhere."""

import base64
import io
import os
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from linkspread.ground.errors import LinkspreadError, ViewError
from linkspread.studies.report.page import build_page, ink_data_uri, picture_data_uri
from linkspread.studies.report.study import (
    Card,
    Hit,
    ParameterCurve,
    Search,
    write_page,
)
from pages import NASTY, read
from small_studies import make_budgets, make_cell, make_row, make_run, make_study


@pytest.fixture
def page():
    picture = ink_data_uri(np.eye(4))
    hits = [
        Hit(Card("first", "cat", picture), 0.5, right=True),
        Hit(Card("second", "dog", picture), 0.25, right=False),
    ]
    searches = [
        Search("text", "image", Card("a query", "cat"), hits),
        Search("image", "text", Card("a picture", "cat", picture), hits[:1]),
    ]
    run = make_run(there=0.5, back=0.25, seconds={"fit": 1.25})
    rows = make_row("ours", run), make_row("chance", make_run(there=0.1, back=0.1))
    examples = tuple(searches)
    return build_page(make_study(*rows, introduction="Five.", examples=examples))


def test_the_page_is_whole_and_shows_everything(page):
    text = read(page).text
    for expected in ("Pets", "Five.", "there", "back", "a query", "first", "second"):
        assert expected in text
    assert ["0.500", "0.250", "0.375", "1.2"] == text[text.index("ours") + 1 :][:4]
    assert "1 of 2 right" in text and "1 of 1 right" in text


def test_right_and_wrong_differ_in_sign_and_word_too(page):
    text = read(page).text
    assert text.count("✓ right") == 2 and text.count("✗ wrong") == 1
    assert "#1 · 0.5" in text and "#2 · 0.25" in text


def test_pictures_are_inside_the_page_and_nothing_is_fetched(page):
    reader = read(page)
    assert reader.tags.count("img") == 4
    assert all(a.startswith("data:image/png;base64,") for a in reader.addresses)
    assert not {"script", "link", "iframe"} & set(reader.tags)
    assert not re.search(r"@import|url\(|https?:", page)


def test_the_page_suits_dark_rooms_and_phones(page):
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page


def test_a_picture_keeps_its_ink():
    from PIL import Image

    image = np.linspace(0, 1, 12).reshape(3, 4)
    head, _, data = ink_data_uri(image).partition(",")
    picture = Image.open(io.BytesIO(base64.b64decode(data)))
    assert head == "data:image/png;base64"
    ink = np.asarray(picture)
    assert_array_equal(ink[..., 1], np.round(image * 255))
    assert not ink[..., 0].any()


@pytest.mark.parametrize("image", [np.ones(4), np.full((2, 2), 255.0), -np.eye(2)])
def test_a_picture_must_be_ink(image):
    with pytest.raises(ViewError, match="`image` must.*Divide"):
        ink_data_uri(image)


def test_a_page_is_written_with_its_folder(tmp_path):
    path = write_page(tmp_path / "new" / "index.html", "é")
    assert path.read_text(encoding="utf-8") == "é"
    assert [p.name for p in path.parent.iterdir()] == ["index.html"]


def test_a_failed_write_leaves_the_old_page_and_no_litter(tmp_path, monkeypatch):
    path = write_page(tmp_path / "index.html", "old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(LinkspreadError, match="No space left on device"):
        write_page(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_in_the_way_of_the_folder_is_named(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(LinkspreadError, match="taken.*Choose another"):
        write_page(tmp_path / "taken" / "index.html", "")


def test_a_picture_travels_in_a_page_no_larger_than_asked(tmp_path):
    from PIL import Image

    Image.new("RGB", (40, 20), (10, 20, 30)).save(tmp_path / "a.png")
    head, _, data = picture_data_uri(tmp_path / "a.png", size=10).partition(",")
    assert head == "data:image/png;base64"
    with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
        assert picture.size == (10, 5)
        assert picture.getpixel((3, 3)) == (10, 20, 30)
    (tmp_path / "b.png").write_text("none")
    with pytest.raises(ViewError, match="readable picture file, got .*b.png.*Correct"):
        picture_data_uri(tmp_path / "b.png")


def make_full(text="ours", other="baseline"):
    """Return a study with everything in it, all texts made from one."""
    run = make_run(
        seconds={text: 1.0},
        parameters={text: text},
        per_class={"there": {text: 0.5}},
        curve={"there": [0.5] * 11},
    )
    card = Card(text, text, ink_data_uri(np.eye(4)))
    return make_study(
        make_row(text, run),
        make_row(other, make_run(there=0.6)),
        groups={text: text, other: other},
        printed={text: {"there": 0.9}},
        title=text,
        introduction=text,
        command=text,
        collection=text,
        curves=(ParameterCurve(text, text, (1, text), (0.1, 0.2), text),),
        examples=(Search(text, text, card, (Hit(card, 0.5, True),)),),
        environment={text: text},
    )


def make_full_budgets(text="ours", other="baseline"):
    """Return a study of budgets with everything in it, all texts made from one."""
    cells = [
        make_cell("links", 10, text, 0.1, 0.3, parameters=({text: text},)),
        make_cell("links", 10, other, 0.5),
    ]
    names = dict.fromkeys(("title", "introduction", "command", "collection"), text)
    return make_budgets(*cells, ours=text, environment={text: text}, **names)


STUDIES = {"table": make_full, "budgets": make_full_budgets}


@pytest.mark.parametrize("make", STUDIES.values(), ids=STUDIES)
def test_the_page_of_a_study_is_whole_and_nothing_is_fetched(make):
    page = build_page(make())
    reader = read(page)
    assert not {"script", "link", "iframe", "object"} & set(reader.tags)
    assert all(a.startswith("data:image/png;base64,") for a in reader.addresses)
    # Addresses that only name the language of a figure are never opened.
    rest = re.sub(r'xmlns(:xlink)?="http://www\.w3\.org/[\w/]+"', "", page)
    assert not re.search(r"@import|url\((?!#)|https?:|<!DOCTYPE svg", rest)
    assert all(a.startswith("#") for a in re.findall(r'xlink:href="([^"]*)"', page))


@pytest.mark.parametrize("make", STUDIES.values(), ids=STUDIES)
def test_every_text_of_a_study_is_escaped(make):
    page = build_page(make(NASTY))
    assert "<script" not in page
    reader = read(page)
    assert "script" not in reader.tags
    assert NASTY in reader.text, "the reader sees the text as it is"


def test_a_table_shows_everything():
    reader = read(build_page(make_full()))
    for heading in (
        "Precision against recall",
        "Mean average precision by class",
        "Choosing parameters",
        "Examples of searches",
    ):
        assert heading in reader.text
    row = reader.text[reader.text.index("baseline", reader.text.index("Method")) :]
    assert "0.600" in row and "(0.900)" in reader.text
    assert reader.tags.count("svg") == 3 and reader.tags.count("details") == 1
    assert "1 of 1 right" in reader.text


def test_budgets_show_ratio_figure_and_time():
    reader = read(build_page(make_full_budgets()))
    assert "0.40" in reader.text and "± 0.141 (2)" in reader.text
    assert reader.tags.count("svg") == 1 and reader.tags.count("details") == 2
    assert reader.text.count("10 links") == 2


def test_the_best_of_a_study_is_bold_whoever_it_is():
    page = build_page(make_full_budgets())
    assert re.findall(r"<strong>([\d.]+)</strong>", page) == ["0.500"]
    page = build_page(make_full())
    # Both are equal on the way back, the baseline is ahead there and on average.
    assert re.findall(r"<strong>([\d.]+)</strong>", page) == [
        "0.200",
        "0.600",
        "0.200",
        "0.400",
    ]


@pytest.mark.parametrize("study", [make_study(), make_budgets()])
def test_an_empty_study_has_no_empty_parts(study):
    tags = set(read(build_page(study)).tags)
    assert not {"table", "svg", "details", "h2", "footer"} & tags


def test_the_same_study_gives_the_same_page():
    assert build_page(make_full()) == build_page(make_full())


def test_figures_are_legible_in_dark_rooms_and_on_phones():
    page = build_page(make_full())
    assert re.search(r"figure \{[^}]*background: #ffffff", page)
    assert re.search(r"figure svg \{[^}]*width: 100%", page)
    assert not re.search(r"<svg[^>]*\swidth=", page)
