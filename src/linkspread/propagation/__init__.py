"""Propagation of links over graphs: exact, by a sketch, or as in the paper."""

from linkspread.propagation.alternate import alternate
from linkspread.propagation.exact import propagate, spread_links
from linkspread.propagation.spread import Factored, Spread

__all__ = [
    "Factored",
    "Spread",
    "alternate",
    "propagate",
    "spread_links",
]
