"""Learning from judgements: one map per view, small cores, held-out choices."""

from linkspread.learning.choice import Choice, Chosen, Sides, choose
from linkspread.learning.evidence import Evidence, read_evidence
from linkspread.learning.factors import ScoreFactors, fit_factors
from linkspread.learning.maps import ViewMap, make_map

__all__ = [
    "Choice",
    "Chosen",
    "Evidence",
    "ScoreFactors",
    "Sides",
    "ViewMap",
    "choose",
    "fit_factors",
    "make_map",
    "read_evidence",
]
