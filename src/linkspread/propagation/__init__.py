"""Spreading links over graphs: exact filter, low-rank sketch, the paper's loop."""

from linkspread.propagation.alternate import alternate
from linkspread.propagation.exact import propagate, spread_links
from linkspread.propagation.factored import Factored
from linkspread.propagation.rows import propagate_rows
from linkspread.propagation.spread import Spread

__all__ = [
    "Factored",
    "Spread",
    "alternate",
    "propagate",
    "propagate_rows",
    "spread_links",
]
