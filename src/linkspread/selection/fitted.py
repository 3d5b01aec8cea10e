"""What both estimators can be asked after a fit."""

from itertools import combinations_with_replacement
from typing import Any

__all__ = ["inexact_scores", "searched_views"]


def searched_views(model: Any) -> list[tuple[str, str]]:
    """Return which views links or a common space join, each two once.

    Parameters
    ----------
    model : CrossViewSearch or LinkSpreading
        Fitted.

    Returns
    -------
    pairs : list of (str, str)
        In the order of the views; those of one view with itself last.
    """
    shared = getattr(model, "choices_", {})
    pairs = [
        (a, b)
        for a, b in combinations_with_replacement(model.view_names_, 2)
        if model.links_.connects(a, b) or (a, b) in shared
    ]
    return sorted(pairs, key=lambda pair: pair[0] == pair[1])


def inexact_scores(model: Any) -> list[str]:
    """Say which scores are less exact than was asked for, and how much so.

    Parameters
    ----------
    model : CrossViewSearch or LinkSpreading
        Fitted.

    Returns
    -------
    sentences : list of str
        None of `CrossViewSearch`, whose scores are as they are defined.
    """
    report = getattr(model, "report_", None)
    return [] if report is None else report.inexact(model.tol)
