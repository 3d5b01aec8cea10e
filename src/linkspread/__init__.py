"""Cross-view search learnt from links.

Two or more views of a collection and a few judgements in, a search of each view from
every other out.

>>> import linkspread as ls
>>> links = ls.Links.from_pairs([(0, 0, 1.0), (0, 1, -1.0)], between=("text", "image"))
>>> links
Links(1 must and 1 cannot between text and image)
"""

from linkspread import (
    datasets,
    exceptions,
    graphs,
    links,
    metrics,
    propagation,
    retrieval,
    solvers,
)
from linkspread.estimators import LinkSpreading, load
from linkspread.links import Links

__all__ = [
    "LinkSpreading",
    "Links",
    "datasets",
    "exceptions",
    "graphs",
    "links",
    "load",
    "metrics",
    "propagation",
    "retrieval",
    "solvers",
]
__version__ = "0.1.0"
