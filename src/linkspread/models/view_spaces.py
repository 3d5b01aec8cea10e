"""Metrics and shared spaces of the views of CrossViewSearch."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from linkspread.ground.checks import check_name
from linkspread.ground.errors import ViewError
from linkspread.learning.maps import unit_rows
from linkspread.tables.validation import check_table, per_view

METRICS = ("auto", "euclidean", "cosine", "hellinger")
# Relative tolerance by which rows count as unit rows, or as histograms.
UNIT = 1e-3


def choose_metrics(metric: Any, tables: Mapping[str, Any]) -> dict[str, str]:
    """Return the metric of each view; refuse one that its values do not allow."""
    chosen = {}
    for view, given in per_view(metric, tables, name="metric").items():
        X, name = tables[view], check_name(given, METRICS, name="metric")
        chosen[view] = _suited_metric(X) if name == "auto" else name
        if chosen[view] == "hellinger" and X.min() < 0:
            raise ViewError(
                f"view {view!r} must have no negative values for the metric "
                f"'hellinger', got {X.min():.3g}. Use 'euclidean' or 'cosine'."
            )
    return chosen


def choose_priors(prior: Any, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return unit rows of the views that have a prior."""
    if prior is None:
        return {}
    if isinstance(prior, str) and prior == "auto":
        widths = [X.shape[1] for X in tables.values()]
        return {
            view: unit_rows(X)
            for view, X in tables.items()
            if widths.count(X.shape[1]) > 1
        }
    if not isinstance(prior, Mapping):
        raise ViewError(
            "`prior` must be 'auto', None or tables by view, got "
            f"{type(prior).__name__}. Leave it out for 'auto'."
        )
    given = {view: check_table(X, view=view) for view, X in prior.items()}
    for view, X in given.items():
        if view not in tables or X.shape[0] != tables[view].shape[0]:
            size = tables[view].shape[0] if view in tables else "no"
            raise ViewError(
                f"`prior` of view {view!r} must have a row for each item, got "
                f"{X.shape[0]} rows for {size} items. Give one row per item."
            )
    return {view: unit_rows(X) for view, X in given.items()}


def _suited_metric(X: Any) -> str:
    """Return the metric that suits the rows of a view."""
    if sp.issparse(X):
        return "cosine"
    squares = np.einsum("ij,ij->i", X, X)
    if np.all(np.abs(squares - 1) < UNIT):
        return "cosine"
    totals = X.sum(axis=1)
    # One histogram, or several of them side by side.
    if X.min() >= 0 and np.all(np.abs(totals - totals[0]) < UNIT * totals[0]):
        return "hellinger"
    return "euclidean"
