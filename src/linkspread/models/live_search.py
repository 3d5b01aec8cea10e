"""The base of both models: changes after the fit, suggestions and explanations."""

import copy
import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self
from zlib import crc32

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from linkspread.ground.checks import check_count, check_name
from linkspread.ground.errors import LinkError, LinkspreadError, ViewError
from linkspread.ground.notebook import html_model
from linkspread.judging.explanation import Explanation, Shares, make_split
from linkspread.judging.suggestion import OpenPairs, explained_shares, suggest
from linkspread.learning import ViewMap
from linkspread.learning.maps import unit_rows
from linkspread.links import Items, Links
from linkspread.models.vector_search import (
    Queries,
    VectorSearch,
    changing,
    choose_positions,
    read_queries,
    reading,
)
from linkspread.tables import Table
from linkspread.tables.validation import check_columns, check_table

Array = np.ndarray
ByView = Mapping[str, Any] | None

# A change may make scores or links this many times larger; beyond that, what was there
# before is lost to rounding.
MAX_GROWTH = 1e5
UNSOUND = (
    "a change of links must leave scores finite and keep what was known before, got "
    "{}. The model is as it was; give the links smaller weights."
)


@dataclass(frozen=True)
class ItemChange:
    """The items, all links and the table of a view, after a change.

    `places` has the earlier position of each item, -1 where it is new or changed.
    """

    view: str
    items: Items
    links: Links
    X: Any
    places: Array


class LiveSearch(VectorSearch):
    """Search between views by what is learnt from links."""

    view_names_: tuple[str, ...]
    links_: Links
    _columns: dict[str, Any]

    @abstractmethod
    def fit(
        self,
        views: Any,
        links: Any,
        *,
        ids: ByView = None,
        columns: ByView = None,
        unknown: str = "raise",
    ) -> Self:
        """Learn from views and links."""

    def _repr_html_(self) -> str:
        return html_model(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        # In place of scikit-learn's, which shows parameters alone.
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    @property
    @abstractmethod
    def pairs_(self) -> tuple[tuple[str, str], ...]:
        """Pairs of views that are searched directly, not through others."""

    @abstractmethod
    def _table(self, view: str) -> Any:
        """Return the table of a view."""

    @abstractmethod
    def _relink(self, links: Links, given: Links) -> dict[str, Any]:
        """Return the attributes for other links; `given` has all that changed."""

    @abstractmethod
    def _check_changeable(self, view: str, *, has_rows: bool) -> None:
        """Refuse a view whose items this model cannot change."""

    @abstractmethod
    def _change_items(self, change: ItemChange) -> dict[str, Any]:
        """Return the attributes after a change of the items of a view."""

    @abstractmethod
    def _check_pairs(self, source: str, target: str, *, explained: bool) -> None:
        """Refuse views whose pairs cannot be explained, or suggested."""

    @abstractmethod
    def _parts(
        self, query: Any, own: int | None, j: int, source: str, target: str
    ) -> dict[str, list[Shares]]:
        """Return the parts of a score by the names of splits."""

    @abstractmethod
    def _features(self, view: str, seed: int) -> Array:
        """Return features of a view whose inner products are a kernel of its items."""

    @changing
    def add_links(self, links: Links) -> Self:
        """Learn from more judged pairs, without another fit.

        Parameters
        ----------
        links : Links
            Single pairs. Those judged before add up, as in a fit.

        Returns
        -------
        self : estimator
        """
        return self._change_links([(links, True)])

    @changing
    def remove_links(self, links: Links) -> Self:
        """Undo judged pairs, without another fit.

        Parameters
        ----------
        links : Links
            Single pairs with the weights that they were given.

        Returns
        -------
        self : estimator
        """
        return self._change_links([(links, False)])

    @changing
    def change_links(
        self, *, added: Links | None = None, removed: Links | None = None
    ) -> Self:
        """Add judged pairs and remove others in one step: all of it, or nothing.

        Parameters
        ----------
        added, removed : Links, default=None
            Single pairs, as for :meth:`add_links` and :meth:`remove_links`.

        Returns
        -------
        self : estimator
        """
        both = (added, True), (removed, False)
        return self._change_links([own for own in both if own[0] is not None])

    @changing
    def add_items(self, view: str, rows: Any, *, ids: Any = None) -> Self:
        """Add new items to a view, to be found and linked from then on.

        After many, call :meth:`rebuild` for graphs and maps made of all items.

        Parameters
        ----------
        view : str
            With `LinkSpreading` a view with graph="knn".
        rows : table of shape (n_new, n_features)
        ids : array-like of shape (n_new,), default=None
            Ids of the new items, where items of the view have ids; else they get the
            next positions.

        Returns
        -------
        self : estimator
        """
        new, before = self._read_rows(view, rows), self.items_[view]
        items = _more_items(before, ids, new.shape[0])
        places = np.full(items.n_items, -1)
        places[: before.n_items] = np.arange(before.n_items)
        links = self.links_.grow({**self.items_, view: items})
        X = _stack_rows(self._table(view), new)
        return self._changed(ItemChange(view, items, links, X, places))

    @changing
    def update_items(self, view: str, rows: Any, *, ids: Any) -> Self:
        """Give items of a view other features; their links stay.

        Parameters
        ----------
        view : str
            With `LinkSpreading` a view with graph="knn".
        rows : table of shape (n_changed, n_features)
        ids : array-like of shape (n_changed,)
            Ids of the items.

        Returns
        -------
        self : estimator
        """
        new, items = self._read_rows(view, rows), self.items_[view]
        changed = items.positions(ids, what="`ids`")
        if len(changed) != new.shape[0] or len(np.unique(changed)) != len(changed):
            raise ViewError(
                f"`ids` must name each row of view {view!r} once, got "
                f"{len(changed):,} ids for {new.shape[0]:,} rows. Give one for each."
            )
        places = np.arange(items.n_items)
        places[changed] = -1
        X = _replace_rows(self._table(view), changed, new)
        return self._changed(ItemChange(view, items, self.links_, X, places))

    @changing
    def remove_items(self, view: str, ids: Any) -> Self:
        """Remove items of a view, and their links with them.

        The scores of `LinkSpreading` are those of a fit to the remaining items; the
        maps of `CrossViewSearch` stay until :meth:`rebuild`.

        Parameters
        ----------
        view : str
            A view with ids; with `LinkSpreading` one with graph="knn" or a
            precomputed graph.
        ids : array-like of shape (n_removed,)
            Ids of the items.

        Returns
        -------
        self : estimator
        """
        self._check_view(view, has_rows=False)
        items = self.items_[view]
        if not items.has_ids:
            raise ViewError(
                f"items can be removed only from a view with ids, got view {view!r}, "
                "whose items are known by positions that would change. Fit again with "
                "`ids`."
            )
        gone = np.unique(items.positions(ids, what="`ids`"))
        kept = np.setdiff1d(np.arange(items.n_items), gone)
        if len(kept) < 2:
            raise ViewError(
                f"two items of view {view!r} must stay, got {len(gone):,} to remove "
                f"of {items.n_items:,}. Fit again without the view."
            )
        links = self.links_.select({view: kept}, with_ids=True)
        X = self._table(view)[kept]
        return self._changed(ItemChange(view, items.take(kept), links, X, kept))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a folder that `linkspread.load` reads.

        Parameters
        ----------
        path : str or Path
            A new folder, an empty one, or an older model, which is replaced in one
            step: a save that is killed leaves it as it was. Functions given as
            parameters cannot be saved.
        """
        # Imported here, because it imports the models.
        from linkspread.models.persistence import save_model

        check_is_fitted(self)
        save_model(self._as_it_is(), path)

    @changing
    def rebuild(self) -> Self:
        """Fit again to all items and links that there are now.

        Returns
        -------
        self : estimator
        """
        check_is_fitted(self)
        ids = {view: own.ids for view, own in self.items_.items() if own.has_ids}
        views = {
            view: Table(self._table(view), self._columns[view], chosen=True)
            for view in self.items_
        }
        return self.fit(views, self.links_, ids=ids)

    def snapshot(self) -> Self:
        """Return the model as it is now; later changes leave it as it is.

        Arrays are shared, so a snapshot takes hardly any memory.

        Returns
        -------
        model : estimator
        """
        check_is_fitted(self)
        # Changes replace attributes and never modify them, so both may share all.
        return copy.copy(self)

    @reading
    def explain(
        self,
        source_item: Any,
        target_item: Any,
        *,
        source: str,
        target: str,
        n_links: int | None = None,
    ) -> Explanation:
        """Split one score into what links, neighbours and shared columns add to it.

        Parameters
        ----------
        source_item : id, feature row, or table of one feature row
            The query; features are those of a new item, as in :meth:`search`.
        target_item : id
            The item that was found.
        source, target : str
            Views of the two.
        n_links : int, default=None
            Number of largest parts named in each split; None names all.

        Returns
        -------
        explanation : Explanation
            Its `contributions` and `rest` add up to its `score`; print it to read it.

        Examples
        --------
        >>> import linkspread as ls
        >>> data = ls.datasets.make_views(60, n_classes=3, random_state=0)
        >>> links = ls.Links.from_matched(("text", "image"), 20)
        >>> model = ls.LinkSpreading(n_neighbors=5).fit(data.views(), links)
        >>> why = model.explain(40, 3, source="text", target="image", n_links=2)
        >>> sum(part.amount for part in why.contributions) + why.rest == why.score
        True
        """
        self._check_pairs(source, target, explained=True)
        if n_links is not None:
            n_links = check_count(n_links, name="n_links", remedy="None names all.")
        items = self.items_[source], self.items_[target]
        query = _single_item(source_item, "source_item")
        own = query.positions(items[0], name="source_item")
        found = _single_item(target_item, "target_item")
        j = found.positions(items[1], name="target_item")
        assert j is not None
        rows, place = query.rows, None
        if own is None:
            rows = check_columns(rows, self._columns[source], view=source)
            score = self._block_of_new(rows, j, source, target)
        else:
            place, score = int(own[0]), self._block(own, j, source, target)
        parts = self._parts(rows, place, int(j[0]), source, target)
        ids = items[0].ids, items[1].ids
        splits = {k: make_split(p, *ids, n_links=n_links) for k, p in parts.items()}
        return Explanation(
            source=source,
            target=target,
            source_item=None if place is None else ids[0][place].item(),
            target_item=ids[1][j[0]].item(),
            score=splits["links"].total,
            search_score=float(score[0, 0]),
            **splits,
        )

    @reading
    def suggest_pairs(
        self,
        n: int,
        *,
        source: str,
        target: str,
        queries: Any = None,
        exclude: Any = None,
        judge: str = "",
        random_state: int = 0,
    ) -> tuple[Array, Array]:
        """Return the pairs most worth judging.

        Judged pairs and pairs of two labelled items are left out.

        Parameters
        ----------
        n : int
            Number of pairs; fewer are returned where fewer are left.
        source, target : str
            Views of the first and the second item of each pair; may be the same.
        queries : array-like of ids, boolean mask or slice, default=None
            Items of `source` to suggest; None for all.
        exclude : array-like of ids, boolean mask or slice, default=None
            Items of `target` not to suggest.
        judge : str, default=""
            Who is asked; `CrossViewSearch` asks others about other pairs.
        random_state : int, default=0
            Seed; the same number gives the same pairs.

        Returns
        -------
        source_ids, target_ids : ndarray of shape (n_found,)
            Most informative first; with a weight for each, they make links by
            ``Links.from_pairs(list(zip(source_ids, target_ids, weights)), ...)``.
        """
        check_count(n, name="n", remedy="20 is usual.")
        remedy = "The default is 0."
        check_count(random_state, name="random_state", remedy=remedy, at_least=0)
        self._check_pairs(source, target, explained=False)
        items = self.items_[source], self.items_[target]
        rows = choose_positions(queries, items[0], name="queries")
        columns = np.arange(items[1].n_items)
        if exclude is not None:
            closed = choose_positions(exclude, items[1], name="exclude")
            columns = np.setdiff1d(columns, closed)
        pairs = OpenPairs(
            rows=np.unique(rows),
            columns=columns,
            known=(
                _labelled(self.links_, items[0], target),
                _labelled(self.links_, items[1], source),
            ),
            judged=_judged_positions(self.links_, source, target),
            within=source == target,
        )
        seed = random_state + crc32(judge.encode())  # 0 for nobody
        i, j = self._next_pairs(pairs, n, source, target, seed)
        return items[0].ids[i], items[1].ids[j]

    @reading
    def expected_gains(
        self,
        source_ids: Any,
        target_ids: Any,
        *,
        source: str,
        target: str,
        random_state: int = 0,
    ) -> Array:
        """Return how much the judgement of each pair would explain of all others.

        Parameters
        ----------
        source_ids, target_ids : array-like of ids of shape (n_pairs,)
            Such as :meth:`suggest_pairs` returns.
        source, target : str
            Views of the first and the second item of each pair.
        random_state : int, default=0

        Returns
        -------
        gains : ndarray of shape (n_pairs,)
            Share of the variance of all pairs that one judgement would explain, in the
            kernels of both graphs. Judged pairs count as known, labels do not.
        """
        self._check_pairs(source, target, explained=False)
        positions = (
            self.items_[source].positions(source_ids, what="`source_ids`"),
            self.items_[target].positions(target_ids, what="`target_ids`"),
        )
        return explained_shares(
            self._both_features(source, target, random_state),
            positions,
            judged=_judged_positions(self.links_, source, target),
            seed=random_state,
        )

    def _change_links(self, changes: list[tuple[Any, bool]]) -> Self:
        """Add links (True) or remove them (False); an error changes nothing."""
        check_is_fitted(self)
        links = self.links_
        tables: list[Any] = []
        for some, is_new in changes:
            own = _single_pairs(some, self.items_)
            links = links.add_pairs(own) if is_new else links - own
            tables += own.pair_tables
        try:
            made = self._relink(links, Links(pairs=tables, items=self.items_))
        except np.linalg.LinAlgError as error:
            raise LinkError(UNSOUND.format(f"{error}")) from error
        self.__dict__.update(made)
        return self

    def _check_view(self, view: str, *, has_rows: bool) -> None:
        """Refuse names that are no views, and views that cannot change."""
        check_is_fitted(self)
        check_name(view, self.items_, name="view")
        self._check_changeable(view, has_rows=has_rows)

    def _read_rows(self, view: str, rows: Any) -> Any:
        """Return new rows of a view, with the columns of the fit."""
        self._check_view(view, has_rows=True)
        rows = check_columns(rows, self._columns[view], view=view)
        return check_table(rows, view=view, n_features=self._table(view).shape[1])

    def _changed(self, change: ItemChange) -> Self:
        """Replace the items of a view and all that follows from them, in one step."""
        made = self._change_items(change)
        items = {**self.items_, change.view: change.items}
        self.__dict__.update(made, items_=items, links_=change.links)
        return self

    def _next_pairs(
        self, pairs: OpenPairs, n: int, source: str, target: str, seed: int
    ) -> tuple[Array, Array]:
        """Return the open pairs to judge next."""
        return suggest(
            pairs,
            n,
            features=self._both_features(source, target, seed),
            score=lambda i, j: self._block(i, j, source, target),
            seed=seed,
        )

    def _both_features(self, source: str, target: str, seed: int) -> Any:
        """Return the features of both views."""
        first = self._features(source, 2 * seed)
        # Seeds differ, so that random numbers of both views are independent.
        is_one = source == target
        return first, first if is_one else self._features(target, 2 * seed + 1)


def check_growth(before: Array, now: Array, pair: tuple[str, str]) -> None:
    """Refuse values that are not finite, or beside which the former ones are lost."""
    known, largest = (np.abs(own).max(initial=0) for own in (before, now))
    if not np.isfinite(largest) or (0 < known * MAX_GROWTH < largest):
        got = f"{largest:.3g} after {known:.3g} between {pair[0]!r} and {pair[1]!r}"
        raise LinkError(UNSOUND.format(got))


def _single_item(item: Any, name: str) -> Queries:
    """Return one item as a query: an id, or for the source a row of features."""
    is_source = name == "source_item"
    try:
        found = read_queries(item)
        n_found = found.rows.shape[0] if found.ids is None else len(found.ids)
        if n_found == 1 and (is_source or (found.single and found.rows is None)):
            return found
        cause = None
    except LinkspreadError as error:
        cause = error
    raise LinkspreadError(
        f"`{name}` must be the id of one item"
        f"{', or the features of a new one' if is_source else ''}, got {item!r:.60}. "
        "Explain one score at a time."
    ) from cause


def _single_pairs(links: Any, items: Mapping[str, Items]) -> Links:
    """Return links by position, which must be single pairs."""
    if not isinstance(links, Links) or links.has_labels:
        raise LinkError(
            f"`links` must be single pairs without a fit, got {links!r:.60}. Make them "
            "with `Links.from_pairs`; for labels, fit again."
        )
    return links.resolve(items)


def _labelled(links: Links, items: Items, other: str) -> Array:
    """Return which items of a view have labels that items of the other have too."""
    known = links.labelled(items.view, shared_with=other)
    return np.zeros(items.n_items, dtype=bool) if known is None else known


def _judged_positions(links: Links, source: str, target: str) -> tuple[Array, Array]:
    """Return the positions of all single pairs of two views, with conflicts."""
    found = [np.empty((2, 0), dtype=np.int64)]
    for between, table in links.pair_tables:
        positions = np.array(table.known_positions(between))
        if between == (source, target):
            found.append(positions)
        elif between == (target, source):
            found.append(positions[::-1])
    i, j = np.concatenate(found, axis=1)
    return i, j


def changed_map(own: ViewMap, change: ItemChange) -> ViewMap:
    """Return the map of a changed view; its kernels stay those of the fit."""
    places, new = change.places, np.flatnonzero(change.places < 0)
    if len(new) == 0:
        return replace(own, values=own.values[places])
    if len(places) > own.n_items:
        return own.append(change.X[own.n_items :])
    values = own.values.copy()
    values[new] = own.transform(change.X[new])
    return replace(own, values=values)


def changed_units(units: Any, change: ItemChange) -> Any:
    """Return the unit rows of a changed view; those of items that stay are kept."""
    X, places, n_before = change.X, change.places, units.shape[0]
    new = np.flatnonzero(places < 0)
    if np.array_equal(places[:n_before], np.arange(n_before)):
        return _stack_rows(units, unit_rows(X[n_before:])) if len(new) else units
    kept = units[np.maximum(places, 0)]
    return _replace_rows(kept, new, unit_rows(X[new])) if len(new) else kept


def _stack_rows(X: Any, rows: Any) -> Any:
    """Return the rows of both tables, in the form of the first."""
    if sparse.issparse(X):
        return sparse.vstack([X, sparse.csr_array(rows)], format="csr", dtype=X.dtype)
    rows = rows.toarray() if sparse.issparse(rows) else rows
    return np.vstack([X, rows.astype(X.dtype)])


def _replace_rows(X: Any, changed: Array, rows: Any) -> Any:
    """Return a table with other rows at some positions."""
    X = X.tolil() if sparse.issparse(X) else X.copy()
    X[changed] = rows
    return sparse.csr_array(X) if sparse.issparse(X) else X


def _more_items(items: Items, ids: Any, n_new: int) -> Items:
    """Return the items of a view and new ones."""
    if (ids is not None) != items.has_ids:
        needs = "must be given" if items.has_ids else "must be left out"
        why = "have ids" if items.has_ids else "are known by position"
        raise ViewError(
            f"`ids` of new items {needs}, because items of view {items.view!r} {why}, "
            f"got {ids!r:.60}. Give them as in the fit."
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
