"""Tutorials are transcripts: their code and commands print what the pages show."""

import contextlib
import io
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

from documents import ROOT
from linkspread.cli import main
from ports import free_port
from servers import Server

PAGES = [
    ROOT / "docs" / "first-search.md",
    *(
        ROOT / "docs" / "tutorials" / f"{name}.md"
        for name in ("vectors", "catalogues", "photos", "paper")
    ),
]
FENCE = re.compile(
    r"^```(python|text|console|bash|python no-run)\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def steps_of(text):
    """Return kind, content and line of each fenced block of a page."""
    return [
        (match[1], match[2], text.count("\n", 0, match.start(2)))
        for match in FENCE.finditer(text)
    ]


def commands_of(block):
    """Return the commands of a transcript, each in one line, and what it shows."""
    return [(re.sub(r" \\\n +", " ", c), shown) for c, shown in COMMAND.findall(block)]


def skeleton(text):
    """Return a text without its numbers, which another machine may round otherwise.

    Nor frames and folders of a table, whose width is that of the machine's paths.
    """
    text = re.sub(r"[^\s│]*/photos/", "photos/", text)
    words = re.sub(r"[\d.,]+", "#", re.sub(r"[\u2500-\u257f]+", " ", text)).split()
    return " ".join(words)


def run(words, capsys, monkeypatch):
    """Run a command in this process, and return what it prints."""
    if words[0] == "head":
        lines = Path(words[2]).read_text().splitlines()
        return "\n".join(lines[: int(words[1].strip("-"))])
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as stopped:
        main()
    captured = capsys.readouterr()
    assert not stopped.value.code, captured.err
    return captured.out


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_what_it_prints(page, tmp_path, monkeypatch, capsys):
    if page.stem == "photos":
        pytest.importorskip("cv2")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    namespace, printed = {"__name__": "page"}, ""
    for kind, block, line in steps_of(page.read_text(encoding="utf-8")):
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile("\n" * line + block, str(page), "exec"), namespace)
            printed = out.getvalue()
        elif kind == "text":
            assert block.strip() and skeleton(printed) == skeleton(block), line
        elif kind == "console":
            for command, shown in commands_of(block):
                printed = run(shlex.split(command), capsys, monkeypatch)
                assert skeleton(printed) == skeleton(shown), command
        elif "linkspread serve" in block:
            served_as_shown(tmp_path, page)


def served_as_shown(folder, page):
    """Serve the model of a page, and search it by the code that the page shows."""
    pytest.importorskip("uvicorn")
    (code,) = (
        b for kind, b, _ in steps_of(page.read_text("utf-8")) if "no-run" in kind
    )
    port = free_port()
    server = Server(folder / "model", port)
    try:
        server.wait("/health")
        examples = runpy.run_path(str(ROOT / "examples" / "page_client.py"))
        code = code.replace(":8000", f":{port}").replace("from page_client", "# from")
        namespace = {"Client": examples["Client"]}
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, namespace)
        assert namespace["first"].id and namespace["first"].picture
    finally:
        server.kill()


@pytest.mark.parametrize("page", ["docs/quickstart.md", "docs/command-line.md"])
def test_other_pages_show_the_same_fit(page):
    (first,) = (path for path in PAGES if path.stem == "first-search")
    blocks = steps_of(first.read_text(encoding="utf-8"))
    shown = [c for kind, b, _ in blocks if kind == "console" for c, _ in commands_of(b)]
    fit = next(command for command in shown if command.endswith("output model"))
    assert f"{fit}\n" in (ROOT / page).read_text(encoding="utf-8")


def test_transcripts_are_read():
    block = "$ a b \\\n    c\nshown\n$ d\n"
    assert commands_of(block) == [("a b c", "shown\n"), ("d", "")]
    assert skeleton("│ 1 │ /x/photos/1.jpg │") == "# photos/#jpg"
