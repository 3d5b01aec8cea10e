"""Tables and pages that show how well a search works."""

from linkspread.report.comparison import (
    ComparisonRow,
    ScoreBlock,
    compare_chance,
    compare_label_spreading,
    compare_scores,
)
from linkspread.report.page import Card, Hit, Search, build_page, write_page
from linkspread.report.pictures import ink_data_uri
from linkspread.report.protocol import (
    choose_labeled,
    choose_queries,
    expected_by_chance,
    keep_hidden,
)

__all__ = [
    "Card",
    "ComparisonRow",
    "Hit",
    "ScoreBlock",
    "Search",
    "build_page",
    "choose_labeled",
    "choose_queries",
    "compare_chance",
    "compare_label_spreading",
    "compare_scores",
    "expected_by_chance",
    "ink_data_uri",
    "keep_hidden",
    "write_page",
]
