"""Export vectors, rankings and judged pairs for other programs.

A score is the inner product of a searching and a found vector. Every export states so,
because most vector databases compare by cosine by default.
"""

from linkspread.exchange.postgres import write_postgres
from linkspread.exchange.rankings import write_pairs, write_run
from linkspread.exchange.vectors import write_vectors

__all__ = ["write_pairs", "write_postgres", "write_run", "write_vectors"]
