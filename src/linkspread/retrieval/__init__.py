"""Finding the items that belong to a query."""

from linkspread.retrieval.index import ItemIndex, choose_method
from linkspread.retrieval.rank import rank

__all__ = ["ItemIndex", "choose_method", "rank"]
