"""Search of the best-scoring items of a query, and matches of all items."""

from linkspread.ground.notebook import Results
from linkspread.search.index import ItemIndex
from linkspread.search.matches import Matches
from linkspread.search.rank import rank

__all__ = ["ItemIndex", "Matches", "Results", "rank"]
