"""The fit of a model by the workers of a Dask cluster."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from linkspread.cluster.graph_builder import GraphBuilder, open_fit
from linkspread.cluster.model_parts import fit_spread, model_graph
from linkspread.cluster.planning import ClusterPlan
from linkspread.cluster.products import BlockGraph
from linkspread.cluster.search_fitting import fit_search
from linkspread.cluster.session import Session, Usage
from linkspread.compiled.threads import few_cores
from linkspread.ground.checks import naming
from linkspread.ground.cores import count_threads
from linkspread.ground.progress import announce
from linkspread.links import Items
from linkspread.models import CrossViewSearch, LinkSpreading
from linkspread.models.link_choice import linked_pairs
from linkspread.models.spreading import (
    FitReport,
    GraphReport,
    Spreading,
    SpreadReport,
    check_alphas,
    check_parameters,
)


@dataclass(frozen=True)
class ClusterReport:
    """What a fit on a cluster took, beside what was expected; print it.

    Attributes
    ----------
    plan : ClusterPlan or None
        None of `CrossViewSearch`, which is not planned.
    usage : Usage
    """

    plan: ClusterPlan | None
    usage: Usage

    def __str__(self) -> str:
        if self.plan is None:
            return f"measured: {self.usage}"
        return f"expected: {self.plan}\nmeasured: {self.usage}"


def fit(
    model: CrossViewSearch | LinkSpreading,
    views: Any,
    links: Any = None,
    *,
    client: Any,
    ids: Mapping[str, Any] | None = None,
    folder: str | os.PathLike[str] | None = None,
    method: str = "auto",
) -> CrossViewSearch | LinkSpreading:
    """Fit a model by the workers of a Dask cluster.

    The scores are those of ``model.fit``. Tables are read by the workers, a block of
    rows at a time; graphs stay with them in blocks; thin matrices travel. Of
    `CrossViewSearch` they make the maps, and the client chooses and fits the cores.

    Parameters
    ----------
    model : CrossViewSearch or LinkSpreading
    views : mapping from str to path, ChunkedView or table
        Paths as for `open_view`, on a disk that all workers share. Dense tables in
        memory are written to `folder` first.
    links : Links, or mapping from str to labels, default=None
        As ``model.fit`` takes them.
    client : distributed.Client
    ids : mapping from str to array-like of shape (n_items,), default=None
    folder : str or Path, default=None
        On a disk that all workers share, for tables in memory; None takes the
        temporary folder of this machine.
    method : {"exact", "approximate", "auto"}, default="auto"
        How neighbours are searched. "approximate" has faiss look them up in cells of
        each block of rows, and misses a few per cent of them; "auto" does so where an
        exact search by all workers would take more than a minute.

    Returns
    -------
    model : CrossViewSearch or LinkSpreading
        The same, fitted: an ordinary model that needs no cluster any more. Its
        `cluster_report_` tells what was moved and held, beside what was expected.
    """
    given: dict[str, Any] = {"ids": ids, "folder": folder, "method": method}
    if isinstance(model, CrossViewSearch):
        session = Session(client)
        fit_search(model, session, views, links, **given)
        model.cluster_report_ = ClusterReport(None, session.usage())
        return model
    check_parameters(model)
    session = Session(client, verbose=model.verbose)
    opening = open_fit(model, session, views, links, **given)
    with few_cores(count_threads(model.n_jobs)), opening as opened:
        _ClusterFit(opened.builder, opened.told).run(opened.items)
    model.cluster_report_ = ClusterReport(opened.expected, session.usage())
    announce(str(model.cluster_report_.usage), verbose=model.verbose)
    return model


class _ClusterFit:
    """One fit, step by step."""

    def __init__(self, builder: GraphBuilder, told: dict[str, str]) -> None:
        self.builder, self.model = builder, builder.model
        self.opened, self.links = builder.opened, builder.links
        self.alphas = check_alphas(self.model.alpha, self.opened.chunked)
        self.report = FitReport(columns=told)

    def run(self, items: Mapping[str, Items]) -> None:
        """Fit, and keep everything only when all of it is there."""
        graphs, normalized, blocks = self._graphs()
        spreading = Spreading.of(
            self.model, self.links, graphs, self.alphas, normalized=normalized
        )
        spreads = {}
        for pair in linked_pairs(self.links, self.opened.chunked):
            start = time.perf_counter()
            spreads[pair] = scores = fit_spread(spreading, blocks, pair)
            seconds = time.perf_counter() - start
            self.report.spreads[pair] = SpreadReport.of(scores, seconds)
        model = self.model
        model.view_names_ = tuple(self.opened.chunked)
        model.items_, model.links_, model.graphs_ = dict(items), self.links, graphs
        model.spreads_, model.report_ = spreads, self.report
        model._spreading = spreading
        model._columns = self.opened.columns

    def _graphs(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, BlockGraph]]:
        """Build the graph of every view, and report on each."""
        graphs, normalized, blocks = {}, {}, {}
        for view in self.opened.chunked:
            start = time.perf_counter()
            with naming(view):
                built, links, context = self.builder.build(view)
                blocks[view] = built.normalized()
                graphs[view] = model_graph(
                    built, links, self.opened.table(view), context
                )
            normalized[view] = blocks[view].fetch()
            seconds = time.perf_counter() - start
            self.report.graphs[view] = GraphReport.of(graphs[view].affinity_, seconds)
        return graphs, normalized, blocks
