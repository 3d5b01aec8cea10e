"""Examples are short, have one figure each, and run without a warning."""

import ast
import importlib
import runpy

import pytest

from documents import ROOT

GALLERY = sorted((ROOT / "examples").glob("plot_*.py"))
MAX_LINES = 60


def test_the_gallery_is_of_short_examples():
    assert len(GALLERY) >= 12
    lengths = {path.name: len(path.read_text("utf-8").splitlines()) for path in GALLERY}
    assert {name: n for name, n in lengths.items() if not 20 <= n <= MAX_LINES} == {}


def test_examples_import_what_exists():
    missing = []
    for path in (ROOT / "examples").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.startswith(
                "linkspread"
            ):
                module = importlib.import_module(node.module)
                names = [alias.name for alias in node.names]
                missing += [(path.name, n) for n in names if not hasattr(module, n)]
    assert missing == []


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.close("all")
    yield plt
    plt.close("all")


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_an_example_draws_one_figure(path, pyplot):
    runpy.run_path(str(path))
    assert len(pyplot.get_fignums()) == 1


@pytest.mark.slow
def test_two_moons_are_repaired(pyplot):
    example = runpy.run_path(str(ROOT / "examples" / "plot_two_moons.py"))
    before, after = example["wrong"].values()
    assert after < 0.8 * before
