"""Pairs that are judged to belong together and also not to."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from linkspread.ground.errors import ConflictWarning
from linkspread.links.tables import PairTable

Array = np.ndarray
ViewPair = tuple[str, str]
Conflict = tuple[ViewPair, tuple[Any, Any], float, float]


def find_conflicts(pairs: Sequence[tuple[ViewPair, PairTable]]) -> list[Conflict]:
    """Return the pairs that are both must- and cannot-links.

    Items are compared by position where all positions are known, else by id; a
    number and its decimal string are the same id, as they are for a view.
    """
    groups: dict[ViewPair, list[PairTable]] = {}
    for (left, right), table in pairs:
        # Whichever view was named first, its pair belongs to the same group.
        key, turned = ((left, right), table), ((right, left), table.turned())
        views, table = key if left <= right else turned
        groups.setdefault(views, []).append(table)
    return [
        (views, *conflict)
        for views, tables in groups.items()
        for conflict in _conflicts_of_views(tables, within=views[0] == views[1])
    ]


def warn_of_conflicts(conflicts: Sequence[Conflict]) -> None:
    """Report contradicting links, to the caller's caller, with the first ids."""
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
    """Return ids and weights of the contradicting pairs of two views."""
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
    """Return a number for each item: its position, or the place of its id."""
    positions = [table.positions for table in tables if table.positions is not None]
    if len(positions) == len(tables):
        rows, columns = zip(*positions, strict=True)
        return np.concatenate(rows), np.concatenate(columns)
    if within:
        numbers = _places(_joined([left, right]))
        return numbers[: len(left)], numbers[len(left) :]
    return _places(left), _places(right)


def _places(ids: Array) -> Array:
    """Return the place of each id among the distinct ones in order."""
    return np.unique(ids, return_inverse=True)[1]


def _joined(ids: Sequence[Array]) -> Array:
    """Return ids of several tables as one array, of strings if any are."""
    if len({array.dtype.kind for array in ids}) > 1:
        ids = [array.astype(str) for array in ids]
    return np.concatenate(ids)


def _exchange(exchanged: Array, one: Array, other: Array) -> tuple[Array, Array]:
    """Return two arrays with their values exchanged where told."""
    return np.where(exchanged, other, one), np.where(exchanged, one, other)
