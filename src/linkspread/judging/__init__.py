"""Why a score is what it is, and which pairs to judge next."""

from linkspread.judging.explanation import Contribution, Explanation, Split

__all__ = ["Contribution", "Explanation", "Split"]
