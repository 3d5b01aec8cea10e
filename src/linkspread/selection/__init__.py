"""Choosing parameters by cross-validation, and telling how good a model is."""

from linkspread.models.plan import SearchPlan, plan_search
from linkspread.selection.calibration import ScoreCalibration, calibrate
from linkspread.selection.evaluation import (
    SearchQuality,
    evaluate_pairs,
    evaluate_search,
)
from linkspread.selection.folds import LabelFolds
from linkspread.selection.held_out import HeldOutPlan, held_out_quality, plan_held_out
from linkspread.selection.quality import Baseline, Quality
from linkspread.selection.tune import DEFAULT_GRID, tune
from linkspread.selection.tuning import Tuning

__all__ = [
    "Baseline",
    "DEFAULT_GRID",
    "HeldOutPlan",
    "LabelFolds",
    "Quality",
    "ScoreCalibration",
    "SearchPlan",
    "SearchQuality",
    "Tuning",
    "calibrate",
    "evaluate_pairs",
    "evaluate_search",
    "held_out_quality",
    "plan_held_out",
    "plan_search",
    "tune",
]
