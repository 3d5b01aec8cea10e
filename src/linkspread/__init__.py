"""Cross-view search learnt from links.

Two or more views of a collection and a few judgements in, a search of each view from
every other out.

>>> import linkspread as ls
>>> links = ls.Links.from_pairs([(0, 0, 1.0), (0, 1, -1.0)], between=("text", "image"))
>>> links
Links(1 must and 1 cannot between text and image)
"""

import importlib
from typing import Any

from linkspread import datasets, graphs, links, metrics, propagation, search
from linkspread.ground import errors
from linkspread.links import Links
from linkspread.models import CrossViewSearch, LinkSpreading, ModelFolder, load

__all__ = [
    "CrossViewSearch",
    "LinkSpreading",
    "Links",
    "ModelFolder",
    "datasets",
    "errors",
    "graphs",
    "links",
    "load",
    "metrics",
    "propagation",
    "search",
    "selection",
    "studies",
]
__version__ = "0.1.0"
# Rooms that are imported when they are first used.
LAZY = ("selection", "studies")


def __getattr__(name: str) -> Any:
    """Return a room that was not imported yet."""
    if name in LAZY:
        return importlib.import_module(f"linkspread.{name}")
    raise AttributeError(f"module 'linkspread' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return all names, also those of rooms that were not imported yet."""
    return sorted({*globals(), *LAZY})
