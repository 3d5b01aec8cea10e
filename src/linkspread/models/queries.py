"""Which items are meant: fitted ones by id or position, new ones by feature row."""

from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse

from linkspread.ground.errors import LinkspreadError, UnknownItemError
from linkspread.links import Items

Array = np.ndarray


class Queries:
    """Queries by id or by feature row, one or many."""

    def __init__(self, ids: Array | None, rows: Any, single: bool) -> None:
        self.ids = ids
        self.rows = rows
        self.single = single


def read_queries(queries: Any) -> Queries:
    """Sort out what kind of queries these are."""
    if is_table(queries):
        return Queries(None, queries, single=False)
    array = _as_array(queries)
    is_ids = array.dtype.kind in "iuUSOT"
    if array.ndim == 2:
        return Queries(None, array, single=False)
    # An empty list has no kind, and asks for nothing either way.
    if array.ndim == 1 and (is_ids or len(array) == 0):
        return Queries(array, None, single=False)
    if array.ndim == 1 and array.dtype.kind == "f":
        return Queries(None, array[None, :], single=True)
    if array.ndim == 0 and is_ids:
        return Queries(array[None], None, single=True)
    raise _unreadable(f"{array.dtype} of shape {array.shape}")


def is_table(queries: Any) -> bool:
    """Tell whether something can only be rows of features."""
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
    if array.dtype.kind in "iu" and items.ids.dtype.kind == "U":
        return _check_positions(array, items, name)
    return items.positions(array, what=f"`{name}`")


def _as_array(queries: Any) -> Array:
    """Return queries as an array, if they are one."""
    try:
        return np.asarray(queries)
    except ValueError as error:
        raise _unreadable("rows of different lengths") from error


def _unreadable(got: str) -> LinkspreadError:
    """Return the sentence about queries that are neither ids nor rows."""
    return LinkspreadError(
        f"`queries` must be ids of fitted items or rows of features, got {got}. Give "
        "an id such as 't7', a list of ids, or a table with one row per new item."
    )


def _check_positions(positions: Array, items: Items, name: str) -> Array:
    """Return positions, none of which may lie outside the view."""
    outside = positions[(positions < 0) | (positions >= items.n_items)]
    if len(outside):
        raise UnknownItemError(
            f"`{name}` must be ids of view {items.view!r} or positions from 0 to "
            f"{items.n_items - 1:,}, got {outside[0]}. Correct it."
        )
    return positions
