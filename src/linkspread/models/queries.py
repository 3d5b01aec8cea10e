"""Queries of a search: fitted items by id or position, new items by feature row."""

from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse

from linkspread.ground.errors import LinkspreadError, UnknownItemError
from linkspread.links import Items, Links

Array = np.ndarray


class Queries(NamedTuple):
    """Queries by id or by feature row, one or many."""

    ids: Array | None
    rows: Any
    single: bool

    def positions(self, items: Items) -> Array | None:
        """Return the positions of queries that are fitted items; None for new ones."""
        if self.ids is None:
            return None
        return items.positions(self.ids, what="`queries`")


class SourceItem(NamedTuple):
    """The query of an explanation: a fitted item by position, or a new one by row."""

    position: int | None
    rows: Any = None


def read_queries(queries: Any) -> Queries:
    """Return queries by id or by row, whichever were given."""
    if is_table(queries):
        return Queries(None, queries, single=False)
    try:
        array = np.asarray(queries)
    except ValueError as error:
        raise _unreadable("rows of different lengths") from error
    is_ids = array.dtype.kind in "iuUSOT"
    if array.ndim == 2:
        return Queries(None, array, single=False)
    # An empty list has no type; it holds no query either way.
    if array.ndim == 1 and (is_ids or len(array) == 0):
        return Queries(array, None, single=False)
    if array.ndim == 1 and array.dtype.kind == "f":
        return Queries(None, array[None, :], single=True)
    if array.ndim == 0 and is_ids:
        return Queries(array[None], None, single=True)
    raise _unreadable(f"{array.dtype} of shape {array.shape}")


def is_table(queries: Any) -> bool:
    """Return whether these can only be rows of features."""
    if isinstance(queries, np.ndarray):
        return queries.ndim == 2
    return sparse.issparse(queries) or nw.dependencies.is_into_dataframe(queries)


def choose_positions(chosen: Any, items: Items, *, name: str) -> Array:
    """Return the positions of some items of a view."""
    everything = np.arange(items.n_items)
    if chosen is None:
        return everything
    if isinstance(chosen, slice):
        return everything[chosen]
    array = np.asarray(chosen)
    if array.ndim != 1 or (array.dtype == bool and len(array) != items.n_items):
        raise LinkspreadError(
            f"`{name}` must be a flat list of items of view {items.view!r}, a mask of "
            f"its {items.n_items:,} items or a slice, got {array.dtype} of shape "
            f"{array.shape}. Write [item] for a single one."
        )
    if array.dtype == bool:
        return everything[array]
    if array.dtype.kind not in "iu" or items.ids.dtype.kind != "U":
        return items.positions(array, what=f"`{name}`")
    outside = array[(array < 0) | (array >= items.n_items)]
    if len(outside):
        raise UnknownItemError(
            f"`{name}` must be ids of view {items.view!r} or positions from 0 to "
            f"{items.n_items - 1:,}, got {outside[0]}. Correct it."
        )
    return array


def choose_open(only: Any, exclude: Any, items: Items) -> Array | None:
    """Return the positions that queries may find, or None for all."""
    if only is None and exclude is None:
        return None
    is_open = np.full(items.n_items, only is None)
    if only is not None:
        is_open[choose_positions(only, items, name="only")] = True
    if exclude is not None:
        is_open[choose_positions(exclude, items, name="exclude")] = False
    return np.flatnonzero(is_open)


def barred_pairs(
    links: Links | None,
    own: Array | None,
    source: str,
    target: Items,
    *,
    judged: bool,
) -> sparse.csr_array | None:
    """Return what each query may not find: itself, and judged items if so chosen."""
    if not isinstance(judged, bool | np.bool_):
        raise LinkspreadError(
            f"`judged` must be True or False, got {judged!r:.60}. Name items that are "
            "not to be found in `exclude`."
        )
    if not judged and links is None:
        raise LinkspreadError(
            "`judged` must be True for a model that keeps no links, got False. Name "
            "items in `exclude` instead."
        )
    barred = None
    if own is not None and source == target.view:
        # One entry in each row, at the query's own position.
        itself = np.ones(len(own)), own, np.arange(len(own) + 1)
        barred = sparse.csr_array(itself, shape=(len(own), target.n_items))
    if own is not None and not judged and links is not None:
        pairs = links.judged(source, target.view)[own]
        # No item is linked to itself, so that nothing cancels.
        barred = pairs if barred is None else (barred + pairs).tocsr()
    return barred


def read_source(item: Any, items: Items) -> SourceItem:
    """Return the query of an explanation, given as an id or a row of features."""
    try:
        wanted = read_queries(item)
    except LinkspreadError as error:
        raise _not_one("source_item", item) from error
    n_wanted = wanted.rows.shape[0] if wanted.ids is None else len(wanted.ids)
    if n_wanted != 1:
        raise _not_one("source_item", item)
    if wanted.ids is None:
        return SourceItem(None, wanted.rows)
    return SourceItem(int(items.positions(wanted.ids, what="`source_item`")[0]))


def read_target(item: Any, items: Items) -> int:
    """Return the position of the item that was found."""
    if np.ndim(item) or np.asarray(item).dtype.kind not in "iuUSOT":
        raise _not_one("target_item", item)
    return int(items.positions([item], what="`target_item`")[0])


def _unreadable(got: str) -> LinkspreadError:
    """Return the error for queries that are neither ids nor rows."""
    return LinkspreadError(
        f"`queries` must be ids of fitted items or rows of features, got {got}. Give "
        "an id such as 't7', a list of ids, or a table with one row per new item."
    )


def _not_one(name: str, item: Any) -> LinkspreadError:
    """Return the error for anything but one item."""
    new = ", or the features of a new one" if name == "source_item" else ""
    return LinkspreadError(
        f"`{name}` must be the id of one item{new}, got {item!r:.60}. Explain one "
        "score at a time."
    )
