"""The base of both models: changes after the fit, suggestions and explanations."""

import copy
import os
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linkspread.compiled.backends import on_own_backend
from linkspread.compiled.threads import on_own_threads
from linkspread.ground.checks import check_count
from linkspread.ground.errors import LinkError, LinkspreadError
from linkspread.judging.explanation import Explanation, Shares, make_split
from linkspread.judging.suggestion import OpenPairs, explained_shares, suggest
from linkspread.links import Items, Links
from linkspread.models.item_changes import ItemChange, added, removed, updated
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

    @property
    @abstractmethod
    def pairs_(self) -> tuple[tuple[str, str], ...]:
        """Pairs of views that are searched directly, not through others."""

    @abstractmethod
    def _table(self, view: str) -> Any:
        """Return the table of a view."""

    @abstractmethod
    def _relink(self, links: Links, given: Links) -> None:
        """Replace the links; they differ from the old ones by those given."""

    @abstractmethod
    def _check_changeable(self, view: str, *, has_rows: bool) -> None:
        """Refuse a view whose items this model cannot change."""

    @abstractmethod
    def _change_items(self, change: ItemChange) -> None:
        """Replace the items of a view, and all its scores."""

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
        """Refuse views for which no pairs can be suggested."""

    @abstractmethod
    def _features(self, view: str, seed: int) -> Array:
        """Return features of a view whose inner products are a kernel of its items."""

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
        """Undo judged pairs, without another fit.

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
        new = self._read_rows(view, rows)
        X = self._table(view)
        self._change_items(added(self.items_, view, self.links_, X, new, ids))
        return self

    @on_own_threads
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
        new = self._read_rows(view, rows)
        items, X = self.items_[view], self._table(view)
        self._change_items(updated(items, self.links_, X, new, ids))
        return self

    @on_own_threads
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
        self._check_known(view)
        self._check_changeable(view, has_rows=False)
        items, X = self.items_[view], self._table(view)
        self._change_items(removed(items, self.links_, X, ids))
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a folder that `linkspread.load` reads.

        Parameters
        ----------
        path : str or Path
            A new folder, an empty one, or an older model, which is replaced in one
            step: a save that is killed leaves it as it was. Functions given as
            parameters cannot be saved.

        Examples
        --------
        >>> import tempfile
        >>> import linkspread as ls
        >>> data = ls.datasets.make_views(60, n_classes=3, random_state=0)
        >>> links = ls.Links.from_matched(("text", "image"), 20)
        >>> model = ls.CrossViewSearch().fit(data.views(), links)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(folder)
        ...     again = ls.load(folder)
        >>> bool((again.scores("text", "image") == model.scores("text", "image")).all())
        True
        """
        # Imported here, because it imports the models.
        from linkspread.models.persistence import save_model

        check_is_fitted(self)
        save_model(self, path)

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

        One thread can change a model while others search its last snapshot. Arrays
        are shared, so a snapshot takes hardly any memory.

        Returns
        -------
        model : estimator
        """
        check_is_fitted(self)
        # Changes replace attributes and never modify them, so both may share all.
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
        """Return the pairs most worth judging.

        Well-connected items of each view, far from each other, are paired with those
        of the other. Judged pairs and pairs of two labelled items are left out.

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
        random_state : int, default=0
            Seed; the same number gives the same pairs.

        Returns
        -------
        source_ids, target_ids : ndarray of shape (n_found,)
            Most informative first; with a weight for each, they make links by
            ``Links.from_pairs(list(zip(source_ids, target_ids, weights)), ...)``.

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
        check_count(n, name="n", remedy="20 is usual.")
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
            Share of the variance of all pairs that one judgement would explain, under
            the kernel of a short diffusion along both graphs. Judged pairs count as
            known, labels do not.
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

    def _check_known(self, view: str) -> None:
        """Refuse names that are no views of the fit."""
        check_is_fitted(self)
        if view not in self.items_:
            raise LinkspreadError(
                f"`view` must be one of {list(self.items_)}, got {view!r:.60}. Correct "
                "the name."
            )

    def _read_rows(self, view: str, rows: Any) -> Any:
        """Return new rows of a view, with the columns of the fit."""
        self._check_known(view)
        self._check_changeable(view, has_rows=True)
        rows = check_columns(rows, self._columns[view], view=view)
        return check_table(rows, view=view, n_features=self._table(view).shape[1])

    def _both_features(
        self, source: str, target: str, seed: int
    ) -> tuple[Array, Array]:
        """Return the features of both views."""
        first = self._features(source, 2 * seed)
        if source == target:
            return first, first
        # Seeds differ, so that random numbers of both views are independent.
        return first, self._features(target, 2 * seed + 1)


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
    known = labelled_items(links, items.view, shared_with=other)
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
