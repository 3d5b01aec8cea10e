"""Explanations of scores, suggestions of pairs to judge, and doubtful judgements."""

from linkspread.judging.doubts import Doubt
from linkspread.judging.explanation import Contribution, Explanation, Split
from linkspread.judging.explanation_picture import explanation_picture
from linkspread.judging.held_out_quality import Estimate, Progress

__all__ = [
    "Contribution",
    "Doubt",
    "Estimate",
    "Explanation",
    "Progress",
    "Split",
    "explanation_picture",
]
