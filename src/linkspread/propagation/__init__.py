"""Spreading links over graphs: exact filter, low-rank sketch, the paper's loop."""

from linkspread.propagation.alternate import alternate
from linkspread.propagation.exact import propagate, spread_links
from linkspread.propagation.rows import propagate_rows
from linkspread.propagation.spread import Factored, Spread

__all__ = [
    "Factored",
    "Spread",
    "alternate",
    "propagate",
    "propagate_rows",
    "spread_links",
]
