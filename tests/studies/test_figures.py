"""Figures: what they show, that they share nothing and leave nothing behind."""

import subprocess
import sys
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

from linkspread.ground.errors import MissingDependencyError
from linkspread.studies.report.figures import (
    COLORS,
    INK,
    budget_figures,
    class_figures,
    line_looks,
    parameter_figures,
    recall_figures,
)
from linkspread.studies.report.study import ParameterCurve
from small_studies import make_budgets, make_cell, make_row, make_run, make_study

SVG = "{http://www.w3.org/2000/svg}"
NASTY = "<b>&$x_1$ \x01\"'"


def make_method(method, score, classes=("cat", "dog")):
    """Return a method with a curve and classes in one direction."""
    levels = np.linspace(1, score, 11).tolist()
    per_class = {"there": {name: score / 2 for name in classes}}
    run = make_run(there=score, per_class=per_class, curve={"there": levels})
    return make_row(method, run)


@pytest.fixture
def study():
    values = (1, 2.5, None, "auto")
    curves = tuple(
        ParameterCurve("ours", name, values, (0.1, 0.4, 0.3, 0.2), 2.5)
        for name in ("alpha", "beta")
    )
    rows = [make_method(name, s) for name, s in [("ours", 0.5), ("b", 0.4), ("a", 0.3)]]
    return make_study(*rows, groups={"ours": "new"}, curves=curves)


@pytest.fixture
def budgets():
    cells = [
        make_cell(kind, amount, method, 0.1, 0.2)
        for kind in ("links", "matched pairs")
        for amount in (1000, 30, None)
        for method in ("ours", "baseline")
    ]
    return make_budgets(*cells)


def all_figures(study, budgets):
    """Return every figure of both studies."""
    functions = (recall_figures, class_figures, parameter_figures)
    found = [svg for function in functions for svg in function(study).values()]
    return found + list(budget_figures(budgets).values())


def words(svg):
    """Return the texts drawn in a figure."""
    return [node.text for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_figures_are_named_after_what_they_show(study, budgets):
    assert list(recall_figures(study)) == ["there"], "no method has a curve back"
    assert list(class_figures(study)) == ["there"]
    assert list(parameter_figures(study)) == ["ours, alpha", "ours, beta"]
    assert list(budget_figures(budgets)) == ["links", "matched pairs"]
    assert recall_figures(make_study()) == class_figures(make_study()) == {}


def test_every_method_is_in_the_legend(study, budgets):
    assert {"ours", "a", "b", "recall", "precision"} < set(
        words(recall_figures(study)["there"])
    )
    assert {"ours", "baseline", "30", "1,000", "all"} < set(
        words(budget_figures(budgets)["links"])
    )


def test_bars_show_the_best_of_each_group(study):
    found = set(words(class_figures(study)["there"]))
    assert {"cat", "dog", "ours", "b"} < found and "a" not in found


def test_a_parameter_has_its_values_and_the_chosen_one(study):
    svg = parameter_figures(study)["ours, alpha"]
    assert {"1", "2.5", "None", "auto", "alpha"} < set(words(svg))
    assert "The chosen value is 2.5." in svg


def test_labels_of_many_values_are_thinned_but_the_chosen_one_stays():
    values = tuple(float(f"{i}.125") for i in range(30))
    curve = ParameterCurve("a", "alpha", values, values, values[17])
    shown = [w for w in words(*parameter_figures(make_study(curves=(curve,))).values())]
    shown = [word for word in shown if word.endswith(".125")]
    assert "17.125" in shown and len(shown) < 12


def test_a_constant_score_can_be_drawn():
    curve = ParameterCurve("a", "alpha", (1,), (0.5,), 1)
    assert len(parameter_figures(make_study(curves=(curve,)))) == 1


def test_only_all_there_is_can_be_drawn():
    study = make_budgets(make_cell("links", None, "ours", 0.5))
    assert "all" in words(budget_figures(study)["links"])


def test_the_same_numbers_give_the_same_text(study, budgets):
    first = all_figures(study, budgets)
    with matplotlib.rc_context({"lines.linewidth": 9, "font.size": 30}):
        assert all_figures(study, budgets) == first, "settings of others do not matter"


def test_no_setting_is_left_behind(study, budgets):
    before = dict(matplotlib.rcParams)
    all_figures(study, budgets)
    assert dict(matplotlib.rcParams) == before


def test_pyplot_is_not_loaded():
    program = (
        "import sys; from linkspread.studies.report.figures import budget_figures; "
        "from linkspread.studies.report.study import Cell, Run, Study; "
        "cell = Cell('ours', 'links', 1, (Run('a', 0.5),)); "
        "assert 'matplotlib' not in sys.modules; "
        "budget_figures(Study('', '', '', '', {}, cells=(cell,))); "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_figure_has_a_title_and_a_description(study, budgets):
    for svg in all_figures(study, budgets):
        root = ElementTree.fromstring(svg)
        title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
        assert root.get("role") == "img" and title.text and description.text
        named = root.get("aria-labelledby").split()
        assert named == [title.get("id"), description.get("id")]


def test_figures_share_no_name_and_use_only_their_own(study, budgets):
    seen = set()
    for svg in all_figures(study, budgets):
        nodes = list(ElementTree.fromstring(svg).iter())
        names = {node.get("id") for node in nodes} - {None}
        assert not names & seen
        seen |= names
        links = [v for n in nodes for k, v in n.items() if k.endswith("href")]
        links += [
            v[4:-1] for n in nodes for v in n.attrib.values() if v.startswith("url")
        ]
        assert links and {link.removeprefix("#") for link in links} <= names
        assert "<style" not in svg and "<metadata" not in svg


def test_names_are_shown_as_they_are_and_shortened():
    long = "word " * 50
    study = make_study(make_method(NASTY, 0.5, classes=[NASTY, long, "漢字"]))
    found = words(class_figures(study)["there"])
    assert "<b>&$x_1$ \"'" in found and "漢字" in found
    assert max(map(len, found)) < 50


def test_lines_differ_and_ours_stands_out():
    names = [f"m{i}" for i in range(4 * len(COLORS))]
    looks = line_looks(names, ours="m3")
    assert looks["m3"]["color"] == INK and looks["m3"]["linewidth"] > 2
    others = {(v["color"], v.get("linestyle")) for k, v in looks.items() if k != "m3"}
    assert len(others) == len(names) - 1


def test_missing_matplotlib_is_one_sentence_with_the_remedy(monkeypatch, budgets):
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    with pytest.raises(MissingDependencyError, match=r"Drawing.*\[pictures\]"):
        budget_figures(budgets)
