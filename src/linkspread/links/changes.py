"""Judged pairs added to others, and taken back."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkspread.ground.errors import LinkError
from linkspread.links.tables import PairTable

Array = np.ndarray
ViewPair = tuple[str, str]
Pairs = Sequence[tuple[ViewPair, PairTable]]


def join_pairs(pairs: Pairs, others: Pairs) -> list[tuple[ViewPair, PairTable]]:
    """Return the pairs of both, in one table where they are of the same views."""
    joined = list(pairs)
    for between, table in others:
        for k, (known, before) in enumerate(joined):
            if known == between and _can_join(before, table):
                joined[k] = between, _join(before, table)
                break
        else:
            joined.append((between, table))
    return joined


def remove_pairs(pairs: Pairs, gone: Pairs) -> list[tuple[ViewPair, PairTable]]:
    """Return pairs without some of them, the last of those that are alike."""
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
    """Mark the last pair that is alike as removed."""
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
        f"links to remove must be among those there are, but {names[0].item()!r} of "
        f"{between[0]!r} and {names[1].item()!r} of {between[1]!r} have none of weight "
        f"{weight:g}. Give them as they were added."
    )


def _can_join(one: PairTable, other: PairTable) -> bool:
    """Tell whether two tables name their items in the same way."""
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
        positions = (
            np.concatenate([one.positions[0], other.positions[0]]),
            np.concatenate([one.positions[1], other.positions[1]]),
        )
    return PairTable(
        np.concatenate([one.left, other.left]),
        np.concatenate([one.right, other.right]),
        np.concatenate([one.weights, other.weights]),
        positions,
        by_row=one.by_row,
        n_unsure=one.n_unsure + other.n_unsure,
    )
