"""Learning from judgements: one map per view, small cores, held-out choices."""

from linkspread.learning.choice import Choice, choose
from linkspread.learning.factors import (
    ScoreFactors,
    change_factors,
    fit_factors,
    renew_factors,
)
from linkspread.learning.maps import ViewMap, make_map
from linkspread.learning.rows import Rows, Setting, Sides

__all__ = [
    "Choice",
    "Rows",
    "ScoreFactors",
    "Setting",
    "Sides",
    "ViewMap",
    "change_factors",
    "choose",
    "fit_factors",
    "make_map",
    "renew_factors",
]
