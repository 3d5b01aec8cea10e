"""The graphs of rivals that spread labels."""

from typing import Any

from linkspread.links import Links
from linkspread.models.spreading import check_adjustment
from linkspread.models.view_graphs import PER_VIEW, build_graphs, choose_graphs

# What a graph is built by; all else is done with it.
GRAPH_PARAMETERS = (*PER_VIEW, "n_jobs")

# Of the links within a view where graph="cwa", which has no such rival of its own.
ADJUSTMENT_BETA = 0.95


def fit_graphs(
    model: Any, tables: dict[str, Any], links: Links, alphas: dict[str, float]
) -> dict[str, Any]:
    """Build the graphs of all views, as `LinkSpreading` builds them."""
    choices = choose_graphs(model, tables, links)
    graphs, _ = build_graphs(
        tables,
        choices,
        check_adjustment(None, alphas, ADJUSTMENT_BETA),
        links=links,
        balance="auto",
        rank=None,
        tol=model.tol,
        n_jobs=model.n_jobs,
        verbose=False,
    )
    return graphs
