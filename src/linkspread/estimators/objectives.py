"""Which objective a model has."""

from collections.abc import Mapping
from typing import Any

from scipy import sparse

from linkspread.estimators.auto_objective import AutoObjective
from linkspread.estimators.objective import Objective
from linkspread.estimators.ridge_objective import RidgeObjective
from linkspread.estimators.spread_objective import SpreadObjective
from linkspread.estimators.view_kernel_choice import choose_kernels
from linkspread.links import Links
from linkspread.validation import per_view

__all__ = ["choose_objective"]


def choose_objective(
    model: Any,
    tables: Mapping[str, Any],
    links: Links,
    graphs: Mapping[str, Any],
    normalized: Mapping[str, sparse.csr_array],
    alphas: Mapping[str, float],
) -> Objective:
    """Return what makes scores of the links of a model.

    Parameters
    ----------
    model : LinkSpreading
        Its parameters are read.
    tables : mapping from str to ndarray or csr_array
    links : Links
        Resolved.
    graphs : mapping from str to object with `affinity_` and `extend`
    normalized : mapping from str to csr_array
        The graphs, normalised.
    alphas : mapping from str to float

    Returns
    -------
    objective : Objective
    """
    common: dict[str, Any] = {
        name: getattr(model, name) for name in ("balance", "rank", "tol")
    }
    common |= {"links": links}
    over: dict[str, Any] = {"graphs": graphs, "normalized": normalized}
    if model.objective == "spread":
        return SpreadObjective(**common, **over, alphas=alphas, beta=model.beta)
    kernels_of = per_view(model.kernel, tables, name="kernel")
    n_features = {
        view: graphs[view].n_features_in_
        if model.objective == "auto" or kernels_of[view] == "graph"
        else X.shape[1]
        for view, X in tables.items()
    }
    common |= {"n_features": n_features}
    if model.objective == "auto":
        metrics = per_view(model.metric, tables, name="metric")
        return AutoObjective(**common, **over, tables=tables, metrics=metrics)
    kernels = choose_kernels(model, tables, graphs, normalized, alphas)
    return RidgeObjective(**common, kernels=kernels, ridge=model.ridge, mass=model.mass)
