"""Items added to a fitted model, or changed, without another fit."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from linkspread.compiled.threads import on_own_threads
from linkspread.graphs import NeighborGraph
from linkspread.ground.errors import GraphError, LinkError, LinkspreadError, ViewError
from linkspread.links import Items, Links
from linkspread.links.growth import grow_links, keep_items
from linkspread.models.fit_report import GraphReport, SpreadReport
from linkspread.models.graph_choice import GivenGraph
from linkspread.models.graph_kinds import AdjustedGraph
from linkspread.models.parameters import check_alphas
from linkspread.models.spreading import Spreading
from linkspread.tables import Table
from linkspread.tables.validation import check_columns, check_table, per_view

Array = np.ndarray


class LiveItems:
    """What a fitted model does with items that come later."""

    alpha: Any
    graph: Any
    items_: dict[str, Items]
    links_: Any
    graphs_: dict[str, Any]
    spreads_: dict[tuple[str, str], Any]
    report_: Any
    _spreading: Spreading
    _columns: dict[str, Any]

    @on_own_threads
    def add_items(self, view: str, rows: Any, *, ids: Any = None) -> Any:
        """Take up new items of a view, which can be found, and linked, from then on.

        Their neighbours are searched among all items; edges between older items stay
        as they are, and the links are spread anew. After many, :meth:`staleness`
        tells whether it is time to :meth:`rebuild`.
        """
        table = self._check_rows(view, rows)
        before = self.items_[view]
        items = more_items(before, ids, table.shape[0])
        changed = np.arange(before.n_items, items.n_items)
        X = stack_rows(_table_of(self.graphs_[view]), table)
        links = grow_links(self.links_, {**self.items_, view: items})
        return self._renew(view, items, links, lambda own: own.renew(X, changed))

    @on_own_threads
    def update_items(self, view: str, rows: Any, *, ids: Any) -> Any:
        """Give items of a view other features; their links stay."""
        table = self._check_rows(view, rows)
        changed = changed_positions(self.items_[view], ids, table.shape[0])
        X = replace_rows(_table_of(self.graphs_[view]), changed, table)
        items, links = self.items_[view], self.links_
        return self._renew(view, items, links, lambda own: own.renew(X, changed))

    def remove_items(self, view: str, ids: Any) -> Any:
        """Forget items of a view, and their links with them.

        Items that lose a neighbour find another, and the scores are those of a fit to
        what is left; a graph that was out of date elsewhere stays so. The other items
        keep their ids.
        """
        items = self._known_items(view)
        removed = removed_positions(items, ids)
        kept = np.setdiff1d(np.arange(items.n_items), removed)
        links = keep_items(self.links_, view, kept)
        for pair in self.spreads_:
            if view in pair and not _has_links(links, pair):
                raise LinkError(
                    f"some links between {pair[0]!r} and {pair[1]!r} must stay, and "
                    f"all are of the {len(removed):,} items to remove. Add others "
                    "first, or fit again."
                )
        self._renew(
            view,
            items.take(kept),
            links,
            lambda own: _graph_without(own, kept, removed, view),
        )
        if isinstance(self.graphs_[view], GivenGraph):
            self._columns = {**self._columns, view: None}  # they named the items
        return self

    @on_own_threads
    def staleness(self, *, n_sampled: int = 200) -> dict[str, float]:
        """Return how far graphs are from those that a fit would build now."""
        check_is_fitted(self)
        return {
            view: graph.staleness(n_sampled=n_sampled)
            for view, graph in self.graphs_.items()
            if isinstance(graph, NeighborGraph)
        }

    def rebuild(self) -> Any:
        """Fit again to all items and links that there are now."""
        check_is_fitted(self)
        tables = {view: _table_of(graph) for view, graph in self.graphs_.items()}
        for view, graph in per_view(self.graph, tables, name="graph").items():
            if callable(graph):
                raise GraphError(
                    f"graphs that a function made cannot be rebuilt, and that of view "
                    f"{view!r} is one: its table was not kept. Fit again."
                )
        ids = {view: own.ids for view, own in self.items_.items() if own.has_ids}
        known = {
            view: Table(X, self._columns[view], chosen=True)
            for view, X in tables.items()
        }
        return self.fit(known, self.links_, ids=ids)  # type: ignore[attr-defined]

    def _known_items(self, view: str) -> Items:
        """Return the items of a view, which must be one of the fit."""
        check_is_fitted(self)
        if view not in self.graphs_:
            raise LinkspreadError(
                f"`view` must be one of {list(self.graphs_)}, got {view!r:.60}. "
                "Correct the name."
            )
        return self.items_[view]

    def _check_rows(self, view: str, rows: Any) -> Any:
        """Return rows of a view whose graph can take up items."""
        self._known_items(view)
        graph = self.graphs_[view]
        if not isinstance(graph, NeighborGraph):
            raise GraphError(
                f"items can be added only to a view with graph='knn', and {view!r} has "
                "another. Fit again with all items."
            )
        rows = check_columns(rows, self._columns[view], view=view)
        return check_table(rows, view=view, n_features=graph.n_features_in_)

    def _renew(
        self, view: str, items: Items, links: Links, build: Callable[[Any], Any]
    ) -> Any:
        """Replace the graph of a view and all scores that it takes part in."""
        start = time.perf_counter()
        graphs = {**self.graphs_, view: build(self.graphs_[view])}
        seconds = time.perf_counter() - start
        alphas = check_alphas(self.alpha, graphs)
        spreading = Spreading.of(self, links, graphs, alphas)
        scores = {
            pair: spreading.scores(*pair) for pair in self.spreads_ if view in pair
        }
        # Kept only now, so that what fails leaves the model whole.
        self.graphs_, self.links_ = graphs, links
        self.items_ = {**self.items_, view: items}
        self._spreading = spreading
        self.spreads_ = {**self.spreads_, **scores}
        self.report_.graphs[view] = GraphReport.of(graphs[view].affinity_, seconds)
        for pair, own in scores.items():
            self.report_.spreads[pair] = SpreadReport.of(own, seconds)
        return self


def _graph_without(graph: Any, kept: Array, removed: Array, view: str) -> Any:
    """Return the graph of a view without some of its items."""
    if isinstance(graph, GivenGraph):
        return GivenGraph(graph.affinity_[kept][:, kept])
    if not isinstance(graph, NeighborGraph):
        raise GraphError(
            "items can be removed only from a view with graph='knn' or a graph that "
            f"was given, and {view!r} has another. Fit again without them."
        )
    return graph.without(removed)


def _has_links(links: Links, pair: tuple[str, str]) -> bool:
    """Tell whether any pair, or labels on both sides, link two views."""
    labels = (links.memberships(a, shared_with=b) for a, b in (pair, pair[::-1]))
    return links.judged(*pair).nnz > 0 or all(
        own is not None and own.sum() > 0 for own in labels
    )


def _table_of(graph: Any) -> Any:
    """Return the table that a graph was built from, or the graph that was given."""
    if isinstance(graph, GivenGraph):
        return graph.affinity_
    if isinstance(graph, AdjustedGraph):
        graph = graph.neighbors
    return graph._index.items


def stack_rows(X: Any, rows: Any) -> Any:
    """Return the rows of both tables, in the form of the first."""
    if sparse.issparse(X):
        return sparse.vstack([X, sparse.csr_array(rows)], format="csr", dtype=X.dtype)
    rows = rows.toarray() if sparse.issparse(rows) else rows
    return np.vstack([X, rows.astype(X.dtype)])


def replace_rows(X: Any, changed: Array, rows: Any) -> Any:
    """Return a table with other rows at some positions."""
    X = X.tolil() if sparse.issparse(X) else X.copy()
    X[changed] = rows
    return sparse.csr_array(X) if sparse.issparse(X) else X


def changed_positions(items: Items, ids: Any, n_rows: int) -> Array:
    """Return the positions of items that get other rows, each once."""
    changed = items.positions(ids, what="`ids`")
    if len(changed) != n_rows or len(np.unique(changed)) != len(changed):
        raise ViewError(
            f"`ids` must name each row of view {items.view!r} once, got "
            f"{len(changed):,} ids for {n_rows:,} rows. Give one id for each row."
        )
    return changed


def removed_positions(items: Items, ids: Any) -> Array:
    """Return the positions of items that go, whose view must have ids."""
    if not items.has_ids:
        raise ViewError(
            "items can be removed only from a view with ids, and items of view "
            f"{items.view!r} are known by position, which would then be another's. "
            "Fit again with `ids`."
        )
    return np.unique(items.positions(ids, what="`ids`"))


def more_items(items: Items, ids: Any, n_new: int) -> Items:
    """Return the items of a view and new ones."""
    if (ids is not None) != items.has_ids:
        needs = "must be given" if items.has_ids else "must be left out"
        why = "have ids" if items.has_ids else "are known by position"
        raise ViewError(
            f"`ids` of new items {needs}, because items of view {items.view!r} {why}, "
            f"got {ids!r:.60}. Do as in the fit."
        )
    if ids is None:
        return Items(items.n_items + n_new, view=items.view)
    new = Items(ids, view=items.view)
    if new.n_items != n_new:
        raise ViewError(
            f"`ids` must have one entry for each new item of view {items.view!r}, got "
            f"{new.n_items:,} for {n_new:,} rows. Give one id for each row."
        )
    if new.ids.dtype.kind != items.ids.dtype.kind:
        raise ViewError(
            f"`ids` of new items of view {items.view!r} must be of the kind of the "
            f"others, such as {items.ids[0].item()!r}, got {new.ids[0].item()!r}. "
            "Convert them."
        )
    return Items(np.concatenate([items.ids, new.ids]), view=items.view)
