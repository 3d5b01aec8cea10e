"""Finding the items that belong to a query."""

from linkspread.search.index import ItemIndex, choose_method
from linkspread.search.rank import rank

__all__ = [
    "ItemIndex",
    "choose_method",
    "rank",
]
