"""Finding the items that belong to a query."""

from linkspread.retrieval.rank import rank

__all__ = ["rank"]
