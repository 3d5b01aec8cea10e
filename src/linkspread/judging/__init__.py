"""Explanations of scores, suggestions of pairs to judge, and doubtful judgements."""

from linkspread.judging.doubts import Doubt
from linkspread.judging.explanation import Contribution, Explanation, Split
from linkspread.judging.explanation_picture import explanation_picture

__all__ = ["Contribution", "Doubt", "Explanation", "Split", "explanation_picture"]
