"""Items added to a fitted search, changed or removed, without another fit."""

import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linkspread.compiled.threads import on_own_threads
from linkspread.ground.errors import LinkspreadError, ViewError
from linkspread.learning import (
    Choice,
    Evidence,
    ScoreFactors,
    ViewMap,
    read_evidence,
    renew_factors,
)
from linkspread.learning.maps import unit_rows
from linkspread.links import Items, Links
from linkspread.links.growth import grow_links, keep_items
from linkspread.models.live_items import (
    changed_positions,
    more_items,
    removed_positions,
    replace_rows,
    stack_rows,
)
from linkspread.models.search_pairs import check_left, fit_pair, make_sides
from linkspread.tables import Table
from linkspread.tables.validation import check_columns, check_table

Array = np.ndarray
Pair = tuple[str, str]


class SearchItems:
    """What a fitted search does with items that come later, or go."""

    prior: Any
    random_state: int
    items_: dict[str, Items]
    links_: Links
    choices_: dict[Pair, Choice]
    _tables: dict[str, Any]
    _columns: dict[str, Any]
    _maps: dict[str, ViewMap]
    _priors: dict[str, Any]
    _factors: dict[Pair, ScoreFactors]
    _chosen_at: dict[Pair, int]
    fit: Any

    @on_own_threads
    def add_items(self, view: str, rows: Any, *, ids: Any = None) -> Self:
        """Take up new items of a view, which can be found, and linked, from then on.

        They are mapped as new queries are; the scores of all others stay. After many,
        :meth:`rebuild` makes maps that know them.
        """
        new = self._check_rows(view, rows)
        before = self.items_[view]
        items = more_items(before, ids, new.shape[0])
        X = stack_rows(self._tables[view], new)
        new = X[before.n_items :]
        places = np.full(items.n_items, -1)
        places[: before.n_items] = np.arange(before.n_items)
        links = grow_links(self.links_, {**self.items_, view: items})
        map_ = self._maps[view].append(new)
        return self._renew(view, items, links, X, map_, places)

    @on_own_threads
    def update_items(self, view: str, rows: Any, *, ids: Any) -> Self:
        """Give items of a view other features; their links stay."""
        new = self._check_rows(view, rows)
        items = self.items_[view]
        changed = changed_positions(items, ids, new.shape[0])
        X = replace_rows(self._tables[view], changed, new)
        own = self._maps[view]
        values = own.values.copy()
        values[changed] = own.transform(X[changed])
        places = np.arange(items.n_items)
        places[changed] = -1
        map_ = replace(own, values=values)
        return self._renew(view, items, self.links_, X, map_, places)

    @on_own_threads
    def remove_items(self, view: str, ids: Any) -> Self:
        """Forget items of a view, and their links with them.

        The other items keep their ids, and their scores but for what these links said.
        The map of the view, which was made of all items of the fit, stays until
        :meth:`rebuild`.
        """
        items = self._known_items(view)
        removed = removed_positions(items, ids)
        kept = np.setdiff1d(np.arange(items.n_items), removed)
        if len(kept) < 2:
            raise ViewError(
                f"two items of view {view!r} must stay, got {len(removed):,} to remove "
                f"of {items.n_items:,}. Fit again without the view."
            )
        links = keep_items(self.links_, view, kept)
        own = self._maps[view]
        map_ = replace(own, values=own.values[kept])
        X = self._tables[view][kept]
        return self._renew(view, items.take(kept), links, X, map_, kept)

    def snapshot(self) -> Self:
        """Return the model as it is now, which later changes leave alone.

        One thread can change a model while others search its last snapshot. Arrays
        are shared, so that a snapshot takes hardly any memory.
        """
        check_is_fitted(self)
        # Changes replace what they change, so that both may share all they hold.
        return copy.copy(self)

    def rebuild(self) -> Self:
        """Fit again to all items and links that there are now."""
        check_is_fitted(self)
        ids = {view: own.ids for view, own in self.items_.items() if own.has_ids}
        known = {
            view: Table(X, self._columns[view], chosen=True)
            for view, X in self._tables.items()
        }
        return self.fit(known, self.links_, ids=ids)

    def _known_items(self, view: str) -> Items:
        """Return the items of a view, whose rows are all that there is of them."""
        check_is_fitted(self)
        if view not in self.items_:
            raise LinkspreadError(
                f"`view` must be one of {list(self.items_)}, got {view!r:.60}. Correct "
                "the name."
            )
        if not isinstance(self.prior, str) and view in self._priors:
            raise ViewError(
                f"items of view {view!r} can change only where `prior` is no table, "
                "which would need rows for them too. Fit again with these items."
            )
        return self.items_[view]

    def _check_rows(self, view: str, rows: Any) -> Any:
        """Return rows of a view."""
        self._known_items(view)
        rows = check_columns(rows, self._columns[view], view=view)
        return check_table(rows, view=view, n_features=self._maps[view].n_features)

    def _renew(
        self,
        view: str,
        items: Items,
        links: Links,
        X: Any,
        map_: ViewMap,
        places: Array,
    ) -> Self:
        """Replace the items of a view and all scores that it takes part in.

        `places` has the position that each item had, -1 where it is new or changed.
        """
        maps, priors = {**self._maps, view: map_}, dict(self._priors)
        if view in priors:
            priors[view] = _renewed_units(priors[view], X, places)
        fits = {}
        for pair, factors in self._factors.items():
            if view not in pair:
                continue
            both = [
                places if own == view else np.arange(maps[own].n_items) for own in pair
            ]
            fits[pair] = self._renewed_pair(
                pair, factors, links, maps, priors, (both[0], both[1])
            )
        # Kept only now, so that what fails leaves the model whole.
        self._maps, self._priors, self.links_ = maps, priors, links
        self.items_ = {**self.items_, view: items}
        self._tables = {**self._tables, view: X}
        self.choices_ = {**self.choices_, **{p: own[0] for p, own in fits.items()}}
        self._factors = {**self._factors, **{p: own[1] for p, own in fits.items()}}
        return self

    def _renewed_pair(
        self,
        pair: Pair,
        factors: ScoreFactors,
        links: Links,
        maps: dict[str, ViewMap],
        priors: dict[str, Any],
        places: tuple[Array, Array],
    ) -> tuple[Choice, ScoreFactors]:
        """Return the choice and the scores of two views after items of one changed."""
        sides = make_sides(maps, priors, pair)
        before, now = (read_evidence(own, *pair) for own in (self.links_, links))
        check_left(now, pair, has_prior=sides.prior is not None)
        choice = self.choices_[pair]
        if now.labels is None and any(term.kind == "labels" for term in choice.terms):
            return fit_pair(sides, now, seed=self.random_state)
        judged = [_judged(before, side) for side in (0, 1)]
        is_known = any(
            not np.isin(items, own).all()
            for items, own in zip(judged, places, strict=True)
        )
        moved = any(
            not np.array_equal(own[own >= 0], np.arange((own >= 0).sum()))
            for own in places
        )
        keep = not any(
            not np.isin(_labelled(before, side), own).all()
            for side, own in enumerate(places)
        )
        return choice, renew_factors(
            factors,
            sides,
            choice,
            places,
            evidence=now if is_known or moved else None,
            keep_labels=keep,
        )


def _renewed_units(units: Any, X: Any, places: Array) -> Any:
    """Return unit rows of a table; those of items that stay are as they were."""
    new = np.flatnonzero(places < 0)
    n_before = units.shape[0]
    if np.array_equal(places[:n_before], np.arange(n_before)):
        return stack_rows(units, unit_rows(X[n_before:])) if len(new) else units
    kept = units[np.maximum(places, 0)]
    return replace_rows(kept, new, unit_rows(X[new])) if len(new) else kept


def _judged(evidence: Evidence, side: int) -> Array:
    """Return the items of one side that anything is known of."""
    return np.union1d(evidence.judged_items()[side], _labelled(evidence, side))


def _labelled(evidence: Evidence, side: int) -> Array:
    """Return the items of one side that have labels."""
    if evidence.labels is None:
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(np.diff(evidence.labels[side].indptr))
