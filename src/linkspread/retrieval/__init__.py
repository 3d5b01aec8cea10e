"""Finding the items that belong to a query."""

from linkspread.retrieval.explanation import Contribution, Explanation, Split
from linkspread.retrieval.index import ItemIndex, choose_method
from linkspread.retrieval.rank import rank

__all__ = [
    "Contribution",
    "Explanation",
    "ItemIndex",
    "Split",
    "choose_method",
    "rank",
]
