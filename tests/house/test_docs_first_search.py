"""The page about the first search is a transcript: its commands give what it shows."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from documents import python_blocks
from linkspread.cli import main

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "first-search.md"
TEXT = PAGE.read_text(encoding="utf-8")
CONSOLE = re.compile(
    r"^```console\n\$ (.*?[^\\])\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def transcript_of(text):
    """Return the commands of a page, each in one line, and what it shows of them."""
    return [(re.sub(r" \\\n +", " ", c), shown) for c, shown in CONSOLE.findall(text)]


def skeleton(text):
    """Return a text without its numbers, which another machine may round otherwise."""
    words = re.sub(r"[\d.,]+", "#", text).split()
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


def test_the_page_shows_what_its_commands_print(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = python_blocks(TEXT)
    exec(compile(block, str(PAGE), "exec"), {"__name__": "page"})
    transcript = transcript_of(TEXT)
    assert [shlex.split(line)[1] for line, _ in transcript] == [
        "-4", "fit", "fit", "search", "evaluate",
    ]  # fmt: skip
    for line, shown in transcript:
        printed = run(shlex.split(line), capsys, monkeypatch)
        assert skeleton(printed) == skeleton(shown), line


@pytest.mark.parametrize("page", ["README.md", "docs/command-line.md"])
def test_other_pages_show_the_same_fit(page):
    fit = next(line for line, _ in transcript_of(TEXT) if line.endswith("output model"))
    assert f"{fit}\n" in (ROOT / page).read_text(encoding="utf-8")
