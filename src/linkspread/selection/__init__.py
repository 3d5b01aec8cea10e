"""Choose parameters by cross-validation, and measure how good a model is."""

from linkspread.selection.evaluation import (
    Quality,
    ScoreCalibration,
    SearchQuality,
    calibrate,
    evaluate_pairs,
    evaluate_search,
)
from linkspread.selection.tune import Tuning, tune

__all__ = [
    "Quality",
    "ScoreCalibration",
    "SearchQuality",
    "Tuning",
    "calibrate",
    "evaluate_pairs",
    "evaluate_search",
    "tune",
]
