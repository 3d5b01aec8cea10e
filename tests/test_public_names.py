"""Public names: declared, sorted, complete; and a bare import stays light."""

import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import linkspread

ROOT = Path(__file__).parents[1]
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
# Their functions are commands and routes: public to people, not to programs.
DOORS = ("linkspread.cli", "linkspread.web")


def found_modules():
    """Return the names of all modules, also of those that cannot be imported."""
    source = Path(linkspread.__file__).parent
    files = [path.relative_to(source.parent) for path in source.rglob("*.py")]
    names = {".".join(path.with_suffix("").parts) for path in files}
    # Importing `__main__` would run the program.
    names = {name for name in names if not name.endswith("__main__")}
    return sorted(name.removesuffix(".__init__") for name in names)


def load(name):
    """Import a module, or skip the test where its optional package is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if error.name is None or error.name.startswith("linkspread"):
            raise
        pytest.skip(f"{name} needs the package {error.name}")


def defined_names(module):
    """Return the public functions and classes that a module itself defines."""
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isroutine(value) or inspect.isclass(value))
        and getattr(value, "__module__", None) == module.__name__
    }


MODULES = found_modules()


@pytest.mark.parametrize("name", MODULES)
def test_every_module_declares_its_public_names(name):
    assert hasattr(load(name), "__all__")


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_sorted_and_exist(name):
    module = load(name)
    public = list(getattr(module, "__all__", []))
    assert public == sorted(set(public))
    assert [entry for entry in public if not hasattr(module, entry)] == []


@pytest.mark.parametrize("name", [n for n in MODULES if not n.startswith(DOORS)])
def test_no_public_name_is_missing(name):
    module = load(name)
    assert defined_names(module) - set(getattr(module, "__all__", [])) == set()


def test_a_bare_import_is_light():
    program = "import json, sys, linkspread; print(json.dumps(list(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert loaded & HEAVY == set()


def test_rooms_are_imported_when_they_are_first_used():
    program = (
        "import sys, linkspread as ls\n"
        "rooms = ('linkspread.studies.baselines', 'linkspread.selection')\n"
        "assert not any(room in sys.modules for room in rooms)\n"
        "assert {'baselines', 'selection'} <= set(dir(ls)) & set(ls.__all__)\n"
        "ls.selection.tune, ls.studies.baselines.BilinearRidge\n"
        "assert not hasattr(ls, 'nowhere')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_changelog_starts_with_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    # A heading such as "## [0.2.0] - 2026-01-31" or "## 0.2.0 (unreleased)".
    versions = re.findall(r"^## \[?v?(\d+\.[\w.]+)", changelog, flags=re.MULTILINE)
    assert versions[:1] == [linkspread.__version__]
