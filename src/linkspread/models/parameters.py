"""The parameters of a fit, checked before anything is computed."""

from collections.abc import Mapping
from typing import Any

from linkspread.ground.checks import check_count, naming
from linkspread.ground.errors import LinkspreadError
from linkspread.links.balance import check_balance
from linkspread.propagation.parameters import check_alpha_pair, check_beta, check_tol
from linkspread.tables.validation import per_view


def check_parameters(model: Any) -> None:
    """Refuse wrong values of the parameters that all views share."""
    check_beta(model.beta)
    check_tol(model.tol)
    check_balance(model.balance)
    if model.rank is not None:
        check_count(model.rank, name="rank", remedy="None keeps what `tol` needs.")


def check_alphas(alpha: Any, views: Mapping[str, Any]) -> dict[str, float]:
    """Return how far links spread in each view."""
    alphas = {}
    for view, value in per_view(alpha, views, name="alpha").items():
        with naming(view):
            alphas[view] = check_alpha_pair((value, value))[0]
    return alphas


def check_adjustment(
    adjustment: Any, alphas: Mapping[str, float], beta: float
) -> dict[str, dict[str, float]]:
    """Return how links spread within each view when they adjust its graph."""
    given = {} if adjustment is None else adjustment
    if not isinstance(given, Mapping) or given.keys() - {"alpha", "beta"}:
        raise LinkspreadError(
            "`adjustment` must be a dict with 'alpha' and 'beta' at most, got "
            f'{adjustment!r:.60}. Write {{"alpha": 0.1}} or leave it at None.'
        )
    own = check_alphas(given["alpha"], alphas) if "alpha" in given else alphas
    own_beta = check_beta(given.get("beta", beta))
    return {view: {"alpha": own[view], "beta": own_beta} for view in alphas}
