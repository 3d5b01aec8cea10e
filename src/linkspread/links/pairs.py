"""Items with their ids, and judged pairs of them: positions, sums and conflicts.

Pairs are a sequence of tables, each with the names of its two views.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import combinations
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from linkspread.ground.checks import MAX_WEIGHT, check_count, check_name
from linkspread.ground.errors import (
    ConflictWarning,
    LinkError,
    UnknownItemError,
    ViewError,
    warn_caller,
)

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
    >>> from linkspread.links.pairs import Items
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


ViewPair = tuple[str, str]
Conflict = tuple[ViewPair, tuple[Any, Any], float, float]

REMEDY = (
    "correct the names, pass `ids` to give it others (--id-column on the command line) "
    "or leave such links out with `unknown='skip'` (--skip-unknown)"
)


@dataclass(eq=False)
class PairTable:
    """Ids of both sides and a weight for each judged pair."""

    left: Array
    right: Array
    weights: Array
    positions: tuple[Array, Array] | None = None
    by_row: bool = field(default=False, kw_only=True)  # ids are row numbers
    n_unsure: int = field(default=0, kw_only=True)  # rows that were left out

    def __post_init__(self) -> None:
        self.weights = np.asarray(self.weights, dtype=np.float64)
        size = np.abs(self.weights)
        bad = ~((size >= 1 / MAX_WEIGHT) & (size <= MAX_WEIGHT))  # also NaN
        if bad.any():
            raise LinkError(
                f"weights of links must be between {1 / MAX_WEIGHT:g} and "
                f"{MAX_WEIGHT:g} in size, got {self.weights[bad][0]} in "
                f"{int(bad.sum()):,} of {len(bad):,}. Write 1 for must and -1 for "
                "cannot."
            )

    def __len__(self) -> int:
        return len(self.weights)

    def known_positions(self, between: ViewPair) -> tuple[Array, Array]:
        """Return the rows and columns of the pairs, which must be resolved."""
        if self.positions is None:
            raise LinkError(
                f"pairs between {between[0]!r} and {between[1]!r} must be resolved to "
                "positions, and have only ids. Call "
                "`links.resolve({view: n_items_or_ids, ...})` first."
            )
        return self.positions

    def take(self, chosen: Array) -> "PairTable":
        """Return some of the pairs."""
        left, right, weights = self.left[chosen], self.right[chosen], self.weights
        where = self.positions
        if where is not None:
            where = where[0][chosen], where[1][chosen]
        return PairTable(left, right, weights[chosen], where, by_row=self.by_row)

    def swapped(self) -> "PairTable":
        """Return the same pairs with left and right exchanged."""
        where = None if self.positions is None else self.positions[::-1]
        return replace(self, left=self.right, right=self.left, positions=where)

    def can_join(self, other: "PairTable") -> bool:
        """Return whether two tables identify items in the same way."""
        kinds = {
            (own.left.dtype.kind, own.right.dtype.kind, own.by_row, not own.positions)
            for own in (self, other)
        }
        return len(kinds) == 1

    def join(self, other: "PairTable") -> "PairTable":
        """Return the pairs of two tables, one after the other."""
        left = np.concatenate([self.left, other.left])
        right = np.concatenate([self.right, other.right])
        weights, where = np.concatenate([self.weights, other.weights]), None
        if self.positions is not None and other.positions is not None:
            rows, columns = np.concatenate([self.positions, other.positions], axis=1)
            where = rows, columns
        n_unsure = self.n_unsure + other.n_unsure
        return PairTable(
            left, right, weights, where, by_row=self.by_row, n_unsure=n_unsure
        )


Pairs = Sequence[tuple[ViewPair, PairTable]]
Tables = list[tuple[ViewPair, PairTable]]


def matched_pairs(views: Any, n_items: Any) -> Tables:
    """Return pairs of row i of each view with row i of every other."""
    names = list(views) if isinstance(views, tuple | list) else [views]
    if len(names) < 2 or len(set(names)) < len(names):
        raise LinkError(
            f"matched views must be at least two different names, got {views!r:.60}. "
            'Write ("text", "image").'
        )
    remedy = "Give the number of rows that match."
    check_count(n_items, name="n_items", remedy=remedy, error=LinkError)
    rows = np.arange(n_items)
    table = PairTable(rows, rows, np.ones(n_items), by_row=True)
    return [((a, b), table) for a, b in combinations(names, 2)]


def with_positions(
    pairs: Pairs, items: Mapping[str, Items], *, unknown: str = "raise"
) -> tuple[Pairs, str]:
    """Return pairs with the positions of their ids, and a message about skipped ones.

    Unknown items are an error, or with unknown="skip" their pairs are skipped.
    """
    check_name(unknown, ("raise", "skip"), name="unknown", error=LinkError)
    placed: Tables = []
    names: dict[str, None] = {}
    for between, table in pairs:
        where = []
        for ids, view in zip((table.left, table.right), between, strict=True):
            own = _positions(ids, items[view], table.by_row, unknown == "raise")
            names |= {f"{view} {i!r}": None for i in ids[own < 0].tolist()}
            where.append(own)
        known = (where[0] >= 0) & (where[1] >= 0)
        rows, columns = where[0][known], where[1][known]
        left, right = rows, columns
        if not table.by_row:
            # As the items spell them: 7 and "7" are one id.
            left, right = items[between[0]].ids[rows], items[between[1]].ids[columns]
        if between[0] == between[1] and np.any(rows == columns):
            item = table.left[known][rows == columns][0].item()
            raise LinkError(
                f"links within view {between[0]!r} must join two different items, but "
                f"{item!r} is linked to itself. Remove that pair."
            )
        found = replace(
            table,
            left=left,
            right=right,
            weights=table.weights[known],
            positions=(rows, columns),
        )
        placed.append((between, found))
    n_given, n_left = (sum(len(table) for _, table in own) for own in (pairs, placed))
    if n_left == n_given:
        return placed, ""
    named = f"name items that no view has and were skipped: {list_first(list(names))}."
    if not n_left:
        raise UnknownItemError(
            f"some pairs must name items of the views, but all {n_given:,} {named} "
            "Correct the names, or pass `ids` to give the views others (--id-column "
            "on the command line)."
        )
    return _without_empty(placed), f"{n_given - n_left:,} of {n_given:,} pairs {named}"


def _positions(ids: Array, items: Items, by_row: bool, strict: bool) -> Array:
    """Return the positions of ids, or -1, unless all must be known."""
    if not by_row:
        return items.positions(ids, remedy=REMEDY) if strict else items.find(ids)
    if strict and ids.max(initial=-1) >= items.n_items:
        raise UnknownItemError(
            f"matched views must have every matched row, but {ids.max() + 1:,} rows "
            f"are matched and view {items.view!r} has {items.n_items:,}. Lower "
            "`n_items` or add the missing rows."
        )
    return np.where(ids < items.n_items, ids, -1)


def _without_empty(pairs: Pairs) -> Tables:
    """Return the tables that have pairs."""
    return [(between, table) for between, table in pairs if len(table)]


def judged_cells(pairs: Pairs, views: ViewPair) -> tuple[Array, Array, Array]:
    """Return rows, columns and weights of the pairs of two views, as given.

    Those within one view are in both orders.
    """
    found = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    for between, table in pairs:
        if set(between) != set(views):
            continue
        i, j = table.known_positions(between)
        if between == views:
            found.append((i, j, table.weights))
        if between == views[::-1]:
            found.append((j, i, table.weights))
    rows, columns, weights = map(np.concatenate, zip(*found, strict=True))
    return rows, columns, weights


def pair_matrix(
    pairs: Pairs, views: ViewPair, shape: tuple[int, int]
) -> sparse.csr_array:
    """Return the sum of all pairs of two views as a sparse matrix."""
    rows, columns, weights = judged_cells(pairs, views)
    total = sparse.coo_array((weights, (rows, columns)), shape=shape).tocsr()
    total.sum_duplicates()
    total.eliminate_zeros()
    return total


def describe_pairs(between: ViewPair, table: PairTable) -> str:
    """Return a description of the number of pairs."""
    n_must = int(np.sum(table.weights > 0))
    within = between[0] == between[1]
    where = f"within {between[0]}" if within else f"between {' and '.join(between)}"
    unsure = f", {table.n_unsure:,} unsure left out" if table.n_unsure else ""
    return f"{n_must:,} must and {len(table) - n_must:,} cannot {where}{unsure}"


def join_pairs(pairs: Pairs, others: Pairs) -> Tables:
    """Return the pairs of both, those of the same views in one table."""
    joined = list(pairs)
    for between, table in others:
        for k, (known, before) in enumerate(joined):
            if known == between and before.can_join(table):
                joined[k] = between, before.join(table)
                break
        else:
            joined.append((between, table))
    return joined


def remove_pairs(pairs: Pairs, gone: Pairs) -> Tables:
    """Return pairs without others, of equal pairs without the last."""
    masks = [np.ones(len(table), dtype=bool) for _, table in pairs]
    for between, table in gone:
        rows = zip(*table.known_positions(between), table.weights, strict=True)
        for place, (i, j, weight) in enumerate(rows):
            # Within a view a pair has no order.
            cells = [(between, i, j), (between[::-1], j, i)]
            if not _remove_last(pairs, masks, cells, weight):
                left, right = table.left[place].item(), table.right[place].item()
                raise LinkError(
                    f"links to remove must exist, but {left!r} of {between[0]!r} and "
                    f"{right!r} of {between[1]!r} have none of weight {weight:g}. Pass "
                    "them as they were added."
                )
    return _without_empty(
        [(b, table.take(m)) for (b, table), m in zip(pairs, masks, strict=True)]
    )


def _remove_last(
    pairs: Pairs, masks: list[Array], cells: list[tuple[Any, int, int]], weight: float
) -> bool:
    """Mark the last pair of this weight in one of the cells as removed, if any."""
    for (known, table), mask in reversed(list(zip(pairs, masks, strict=True))):
        own = [(i, j) for between, i, j in cells if between == known]
        if own:
            rows, columns = table.known_positions(known)
            same = np.any([(rows == i) & (columns == j) for i, j in own], axis=0)
            found = np.flatnonzero(same & mask & (table.weights == weight))
            if len(found):
                mask[found[-1]] = False
                return True
    return False


def hide_pairs(pairs: Pairs, hidden: Mapping[str, Array]) -> Tables:
    """Return the pairs without any of the hidden items."""
    kept = []
    for between, table in pairs:
        sides = zip(between, table.known_positions(between), strict=True)
        touched = [np.isin(own, hidden.get(view, [])) for view, own in sides]
        kept.append((between, table.take(~(touched[0] | touched[1]))))
    return kept


def pick_pairs(pairs: Pairs, chosen: Array) -> Tables:
    """Return the pairs chosen by a mask over all tables."""
    chosen, sizes = np.asarray(chosen), [len(table) for _, table in pairs]
    if chosen.shape != (sum(sizes),) or chosen.dtype != bool:
        raise LinkError(
            f"`chosen` must be a mask of all {sum(sizes):,} pairs, got {chosen.dtype} "
            f"of shape {chosen.shape}. Give one True or False per pair."
        )
    masks = np.split(chosen, np.cumsum(sizes)[:-1])
    return [(b, table.take(m)) for (b, table), m in zip(pairs, masks, strict=True)]


def renumber_pairs(
    pairs: Pairs, kept: Mapping[str, Array], *, with_ids: bool
) -> Tables:
    """Return the pairs among some items, renumbered; ids stay, or are positions."""
    found = []
    for between, table in pairs:
        rows, columns = (
            _places(own, kept.get(view))
            for view, own in zip(between, table.known_positions(between), strict=True)
        )
        stays = (rows >= 0) & (columns >= 0)
        left, right = where = rows[stays], columns[stays]
        moved = PairTable(left, right, table.weights[stays], where, by_row=True)
        if with_ids and not table.by_row:
            moved = replace(table.take(stays), positions=where)
        found.append((between, moved))
    return _without_empty(found) if with_ids else found


def _places(positions: Array, kept: Array | None) -> Array:
    """Return the new numbers of positions, -1 for those not kept."""
    if kept is None:
        return positions
    places = np.full(max(positions.max(initial=-1), kept.max(initial=-1)) + 1, -1)
    places[kept] = np.arange(len(kept))
    return places[positions]


def find_conflicts(pairs: Pairs) -> list[Conflict]:
    """Return the pairs that are both must- and cannot-links.

    Items are compared by position if all positions are known, else by id; a number and
    its decimal string are the same id.
    """
    groups: dict[ViewPair, list[PairTable]] = {}
    for (left, right), table in pairs:
        # Both orders of two views belong to the same group.
        key, turned = ((left, right), table), ((right, left), table.swapped())
        views, table = key if left <= right else turned
        groups.setdefault(views, []).append(table)
    return [
        (views, *conflict)
        for views, tables in groups.items()
        for conflict in _conflicts_of_views(tables, within=views[0] == views[1])
    ]


def _conflicts_of_views(
    tables: Sequence[PairTable], *, within: bool
) -> list[tuple[tuple[Any, Any], float, float]]:
    """Return ids and weights of the conflicts of two views."""
    weights = np.concatenate([table.weights for table in tables])
    if np.all(weights > 0) or np.all(weights < 0):
        return []
    ids = [_joined([t.left for t in tables]), _joined([t.right for t in tables])]
    positions = [table.positions for table in tables if table.positions is not None]
    if len(positions) == len(tables):
        rows, columns = np.concatenate(positions, axis=1)
    elif within:
        rows, columns = np.split(_ranks(_joined(ids)), 2)
    else:
        rows, columns = map(_ranks, ids)
    if within:
        turned = rows > columns
        ids = [np.where(turned, *ids[::-1]), np.where(turned, *ids)]
        rows, columns = np.minimum(rows, columns), np.maximum(rows, columns)
    _, first, group = np.unique(
        rows * (columns.max() + 1) + columns, return_index=True, return_inverse=True
    )
    must = np.bincount(group, weights=np.maximum(weights, 0.0))
    cannot = np.bincount(group, weights=np.minimum(weights, 0.0))
    both = np.flatnonzero((must > 0) & (cannot < 0))
    both = both[np.argsort(first[both])]
    named = zip(*(own[first[both]].tolist() for own in ids), strict=True)
    return list(zip(named, must[both].tolist(), cannot[both].tolist(), strict=True))


def _ranks(ids: Array) -> Array:
    """Return the rank of each id among the distinct ids."""
    return np.unique(ids, return_inverse=True)[1]


def _joined(ids: Sequence[Array]) -> Array:
    """Return ids of several tables as one array, of strings if any are."""
    if len({array.dtype.kind for array in ids}) > 1:
        ids = [array.astype(str) for array in ids]
    return np.concatenate(ids)


def conflicts_of(joined: Pairs, more: Pairs) -> list[Conflict]:
    """Return the conflicts of pairs that share both items with added ones."""
    touched = []
    for between, table in joined:
        is_new = np.zeros(len(table), dtype=bool)
        for known, own in more:
            if set(known) == set(between):
                ends = np.concatenate(own.known_positions(known))
                left, right = table.known_positions(between)
                is_new |= np.isin(left, ends) & np.isin(right, ends)
        touched.append((between, table.take(is_new)))
    return find_conflicts(_without_empty(touched))


def warn_of_conflicts(conflicts: Sequence[Conflict]) -> None:
    """Warn of conflicts, with the first ids, at the caller of the caller."""
    if conflicts:
        shown = list_first([str(ids) for _, ids, _, _ in conflicts])
        warn_caller(
            "a pair must be either a must-link or a cannot-link, but "
            f"{len(conflicts):,} of the pairs given are both: {shown}. Their weights "
            "were added up; see `links.conflicts()` for all and remove one of the two.",
            ConflictWarning,
        )
