"""The paper's experiments, and rivals beside them, by one call each."""

from linkspread.reproduction.budgets import run_budgets
from linkspread.reproduction.splits import Split, resplit
from linkspread.reproduction.tables import run_table

__all__ = ["Split", "resplit", "run_budgets", "run_table"]
