"""Public names: declared, sorted, complete; and a bare import stays light."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import linkspread
from linkspread import cli
from modules import ROOMS, load

ROOT = Path(__file__).parents[2]
NUMERICAL = {"joblib", "numba", "numpy", "pandas", "pyarrow", "scipy", "sklearn"}
# Not pandas and pyarrow: scikit-learn itself imports them where they are installed.
HEAVY = {
    "PIL",
    "cv2",
    "dask",
    "distributed",
    "fastapi",
    "jinja2",
    "matplotlib",
    "polars",
    "rich",
    "sqlalchemy",
    "starlette",
    "tokenizers",
    "torch",
    "typer",
}


def test_every_room_declares_its_public_names_sorted():
    offences = []
    for name in ROOMS:
        module = load(name)
        public = list(getattr(module, "__all__", ["nothing declared"]))
        missing = [entry for entry in public if not hasattr(module, entry)]
        if public != sorted(set(public)) or missing:
            offences.append((name, public, missing))
    assert offences == []


def imported_by(*arguments):
    """Return the packages that Python has imported at the end of a program."""
    report = (
        "import atexit, sys\n"
        "names = lambda: ' '.join({name.partition('.')[0] for name in sys.modules})\n"
        "atexit.register(lambda: print('imported', names()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", report + arguments[0], *arguments[1:]],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_a_bare_import_is_light():
    loaded = imported_by("import linkspread")
    assert "linkspread" in loaded and loaded & (HEAVY | NUMERICAL) == set()
    used = imported_by("import linkspread as ls; ls.CrossViewSearch, ls.load, ls.Links")
    assert "numpy" in used and used & HEAVY == set()


@pytest.mark.parametrize(
    "words",
    [
        ["--version"],
        ["--help"],
        *([command.name, "--help"] for command in cli.app.registered_commands),
        ["links", "add", "--help"],
        ["reproduce", "wikipedia", "--help"],
    ],
    ids=" ".join,
)
@pytest.mark.slow
def test_the_command_line_starts_without_what_only_commands_need(words):
    program = "from linkspread.cli import main; main()"
    loaded = imported_by(program, *words)
    assert (
        "typer" in loaded and loaded & (HEAVY - {"rich", "typer"} | NUMERICAL) == set()
    )


def test_the_version_takes_hardly_longer_than_its_own_libraries():
    resource = pytest.importorskip("resource")

    def fastest(*words):
        """Return the least processor time of several runs, in seconds."""
        times = []
        for _ in range(5):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *words], check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime - before.ru_utime)
            times[-1] += after.ru_stime - before.ru_stime
        return min(times)

    assert fastest("-m", "linkspread", "--version") < 3 * fastest(
        "-c", "import typer, rich"
    )


@pytest.mark.slow
def test_names_are_imported_when_they_are_first_used():
    program = (
        "import sys, linkspread as ls\n"
        "assert not any(name.startswith('linkspread.') for name in sys.modules)\n"
        "assert set(ls.__all__) <= set(dir(ls))\n"
        "ls.selection.tune, ls.studies.baselines.BilinearRidge, ls.errors.LinkError\n"
        "assert not hasattr(ls, 'nowhere')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_changelog_starts_with_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    # A heading such as "## [0.2.0] - 2026-01-31" or "## 0.2.0 (unreleased)".
    versions = re.findall(r"^## \[?v?(\d+\.[\w.]+)", changelog, flags=re.MULTILINE)
    assert versions[:1] == [linkspread.__version__]
