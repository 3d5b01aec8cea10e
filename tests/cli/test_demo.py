import dataclasses
import sys

import pytest
from typer.testing import CliRunner

from linkspread.cli import app, main
from linkspread.cli.demo import print_comparison, print_searches
from linkspread.cli.output import step_bar
from linkspread.datasets import load_glyphs
from linkspread.studies.report.study import Card, Hit, Search
from small_studies import make_row, make_run, make_study


@pytest.fixture(scope="module")
def few_glyphs():
    """Every fourth glyph of the largest families, drawn small."""
    glyphs = load_glyphs(size=12, min_class_size=300)
    some = slice(None, None, 4)
    fields = ("labels", "ids", "names", "characters")
    return dataclasses.replace(
        glyphs,
        views={view: X[some] for view, X in glyphs.views.items()},
        **{field: getattr(glyphs, field)[some] for field in fields},
    )


@pytest.fixture
def small_demo(monkeypatch, few_glyphs):
    """Let the demo run on few glyphs; return the cells of its study."""
    cells = []

    def table(study):
        cells.extend(study.cells)
        print_comparison(study)

    monkeypatch.setattr("linkspread.datasets.load_glyphs", lambda size: few_glyphs)
    monkeypatch.setattr("linkspread.cli.demo.print_comparison", table)
    return cells


@pytest.mark.slow
def test_the_demo_prints_a_table_and_writes_a_page(small_demo, tmp_path):
    output = tmp_path / "demo"
    done = CliRunner().invoke(
        app, ["demo", "--output", str(output)], catch_exceptions=False
    )
    assert done.exit_code == 0
    for expected in ("of 6 families", "CrossViewSearch", "LabelSpreading", "chance"):
        assert expected in done.output
    assert str(output / "index.html") in done.output
    page = (output / "index.html").read_text(encoding="utf-8")
    # Three searches of pictures with five results each, and three by pictures.
    assert page.count("data:image/png;base64,") == 3 * 5 + 3
    ours, rival, chance = (cell.standard.score for cell in small_demo)
    assert min(ours, rival) > 1.5 * chance


def test_too_many_labels_are_refused_in_one_line(
    small_demo, tmp_path, monkeypatch, capsys
):
    arguments = ["demo", "--labels-per-class", "4000", "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["linkspread", *arguments])
    with pytest.raises(SystemExit, match="2"):
        main()
    captured = capsys.readouterr()
    assert "`labels_per_class` must lie between" in captured.err
    assert captured.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_missing_matplotlib_is_one_line_with_the_remedy(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.ft2font", None)
    monkeypatch.setattr(sys, "argv", ["linkspread", "demo"])
    with pytest.raises(SystemExit, match="2"):
        main()
    error = capsys.readouterr().err
    assert "pip install 'linkspread[pictures]'" in error and error.count("\n") == 1


def test_tables_show_brackets_as_they_are(capsys):
    # Brackets are markup for the printing library.
    print_comparison(make_study(make_row("[bold]ours[/]", make_run(there=0.55))))
    text = capsys.readouterr().out
    assert "[bold]ours[/]" in text and "0.375" in text
    hits = [Hit(Card("", ""), 1.0, right) for right in (True, False, True)]
    example = Search("text", "image", Card("[red]", "cat"), hits)
    print_searches(make_study(examples=(example,)))
    text = capsys.readouterr().out
    assert "[red]" in text and "+-+" in text


def test_a_bar_without_a_terminal_can_be_lines(capsys):
    with step_bar(n_steps=2, lines=True) as step:
        step("first")
        step("second")
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" (")[0] for line in lines] == ["1/2 first", "2/2 second"]


def test_a_bar_is_silent_without_a_terminal(capsys):
    with step_bar(n_steps=2) as step:
        step("first")
        step("second")
    assert capsys.readouterr() == ("", "")
