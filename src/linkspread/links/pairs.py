"""Single judged pairs: ids to positions, positions to a sparse matrix."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.ground.errors import LinkError, UnknownItemError
from linkspread.links.items import Items, list_first
from linkspread.links.tables import PairTable

Array = np.ndarray
ViewPair = tuple[str, str]
Pairs = Sequence[tuple[ViewPair, PairTable]]

# What links may do that name an item which its view has not.
UNKNOWN = ("raise", "skip")
REMEDY = (
    "correct the names, pass `ids` to give it others (--id-column on the command line) "
    "or leave such links out with `unknown='skip'` (--skip-unknown)"
)


def matched_pairs(views: Any, n_items: Any) -> list[tuple[ViewPair, PairTable]]:
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
    """Return pairs with the positions of their ids, and what to say of those skipped.

    Items that a view has not are an error, or with unknown="skip" their pairs go.
    """
    if unknown not in UNKNOWN:
        raise LinkError(
            f"`unknown` must be 'raise' or 'skip', got {unknown!r:.60}. 'skip' leaves "
            "out links that name items no view has."
        )
    placed: list[tuple[ViewPair, PairTable]] = []
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
    """Return the tables that have pairs left, and what to say of the others' pairs."""
    n_given, n_left = (sum(len(table) for _, table in own) for own in (pairs, placed))
    if n_left == n_given:
        return placed, ""
    told = f"name items that no view has and were skipped: {list_first(names)}."
    if not n_left:
        raise UnknownItemError(
            f"some pairs must name items of the views, but all {n_given:,} {told} "
            "Correct the names, or pass `ids` to give the views others (--id-column "
            "on the command line)."
        )
    kept = [(between, table) for between, table in placed if len(table)]
    return kept, f"{n_given - n_left:,} of {n_given:,} pairs {told}"


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
    """Return the sum of all single pairs of two views as a sparse matrix."""
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
    """Return a phrase about how many pairs are linked."""
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
