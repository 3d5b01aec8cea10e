"""The fit of either model by the workers of a Dask cluster.

For `LinkSpreading` they build the graphs and propagate the links. For `CrossViewSearch`
they compute the maps; the client chooses the terms and fits the cores.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.cluster.block_graphs import BlockGraph
from linkspread.cluster.session import Range, Session, cut_rows
from linkspread.cluster.spreading import BlockVectors, spread_blocks
from linkspread.cluster.view_graphs import (
    CODED,
    ViewGraph,
    build_knn,
    build_view_graph,
    find_neighborhoods,
)
from linkspread.cluster.views import ChunkedView, OpenViews, check_files, open_views
from linkspread.compiled.backends import few_cores, own_threads, use_backend
from linkspread.graphs import NeighborGraph
from linkspread.ground.checks import naming
from linkspread.ground.cores import count_threads
from linkspread.ground.errors import LinkspreadError
from linkspread.learning import ViewMap
from linkspread.learning.maps import (
    TILE,
    products_of_columns,
    raw_features,
    standardize,
    unit_rows,
)
from linkspread.links import Items
from linkspread.links.collection import choose_links, linked_pairs
from linkspread.models import CrossViewSearch, LinkSpreading
from linkspread.models.spreading import (
    GRAPHS,
    FitReport,
    GraphContext,
    GraphReport,
    Spreading,
    SpreadReport,
    check_adjustment,
    check_alphas,
    check_parameters,
    choose_graphs,
)
from linkspread.propagation import Spread
from linkspread.propagation.chebyshev import heat_coefficients, inverse_root
from linkspread.propagation.exact import spread_responses, warn_of_error

Array = np.ndarray


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

    The scores are those of ``model.fit``. Workers read tables a block of rows at a time
    and keep blocks of the graphs; thin matrices are sent. For `CrossViewSearch` they
    compute the maps, and the client chooses the terms and fits the cores.

    Parameters
    ----------
    model : CrossViewSearch or LinkSpreading
    views : mapping from str to path, ChunkedView or table
        Paths as for `open_view`, on a disk that all workers share. Dense tables in
        memory are written to `folder` first.
    links : Links, or mapping from str to labels, default=None
        As for ``model.fit``.
    client : distributed.Client
    ids : mapping from str to array-like of shape (n_items,), default=None
    folder : str or Path, default=None
        On a disk that all workers share, for tables in memory; None takes the
        temporary folder of this machine.
    method : {"exact", "approximate", "auto"}, default="auto"
        Search of neighbours. "approximate" looks them up with faiss in cells of each
        block of rows and misses a few per cent; "auto" does so where an exact search
        by all workers would take more than a minute.

    Returns
    -------
    model : CrossViewSearch or LinkSpreading
        The same model, fitted; it does not need the cluster any more. Its
        `cluster_report_` has the measured cost.
    """
    is_spreading = not isinstance(model, CrossViewSearch)
    if is_spreading:
        check_parameters(model)
    session = Session(client, verbose=is_spreading and model.verbose)
    with open_views(views, ids, folder) as opened:
        check_files(session, opened.chunked)
        if is_spreading:
            with few_cores(count_threads(model.n_jobs)):
                SpreadingFit(model, session, opened, links, method).run()
        else:
            _learn(model, session, opened, links, method)
    model.cluster_report_ = session.report()
    return model


class SpreadingFit:
    """The fit of a `LinkSpreading`, checked before anything is built."""

    def __init__(
        self,
        model: LinkSpreading,
        session: Session,
        opened: OpenViews,
        links: Any,
        method: str,
    ) -> None:
        self.model, self.session, self.opened = model, session, opened
        self.method, views = method, opened.chunked
        self.items = {v: Items(own, view=v) for v, own in opened.ids.items()}
        self.links = choose_links(links, views).resolve(self.items)
        self.choices = choose_graphs(model, views, self.links)
        for view, chosen in self.choices.items():
            graph = chosen["graph"]
            if not isinstance(graph, str) or graph not in GRAPHS:
                raise LinkspreadError(
                    f"view {view!r}: `graph` must be one of {', '.join(GRAPHS)} for a "
                    f"fit on a cluster, got {graph!r:.40}. Use one of these, or fit on "
                    "one machine."
                )
        self.alphas = check_alphas(model.alpha, views)
        self.adjustments = check_adjustment(model.adjustment, self.alphas, model.beta)
        self.pairs = linked_pairs(self.links, views)
        self.columns = opened.report_columns(verbose=model.verbose)

    def run(self) -> None:
        """Fit, and change the model only at the end."""
        model, report = self.model, FitReport(columns=self.columns)
        graphs, normalized, blocks = {}, {}, {}
        for view in self.opened.chunked:
            start = time.perf_counter()
            with naming(view):
                built, context = self.build(view)
                blocks[view] = built.affinity.normalized()
                graphs[view] = built.in_model(self.opened.table(view), context)
            normalized[view] = blocks[view].fetch()
            seconds = time.perf_counter() - start
            report.graphs[view] = GraphReport.of(graphs[view].affinity_, seconds)
        given = model, self.links, graphs, self.alphas
        spreading = Spreading.of(*given, normalized=normalized)
        spreads = {}
        for pair in self.pairs:
            start = time.perf_counter()
            scores: Any
            if spreading.keeps_vectors(*pair):
                found = self.spread(blocks, pair)
                left, right = found.fetch(self.session)
                if model.rank is None:
                    warn_of_error(found.error, model.tol, left)
                core, for_left, for_right = found.cores
                scores = Spread(left, right, core, for_left, for_right, found.error)
            else:
                scores = spreading.rows(*pair)
            spreads[pair] = scores
            seconds = time.perf_counter() - start
            report.spreads[pair] = SpreadReport.of(scores, seconds)
        model.view_names_ = tuple(self.opened.chunked)
        model.items_, model.links_, model.graphs_ = self.items, self.links, graphs
        model.spreads_, model.report_ = spreads, report
        model._spreading = spreading
        model._columns = self.opened.columns

    def build(self, view: str) -> tuple[ViewGraph, GraphContext]:
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
        chosen = {**self.choices[view], "backend": model.backend, "method": self.method}
        if chosen["graph"] in CODED and self.method == "auto":
            chosen["method"] = "exact"
        near = find_neighborhoods(self.session, own, chosen)
        return build_view_graph(near, context), context

    def spread(
        self, graphs: Mapping[str, BlockGraph], pair: tuple[str, str]
    ) -> BlockVectors:
        """Propagate the links of two views along their normalised graphs."""
        model, (a, b) = self.model, pair
        Z = self.links.between(a, b, balance=model.balance)
        responses = spread_responses((self.alphas[a], self.alphas[b]), model.beta)
        x, y = graphs[a], graphs[b]
        return spread_blocks(x, Z, y, responses, tol=model.tol, rank=model.rank)


def _learn(
    model: CrossViewSearch, session: Session, opened: OpenViews, links: Any, method: str
) -> None:
    """Fit a `CrossViewSearch` with maps that the workers compute."""
    opened.report_columns(verbose=session.verbose)
    whole = opened.whole()
    n_items = sum(X.shape[0] for X in whole.tables.values())

    def work_for(view: str, metric: str) -> BlockWork:
        table, own = whole.read[view].values, opened.chunked[view]
        return BlockWork(session, own, table, metric, method, model.backend)

    with use_backend(model.backend), own_threads(model.n_jobs, n_items):
        model._learn(whole, links, work_for=work_for)


@dataclass(frozen=True)
class BlockWork:
    """The steps of the map of a view that read all rows, done by the workers."""

    session: Session
    view: ChunkedView
    X: Array
    metric: str
    method: str
    backend: str = "auto"

    def gram(self) -> Array:
        """Return the products of all prepared columns, summed over blocks of rows."""
        width = self.view.shape[1]
        shared = {"view": self.view, "metric": self.metric}
        parts = self.session.map(_products, self._cut(width), **shared)
        self.session.finish(parts, f"products of the columns of {self.view.name}")
        total = np.zeros((width, width))
        for part in parts:  # one at a time in memory
            total += self.session.fetch(part)
        return total.astype(np.float32)

    def heat(self, graph: NeighborGraph, landmarks: Array) -> Array:
        """Build a graph in blocks, and return the features of its heat."""
        names = ("n_neighbors", "metric", "bandwidth", "weights")
        chosen = {name: getattr(graph, name) for name in names}
        chosen |= {"method": self.method, "backend": self.backend}
        near = find_neighborhoods(self.session, self.view, chosen)
        built = build_knn(near).affinity
        graph.resume(self.X, built.fetch(), near.widths)
        graph.recall_ = near.recall
        S, width = built.normalized().astype(np.float32), len(landmarks)
        ones = np.ones(width, np.float32), (landmarks, np.arange(width))
        units = sparse.csr_array(ones, shape=(S.n_items, width))
        sums = S.filtered_sums(units, heat_coefficients()[None])
        root = self.session.hold(inverse_root(_rows_of(S, sums, landmarks)))
        parts = self.session.map(_heat_features, sums, root=root)
        self.session.finish(parts, f"heat of {self.view.name}")
        return np.concatenate(self.session.fetch(parts))

    def fill(self, view: ViewMap) -> None:
        """Write the features of all items, centred and scaled by the client."""
        kernels = {name: own for name, own in view.blocks.items() if name != "graph"}
        if "graph" in view.blocks:
            view.values[:, view.columns("graph")] = view.blocks["graph"].values
        # The linear and the Gaussian columns are the first ones.
        width = sum(len(own.mean) for own in kernels.values())
        ranges = self._cut(max(width, self.view.shape[1]))
        shared = {"view": self.view, "metric": self.metric}
        shared["kernels"] = self.session.hold(list(kernels.values()))
        parts = self.session.map(_features, ranges, **shared)
        self.session.finish(parts, f"features of {self.view.name}")
        for (start, stop), part in zip(ranges, parts, strict=True):
            view.values[start:stop, :width] = self.session.fetch(part)
        standardize(view)

    def _cut(self, width: int) -> list[Range]:
        """Return blocks of rows of so many numbers each."""
        row_bytes, n_workers = width * self.view.dtype.itemsize, self.session.n_workers
        return cut_rows(
            self.view.shape[0], row_bytes, n_workers=n_workers, multiple=TILE
        )


def _rows_of(S: BlockGraph, sums: list[Any], items: Array) -> Array:
    """Return the rows of some items, in their order."""
    own = [np.flatnonzero((a <= items) & (items < b)) for a, b in S.ranges]
    places = [items[i] - a for i, (a, _) in zip(own, S.ranges, strict=True)]
    rows = np.empty((len(items), len(items)), np.float32)
    found = S.session.results(_some_rows, sums, places)
    rows[np.concatenate(own)] = np.concatenate(found)
    return rows


def _products(own: Range, *, view: ChunkedView, metric: str) -> Array:
    """Return the products of all columns over a block of rows."""
    return products_of_columns(view.rows(*own), metric)


def _features(
    own: Range, *, view: ChunkedView, metric: str, kernels: list[Any]
) -> Array:
    """Return the features of a block of rows, side by side."""
    rows = view.rows(*own)
    return np.hstack([raw_features(kernel, rows, metric) for kernel in kernels])


def _some_rows(sums: Array, rows: Array) -> Array:
    """Return some rows of a block."""
    return sums[rows, 0]


def _heat_features(sums: Array, *, root: Array) -> Array:
    """Return the features of heat of a block of rows."""
    return unit_rows(sums[:, 0] @ root)
