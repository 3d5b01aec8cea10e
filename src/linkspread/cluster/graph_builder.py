"""The graphs of all views of a fit, built by the workers and left with them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from linkspread.cluster.model_parts import build_view_graph
from linkspread.cluster.planning import ClusterPlan, plan_of
from linkspread.cluster.row_blocks import cut_rows
from linkspread.cluster.session import Session
from linkspread.cluster.tables import OpenViews, check_files, open_views
from linkspread.cluster.view_graphs import BuiltGraph, find_neighborhoods
from linkspread.ground.errors import LinkspreadError
from linkspread.ground.progress import announce
from linkspread.links import Items, Links
from linkspread.models import LinkSpreading
from linkspread.models.link_choice import choose_links
from linkspread.models.spreading import check_adjustment, check_alphas
from linkspread.models.view_graphs import GRAPHS, GraphContext, choose_graphs


class OpenedFit(NamedTuple):
    """What a fit begins with."""

    builder: "GraphBuilder"
    items: dict[str, Items]
    expected: ClusterPlan
    told: dict[str, str]


@contextmanager
def open_fit(
    model: LinkSpreading,
    session: Session,
    views: Any,
    links: Any,
    *,
    ids: Mapping[str, Any] | None,
    folder: Any,
    method: str,
) -> Iterator[OpenedFit]:
    """Open the views of a fit, check everything, and say what it will take."""
    with open_views(views, ids, folder) as opened:
        check_files(session, opened.chunked)
        items = {v: Items(opened.ids[v], view=v) for v in opened.chunked}
        resolved = choose_links(links, opened.chunked).resolve(items)
        expected = plan_of(model, opened.chunked, resolved, session.n_workers)
        builder = GraphBuilder(model, session, opened, resolved, method)
        told = opened.tell(verbose=model.verbose)
        announce(str(expected), verbose=model.verbose)
        yield OpenedFit(builder, items, expected, told)


class GraphBuilder:
    """Build the graph of one view after the other."""

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
        """Build the graph of a view."""
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
