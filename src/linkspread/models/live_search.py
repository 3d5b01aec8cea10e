"""What both models share: a search that learns from judgements, and goes on learning.

A model suggests what to judge, takes links and items that come after the fit, or go,
and explains single scores.
"""

import copy
import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from linkspread.compiled.backends import on_own_backend
from linkspread.compiled.threads import on_own_threads
from linkspread.ground.checks import check_count
from linkspread.ground.errors import LinkError, LinkspreadError, ViewError
from linkspread.judging.explanation import Explanation, Shares, make_split
from linkspread.judging.suggestion import OpenPairs, explained_shares, suggest
from linkspread.links import Items, Links
from linkspread.models.link_choice import labelled_items
from linkspread.models.queries import (
    SourceItem,
    choose_positions,
    read_source,
    read_target,
)
from linkspread.models.vector_search import VectorSearch
from linkspread.tables import Table
from linkspread.tables.validation import check_columns, check_table

Array = np.ndarray
ByView = Mapping[str, Any] | None


@dataclass(frozen=True)
class ItemChange:
    """A view after items came, changed or went.

    `places` has the position that each item had, -1 where it is new or changed.
    """

    view: str
    items: Items
    links: Links
    X: Any
    places: Array


class LiveSearch(VectorSearch):
    """Search between views by what is learnt from links; the base of both models."""

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

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a folder."""

    @property
    @abstractmethod
    def pairs_(self) -> tuple[tuple[str, str], ...]:
        """Views that are searched from each other, not through others."""

    @abstractmethod
    def _table(self, view: str) -> Any:
        """Return the table of a view."""

    @abstractmethod
    def _relink(self, links: Links, given: Links) -> None:
        """Replace the links, which differ by those given."""

    @abstractmethod
    def _check_changeable(self, view: str, *, has_rows: bool) -> None:
        """Refuse changes of a view that this model cannot make."""

    @abstractmethod
    def _change_items(self, change: ItemChange) -> None:
        """Replace the items of a view, and all scores that it takes part in."""

    @abstractmethod
    def _check_explained(self, source: str, target: str) -> None:
        """Refuse views between which single scores cannot be explained."""

    @abstractmethod
    def _parts(
        self, item: SourceItem, j: int, source: str, target: str
    ) -> tuple[dict[str, list[Shares]], float]:
        """Return the parts of a score by the names of splits, and the score."""

    @abstractmethod
    def _check_suggested(self, source: str, target: str) -> None:
        """Refuse views of which no pairs can be suggested."""

    @abstractmethod
    def _features(self, view: str, seed: int) -> Array:
        """Return features whose inner products say how alike items of a view are."""

    @on_own_backend
    @on_own_threads
    def add_links(self, links: Links) -> Self:
        """Learn from more judged pairs, without another fit.

        Parameters
        ----------
        links : Links
            Single pairs. Those judged before add up, as in a fit.

        Returns
        -------
        self : estimator

        Examples
        --------
        >>> import linkspread as ls
        >>> data = ls.datasets.make_views(150, n_classes=3, random_state=0)
        >>> model = ls.LinkSpreading(n_neighbors=8).fit(data.views(), data.labels)
        >>> more = ls.Links.from_pairs([(7, 12, 1.0)], between=("text", "image"))
        >>> before = model.scores("text", "image", rows=[7], cols=[12])
        >>> after = model.add_links(more).scores("text", "image", rows=[7], cols=[12])
        >>> bool(after > before)
        True
        """
        check_is_fitted(self)
        more = _single_pairs(links, self.items_)
        self._relink(self.links_.add_pairs(more), more)
        return self

    @on_own_backend
    @on_own_threads
    def remove_links(self, links: Links) -> Self:
        """Take back judged pairs, without another fit.

        Parameters
        ----------
        links : Links
            Single pairs with the weights that they were given.

        Returns
        -------
        self : estimator
        """
        check_is_fitted(self)
        gone = _single_pairs(links, self.items_)
        self._relink(self.links_ - gone, gone)
        return self

    @on_own_threads
    def add_items(self, view: str, rows: Any, *, ids: Any = None) -> Self:
        """Add new items to a view, which can be found, and linked, from then on.

        After many, :meth:`rebuild` makes graphs and maps that know them.

        Parameters
        ----------
        view : str
            Of `LinkSpreading` one with graph="knn".
        rows : table of shape (n_new, n_features)
        ids : array-like of shape (n_new,), default=None
            Of the new items, where items of the view have ids; positions go on
            counting.

        Returns
        -------
        self : estimator
        """
        new = self._read_rows(view, rows)
        before = self.items_[view]
        items = _more_items(before, ids, new.shape[0])
        places = np.full(items.n_items, -1)
        places[: before.n_items] = np.arange(before.n_items)
        links = self.links_.grow({**self.items_, view: items})
        X = stack_rows(self._table(view), new)
        self._change_items(ItemChange(view, items, links, X, places))
        return self

    @on_own_threads
    def update_items(self, view: str, rows: Any, *, ids: Any) -> Self:
        """Give items of a view other features; their links stay.

        Parameters
        ----------
        view : str
            Of `LinkSpreading` one with graph="knn".
        rows : table of shape (n_changed, n_features)
        ids : array-like of shape (n_changed,)
            Of the items.

        Returns
        -------
        self : estimator
        """
        new = self._read_rows(view, rows)
        items = self.items_[view]
        changed = items.positions(ids, what="`ids`")
        if len(changed) != new.shape[0] or len(np.unique(changed)) != len(changed):
            raise ViewError(
                f"`ids` must name each row of view {view!r} once, got "
                f"{len(changed):,} ids for {new.shape[0]:,} rows. Give one id for each "
                "row."
            )
        places = np.arange(items.n_items)
        places[changed] = -1
        X = replace_rows(self._table(view), changed, new)
        self._change_items(ItemChange(view, items, self.links_, X, places))
        return self

    @on_own_threads
    def remove_items(self, view: str, ids: Any) -> Self:
        """Remove items of a view, and their links with them.

        The other items keep their ids. The scores of `LinkSpreading` are those of a
        fit to what is left; the maps of `CrossViewSearch` stay until :meth:`rebuild`.

        Parameters
        ----------
        view : str
            A view with ids; of `LinkSpreading` one with graph="knn" or a graph that
            was given.
        ids : array-like of shape (n_removed,)
            Of the items.

        Returns
        -------
        self : estimator

        Examples
        --------
        >>> import linkspread as ls
        >>> data = ls.datasets.make_views(150, n_classes=3, random_state=0)
        >>> names = {"image": [f"i{k}" for k in range(150)]}
        >>> model = ls.LinkSpreading(n_neighbors=8)
        >>> _ = model.fit(data.views(), data.labels, ids=names)
        >>> model.remove_items("image", ["i3", "i7"]).scores("text", "image").shape
        (150, 148)
        """
        items = self._known_items(view)
        self._check_changeable(view, has_rows=False)
        if not items.has_ids:
            raise ViewError(
                "items can be removed only from a view with ids, and items of view "
                f"{view!r} are known by position, which would then be another's. Fit "
                "again with `ids`."
            )
        removed = np.unique(items.positions(ids, what="`ids`"))
        kept = np.setdiff1d(np.arange(items.n_items), removed)
        if len(kept) < 2:
            raise ViewError(
                f"two items of view {view!r} must stay, got {len(removed):,} to remove "
                f"of {items.n_items:,}. Fit again without the view."
            )
        links = self.links_.keep(view, kept)
        X = self._table(view)[kept]
        self._change_items(ItemChange(view, items.take(kept), links, X, kept))
        return self

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
        """Return the model as it is now, which later changes leave alone.

        One thread can change a model while others search its last snapshot. Arrays
        are shared, so that a snapshot takes hardly any memory.

        Returns
        -------
        model : estimator
        """
        check_is_fitted(self)
        # Changes replace what they change, so that both may share all they hold.
        return copy.copy(self)

    @on_own_threads
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
            The item that searches; features are of a new one, as in :meth:`search`.
        target_item : id
            The item that was found.
        source, target : str
            Views of the two.
        n_links : int, default=None
            How many parts are named in each split, the largest ones; None names all.

        Returns
        -------
        explanation : Explanation
            Its `contributions` and `rest` add up to its `score`; printed, it reads as
            a few sentences.

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
        check_is_fitted(self)
        self._check_explained(source, target)
        if n_links is not None:
            n_links = check_count(n_links, name="n_links", remedy="None names all.")
        item = read_source(source_item, self.items_[source])
        if item.position is None:
            rows = check_columns(item.rows, self._columns[source], view=source)
            item = SourceItem(None, rows)
        j = read_target(target_item, self.items_[target])
        parts, search_score = self._parts(item, j, source, target)
        ids = self.items_[source].ids, self.items_[target].ids
        splits = {k: make_split(own, *ids, n_links=n_links) for k, own in parts.items()}
        return Explanation(
            source=source,
            target=target,
            source_item=None if item.position is None else ids[0][item.position].item(),
            target_item=ids[1][j].item(),
            score=splits["links"].total,
            search_score=search_score,
            **splits,
        )

    @on_own_threads
    def suggest_pairs(
        self,
        n: int,
        *,
        source: str,
        target: str,
        queries: Any = None,
        exclude: Any = None,
        random_state: int = 0,
    ) -> tuple[Array, Array]:
        """Return the pairs whose judgement would teach most.

        Well-connected items of both views, far from each other, are paired each with
        each. No pair is returned that was judged, nor one of two labelled items.

        Parameters
        ----------
        n : int
            Number of pairs. More than are left returns all that are left.
        source, target : str
            Views of the first and the second item of each pair; the same view twice
            pairs its items with each other.
        queries : array-like of ids, boolean mask or slice, default=None
            Items of `source` to ask about; None for all.
        exclude : array-like of ids, boolean mask or slice, default=None
            Items of `target` that are in no pair.
        random_state : int, default=0
            The same number gives the same pairs.

        Returns
        -------
        source_ids, target_ids : ndarray of shape (n_found,)
            The most informative pairs first; answer them for
            ``Links.from_pairs(list(zip(source_ids, target_ids, answers)), ...)``.

        Examples
        --------
        >>> import linkspread as ls
        >>> data = ls.datasets.make_views(90, n_classes=3, random_state=0)
        >>> links = ls.Links.from_pairs([(0, 0), (1, 2)], between=("text", "image"))
        >>> model = ls.LinkSpreading(n_neighbors=9).fit(data.views(), links)
        >>> texts, images = model.suggest_pairs(4, source="text", target="image")
        >>> len(texts), len(images)
        (4, 4)
        """
        check_is_fitted(self)
        check_count(n, name="n", remedy="Ask for 20 or so, and fit again with them.")
        check_count(
            random_state, name="random_state", remedy="The default is 0.", at_least=0
        )
        self._check_suggested(source, target)
        items = self.items_[source], self.items_[target]
        rows = choose_positions(queries, items[0], name="queries")
        is_open = np.ones(items[1].n_items, dtype=bool)
        if exclude is not None:
            is_open[choose_positions(exclude, items[1], name="exclude")] = False
        links = self.links_
        pairs = OpenPairs(
            rows=np.unique(rows),
            columns=np.flatnonzero(is_open),
            known=(
                _labelled(links, items[0], target),
                _labelled(links, items[1], source),
            ),
            judged=_judged_positions(links, source, target),
            within=source == target,
        )
        i, j = suggest(
            pairs,
            n,
            features=self._both_features(source, target, random_state),
            score=lambda i, j: self._block(i, j, source, target),
            seed=random_state,
        )
        return items[0].ids[i], items[1].ids[j]

    @on_own_threads
    def expected_gains(
        self,
        source_ids: Any,
        target_ids: Any,
        *,
        source: str,
        target: str,
        random_state: int = 0,
    ) -> Array:
        """Return how much the judgement of each pair would add to all others.

        Parameters
        ----------
        source_ids, target_ids : array-like of ids of shape (n_pairs,)
            As of :meth:`suggest_pairs`.
        source, target : str
            Views of the first and the second item of each pair.
        random_state : int, default=0

        Returns
        -------
        gains : ndarray of shape (n_pairs,)
            Share of the variance of all pairs that one judgement would explain, if
            pairs were related as a short diffusion over both graphs relates them.
            What was judged before is counted as known, labels are not.
        """
        check_is_fitted(self)
        self._check_suggested(source, target)
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

    def _known_items(self, view: str) -> Items:
        """Return the items of a view, which must be one of the fit."""
        check_is_fitted(self)
        if view not in self.items_:
            raise LinkspreadError(
                f"`view` must be one of {list(self.items_)}, got {view!r:.60}. Correct "
                "the name."
            )
        return self.items_[view]

    def _read_rows(self, view: str, rows: Any) -> Any:
        """Return new rows of a view, with the columns of the fit."""
        self._known_items(view)
        self._check_changeable(view, has_rows=True)
        rows = check_columns(rows, self._columns[view], view=view)
        return check_table(rows, view=view, n_features=self._table(view).shape[1])

    def _both_features(
        self, source: str, target: str, seed: int
    ) -> tuple[Array, Array]:
        """Return the features of two views, made once for one view."""
        first = self._features(source, 2 * seed)
        if source == target:
            return first, first
        # Seeds differ, as what is random must not be alike in both views.
        return first, self._features(target, 2 * seed + 1)


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


def _single_pairs(links: Any, items: Mapping[str, Items]) -> Links:
    """Return links by position, which must be single pairs."""
    if not isinstance(links, Links) or links.has_labels:
        raise LinkError(
            f"live `links` must be single pairs, got {links!r:.60}. Make them with "
            "`Links.from_pairs`; for labels, fit again."
        )
    return links.resolve(items)


def _more_items(items: Items, ids: Any, n_new: int) -> Items:
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


def _labelled(links: Links, items: Items, other: str) -> Array:
    """Return which items of a view have labels that items of the other have too."""
    known = labelled_items(links, items.view, shared_with=other)
    return np.zeros(items.n_items, dtype=bool) if known is None else known


def _judged_positions(links: Links, source: str, target: str) -> tuple[Array, Array]:
    """Return the positions of all single pairs of two views, conflicts too."""
    found = [np.empty((2, 0), dtype=np.int64)]
    for between, table in links.pair_tables:
        positions = np.array(table.known_positions(between))
        if between == (source, target):
            found.append(positions)
        elif between == (target, source):
            found.append(positions[::-1])
    i, j = np.concatenate(found, axis=1)
    return i, j
