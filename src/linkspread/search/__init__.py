"""Search of the best-scoring items of a query."""

from linkspread.search.index import ItemIndex
from linkspread.search.rank import rank

__all__ = ["ItemIndex", "rank"]
