"""Documentation: the README runs, every public name is explained, files stay small."""

import importlib
import re
import subprocess

import pytest

import linkspread
from documents import ROOT, python_blocks
from linkspread.studies.report.study import read_study

README = ROOT / "README.md"
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES_OF_STUDIES = [
    page
    for page in [README, *sorted(ROOT.glob("docs/*.md"))]
    if "<!-- study " in page.read_text(encoding="utf-8")
]
MAX_LINES = 650
# Put together here, so that this file does not contain what it forbids.
PRIVATE_FOLDERS = tuple(f"/{name}/" for name in ("home", "root", "work"))


def files_of_the_tree():
    """Return the files that are or could be committed."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        paths = [ROOT / name for name in done.stdout.split("\0") if name]
    else:
        # An unpacked source distribution has no repository, and no other clutter.
        paths = [path for path in ROOT.rglob("*") if ".venv" not in path.parts]
    return [path for path in paths if path.is_file()]


def test_blocks_keep_their_line_numbers():
    text = "a\n```python\nx = 1\n```\n```bash\nls\n```\n```python\ny = 2\n```\n"
    assert python_blocks(text) == ["\n\nx = 1\n", "\n" * 8 + "y = 2\n"]


def pages_that_run():
    """Return the pages with Python blocks that no other test runs."""
    elsewhere = {"exchange.md", "first-search.md"}
    pages = [README, *sorted(ROOT.glob("docs/*.md"))]
    return [
        page.relative_to(ROOT).as_posix()
        for page in pages
        if python_blocks(page.read_text(encoding="utf-8"))
        and page.name not in elsewhere
    ]


@pytest.mark.parametrize("name", pages_that_run())
@pytest.mark.slow
def test_the_code_of_a_page_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = ROOT / name
    blocks = python_blocks(page.read_text(encoding="utf-8"))
    assert blocks, f"{name} has no Python block"
    namespace = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)


def test_each_page_is_in_the_index_of_the_site():
    entries = []
    for index in (ROOT / "docs" / "index.md", ROOT / "docs" / "tutorials" / "index.md"):
        text = index.read_text(encoding="utf-8")
        for tree in re.findall(
            r"^```{toctree}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
        ):
            entries += [index.parent / f"{entry}.md" for entry in tree.split()]
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/tutorials/*.md")]
    missing = [
        page for page in pages if page.name != "index.md" and page not in entries
    ]
    assert missing == []


def test_the_readme_is_one_screen_and_its_figures_stand_on_their_pages():
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 75
    rows = re.findall(r"^\| \*\*(.*?)\*\* \|.*\]\(([^)]*)\)\) \|$", text, re.MULTILINE)
    assert len(rows) == 4
    for figure, target in rows:
        page = (README.parent / target).read_text(encoding="utf-8")
        number = figure.removesuffix(" s")
        assert number in page, f"{figure} is not in {target}"


@pytest.mark.parametrize("name", getattr(linkspread, "__all__", []))
def test_every_public_name_is_documented(name):
    api = ROOT / "docs" / "api.md"
    pages = [page.read_text(encoding="utf-8") for page in (README, api)]
    assert any(re.search(rf"\b{re.escape(name)}\b", page) for page in pages)


def test_no_file_names_a_folder_of_somebodys_machine():
    found = [
        f"{path.relative_to(ROOT)}: {folder}"
        for path in files_of_the_tree()
        for folder in PRIVATE_FOLDERS
        if folder.encode() in path.read_bytes()
    ]
    assert found == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_source_file_is_too_long(path):
    n_lines = len(path.read_text(encoding="utf-8").splitlines())
    assert n_lines <= MAX_LINES, f"{path.name} has {n_lines} lines; split it"


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/**/*.md")) + [README])
def test_links_between_pages_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", text)
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("docs/studies/*.json")))
def test_stored_studies_hold_nothing_of_their_collections(path):
    assert not getattr(read_study(path), "examples", ())
    assert "data:image" not in path.read_text(encoding="utf-8")


def test_every_stored_study_is_shown():
    shown = "".join(page.read_text(encoding="utf-8") for page in PAGES_OF_STUDIES)
    studies = [path.stem for path in ROOT.glob("docs/studies/*.json")]
    assert studies
    assert [name for name in studies if f"<!-- study {name} -->" not in shown] == []


@pytest.mark.parametrize("page", PAGES_OF_STUDIES, ids=lambda page: page.name)
def test_tables_of_studies_are_those_of_the_stored_results(page, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    rewrite = importlib.import_module("write_studies").rewrite
    message = "run `python benchmarks/write_studies.py`"
    assert rewrite(page) == page.read_text(encoding="utf-8"), message


def test_only_the_named_part_of_a_page_is_replaced(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    replace = importlib.import_module("harness").replace_between
    page = "a\n<!-- one: by x -->\nold\n<!-- end of one -->\nb"
    found = replace(page, "one", r"new \1 \g<0>")
    assert found == page.replace("old", "\nnew \\1 \\g<0>\n")
    for wrong in ("", page * 2):
        with pytest.raises(ValueError, match="part named 'one', got"):
            replace(wrong, "one", "new")
