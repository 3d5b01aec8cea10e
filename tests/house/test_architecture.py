"""Imports go downwards only, and heavy packages stay in their rooms.

The rooms stand in CONTRIBUTING.md. Imports within functions and imports for type
checkers count too: both make one room depend on another.
"""

import ast
from pathlib import Path

import pytest

import linkspread

SOURCE = Path(linkspread.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

# From the doors down to the ground; a room may import from any line below its own.
LINES = [
    {"__main__"},
    {"cli"},
    {"web"},
    {"exchange", "studies"},
    {"cluster"},
    {"selection"},
    {"models"},
    {"judging"},
    {"search"},
    {"metrics"},
    {"learning"},
    {"graphs"},
    {"propagation"},
    {"links"},
    {"manifests"},
    {"datasets"},
    {"features"},
    {"storage"},
    {"tables"},
    {"compiled"},
    {"ground"},
]
# Side rooms: nothing but these imports them.
ONLY_IMPORTERS = {
    "studies": {"cli"},
    "manifests": {"cli", "web"},
    "datasets": {"cli", "web", "studies", "manifests"},
    "features": {"cli", "web", "studies", "manifests", "datasets"},
}
# `from linkspread import __version__`: model folders and exports state who wrote them.
READS_VERSION = {"cli", "web", "storage", "exchange", "manifests", "cluster"}
HOMES = {
    "numba": ("linkspread.compiled",),
    "llvmlite": ("linkspread.compiled",),
    "torch": ("linkspread.compiled.gpu", "linkspread.features"),
}
# Calls whose first argument names a module to import.
IMPORTING_CALLS = {"__import__", "import_module", "require"}


def module_name(path):
    """Return the dotted name of a source file, and whether it is a package."""
    parts = ["linkspread", *path.relative_to(SOURCE).with_suffix("").parts]
    is_package = parts[-1] == "__init__"
    return ".".join(parts[:-1] if is_package else parts), is_package


def imported_names(source, module, is_package=False):
    """Return the dotted names of everything that a module imports, at any depth."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = absolute_start(node, module, is_package)
            names |= {f"{start}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call):
            names |= named_in_call(node)
    return names


def absolute_start(node, module, is_package):
    """Return what stands between `from` and `import`, without leading dots."""
    if not node.level:
        return node.module
    n_dropped = node.level - is_package
    package = module.split(".")[: -n_dropped or None]
    return ".".join([*package, *([node.module] if node.module else [])])


def named_in_call(node):
    """Return the module that a call such as ``require("torch")`` imports."""
    function = getattr(node.func, "id", getattr(node.func, "attr", None))
    first = node.args[0] if node.args else None
    if function in IMPORTING_CALLS and isinstance(first, ast.Constant):
        return {first.value}
    return set()


def room_violations(importer, name):
    """Say what is wrong when room ``importer`` imports the name ``linkspread.x.y``."""
    imported = (name.split(".") + [""])[1]
    if imported == "__version__" and importer in READS_VERSION:
        return []
    for room in (importer, imported):
        if line_of(room) is None:
            return [f"`{room or 'linkspread'}` is no room ({importer} imports {name})"]
    if importer == imported or allowed(importer, imported):
        return []
    return [f"`{importer}` must not import from `{imported}` ({name})"]


def allowed(importer, imported):
    """Tell whether one room may import from another."""
    is_below = line_of(importer) < line_of(imported)
    return is_below and importer in ONLY_IMPORTERS.get(imported, {importer})


def line_of(room):
    """Return the number of the room's line, counted from the top."""
    return next((i for i, rooms in enumerate(LINES) if room in rooms), None)


def violations(source, module, is_package=False):
    """Return a sentence for every import that the house does not allow."""
    found = []
    room = (module.split(".") + [""])[1]
    for name in sorted(imported_names(source, module, is_package)):
        package = name.partition(".")[0]
        # The top of the package gathers the public names, so it may import any room.
        if package == "linkspread" and room:
            found += room_violations(room, name)
        homes = HOMES.get(package)
        if homes and not f"{module}.".startswith(tuple(f"{home}." for home in homes)):
            found.append(f"{module} must not import {package}, only {homes} may")
    return found


def test_imports_follow_the_order_of_the_rooms():
    offences = []
    for path in MODULES:
        offences += violations(path.read_text(encoding="utf-8"), *module_name(path))
    assert offences == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("linkspread.propagation.exact", "from linkspread.graphs import knn_graph"),
        ("linkspread.graphs.knn", "import linkspread.models"),
        ("linkspread.graphs.knn", "from linkspread import cli"),
        ("linkspread.propagation.exact", "from ..graphs.knn import knn_graph"),
        ("linkspread.propagation.exact", "from .. import graphs"),
        ("linkspread.graphs.knn", "def f():\n    from linkspread import web"),
        ("linkspread.graphs.knn", "importlib.import_module('linkspread.web')"),
        ("linkspread.graphs.knn", "import linkspread"),
        ("linkspread.graphs.knn", "from linkspread import __version__"),
        ("linkspread.links", "from linkspread.graphs import knn_graph"),
        ("linkspread.metrics", "from linkspread.search import rank"),
        ("linkspread.datasets.glyphs", "from linkspread.links import Links"),
        ("linkspread.datasets.glyphs", "from linkspread.studies.report import table"),
        ("linkspread.features.texts", "from linkspread.datasets import make_views"),
        ("linkspread.models.fit", "from linkspread.studies.report import table"),
        ("linkspread.graphs.knn", "from linkspread.toolbox import anything"),
        ("linkspread.graphs.knn", "import numba"),
        ("linkspread.search.rank", "from numba import njit"),
        ("linkspread.compiled.cpu", "import torch.nn"),
        ("linkspread.web.app", "require('torch', purpose='It')"),
        ("linkspread.storage.folder", "from linkspread.links import Links"),
        ("linkspread.manifests.cache", "from linkspread.links import Links"),
        ("linkspread.models.fit", "from linkspread.manifests import featurize"),
        ("linkspread.models.fit", "from linkspread.cluster import fit"),
    ],
)
def test_the_checker_catches_a_violation(module, source):
    assert len(violations(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("linkspread.graphs.knn", "from linkspread.graphs.normalize import normalize"),
        ("linkspread.graphs.knn", "from . import normalize\nfrom ..links import Links"),
        ("linkspread.graphs.knn", "import numpy, linkspread.compiled"),
        (
            "linkspread.cli.main",
            "def f():\n    from linkspread.studies import x",
        ),
        ("linkspread.storage.folder", "from linkspread import __version__"),
        ("linkspread.models.saving", "from linkspread.storage import Registry"),
        ("linkspread.compiled.lad", "from numba import njit"),
        ("linkspread.compiled.gpu", "require('torch', purpose='It')"),
        ("linkspread.manifests.cache", "from linkspread.features import TextFeatures"),
        ("linkspread.datasets.glyphs", "from linkspread.features import TextFeatures"),
        ("linkspread.cli.featurize", "from linkspread.manifests import featurize"),
        ("linkspread", "from linkspread.cli import main"),
    ],
)
def test_the_checker_allows_what_is_right(module, source):
    assert violations(source, module) == []


def test_relative_imports_of_a_package_start_at_itself():
    names = imported_names("from .knn import f", "linkspread.graphs", is_package=True)
    assert names == {"linkspread.graphs.knn.f"}
