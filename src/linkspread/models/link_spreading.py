"""The paper's method as an estimator: links propagated along the views' graphs."""

import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linkspread.compiled.backends import on_own_backend
from linkspread.graphs import NeighborGraph
from linkspread.ground.errors import (
    GraphError,
    LinkError,
    LinkspreadError,
    warn_caller,
)
from linkspread.judging.explanation import Shares
from linkspread.judging.spread_shares import spread_shares
from linkspread.judging.suggestion import diffusion_features
from linkspread.links import Links
from linkspread.links.collection import linked_pairs
from linkspread.metrics import mean_average_precision
from linkspread.models.live_search import ByView, ItemChange, LiveSearch, check_growth
from linkspread.models.spreading import (
    FitReport,
    GivenGraph,
    GraphReport,
    Scores,
    Spreading,
    SpreadReport,
    ViewPair,
    build_graphs,
    chain_scores,
    changed_graph,
    check_adjustment,
    check_alphas,
    fitted_table,
    prepare,
)
from linkspread.models.vector_search import (
    changing,
    check_linked,
    check_reachable,
    find_chain,
)
from linkspread.propagation import Spread
from linkspread.propagation.rows import ScoreRows
from linkspread.tables.validation import check_columns, per_view

Array = np.ndarray


class LinkSpreading(LiveSearch):
    """Search each view from every other, learnt from must- and cannot-links.

    Links between items of two views are propagated along the graphs of both
    (inter-view constraint propagation, Inter-CP), exactly and in time linear in the
    number of items.

    Parameters
    ----------
    graph : str, callable, matrix, or dict by view, default="knn"
        How each view's graph is built: "knn", nearest neighbours; "sr", sparse codes
        over the neighbours; "cwa" and "csr", the same two with the help of links
        within the view. "precomputed" takes the view's table as the graph; a callable
        takes the table and returns the graph.
    n_neighbors : int or dict by view, default=30
        30 suits "knn" and "cwa"; "sr" and "csr" choose among more, such as 90.
    metric : str, callable or dict by view, default="euclidean"
        "euclidean", "cosine", "hellinger", "chi2", or a function of two blocks.
    bandwidth : "local", float, str or dict by view, default="local"
        Width of the Gaussian edge weights; "local" tunes it to each neighbourhood,
        "0.5 mean" is half the mean distance between items.
    weights : str or dict by view, default="gaussian"
        "gaussian", "binary" or "similarity".
    alpha : float or dict by view, default=0.1
        How far links spread within a view, in [0, 1).
    beta : float, default=0.95
        How much the views' answers must agree, in [0, 1).
    adjustment : dict, default=None
        `alpha` and `beta` with which links spread within a view to adjust the weights
        of graph="cwa", such as ``{"alpha": 0.1}``; None takes those above.
    balance : {"auto", "literal"} or float, default="auto"
        Weight of cannot-links against must-links.
    rank : int, default=None
        Largest length of the vectors. None is exact to `tol`: short vectors where
        they suffice, else scores are computed on demand. A number
        makes searches faster and scores approximate; `report_` has the error.
    tol : float, default=1e-6
        Relative error allowed for the scores.
    n_jobs : int, default=None
        Threads, also of searches and changes; None uses all cores, and one for the
        products of a few thousand items.
    verbose : bool, default=False
        Show the progress.
    backend : {"auto", "cpu", "cuda", "torch"}, default="auto"
        "auto" takes a GPU where there is one and it pays; see docs/gpu.md.

    Attributes
    ----------
    view_names_ : tuple of str
    items_ : dict from str to Items
        Ids of each view's items.
    graphs_ : dict from str to fitted graph
        Each with `affinity_`.
    links_ : Links
        The links by position.
    spreads_ : dict from pairs of str to Spread or SpreadRows
        What makes the scores of two views.
    report_ : FitReport
        Columns that are used, sizes, degrees, ranks, errors and times.

    Examples
    --------
    >>> import linkspread as ls
    >>> data = ls.datasets.make_views(200, n_classes=3, random_state=0)
    >>> y_text, y_image = data.labels["text"], data.labels["image"]
    >>> links = ls.Links.from_pairs(
    ...     [(i, j, 1.0 if y_text[i] == y_image[j] else -1.0)
    ...      for i in range(12) for j in range(12)], between=("text", "image"))
    >>> model = ls.LinkSpreading(n_neighbors=10).fit(data.views(), links)
    >>> ids, scores = model.search(150, source="text", target="image", n_results=3)
    >>> ids.shape
    (3,)
    """

    graphs_: dict[str, Any]
    spreads_: dict[ViewPair, Any]
    report_: FitReport
    _spreading: Spreading

    def __init__(
        self,
        *,
        graph: Any = "knn",
        n_neighbors: Any = 30,
        metric: Any = "euclidean",
        bandwidth: Any = "local",
        weights: Any = "gaussian",
        alpha: float | Mapping[str, float] = 0.1,
        beta: float = 0.95,
        adjustment: dict[str, Any] | None = None,
        balance: str | float = "auto",
        rank: int | None = None,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        verbose: bool = False,
        backend: str = "auto",
    ) -> None:
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.bandwidth = bandwidth
        self.weights = weights
        self.alpha = alpha
        self.beta = beta
        self.adjustment = adjustment
        self.balance = balance
        self.rank = rank
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.backend = backend

    @changing
    def fit(
        self,
        views: Any,
        links: Any,
        *,
        ids: ByView = None,
        columns: ByView = None,
        unknown: str = "raise",
    ) -> Self:
        """Build the graphs of all views and propagate the links along them.

        Parameters
        ----------
        views : mapping from str to table of shape (n_items, n_features)
            Arrays, sparse matrices, DataFrames or paths of files, as `read_table`
            takes them; a bare table is one view named "X".
        links : Links, or mapping from str to labels
            Labels are turned into links by :meth:`Links.from_labels`.
        ids : mapping from str to array-like of shape (n_items,), default=None
            Ids of the items; where missing, the column `id` of a DataFrame, then the
            index of pandas if it was set, else positions.
        columns : mapping from str to list of str, default=None
            Columns of DataFrames to take, or to leave out with a minus before each
            name; where missing, the only column of lists, or all numeric ones.
        unknown : {"raise", "skip"}, default="raise"
            What to do with links of unknown items; see :meth:`Links.resolve`.

        Returns
        -------
        self : LinkSpreading
        """
        ready = prepare(self, views, links, ids=ids, columns=columns, unknown=unknown)
        tables, alphas, resolved = ready.read.tables, ready.alphas, ready.links
        report = FitReport(columns=ready.read.report_columns(verbose=self.verbose))
        graphs, seconds = build_graphs(
            tables,
            ready.choices,
            check_adjustment(self.adjustment, alphas, self.beta),
            links=resolved,
            balance=self.balance,
            rank=self.rank,
            tol=self.tol,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        for view, graph in graphs.items():
            report.graphs[view] = GraphReport.of(graph.affinity_, seconds[view])
        spreading = Spreading.of(self, resolved, graphs, alphas)
        spreads = {}
        for pair in linked_pairs(resolved, tables):
            spreads[pair], report.spreads[pair] = spreading.timed_scores(*pair)
        self.__dict__.update(
            view_names_=tuple(tables),
            items_=ready.items,
            links_=resolved,
            graphs_=graphs,
            spreads_=spreads,
            report_=report,
            _spreading=spreading,
            _columns=ready.read.columns,
            _labels=_labels_of_one_view(links),
        )
        return self

    def score(self, X: Any, y: Any) -> float:
        """Return how well new items of a single view find fitted ones of their class.

        `GridSearchCV` and other searches of scikit-learn use it.

        Parameters
        ----------
        X : table of shape (n_new, n_features)
        y : array-like of shape (n_new,)
            Labels as in the fit.

        Returns
        -------
        precision : float
            Mean average precision.
        """
        check_is_fitted(self)
        labels = getattr(self, "_labels", None)
        if labels is None:
            raise LinkspreadError(
                "`score` must have a model that was fitted to one table and its "
                f"labels, got views {', '.join(map(repr, self.items_))}. Choose "
                "parameters with `linkspread.selection.tune`, which takes any views "
                "and links."
            )
        (view,) = self.items_
        # Together, so that the same label is the same class.
        both = Links.from_labels({"fitted": labels, "new": y})
        known = both.classes("fitted")
        block = self.scores(view, view, rows=X, cols=known >= 0)
        found = known[known >= 0]
        return mean_average_precision(block, both.classes("new"), found)

    @changing
    def rebuild(self) -> Self:
        """Fit again to all items and links that there are now.

        Returns
        -------
        self : LinkSpreading
        """
        check_is_fitted(self)
        for view, graph in per_view(self.graph, self.graphs_, name="graph").items():
            if callable(graph):
                raise GraphError(
                    f"graphs that a function made cannot be rebuilt, and that of view "
                    f"{view!r} is one: its table was not kept. Fit again."
                )
        return super().rebuild()

    @property
    def pairs_(self) -> tuple[ViewPair, ...]:
        """Pairs of views that are searched directly, not through others."""
        return tuple(self.spreads_)

    @property
    def facts_(self) -> dict[str, dict[str, Any]]:
        """Items, edges and isolated items of each view."""
        return {
            view: {
                "items": report.n_items,
                "edges": report.n_edges,
                "isolated": report.n_isolated,
            }
            for view, report in self.report_.graphs.items()
        }

    @property
    def notes_(self) -> list[str]:
        """Warnings about scores that are less exact than `tol`."""
        return self.report_.inexact(self.tol)

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the table, in the form with a single view."""
        if len(self.view_names_) > 1:
            raise AttributeError("each view has its own number of features")
        return self.graphs_[self.view_names_[0]].n_features_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _vectors_of_fitted(self, positions: Array, source: str, target: str) -> Array:
        return self._vectors(source, target).queries(positions)

    def _vectors_of_new(self, rows: Any, source: str, target: str) -> Array:
        found = self._vectors(source, target)
        return found.unseen_queries(self._similarities(rows, source))

    def _vectors_found(self, source: str, target: str) -> Array:
        return self._vectors(source, target).right

    def _vectors(self, source: str, target: str) -> Spread:
        """Return the vectors of two views, computed now where scores need none."""
        spread = self._spread(source, target)
        return spread.vectors() if isinstance(spread, ScoreRows) else spread

    def _exact_rows(self, source: str, target: str) -> ScoreRows | None:
        spread = self._spread(source, target)
        return spread if isinstance(spread, ScoreRows) else None

    def _similarities(self, rows: Any, view: str) -> Any:
        rows = check_columns(rows, self._columns[view], view=view)
        return self._spreading.similarities(rows, view)

    @on_own_backend
    def _spread(self, source: str, target: str) -> Scores:
        """Return the scores of two views, computed on first use."""
        if (source, target) in self.spreads_:
            return self.spreads_[source, target]
        if (target, source) in self.spreads_:
            return self.spreads_[target, source].T
        chain = check_reachable(self.links_, self.view_names_, source, target)
        if len(chain) > 2:
            steps = [self._spread(*pair) for pair in pairwise(chain)]
            return self._cached(chain, steps, lambda: chain_scores(steps))
        spread, report = self._spreading.timed_scores(source, target)
        self._keep(**self._with_scores({chain: spread}, {chain: report}))
        return spread

    def _with_scores(
        self,
        scores: Mapping[Any, Scores],
        spreads: Mapping[Any, SpreadReport],
        graphs: Mapping[str, GraphReport] | None = None,
    ) -> dict[str, Any]:
        """Return the attributes with other scores of some views."""
        report = replace(
            self.report_,
            graphs={**self.report_.graphs, **(graphs or {})},
            spreads={**self.report_.spreads, **spreads},
        )
        return {"spreads_": {**self.spreads_, **scores}, "report_": report}

    def _relink(self, links: Links, given: Links) -> dict[str, Any]:
        """Replace all scores that change with the links.

        The graphs stay, even those built with links. From then on scores are computed
        exactly and on demand, even where the fit had a `rank`.
        """
        for between, _ in given.pair_tables:
            self._warn_of_shortcut(between)
            before, now = (own.judged(*between) for own in (self.links_, links))
            check_growth(before.data, now.data, between)
        start = time.perf_counter()
        spreading, changed = self._spreading.relink(links, self.spreads_)
        seconds = time.perf_counter() - start
        reports = {p: SpreadReport.of(own, seconds) for p, own in changed.items()}
        made = self._with_scores(changed, reports)
        return {"links_": links, "_spreading": spreading, **made}

    def _warn_of_shortcut(self, between: ViewPair) -> None:
        """Warn where the first links of two views replace a chain through others."""
        if between[0] == between[1] or self.links_.connects(*between):
            return
        chain = find_chain(self.links_.connects, self.view_names_, *between)
        if chain is not None:
            through = " and ".join(map(repr, chain[1:-1]))
            warn_caller(
                f"{between[0]!r} and {between[1]!r} are searched by their own links "
                f"from now on, and no longer through {through}. Remove these links "
                "while they are few.",
                UserWarning,
            )

    def _table(self, view: str) -> Any:
        return fitted_table(self.graphs_[view])

    def _check_changeable(self, view: str, *, has_rows: bool) -> None:
        if has_rows and not isinstance(self.graphs_[view], NeighborGraph):
            raise GraphError(
                f"items can be added only to a view with graph='knn', and {view!r} has "
                "another. Fit again with all items."
            )

    def _change_items(self, change: ItemChange) -> dict[str, Any]:
        view, links = change.view, change.links
        fewer = change.items.n_items < self.items_[view].n_items
        for pair in self.spreads_ if fewer else ():
            if view in pair and not _has_links(links, pair):
                raise LinkError(
                    f"some links between {pair[0]!r} and {pair[1]!r} must stay, got "
                    f"all of them on items to remove from {view!r}. Add others first, "
                    "or fit again."
                )
        start = time.perf_counter()
        graph = changed_graph(self.graphs_[view], change.X, change.places, view=view)
        report = GraphReport.of(graph.affinity_, time.perf_counter() - start)
        graphs = {**self.graphs_, view: graph}
        alphas = check_alphas(self.alpha, graphs)
        spreading = Spreading.of(self, links, graphs, alphas)
        made = {p: spreading.timed_scores(*p) for p in self.spreads_ if view in p}
        columns = dict(self._columns)
        if isinstance(graph, GivenGraph):
            columns[view] = None  # they named the items
        scores = {pair: own for pair, (own, _) in made.items()}
        reports = {pair: own for pair, (_, own) in made.items()}
        return {
            "graphs_": graphs,
            "_spreading": spreading,
            "_columns": columns,
            **self._with_scores(scores, reports, {view: report}),
        }

    def _check_pairs(self, source: str, target: str, *, explained: bool) -> None:
        check_linked(self.links_, self.view_names_, source, target)

    def _parts(
        self, query: Any, own: int | None, j: int, source: str, target: str
    ) -> dict[str, list[Shares]]:
        return spread_shares(
            *self._spreading.operands(source, target),
            self._spreading.similarities(query, source) if own is None else own,
            j,
            **self._spreading.settings(source, target),
            within=source == target,
        )

    def _features(self, view: str, seed: int) -> Array:
        return diffusion_features(self.graphs_[view].affinity_, seed=seed)


def _has_links(links: Links, pair: ViewPair) -> bool:
    """Return whether two views are joined by pairs, or by labels of both."""
    labels = (links.memberships(a, shared_with=b) for a, b in (pair, pair[::-1]))
    return links.judged(*pair).nnz > 0 or all(
        own is not None and own.sum() > 0 for own in labels
    )


def _labels_of_one_view(links: Any) -> Any:
    """Return the labels of a single view as given, or None for other links."""
    if isinstance(links, Mapping) and len(links) == 1:
        (links,) = links.values()
    return None if isinstance(links, Links | Mapping) else links
