"""Choosing parameters by cross-validation, for two views or more."""

from linkspread.selection.calibration import ScoreCalibration, calibrate
from linkspread.selection.evaluation import (
    PairQuality,
    SearchQuality,
    evaluate_pairs,
    evaluate_search,
)
from linkspread.selection.folds import LabelFolds
from linkspread.selection.tune import DEFAULT_GRID, tune
from linkspread.selection.tuning import Tuning

__all__ = [
    "DEFAULT_GRID",
    "LabelFolds",
    "PairQuality",
    "ScoreCalibration",
    "SearchQuality",
    "Tuning",
    "calibrate",
    "evaluate_pairs",
    "evaluate_search",
    "tune",
]
