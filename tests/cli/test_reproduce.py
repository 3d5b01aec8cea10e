"""The command that reproduces tables, on a small collection."""

import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from benchmarks_in_small import write_wikipedia
from linkspread import LinkSpreading
from linkspread.cli import app, main
from linkspread.ground.errors import LinkspreadError
from linkspread.studies import tables
from linkspread.studies.methods import Method
from linkspread.studies.report.study import read_study, write_study
from small_studies import make_budgets, make_cell, make_study


@pytest.fixture
def few_methods(monkeypatch):
    """Let the command measure two methods only."""
    methods = [
        Method(name, "paper", LinkSpreading(n_neighbors=k), [{"alpha": [0.1, 0.5]}])
        for name, k in (("near", 8), ("far", 20))
    ]
    monkeypatch.setattr(
        "linkspread.studies.methods.table_methods", lambda *_, **__: methods
    )


def run(*arguments):
    """Call the command line, and let errors through."""
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


def test_a_table_is_written_as_page_tables_and_data(tmp_path, few_methods):
    write_wikipedia(tmp_path)
    output = tmp_path / "report"
    result = run(
        "reproduce",
        "wikipedia",
        "--data",
        tmp_path,
        "--output",
        output,
        "--resplits",
        2,
    )
    assert result.exit_code == 0
    study = read_study(output / "study.json")
    assert study.methods == ("near", "far")
    assert [r.split for r in study.cells[0].runs][1:] == ["re-split 1", "re-split 2"]
    assert "| near |" in (output / "tables.md").read_text()
    page = (output / "index.html").read_text()
    assert "<svg" in page and "near" in page
    # Three queries in each direction.
    assert len(study.examples) == 6
    assert study.examples[0].query.title.startswith("i")


def test_the_inductive_protocol_is_named_in_the_report(tmp_path, few_methods):
    write_wikipedia(tmp_path)
    run("reproduce", "wikipedia", "--data", tmp_path, "--output", tmp_path / "o",
        "--protocol", "inductive")  # fmt: skip
    assert "in no graph" in read_study(tmp_path / "o" / "study.json").introduction


def test_a_folder_that_cannot_be_written_is_told_before_the_work(tmp_path, few_methods):
    write_wikipedia(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(LinkspreadError, match="folder that can be written"):
        run("reproduce", "wikipedia", "--data", tmp_path, "--output",
            tmp_path / "file" / "report")  # fmt: skip


def test_what_was_measured_is_kept_when_a_later_method_fails(
    tmp_path, few_methods, monkeypatch
):
    write_wikipedia(tmp_path)
    real, measured = tables.measure, []

    def fail_at_the_second(method, *arguments, **keywords):
        if measured:
            raise KeyboardInterrupt
        measured.append(method)
        return real(method, *arguments, **keywords)

    monkeypatch.setattr(tables, "measure", fail_at_the_second)
    CliRunner().invoke(app, ["reproduce", "wikipedia", "--data", str(tmp_path),
                             "--output", str(tmp_path / "o")])  # fmt: skip
    study = read_study(tmp_path / "o" / "study.json")
    assert study.methods == ("near",)


@pytest.mark.slow
def test_a_table_cut_short_goes_on_where_it_stopped(tmp_path, few_methods, monkeypatch):
    write_wikipedia(tmp_path)
    real, measured = tables.measure, []

    def stop_at_the_second(method, *arguments, **keywords):
        if len(measured) == 1:
            measured.append("cut")
            raise KeyboardInterrupt
        measured.append(method.name)
        return real(method, *arguments, **keywords)

    monkeypatch.setattr(tables, "measure", stop_at_the_second)
    words = ["linkspread", "reproduce", "wikipedia", "--data", str(tmp_path)]
    paths = [tmp_path / name for name in ("cut", "whole")]
    # Folders are no part of the command, in one word or two; nor is the order.
    for path, resume in ((paths[0], []), (paths[0], ["--resume"]), (paths[1], [])):
        own = [*words, *resume, "--quick", f"--output={path}", "--resplits", "1"]
        monkeypatch.setattr(sys, "argv", own)
        CliRunner().invoke(app, own[1:])
    assert measured[:2] == ["near", "cut"]
    assert measured[2:] == ["near", "far", "far", "near", "near", "far", "far"]
    cut, whole = (read_study(path / "study.json") for path in paths)
    assert cut.command == "linkspread reproduce wikipedia --quick --resplits 1"
    assert cut == replace(whole, cells=cut.cells)
    for one, other in zip(cut.cells, whole.cells, strict=True):
        pairs = zip(one.runs, other.runs, strict=True)
        runs = tuple(replace(run, seconds=same.seconds) for run, same in pairs)
        assert replace(one, runs=runs) == other


def test_resume_begins_where_there_is_no_study_yet(tmp_path, few_methods):
    write_wikipedia(tmp_path)
    output = tmp_path / "report"
    result = run("reproduce", "wikipedia", "--data", tmp_path, "--output", output,
                 "--resume")  # fmt: skip
    assert result.exit_code == 0
    assert len(read_study(output / "study.json").methods) == 2


def test_an_unknown_protocol_is_refused(tmp_path, few_methods):
    write_wikipedia(tmp_path)
    with pytest.raises(LinkspreadError, match="transductive or inductive, got 'both'"):
        run("reproduce", "wikipedia", "--data", tmp_path, "--output", tmp_path / "o",
            "--protocol", "both")  # fmt: skip


@pytest.mark.slow
def test_budgets_are_written_too(tmp_path, monkeypatch):
    write_wikipedia(tmp_path)
    methods = [
        Method("CrossViewSearch", "paper", LinkSpreading(n_neighbors=8)),
        Method("another", "baseline", LinkSpreading(n_neighbors=20)),
    ]
    for name in ("label_methods", "link_methods"):
        monkeypatch.setattr(
            f"linkspread.studies.budgets.{name}", lambda *_, **__: methods
        )
    output = tmp_path / "report"
    run("reproduce", "budgets", "wikipedia", "--data", tmp_path, "--quick",
        "--output", output, "--repetitions", 2)  # fmt: skip
    study = read_study(output / "study.json")
    assert len(study.cells) == 3 * 2
    assert all(len(cell.runs) == 2 for cell in study.cells)
    assert study.ratio(("links", 1000)) is not None
    run("reproduce", "budgets", "wikipedia", "--data", tmp_path, "--quick",
        "--output", output, "--repetitions", 3, "--resume")  # fmt: skip
    longer = read_study(output / "study.json")
    assert [c.runs[:2] for c in longer.cells] == [c.runs for c in study.cells]
    assert all(len(cell.runs) == 3 for cell in longer.cells)


def write_before(path, kind):
    """Write what cannot be gone on with; return the sentence that says so."""
    cell = make_cell("links", 1000, "LinkSpreading", 0.5)
    study = make_budgets(cell, ours="LinkSpreading", collection="glyphs")
    if kind == "a table":
        study = make_study()
    write_study(path, study)
    if kind == "cut short":
        path.write_bytes(path.read_bytes()[:-40])
    return {
        "a table": "`--resume` needs the folder of a budget study, got a table "
        f"in {path}. Use another folder.",
        "cut short": "A study must be JSON with the fields of `Study`, plain values "
        f"and finite numbers, got {path} with ",
        "another collection": "a study must be continued on its own collection, "
        "'glyphs', got 'wikipedia'. Use another folder.",
    }[kind]


@pytest.mark.parametrize("kind", ["a table", "cut short", "another collection"])
def test_what_cannot_be_gone_on_with_is_refused_and_kept(
    kind, tmp_path, monkeypatch, capsys
):
    write_wikipedia(tmp_path)
    output = tmp_path / "report"
    sentence = write_before(output / "study.json", kind)
    before = (output / "study.json").read_bytes()
    for name in ("label_methods", "link_methods"):  # nothing to wait for
        monkeypatch.setattr(f"linkspread.studies.budgets.{name}", lambda *_, **__: [])
    words = ["linkspread", "reproduce", "budgets", "wikipedia", "--quick", "--resume",
             "--data", str(tmp_path), "--output", str(output)]  # fmt: skip
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as stopped:
        main()
    told = capsys.readouterr()
    assert stopped.value.code == 2
    assert told.err.startswith(f"linkspread: {sentence}")
    assert told.err.count("\n") == 1 and told.err.endswith(".\n")
    assert told.out == ""
    assert [path.name for path in output.iterdir()] == ["study.json"]
    assert (output / "study.json").read_bytes() == before


BEGUN = "linkspread reproduce wikipedia --protocol inductive --quick --resplits 2"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("budgets", "`--resume` needs the folder of a table, got a budget "),
        ("collection", "a study must be continued on its own collection, 'glyphs', "),
        ("--quick", "`--resume` must have the options of the study, "
         f"{BEGUN!r}, got 'linkspread reproduce wikipedia --quick'. "),
        ("--protocol inductive", "`--resume` must have the options of the study, "),
        ("--quick --protocol=inductive --resplits 3", "a table must be continued as "
         "it was begun, 'Image to text. And back.', got 'The labels of 110 items "),
    ],
)  # fmt: skip
def test_another_table_is_refused_and_kept(
    words, sentence, tmp_path, monkeypatch, capsys, few_methods
):
    write_wikipedia(tmp_path)
    path = tmp_path / "report" / "study.json"
    study = replace(make_study(), collection="wikipedia", command=BEGUN)
    if words == "--quick --protocol=inductive --resplits 3":
        study = replace(study, introduction="Image to text. And back.")
    if words == "collection":
        study = replace(study, collection="glyphs")
    if words == "budgets":
        study = make_budgets(make_cell("links", 1, "LinkSpreading", 0.5),
                             ours="LinkSpreading", collection="wikipedia")  # fmt: skip
    before = write_study(path, study).read_bytes()
    options = words.split() if words.startswith("--") else []
    monkeypatch.setattr(sys, "argv", [
        "linkspread", "reproduce", "wikipedia", "--resume", *options,
        "--data", str(tmp_path), "--output", str(path.parent)])  # fmt: skip
    with pytest.raises(SystemExit) as stopped:
        main()
    told = capsys.readouterr().err.splitlines()[-1]
    assert stopped.value.code == 2
    assert told.startswith(f"linkspread: {sentence}") and told.endswith("folder.")
    assert path.read_bytes() == before
    assert [own.name for own in path.parent.iterdir()] == ["study.json"]
