"""What a model does with its links besides spreading them."""

from collections.abc import Mapping
from typing import Any

from scipy import sparse

from linkspread.estimators.auto_objective import AutoObjective
from linkspread.estimators.ridge_objective import RidgeObjective
from linkspread.estimators.view_kernel_choice import choose_kernels
from linkspread.links import Links

__all__ = ["choose_objective"]


def choose_objective(
    model: Any,
    tables: Mapping[str, Any],
    links: Links,
    graphs: Mapping[str, Any],
    normalized: Mapping[str, sparse.csr_array],
    alphas: Mapping[str, float],
) -> RidgeObjective | AutoObjective | None:
    """Return what fits the links of a model.

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
    objective : RidgeObjective, AutoObjective or None
        None where links are only spread.
    """
    common = {"balance": model.balance, "rank": model.rank, "tol": model.tol}
    if model.objective == "auto":
        return AutoObjective(
            tables=tables,
            links=links,
            graphs=graphs,
            normalized=normalized,
            metric=model.metric,
            **common,
        )
    if model.objective == "ridge":
        kernels = choose_kernels(model, tables, graphs, normalized, alphas)
        return RidgeObjective(
            kernels=kernels, links=links, ridge=model.ridge, mass=model.mass, **common
        )
    return None
