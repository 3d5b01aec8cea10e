"""Quality of a ranking: average precision, precision and recall, nDCG.

>>> from linkspread.metrics import mean_average_precision
>>> scores = [[0.9, 0.5, 0.1], [0.2, 0.3, 0.8]]
>>> mean_average_precision(scores, query_labels=[0, 1], item_labels=[0, 1, 1])
1.0

Functions about classes take ``(scores, query_labels, item_labels)``. Scores are a
table of shape (n_queries, n_items), or any object with ``shape`` and ``rows(index)``
such as the result of a propagation, read in blocks of rows and never made whole.
An item is relevant to a query when they share a class. Equal scores are ranked by
the position of the item. `partner_ranks` is about items that have one partner each.
"""

from linkspread.metrics.blocks import ScoreBlock
from linkspread.metrics.cutoff import ndcg, precision_at_k, recall_at_k
from linkspread.metrics.partners import (
    Assignment,
    assignment_quality,
    partner_ranks,
    rank_summary,
)
from linkspread.metrics.precision import (
    average_precision,
    mean_average_precision,
    precision_recall_curve,
)

__all__ = [
    "Assignment",
    "ScoreBlock",
    "assignment_quality",
    "average_precision",
    "mean_average_precision",
    "ndcg",
    "partner_ranks",
    "precision_at_k",
    "precision_recall_curve",
    "rank_summary",
    "recall_at_k",
]
