"""Items added to a view, changed or removed: new links, table, map and unit rows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.ground.errors import ViewError
from linkspread.learning import ViewMap
from linkspread.learning.maps import unit_rows
from linkspread.links import Items, Links

Array = np.ndarray


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


def added(
    known: Mapping[str, Items], view: str, links: Links, X: Any, rows: Any, ids: Any
) -> ItemChange:
    """Return a view with new items at the end, given the items of all views."""
    items = _more_items(known[view], ids, rows.shape[0])
    places = np.full(items.n_items, -1)
    places[: known[view].n_items] = np.arange(known[view].n_items)
    grown = links.grow({**known, view: items})
    return ItemChange(view, items, grown, _stack_rows(X, rows), places)


def updated(items: Items, links: Links, X: Any, rows: Any, ids: Any) -> ItemChange:
    """Return a view whose items at some ids have other rows."""
    changed = items.positions(ids, what="`ids`")
    if len(changed) != rows.shape[0] or len(np.unique(changed)) != len(changed):
        raise ViewError(
            f"`ids` must name each row of view {items.view!r} once, got "
            f"{len(changed):,} ids for {rows.shape[0]:,} rows. Give one for each."
        )
    places = np.arange(items.n_items)
    places[changed] = -1
    X = _replace_rows(X, changed, rows)
    return ItemChange(items.view, items, links, X, places)


def removed(items: Items, links: Links, X: Any, ids: Any) -> ItemChange:
    """Return a view without some items, and without their links."""
    if not items.has_ids:
        raise ViewError(
            "items can be removed only from a view with ids, got view "
            f"{items.view!r}, whose items are known by positions that would change. "
            "Fit again with `ids`."
        )
    gone = np.unique(items.positions(ids, what="`ids`"))
    kept = np.setdiff1d(np.arange(items.n_items), gone)
    if len(kept) < 2:
        raise ViewError(
            f"two items of view {items.view!r} must stay, got {len(gone):,} to remove "
            f"of {items.n_items:,}. Fit again without the view."
        )
    links = links.select({items.view: kept}, with_ids=True)
    return ItemChange(items.view, items.take(kept), links, X[kept], kept)


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
