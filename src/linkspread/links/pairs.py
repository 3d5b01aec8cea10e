"""Judged pairs: tables, positions, sums, subsets and conflicts.

Pairs are a sequence of tables, each with the names of its two views.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.ground.checks import MAX_WEIGHT
from linkspread.ground.errors import ConflictWarning, LinkError, UnknownItemError
from linkspread.links.items import Items, list_first

Array = np.ndarray
ViewPair = tuple[str, str]
Conflict = tuple[ViewPair, tuple[Any, Any], float, float]

# What to do with pairs of unknown items.
UNKNOWN = ("raise", "skip")
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
        self.weights = _check_weights(self.weights)

    def __len__(self) -> int:
        return len(self.weights)

    def known_positions(self, between: tuple[str, str]) -> tuple[Array, Array]:
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
        positions = self.positions
        if positions is not None:
            positions = positions[0][chosen], positions[1][chosen]
        ids = self.left[chosen], self.right[chosen]
        return PairTable(*ids, self.weights[chosen], positions, by_row=self.by_row)

    def swapped(self) -> "PairTable":
        """Return the same pairs with left and right exchanged."""
        positions = None if self.positions is None else self.positions[::-1]
        return PairTable(
            self.right, self.left, self.weights, positions, by_row=self.by_row
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
    if not isinstance(n_items, int | np.integer) or n_items < 1:
        raise LinkError(
            f"`n_items` must be a positive integer, got {n_items!r:.60}. "
            "Give the number of rows that match."
        )
    rows = np.arange(n_items)
    table = PairTable(rows, rows, np.ones(n_items), by_row=True)
    return [((a, b), table) for a, b in combinations(names, 2)]


def with_positions(
    pairs: Pairs, items: Mapping[str, Items], *, unknown: str = "raise"
) -> tuple[Pairs, str]:
    """Return pairs with the positions of their ids, and a message about skipped ones.

    Unknown items are an error, or with unknown="skip" their pairs are skipped.
    """
    if unknown not in UNKNOWN:
        raise LinkError(
            f"`unknown` must be 'raise' or 'skip', got {unknown!r:.60}. Use 'skip' to "
            "leave out pairs of unknown items."
        )
    placed: Tables = []
    names: dict[str, None] = {}
    for between, table in pairs:
        sides = zip((table.left, table.right), between, strict=True)
        found = [
            _positions(ids, items[view], by_row=table.by_row, strict=unknown == "raise")
            for ids, view in sides
        ]
        known = np.logical_and(*(own >= 0 for own in found))
        for ids, own, view in zip(
            (table.left, table.right), found, between, strict=True
        ):
            names |= {f"{view} {i!r}": None for i in ids[own < 0].tolist()}
        placed.append((between, _placed(table, found, known, between)))
    return _without_empty(pairs, placed, list(names))


def _without_empty(pairs: Pairs, placed: Pairs, names: list[str]) -> tuple[Pairs, str]:
    """Return the tables with pairs left, and a message about skipped pairs."""
    n_given, n_left = (sum(len(table) for _, table in own) for own in (pairs, placed))
    if n_left == n_given:
        return placed, ""
    named = f"name items that no view has and were skipped: {list_first(names)}."
    if not n_left:
        raise UnknownItemError(
            f"some pairs must name items of the views, but all {n_given:,} {named} "
            "Correct the names, or pass `ids` to give the views others (--id-column "
            "on the command line)."
        )
    kept = [(between, table) for between, table in placed if len(table)]
    return kept, f"{n_given - n_left:,} of {n_given:,} pairs {named}"


def _placed(
    table: PairTable, found: Sequence[Array], known: Array, between: ViewPair
) -> PairTable:
    """Return the known pairs of a table with their positions."""
    left, right = (own[known] for own in found)
    if between[0] == between[1] and np.any(left == right):
        itself = table.left[known][left == right][0].item()
        raise LinkError(
            f"links within view {between[0]!r} must join two different items, but "
            f"{itself!r} is linked to itself. Remove that pair."
        )
    ids = table.left[known], table.right[known]
    return PairTable(*ids, table.weights[known], (left, right), by_row=table.by_row,
                     n_unsure=table.n_unsure)  # fmt: skip


def pair_matrix(
    pairs: Pairs,
    views: ViewPair,
    shape: tuple[int, int],
) -> sparse.csr_array:
    """Return the sum of all pairs of two views as a sparse matrix."""
    total = sparse.csr_array(shape)
    for between, table in pairs:
        if set(between) != set(views):
            continue
        positions = table.known_positions(between)
        where = positions if between == views else positions[::-1]
        block = sparse.coo_array((table.weights, where), shape=shape)
        within = views[0] == views[1]
        total = total + (block + block.T if within else block).tocsr()
    total.sum_duplicates()
    total.eliminate_zeros()
    return total


def describe_pairs(between: ViewPair, table: PairTable) -> str:
    """Return a description of the number of pairs."""
    n_must = int(np.sum(table.weights > 0))
    where = f"between {between[0]} and {between[1]}"
    if between[0] == between[1]:
        where = f"within {between[0]}"
    unsure = f", {table.n_unsure:,} unsure left out" if table.n_unsure else ""
    return f"{n_must:,} must and {len(table) - n_must:,} cannot {where}{unsure}"


def _positions(ids: Array, items: Items, *, by_row: bool, strict: bool) -> Array:
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


def join_pairs(pairs: Pairs, others: Pairs) -> Tables:
    """Return the pairs of both, those of the same views in one table."""
    joined = list(pairs)
    for between, table in others:
        for k, (known, before) in enumerate(joined):
            if known == between and _can_join(before, table):
                joined[k] = between, _join(before, table)
                break
        else:
            joined.append((between, table))
    return joined


def remove_pairs(pairs: Pairs, gone: Pairs) -> Tables:
    """Return pairs without others, of equal pairs without the last."""
    masks = [np.ones(len(table), dtype=bool) for _, table in pairs]
    for between, table in gone:
        positions = zip(*table.known_positions(between), strict=True)
        ids = zip(table.left, table.right, strict=True)
        for (i, j), weight, names in zip(positions, table.weights, ids, strict=True):
            _remove_one(pairs, masks, between, (i, j), weight, names)
    kept = [(b, table.take(m)) for (b, table), m in zip(pairs, masks, strict=True)]
    return [(between, table) for between, table in kept if len(table)]


def _remove_one(
    pairs: Pairs,
    masks: list[Array],
    between: ViewPair,
    pair: tuple[int, int],
    weight: float,
    names: tuple[Any, Any],
) -> None:
    """Mark the last equal pair as removed."""
    for (known, table), mask in reversed(list(zip(pairs, masks, strict=True))):
        if set(known) != set(between):
            continue
        i, j = table.known_positions(known)
        same = (i == pair[0]) & (j == pair[1])
        if known != between:
            same = (i == pair[1]) & (j == pair[0])
        elif known[0] == known[1]:
            # Within a view a pair has no order.
            same |= (i == pair[1]) & (j == pair[0])
        found = np.flatnonzero(same & mask & (table.weights == weight))
        if len(found):
            mask[found[-1]] = False
            return
    raise LinkError(
        f"links to remove must exist, but {names[0].item()!r} of "
        f"{between[0]!r} and {names[1].item()!r} of {between[1]!r} have none of weight "
        f"{weight:g}. Pass them as they were added."
    )


def _can_join(one: PairTable, other: PairTable) -> bool:
    """Return whether two tables identify items in the same way."""
    if (one.positions is None) != (other.positions is None):
        return False
    kinds = [
        (table.left.dtype.kind, table.right.dtype.kind, table.by_row)
        for table in (one, other)
    ]
    return kinds[0] == kinds[1]


def _join(one: PairTable, other: PairTable) -> PairTable:
    """Return the pairs of two tables, one after the other."""
    positions = None
    if one.positions is not None and other.positions is not None:
        rows, columns = map(
            np.concatenate, zip(one.positions, other.positions, strict=True)
        )
        positions = rows, columns
    return PairTable(
        np.concatenate([one.left, other.left]),
        np.concatenate([one.right, other.right]),
        np.concatenate([one.weights, other.weights]),
        positions,
        by_row=one.by_row,
        n_unsure=one.n_unsure + other.n_unsure,
    )


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
    chosen = np.asarray(chosen)
    ends = np.cumsum([len(table) for _, table in pairs])
    n_pairs = int(ends[-1]) if len(ends) else 0
    if chosen.shape != (n_pairs,) or chosen.dtype != bool:
        raise LinkError(
            f"`chosen` must be a mask of all {n_pairs:,} pairs, got {chosen.dtype} of "
            f"shape {chosen.shape}. Give one True or False per pair."
        )
    masks = np.split(chosen, ends[:-1])
    return [(b, table.take(m)) for (b, table), m in zip(pairs, masks, strict=True)]


def renumber_pairs(
    pairs: Pairs, kept: Mapping[str, Array], *, with_ids: bool
) -> Tables:
    """Return the pairs among some items, renumbered.

    Their ids are the new positions, or stay the same `with_ids`.
    """
    found = []
    for between, table in pairs:
        rows, columns = (
            _places(own, kept.get(view))
            for view, own in zip(between, table.known_positions(between), strict=True)
        )
        stays = (rows >= 0) & (columns >= 0)
        part, positions = table.take(stays), (rows[stays], columns[stays])
        by_row = table.by_row or not with_ids
        left, right = positions if by_row else (part.left, part.right)
        moved = PairTable(left, right, part.weights, positions, by_row=by_row)
        found.append((between, moved))
    return found


def _places(positions: Array, kept: Array | None) -> Array:
    """Return the new numbers of positions, -1 for those not kept."""
    if kept is None:
        return positions
    places = np.full(max(positions.max(initial=-1), kept.max(initial=-1)) + 1, -1)
    places[kept] = np.arange(len(kept))
    return places[positions]


def find_conflicts(pairs: Sequence[tuple[ViewPair, PairTable]]) -> list[Conflict]:
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


def warn_of_conflicts(conflicts: Sequence[Conflict]) -> None:
    """Warn of conflicts, with the first ids, at the caller of the caller."""
    if not conflicts:
        return
    shown = ", ".join(str(ids) for _, ids, _, _ in conflicts[:3])
    more = f" and {len(conflicts) - 3:,} more" if len(conflicts) > 3 else ""
    warnings.warn(
        "a pair must be either a must-link or a cannot-link, but "
        f"{len(conflicts):,} of the pairs given are both: {shown}{more}. Their weights "
        "were added up; see `links.conflicts()` for all and remove one of the two.",
        ConflictWarning,
        stacklevel=3,
    )


def _conflicts_of_views(
    tables: Sequence[PairTable], *, within: bool
) -> list[tuple[tuple[Any, Any], float, float]]:
    """Return ids and weights of the conflicts of two views."""
    weights = np.concatenate([table.weights for table in tables])
    if np.all(weights > 0) or np.all(weights < 0):
        return []
    left = _joined([table.left for table in tables])
    right = _joined([table.right for table in tables])
    rows, columns = _numbered(tables, left, right, within=within)
    if within:
        exchanged = rows > columns
        left, right = _exchange(exchanged, left, right)
        rows, columns = _exchange(exchanged, rows, columns)
    _, first, group = np.unique(
        rows * (columns.max() + 1) + columns, return_index=True, return_inverse=True
    )
    must = np.bincount(group, weights=np.maximum(weights, 0.0))
    cannot = np.bincount(group, weights=np.minimum(weights, 0.0))
    both = np.flatnonzero((must > 0) & (cannot < 0))
    both = both[np.argsort(first[both])]
    ids = zip(left[first[both]].tolist(), right[first[both]].tolist(), strict=True)
    return list(zip(ids, must[both].tolist(), cannot[both].tolist(), strict=True))


def _numbered(
    tables: Sequence[PairTable], left: Array, right: Array, *, within: bool
) -> tuple[Array, Array]:
    """Return a number for each item: its position, or the rank of its id."""
    positions = [table.positions for table in tables if table.positions is not None]
    if len(positions) == len(tables):
        rows, columns = zip(*positions, strict=True)
        return np.concatenate(rows), np.concatenate(columns)
    if within:
        numbers = _numbers(_joined([left, right]))
        return numbers[: len(left)], numbers[len(left) :]
    return _numbers(left), _numbers(right)


def _numbers(ids: Array) -> Array:
    """Return the rank of each id among the distinct ids."""
    return np.unique(ids, return_inverse=True)[1]


def _joined(ids: Sequence[Array]) -> Array:
    """Return ids of several tables as one array, of strings if any are."""
    if len({array.dtype.kind for array in ids}) > 1:
        ids = [array.astype(str) for array in ids]
    return np.concatenate(ids)


def _exchange(exchanged: Array, one: Array, other: Array) -> tuple[Array, Array]:
    """Return two arrays with their values exchanged at some places."""
    return np.where(exchanged, other, one), np.where(exchanged, one, other)


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
    return find_conflicts([own for own in touched if len(own[1])])


def _check_weights(weights: Any) -> Array:
    """Return weights as finite numbers other than zero."""
    values = np.asarray(weights, dtype=np.float64)
    size = np.abs(values)
    bad = ~((size >= 1 / MAX_WEIGHT) & (size <= MAX_WEIGHT))  # also NaN
    if bad.any():
        raise LinkError(
            f"weights of links must be between {1 / MAX_WEIGHT:g} and {MAX_WEIGHT:g} "
            f"in size, got {values[bad][0]} in {int(bad.sum()):,} of {len(values):,}. "
            "Write 1 for must and -1 for cannot."
        )
    return values
