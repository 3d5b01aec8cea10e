"""Cross-view search learnt from links.

Two or more views of a collection and a few judgements in, a search of each view from
every other out.

>>> import linkspread as ls
>>> links = ls.Links.from_pairs([(0, 0, 1.0), (0, 1, -1.0)], between=("text", "image"))
>>> links
Links(1 must and 1 cannot between text and image)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linkspread import (
        cluster,
        datasets,
        exchange,
        features,
        graphs,
        judging,
        learning,
        links,
        manifests,
        metrics,
        propagation,
        search,
        selection,
        storage,
        studies,
        tables,
        web,
    )
    from linkspread.ground import errors
    from linkspread.links import Links
    from linkspread.models import CrossViewSearch, LinkSpreading, ModelFolder, load

__all__ = [
    "CrossViewSearch",
    "LinkSpreading",
    "Links",
    "ModelFolder",
    "cluster",
    "datasets",
    "errors",
    "exchange",
    "features",
    "graphs",
    "judging",
    "learning",
    "links",
    "load",
    "manifests",
    "metrics",
    "propagation",
    "search",
    "selection",
    "storage",
    "studies",
    "tables",
    "web",
]
__version__ = "0.2.0"
# Everything is imported when it is first used, so that the command line starts at once.
HOMES = {
    "CrossViewSearch": "models",
    "LinkSpreading": "models",
    "Links": "links",
    "ModelFolder": "models",
    "load": "models",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'linkspread' has no attribute {name!r}")
    if name in HOMES:
        value = getattr(importlib.import_module(f"linkspread.{HOMES[name]}"), name)
    else:
        room = "ground.errors" if name == "errors" else name
        value = importlib.import_module(f"linkspread.{room}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return all names, also those that were not imported yet."""
    return sorted({*globals(), *__all__})
