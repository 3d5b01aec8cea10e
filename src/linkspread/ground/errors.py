"""Errors that a caller may want to catch.

::

    LinkspreadError (ValueError)
    ├── ViewError                 a view's table cannot be used
    ├── GraphError                a graph, or a parameter of one, cannot be used
    ├── LinkError                 links are malformed
    │   ├── FewLinksError         too few links to learn from, or to hold any out
    │   └── UnknownItemError      links or queries name items that no view has
    ├── ModelError                a model cannot be stored, or its folder not be read
    ├── StoreError                a link store cannot be opened, read or written
    ├── UnreadablePicture         a picture cannot be read; `kind` is the reason
    ├── BlockTooLargeError        the block of scores asked for is larger than allowed
    └── MissingDependencyError    an optional package is missing (also ImportError)

    ColumnWarning (UserWarning)       a column used as a feature may not be one
    ConflictWarning (UserWarning)     the same pair is both a must- and a cannot-link
    UnknownItemWarning (UserWarning)  links were skipped whose items no view has

Every message has three parts: the rule, the value received, the remedy.
"""

import importlib
import sys
import warnings
from types import ModuleType

__all__ = [
    "BlockTooLargeError",
    "ColumnWarning",
    "ConflictWarning",
    "FewLinksError",
    "GraphError",
    "LinkError",
    "LinkspreadError",
    "MissingDependencyError",
    "ModelError",
    "StoreError",
    "UnknownItemError",
    "UnknownItemWarning",
    "UnreadablePicture",
    "ViewError",
    "missing",
    "require",
    "warn_caller",
]


class LinkspreadError(ValueError):
    """Base class of all errors of linkspread."""


class ViewError(LinkspreadError):
    """A view's table cannot be used."""


class GraphError(LinkspreadError):
    """A graph, or a parameter of one, cannot be used."""


class LinkError(LinkspreadError):
    """Links are malformed."""


class FewLinksError(LinkError):
    """There are too few links to learn from, or to hold any of them out."""


class UnknownItemError(LinkError):
    """Links or queries name items that no view has."""


class ModelError(LinkspreadError):
    """A model cannot be stored, or its folder cannot be read."""


class StoreError(LinkspreadError):
    """A link store cannot be opened, read or written."""


class UnreadablePicture(LinkspreadError):
    """A picture cannot be read."""

    def __init__(self, message: str, kind: str = "damaged") -> None:
        super().__init__(message)
        self.kind = kind


class BlockTooLargeError(LinkspreadError):
    """The block of scores asked for is larger than allowed."""


class MissingDependencyError(LinkspreadError, ImportError):
    """An optional package is not installed."""


class ColumnWarning(UserWarning):
    """A column is used as a feature, and may be an index, an id, a label or a date."""


class ConflictWarning(UserWarning):
    """The same pair is both a must-link and a cannot-link."""


class UnknownItemWarning(UserWarning):
    """Links were skipped that name items which no view has."""


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line outside this package, however deep the call is."""
    level, frame = 1, sys._getframe()
    package = __name__.partition(".")[0] + "."
    while frame.f_back and f"{frame.f_globals.get('__name__')}.".startswith(package):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


# What pip installs for a module; itself where it is not here.
INSTALLED_BY = {
    "PIL": "'linkspread[pictures]'",
    "cv2": "'linkspread[pictures]'",
    "distributed": "'linkspread[cluster]'",
    "faiss": "faiss-cpu",
    "fastapi": "'linkspread[web]'",
    "jinja2": "'linkspread[web]'",
    "matplotlib": "'linkspread[pictures]'",
    "prometheus_client": "'linkspread[web]'",
    "psycopg": "'linkspread[postgres]'",
    "python_multipart": "'linkspread[web]'",
    "torch": "'linkspread[gpu]'",
    "uvicorn": "'linkspread[web]'",
    "wordllama": "wordllama tokenizers safetensors",
    "zarr": "'linkspread[cluster]'",
}


def require(module: str, *, purpose: str) -> ModuleType:
    """Import an optional module; if it is missing, name the install command."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing(module.partition(".")[0], purpose=purpose) from error


def missing(package: str, *, purpose: str) -> MissingDependencyError:
    """Return the error that names a package and how to install it."""
    return MissingDependencyError(
        f"{purpose} needs the package {package}, which is not installed. "
        f"Install it with `pip install {INSTALLED_BY.get(package, package)}`."
    )
