"""Choose parameters by cross-validation, and measure how good a model is."""

from linkspread.models.plan import SearchPlan, plan_search
from linkspread.selection.evaluation import (
    ScoreCalibration,
    SearchQuality,
    calibrate,
    evaluate_pairs,
    evaluate_search,
)
from linkspread.selection.folds import label_folds
from linkspread.selection.held_out import (
    HeldOutPlan,
    Quality,
    held_out_quality,
    plan_held_out,
)
from linkspread.selection.tune import DEFAULT_GRID, Tuning, tune

__all__ = [
    "DEFAULT_GRID",
    "HeldOutPlan",
    "Quality",
    "ScoreCalibration",
    "SearchPlan",
    "SearchQuality",
    "Tuning",
    "calibrate",
    "evaluate_pairs",
    "evaluate_search",
    "held_out_quality",
    "label_folds",
    "plan_held_out",
    "plan_search",
    "tune",
]
