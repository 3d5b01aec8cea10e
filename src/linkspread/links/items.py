"""The items of a view: their ids and positions."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from linkspread.ground.errors import LinkError, UnknownItemError, ViewError

Array = np.ndarray

# Ids that are compared for similar spelling, which is slow.
MAX_COMPARED = 20_000
# Names that a message lists.
N_SHOWN = 3


class Items:
    """Map the ids of one view's items to positions.

    Parameters
    ----------
    ids : int or array-like of shape (n,)
        A number of items, whose ids are then their positions, or distinct ids:
        integers or strings.
    view : str
        Name of the view, for messages.

    Examples
    --------
    >>> from linkspread.links.items import Items
    >>> Items(["t7", "t9"], view="text").positions(["t9"])
    array([1])
    """

    def __init__(self, ids: Any, *, view: str) -> None:
        self.view = view
        self._ids: Array | None = None
        if isinstance(ids, int | np.integer):
            if ids < 0:
                raise ViewError(
                    f"view {view!r} must have 0 items or more, got {ids}. Give the "
                    "number of its items, or their ids."
                )
            self.n_items = int(ids)
            return
        self._ids = as_ids(ids, view)
        self.n_items = len(self._ids)
        self._order = np.argsort(self._ids, kind="stable")
        self._sorted = self._ids[self._order]
        repeated = self._sorted[:-1][self._sorted[:-1] == self._sorted[1:]]
        if len(repeated):
            raise ViewError(
                f"ids of a view must be distinct, but view {view!r} has "
                f"{_listed(np.unique(repeated))} more than once. Drop the repeated "
                "rows or number the items again."
            )

    @property
    def has_ids(self) -> bool:
        """Whether the items have ids of their own rather than positions."""
        return self._ids is not None

    @cached_property
    def ids(self) -> Array:
        """Ids of all items in order, shape (n_items,)."""
        return np.arange(self.n_items) if self._ids is None else self._ids

    def positions(
        self, ids: Any, *, what: str = "links", remedy: str | None = None
    ) -> Array:
        """Return the positions of these ids; unknown ids of `what` are an error."""
        found = self.find(ids)
        unknown = as_ids(ids, self.view)[found < 0]
        if len(unknown):
            remedy = remedy or "correct the names, or pass `ids` to give it others"
            raise UnknownItemError(
                f"{what} must name items of view {self.view!r}, which does not have "
                f"{_listed(np.unique(unknown))}, {len(unknown):,} of {len(found):,} in "
                f"all. Its {self.n_items:,} ids are {_listed(self.ids)}; {remedy}."
            )
        return found

    def find(self, ids: Any) -> Array:
        """Return the position of each id, or -1 if it is unknown.

        Numbers also match ids that are their decimal strings, and vice versa, because
        a CSV file does not distinguish them.
        """
        wanted = as_ids(ids, self.view)
        if self._ids is None:
            numbers, is_number = _as_numbers(wanted)
            inside = is_number & (numbers >= 0) & (numbers < self.n_items)
            return np.where(inside, numbers, -1)
        if self._ids.dtype.kind == "U":
            wanted, comparable = wanted.astype(str), np.ones(len(wanted), dtype=bool)
        else:
            wanted, comparable = _as_numbers(wanted)
        if self.n_items == 0:
            return np.full(len(wanted), -1)
        place = np.searchsorted(self._sorted, wanted)
        place = np.minimum(place, self.n_items - 1)
        found = comparable & (self._sorted[place] == wanted)
        return np.where(found, self._order[place], -1)

    def contains(self, ids: Any) -> Array:
        """Return which of these ids the view has."""
        return self.find(ids) >= 0

    def similar_ids(self, id: str, *, n: int = 3) -> list[Any]:
        """Return at most `n` ids, those spelled most like an unknown one."""
        spelt = self.ids.astype(str)
        alike = np.abs(np.char.str_len(spelt) - len(id)) <= 1 + len(id) // 4
        near = np.flatnonzero(alike)[:MAX_COMPARED]
        places = dict(zip(spelt[near].tolist(), near.tolist(), strict=True))
        return [self.ids[places[m]].item() for m in get_close_matches(id, places, n=n)]

    def take(self, positions: Array) -> "Items":
        """Return some of the items; without ids they are numbered from 0."""
        chosen = len(positions) if self._ids is None else self._ids[positions]
        return Items(chosen, view=self.view)


def check_positions(
    positions: Mapping[str, Any], items: Mapping[str, Items], *, once: bool = False
) -> dict[str, np.ndarray]:
    """Return positions of items by view, checked."""
    checked = {}
    for view, where in positions.items():
        if view not in items:
            raise LinkError(
                f"positions must be of views of the links, {list(items)}, got "
                f"{view!r}. Correct the name, or resolve the links first."
            )
        chosen, n_items = np.asarray(where, dtype=np.int64), items[view].n_items
        outside = chosen[(chosen < 0) | (chosen >= n_items)]
        if len(outside):
            raise UnknownItemError(
                f"positions in view {view!r} must be from 0 to {n_items - 1:,}, got "
                f"{outside[0]}. Correct it."
            )
        if once and len(np.unique(chosen)) < len(chosen):
            raise LinkError(
                f"items of view {view!r} must be selected once each, got "
                f"{len(chosen):,} positions of {len(np.unique(chosen)):,} items. Drop "
                "the repeated ones."
            )
        checked[view] = chosen
    return checked


def check_same_items(one: Items, other: Items) -> None:
    """Refuse to join links of different items."""
    if one.n_items != other.n_items:
        got = f"got {one.n_items:,} and {other.n_items:,} items"
    elif one.has_ids and other.has_ids and not np.array_equal(one.ids, other.ids):
        place = np.flatnonzero(one.ids != other.ids)[0]
        ids = one.ids[place].item(), other.ids[place].item()
        got = f"but item {place} is {ids[0]!r} in one and {ids[1]!r} in the other"
    else:
        return
    raise LinkError(
        f"links that are joined must be for the same items of view {one.view!r}, {got}."
        " Resolve both with the same ids."
    )


def as_ids(ids: Any, view: str) -> Array:
    """Return ids as a flat array of integers or strings."""
    array = np.asarray(ids)
    if array.dtype.kind == "T":  # strings of any length, which NumPy cannot cast to U
        array = array.astype(object)
    if array.ndim != 1:
        raise ViewError(
            f"ids of view {view!r} must be one flat list, got shape {array.shape}. "
            "Give one id per item."
        )
    if len(array) == 0:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind == "f":
        whole = (np.abs(array) < 2.0**63) & (array == np.floor(array))
        return array.astype(np.int64) if whole.all() else _refuse(view, array[~whole])
    if array.dtype.kind == "O" and not set(map(type, array)) <= {int, str}:
        missing = np.array([_is_missing(i) for i in array])
        if missing.any():
            _refuse(view, array[missing])
    if array.dtype.kind in "iu" or all(isinstance(i, int | np.integer) for i in array):
        return _as_integers(array) if array.dtype.kind != "b" else _refuse(view, array)
    return array.astype(str) if array.dtype.kind in "UOS" else _refuse(view, array)


def _refuse(view: str, ids: Array) -> NoReturn:
    """Raise the error about invalid ids."""
    raise LinkError(
        f"ids of view {view!r} must be integers or strings, got {ids[0]} in "
        f"{len(ids):,} rows. Drop rows without an id, or convert the ids to strings."
    )


def _is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, pandas' NA and NaT."""
    missing_types = ("NoneType", "NAType", "NaTType")
    return type(value).__name__ in missing_types or bool(value != value)


def _as_integers(ids: Array) -> Array:
    """Return integers as int64, or as strings if they are too large."""
    limits = np.iinfo(np.int64)
    if ids.dtype.kind != "i" and (ids.max() > limits.max or ids.min() < limits.min):
        return ids.astype(str)
    return ids.astype(np.int64)


def _as_numbers(ids: Array) -> tuple[Array, Array]:
    """Return ids as integers, and which of them are integers."""
    if ids.dtype.kind != "U":
        return ids, np.ones(len(ids), dtype=bool)
    digits = np.char.lstrip(ids, "-")
    is_number = np.char.isdecimal(digits) & (np.char.rfind(ids, "-") <= 0)
    is_number &= np.char.str_len(digits) <= 18  # any more may not fit an int64
    return np.where(is_number, ids, "0").astype(np.int64), is_number


def _listed(ids: Array) -> str:
    """Return the first few ids for a message."""
    return list_first([repr(i) for i in ids[: N_SHOWN + 1].tolist()], len(ids))


def list_first(names: Sequence[str], n_names: int | None = None) -> str:
    """Return the first few names, and how many more there are."""
    more = (len(names) if n_names is None else n_names) - N_SHOWN
    shown = ", ".join(names[:N_SHOWN]) or "none"
    return f"{shown} and {more:,} more" if more > 0 else shown
