"""Pictures of explanations: what is drawn is what the explanation says."""

import re
import runpy
from pathlib import Path
from xml.dom import minidom

import pytest

from linkspread.ground.errors import LinkspreadError
from linkspread.judging import Contribution, Explanation, Split, explanation_picture
from linkspread.judging.explanation_picture import CARD_WIDTH, COLUMNS, WIDTH

EXAMPLES = Path(__file__).parents[2] / "examples"
FOR, AGAINST = "#0072B2", "#D55E00"


def make_explanation(parts, rest=0.0, n_rest=0, **others):
    """Return an explanation of these links."""
    near = (Contribution("neighbor", 0.25, 0.4, "b"), Contribution("own", -0.5, 1.0))
    back = (Contribution("neighbor", 0.75, 0.4, None, 11),)
    splits = {
        "links": Split(tuple(parts), rest, n_rest),
        "source_neighbors": Split(near, 0.0, 0),
        "target_neighbors": Split(back, 0.0, 0),
    }
    return Explanation("text", "image", "a", 10, 0.5, 0.5, **splits | others)


PAIRS = [
    Contribution("must-link", 0.5, 1.0, "b", 11),
    Contribution("cannot-link", -0.25, -1.0, "c", 12),
    Contribution("must-link", 0.125, 1.0, "b", 12),
]


def texts(svg):
    """Return the texts of a picture."""
    found = minidom.parseString(svg).getElementsByTagName("text")
    return [node.firstChild.data for node in found]


def shapes(svg, tag):
    """Return all elements of a kind."""
    return minidom.parseString(svg).getElementsByTagName(tag)


def widths(svg, color):
    """Return the widths of the lines of a colour, each once."""
    return {
        float(node.getAttribute("stroke-width"))
        for node in shapes(svg, "path")
        if node.getAttribute("stroke") == color
    }


def test_links_are_lines_through_cards_of_their_items():
    svg = explanation_picture(make_explanation(PAIRS))
    assert len(shapes(svg, "path")) == 3 * 6
    # Items that two links share are drawn once.
    wanted = ["text a", "image 10", "text b", "text c", "image 11", "image 12"]
    frames = [n for n in shapes(svg, "rect") if n.getAttribute("rx") == "7"]
    assert len(frames) == len(wanted)
    assert set(wanted) <= set(texts(svg))
    assert {"+0.500", "-0.250", "+0.125"} <= set(texts(svg))


def test_lines_are_as_thick_as_amounts_and_coloured_by_sign():
    svg = explanation_picture(make_explanation(PAIRS))
    thick, thin = sorted(widths(svg, FOR), reverse=True)
    (against,) = widths(svg, AGAINST)
    least = 1.2
    assert (thick - least) / (against - least) == pytest.approx(2, abs=0.02)
    assert (thick - least) / (thin - least) == pytest.approx(4, abs=0.05)


def test_what_is_not_shown_is_added_up():
    svg = explanation_picture(make_explanation(PAIRS, 0.0625, 7), n_links=2)
    assert "8 more, +0.188 together" in texts(svg)
    assert "text b" in texts(svg) and len(shapes(svg, "path")) == 2 * 6


def test_neighbors_are_bars():
    svg = explanation_picture(make_explanation(PAIRS))
    assert {"+0.250  text b", "-0.500  the item itself"} <= set(texts(svg))
    assert "+0.750  image 11" in texts(svg)
    bars = [n for n in shapes(svg, "rect") if n.getAttribute("height") == "5"]
    lengths = [float(node.getAttribute("width")) for node in bars]
    assert lengths == [200.0, 400.0, 400.0]
    assert [node.getAttribute("fill") for node in bars] == [FOR, AGAINST, FOR]


def test_labels_and_classes_stand_in_the_middle():
    parts = [
        Contribution("label", 0.5, 1.0, "b", classes=(1, None)),
        Contribution("class", 0.25, 1.0, classes=(0, 1)),
    ]
    why = make_explanation(parts)
    shown = texts(explanation_picture(why))
    assert {"class 1 +0.500", "class 0 class 1 +0.250"} <= set(shown)
    shown = texts(explanation_picture(why, class_names=["art", "chess"]))
    assert {"chess +0.500", "art chess +0.250"} <= set(shown)


def test_titles_and_pictures_stand_for_ids_and_cannot_break_the_picture():
    titles = {"text": {"b": "a <b> & \x07 title that goes on for very much longer"}}
    pictures = {"image": {10: 'data:image/png;base64,AA"=='}}
    svg = explanation_picture(make_explanation(PAIRS), titles=titles, pictures=pictures)
    assert any(text.startswith("a <b> &") for text in texts(svg))
    (image,) = shapes(svg, "image")
    assert image.getAttribute("href") == pictures["image"][10]


def test_a_new_item_and_a_score_of_nothing_can_be_drawn():
    nothing = Split((), 0.0, 0)
    why = Explanation("text", "image", None, 1, 0.0, 0.0, nothing, nothing, nothing)
    shown = texts(explanation_picture(why))
    assert "text new item" in shown and "Score 0: text new item and image 1" in shown


def test_the_picture_says_in_words_what_it_shows():
    why = make_explanation(PAIRS)
    svg = explanation_picture(why)
    (description,) = shapes(svg, "desc")
    shown = description.firstChild.data.split()
    assert shown == str(why).split()
    (title,) = shapes(svg, "title")
    assert title.firstChild.data == "Score 0.5: text a and image 10"


def test_cards_do_not_cover_each_other():
    parts = [
        Contribution("must-link", 1.0 / k, 1.0, k % 3, 20 + k) for k in range(1, 7)
    ]
    svg = explanation_picture(make_explanation(parts))
    frames = [n for n in shapes(svg, "rect") if n.getAttribute("rx") == "7"]
    boxes = sorted(
        (float(n.getAttribute("x")), float(n.getAttribute("y"))) for n in frames
    )
    for (x, y), (u, v) in zip(boxes, boxes[1:], strict=False):
        assert x != u or v - y >= 46


def test_the_number_of_links_is_checked():
    with pytest.raises(LinkspreadError, match="`n_links` must be a positive integer"):
        explanation_picture(make_explanation(PAIRS), n_links=0)


@pytest.mark.slow
def test_the_figure_of_the_guide_can_be_drawn(tmp_path, capsys):
    example = runpy.run_path(str(EXAMPLES / "explain_a_glyph.py"))
    why = example["main"](tmp_path / "why.svg")
    assert why.target_item == example["QUERY"]
    assert why.source_neighbors.total == pytest.approx(why.score, rel=1e-3)
    svg = (tmp_path / "why.svg").read_text(encoding="utf-8")
    assert len(re.findall("<image", svg)) > 5
    assert "GREEK SMALL LETTER OMEGA" in svg
    assert "must-link" in capsys.readouterr().out


def test_long_titles_stay_in_the_picture_and_off_the_cards():
    long = "MANY WORDS " * 9
    label_link = Contribution("label", 0.5, 1.0, "b", None, classes=(0, 0))
    svg = explanation_picture(
        make_explanation([label_link]),
        titles={"text": dict.fromkeys("abc", long), "image": {10: long, 11: long}},
        class_names=["a class of a long name, in many words"],
    )
    for node in shapes(svg, "text"):
        if not node.getAttribute("text-anchor") == "middle":
            x, size = (float(node.getAttribute(name)) for name in ("x", "font-size"))
            # Capitals are two thirds as wide as they are high, or less.
            assert x + len(node.firstChild.data) * size * 0.67 < WIDTH
    pill = next(r for r in shapes(svg, "rect") if r.getAttribute("height") == "24")
    left = float(pill.getAttribute("x"))
    assert COLUMNS[1] + CARD_WIDTH < left
    assert left + float(pill.getAttribute("width")) < COLUMNS[2]
