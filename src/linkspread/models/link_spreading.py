"""Cross-view search from a few links, with scikit-learn manners."""

import os
import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linkspread.compiled.backends import on_own_backend
from linkspread.compiled.threads import on_own_threads
from linkspread.links import Items
from linkspread.models.explaining import Explaining
from linkspread.models.fit_report import FitReport, SpreadReport
from linkspread.models.graph_choice import build_graphs, choose_graphs
from linkspread.models.link_choice import (
    check_reachable,
    choose_links,
    linked_pairs,
)
from linkspread.models.live_items import LiveItems
from linkspread.models.live_links import LiveLinks
from linkspread.models.parameters import (
    check_adjustment,
    check_alphas,
    check_parameters,
)
from linkspread.models.plan import announce_plan
from linkspread.models.saving import save_model
from linkspread.models.single_view import labels_of_one_view, score_new_items
from linkspread.models.spreading import Spreading, chain_scores
from linkspread.models.suggesting import Suggesting
from linkspread.models.vector_search import VectorSearch
from linkspread.propagation.rows import ScoreRows
from linkspread.tables.validation import check_columns, check_views

Array = np.ndarray
ByView = Mapping[str, Any] | None


class LinkSpreading(Explaining, Suggesting, LiveLinks, LiveItems, VectorSearch):
    """Search each view from every other, learnt from must- and cannot-links.

    Links between items of two views are spread over the neighbourhood graphs of both
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
        there are such, else scores are computed when they are asked for. A number
        makes searches faster and scores approximate; `report_` tells the error.
    tol : float, default=1e-6
        Relative error allowed for the scores.
    n_jobs : int, default=None
        Threads of all that the model computes, also in searches and changes; None
        uses all cores, and one for the products of a few thousand items.
    verbose : bool, default=False
        Show what is expected and how far it is.
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

    def __init__(
        self,
        *,
        graph: Any = "knn",
        n_neighbors: Any = 30,
        metric: Any = "euclidean",
        bandwidth: Any = "local",
        weights: Any = "gaussian",
        alpha: Any = 0.1,
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

    @on_own_backend
    @on_own_threads
    def fit(
        self,
        views: Any,
        links: Any,
        *,
        ids: ByView = None,
        columns: ByView = None,
        unknown: str = "raise",
    ) -> "LinkSpreading":
        """Build the graphs of all views and spread the links over them.

        Parameters
        ----------
        views : mapping from str to table of shape (n_items, n_features)
            Arrays, sparse matrices or DataFrames; a bare table is one view named "X".
        links : Links, or mapping from str to labels
            Labels are turned into links by :meth:`Links.from_labels`.
        ids : mapping from str to array-like of shape (n_items,), default=None
            Ids of the items; where missing, the column `id` of a DataFrame, then the
            index of pandas if it was set, else positions.
        columns : mapping from str to list of str, default=None
            Columns of DataFrames to take, or to leave out with a minus before each
            name; where missing, the only column of lists, or all numeric ones.
        unknown : {"raise", "skip"}, default="raise"
            What to do with links of items that no view has; see :meth:`Links.resolve`.

        Returns
        -------
        self : LinkSpreading
        """
        check_parameters(self)
        read = check_views(views, ids, columns)
        tables, ids = read.tables, read.ids
        items = {view: Items(ids[view], view=view) for view in tables}
        resolved = choose_links(links, tables).resolve(items, unknown=unknown)
        choices = choose_graphs(self, tables, resolved)
        alphas = check_alphas(self.alpha, tables)
        announce_plan(self, tables, choices, resolved, alphas)
        told = read.report_columns(verbose=self.verbose)
        graphs, reports = build_graphs(
            tables,
            choices,
            check_adjustment(self.adjustment, alphas, self.beta),
            links=resolved,
            balance=self.balance,
            rank=self.rank,
            tol=self.tol,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        spreading = Spreading.of(self, resolved, graphs, alphas)
        report, spreads = FitReport(graphs=reports, columns=told), {}
        for pair in linked_pairs(resolved, tables):
            spreads[pair], report.spreads[pair] = _make_scores(spreading, *pair)
        # Kept only now, so that a fit that fails leaves an earlier one whole.
        self.view_names_ = tuple(tables)
        self.items_, self.links_, self.graphs_ = items, resolved, graphs
        self._labels = labels_of_one_view(links)
        self.spreads_: dict[tuple[str, str], Any] = spreads
        self.report_, self._spreading = report, spreading
        self._columns = read.columns
        return self

    score = score_new_items

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a folder that `linkspread.load` reads.

        Parameters
        ----------
        path : str or Path
            A new folder, an empty one, or an older model. That is replaced in one
            step, when all is on the disk: a save that is killed leaves it as it was.
            Functions given as parameters cannot be saved.
        """
        check_is_fitted(self)
        save_model(self, path)

    @property
    def pairs_(self) -> tuple[tuple[str, str], ...]:
        """Views that are searched from each other, not through others."""
        return tuple(self.spreads_)

    @property
    def facts_(self) -> dict[str, dict[str, Any]]:
        """What is to be told of each view: items, edges, and items without any."""
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
        """What a person should know of the scores: which are less exact than `tol`."""
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
        rows = check_columns(rows, self._columns[source], view=source)
        return self._spreading.embed(found, rows, source)

    def _vectors_found(self, source: str, target: str) -> Array:
        return self._vectors(source, target).right

    def _vectors(self, source: str, target: str) -> Any:
        """Return the vectors of two views, made now where scores need none."""
        spread = self._spread(source, target)
        return spread.vectors() if isinstance(spread, ScoreRows) else spread

    def _exact_rows(self, source: str, target: str) -> ScoreRows | None:
        spread = self._spread(source, target)
        return spread if isinstance(spread, ScoreRows) else None

    def _similarities(self, rows: Any, view: str) -> Any:
        rows = check_columns(rows, self._columns[view], view=view)
        return self._spreading.similarities(rows, view)

    @on_own_backend
    def _spread(self, source: str, target: str) -> Any:
        """Return the spread links of two views, made now if not before."""
        if (source, target) in self.spreads_:
            return self.spreads_[source, target]
        if (target, source) in self.spreads_:
            return self.spreads_[target, source].T
        chain = check_reachable(self.links_, self.view_names_, source, target)
        if len(chain) > 2:
            return self._chained(chain)
        spread, report = _make_scores(self._spreading, source, target)
        self.spreads_[source, target] = spread
        self.report_.spreads[source, target] = report
        return spread

    def _chained(self, chain: tuple[str, ...]) -> Any:
        """Return the scores of two views through others, made once for these steps."""
        steps = [self._spread(*pair) for pair in pairwise(chain)]
        kept = self.__dict__.setdefault("_chains", {})
        made_of, scores = kept.get(chain, ((), None))
        if [id(step) for step in made_of] != [id(step) for step in steps]:
            scores = chain_scores(steps)
            kept[chain] = steps, scores
        return scores


def _make_scores(
    spreading: Spreading, source: str, target: str
) -> tuple[Any, SpreadReport]:
    """Return the scores of two views, and a report about them."""
    start = time.perf_counter()
    scores = spreading.scores(source, target)
    return scores, SpreadReport.of(scores, time.perf_counter() - start)
