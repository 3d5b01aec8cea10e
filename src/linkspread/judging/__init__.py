"""Explanations of scores, and suggestions of pairs to judge."""

from linkspread.judging.explanation import Contribution, Explanation, Split
from linkspread.judging.explanation_picture import explanation_picture

__all__ = ["Contribution", "Explanation", "Split", "explanation_picture"]
