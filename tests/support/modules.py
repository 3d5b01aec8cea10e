"""All modules of the package."""

import importlib
from pathlib import Path

import pytest

import linkspread


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


MODULES = found_modules()


def found_rooms():
    """Return the names of the packages, the outermost one apart."""
    source = Path(linkspread.__file__).parent
    files = [path.relative_to(source.parent) for path in source.rglob("__init__.py")]
    return sorted(".".join(path.parts[:-1]) for path in files)


ROOMS = found_rooms()
