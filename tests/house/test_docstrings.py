"""Docstrings: parameters and defaults are those of the signature.

Names that a room offers (`linkspread.room.name`) are for users and need every
parameter documented, and so do their methods that the list of the API names. Other
methods, names shared between the modules of one room, and those of the rooms that only
other rooms import need a sentence.
"""

import ast
import inspect
import re
from functools import cache
from pathlib import Path
from typing import is_typeddict

import pytest
from numpydoc.docscrape import NumpyDocString

from modules import MODULES, load

MAX_SUMMARY = 79
# Words in code of the list of what users call, without options and parameters.
API = (Path(__file__).parents[2] / "docs/api.md").read_text(encoding="utf-8")
NAMED = {
    word
    for code in re.findall(r"`+([^`]+)`+", API)
    for word in re.findall(r"(?<![-\w])\w+\b(?!=)", code)
}
# A kernel states its array equation in one sentence; its arrays are its callers'. What
# learning is made of is for the models alone.
INTERNAL = tuple(
    f"linkspread.{room}" for room in ("compiled", "learning", "storage", "web", "cli")
)


def public_objects(module_names):
    """Yield (dotted name, object) for every public function, class and method."""
    seen = set()
    for module_name in module_names:
        try:
            module = load(module_name)
        except (ImportError, pytest.skip.Exception):
            # A module that is broken fails in test_public_names.
            continue
        for name in getattr(module, "__all__", vars(module)):
            value = getattr(module, name, None)
            if name.startswith("_"):
                continue
            if is_documented_here(value) and id(value) not in seen:
                seen.add(id(value))
                yield f"{value.__module__}.{name}", value
                yield from methods(value)


@cache
def offered_by_rooms():
    """Return the names of public objects and methods that a room offers."""
    rooms = [name for name in MODULES if name.count(".") <= 1]
    rooms = [name for name in rooms if not name.startswith(INTERNAL)]
    return set(dict(public_objects(rooms)))


def is_documented_here(value):
    """Tell functions and classes of this package from constants and aliases."""
    is_code = inspect.isroutine(value) or inspect.isclass(value)
    is_code = is_code or hasattr(value, "py_func")
    return is_code and value.__module__.startswith("linkspread")


def methods(value):
    """Yield (dotted name, function) for the public methods a class itself defines."""
    if not inspect.isclass(value):
        return
    for name, member in vars(value).items():
        function = getattr(member, "__func__", member)
        # Named tuples and data classes bring methods that nobody here wrote.
        if inspect.isfunction(function) and function.__module__ == value.__module__:
            if not name.startswith("_"):
                yield f"{value.__module__}.{value.__qualname__}.{name}", function


def signature_defaults(value):
    """Return {parameter: default} of a callable, without `self` and `cls`."""
    parameters = inspect.signature(value).parameters.values()
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return {
        stars.get(parameter.kind, "") + parameter.name: parameter.default
        for parameter in parameters
        if parameter.name not in ("self", "cls")
    }


def documented_defaults(value):
    """Return {parameter: text after ``default=``, or None} of a docstring."""
    doc = NumpyDocString(inspect.getdoc(value))
    # A class that only holds values may describe them as its attributes.
    entries = doc["Parameters"] or (inspect.isclass(value) and doc["Attributes"]) or []
    found = {}
    for entry in entries:
        match = re.search(r"\bdefault=(.+)$", entry.type)
        for name in entry.name.split(", "):
            found[name] = match and match[1]
    return found


def same_default(text, default):
    """Tell whether a documented default is the one of the signature."""
    if text is None or default is inspect.Parameter.empty:
        return text is None and default is inspect.Parameter.empty
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        name = getattr(default, "__qualname__", repr(default))
        full_name = f"{getattr(default, '__module__', '')}.{name}"
        return text in (name, full_name, full_name.replace("numpy", "np"))
    return type(value) is type(default) and value == default


def needs_parameters(name, value):
    """Tell whether the parameters of an object are for its callers to read."""
    if name not in offered_by_rooms():
        return False
    if inspect.isclass(value):
        is_plain = issubclass(value, BaseException) and "__init__" not in vars(value)
        is_shape = getattr(value, "_is_protocol", False) or is_typeddict(value)
        return not (is_plain or is_shape)
    is_method = "." in value.__qualname__
    has_sections = bool(documented_defaults(value))
    return not is_method or has_sections or value.__name__ in NAMED


OBJECTS = dict(public_objects(MODULES))
WITH_PARAMETERS = [name for name in OBJECTS if needs_parameters(name, OBJECTS[name])]


def test_every_summary_is_one_short_sentence():
    offences = []
    for name, value in OBJECTS.items():
        summary = (inspect.getdoc(value) or " ").splitlines()[0]
        if not summary.endswith(".") or len(summary) > MAX_SUMMARY:
            offences.append((name, summary))
    assert offences == []


def test_documented_parameters_and_defaults_are_those_of_the_signature():
    offences = []
    for name in WITH_PARAMETERS:
        documented = documented_defaults(OBJECTS[name])
        actual = signature_defaults(OBJECTS[name])
        if list(documented) != list(actual):
            offences.append((name, list(documented), list(actual)))
        wrong = [p for p in actual if not same_default(documented.get(p), actual[p])]
        offences += [(name, p, documented.get(p), actual[p]) for p in wrong]
    assert offences == []


def sample(first, *, size=3, name="a", tol=1e-6):
    """Do nothing.

    Parameters
    ----------
    first : int
    size : int, default=4
    name : str, default="a"
    tol : float
        Has a default that is not documented.
    """


def test_the_checker_catches_wrong_defaults():
    documented, actual = documented_defaults(sample), signature_defaults(sample)
    assert list(documented) == list(actual)
    right = [name for name in actual if same_default(documented[name], actual[name])]
    assert right == ["first", "name"]
