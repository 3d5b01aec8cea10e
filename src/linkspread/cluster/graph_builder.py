"""The graphs of all views of a fit, built by the workers and left with them."""

from collections.abc import Mapping
from typing import Any

from linkspread.cluster.model_parts import build_view_graph
from linkspread.cluster.row_blocks import cut_rows
from linkspread.cluster.session import Session
from linkspread.cluster.tables import OpenViews
from linkspread.cluster.view_graphs import BuiltGraph, find_neighborhoods
from linkspread.estimators import LinkSpreading
from linkspread.estimators.graph_choice import choose_graphs
from linkspread.estimators.graph_kinds import GRAPHS, GraphContext
from linkspread.estimators.parameters import check_adjustment, check_alphas
from linkspread.exceptions import LinkspreadError
from linkspread.links import Links

__all__ = ["GraphBuilder"]


class GraphBuilder:
    """Build the graph of one view after the other.

    Parameters
    ----------
    model : LinkSpreading
        Its parameters are read, and all checked before anything is built.
    session : Session
    opened : OpenViews
    links : Links
        Resolved.
    method : str
        Of the search for neighbours.
    """

    def __init__(
        self,
        model: LinkSpreading,
        session: Session,
        opened: OpenViews,
        links: Links,
        method: str,
    ) -> None:
        self.model, self.session = model, session
        self.opened, self.links, self.method = opened, links, method
        self.choices = choose_graphs(model, opened.chunked, links)
        _check_graphs(self.choices)
        alphas = check_alphas(model.alpha, opened.chunked)
        self.adjustments = check_adjustment(model.adjustment, alphas, model.beta)

    def build(self, view: str) -> tuple[BuiltGraph, Any, GraphContext]:
        """Build the graph of a view.

        Parameters
        ----------
        view : str

        Returns
        -------
        built : BuiltGraph
        links : LinkMatrix or None
            Those within the view that took part in its codes.
        context : GraphContext
        """
        model, own = self.model, self.opened.chunked[view]
        context = GraphContext(
            view=view,
            links=self.links,
            **self.adjustments[view],
            balance=model.balance,
            rank=model.rank,
            tol=model.tol,
            n_jobs=model.n_jobs,
            verbose=model.verbose,
        )
        row_bytes = own.shape[1] * own.dtype.itemsize
        cut = cut_rows(own.shape[0], row_bytes, n_workers=self.session.n_workers)
        chosen = {**self.choices[view], "backend": model.backend}
        chosen["method"] = self._method(chosen["graph"])
        near = find_neighborhoods(self.session, own, cut, chosen)
        return *build_view_graph(near, context), context

    def _method(self, graph: str) -> str:
        """Return how neighbours are searched; those of codes exactly if in doubt."""
        is_coded = graph in ("sr", "csr")
        return "exact" if is_coded and self.method == "auto" else self.method


def _check_graphs(choices: Mapping[str, Any]) -> None:
    """Refuse graphs that workers cannot build from rows."""
    for view, chosen in choices.items():
        graph = chosen["graph"]
        if not isinstance(graph, str) or graph not in GRAPHS:
            got = repr(graph) if isinstance(graph, str) else type(graph).__name__
            raise LinkspreadError(
                f"view {view!r}: `graph` must be one of {', '.join(GRAPHS)} for a fit "
                f"on a cluster, got {got}. Graphs that are given are fitted on one "
                "machine."
            )
