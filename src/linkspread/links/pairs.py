"""Single judged pairs: ids to positions, positions to a sparse matrix."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.exceptions import LinkError, UnknownItemError
from linkspread.links.items import Items
from linkspread.links.tables import PairTable

__all__ = ["describe_pairs", "matched_pairs", "pair_matrix", "with_positions"]

Array = np.ndarray
ViewPair = tuple[str, str]


def matched_pairs(views: Any, n_items: Any) -> list[tuple[ViewPair, PairTable]]:
    """Return pairs of row i of each view with row i of every other.

    Parameters
    ----------
    views : sequence of str
        Two different names or more.
    n_items : int
        Number of rows matched.

    Returns
    -------
    pairs : list of ((str, str), PairTable)
    """
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
    table: PairTable, between: ViewPair, items: Mapping[str, Items]
) -> PairTable:
    """Return a table of pairs with the positions of its ids.

    Parameters
    ----------
    table : PairTable
        Judged pairs.
    between : tuple of two str
        Views of the left and of the right ids.
    items : mapping from str to Items
        Items of these views at least.

    Returns
    -------
    table : PairTable
    """
    left = _positions(table.left, items[between[0]], by_row=table.by_row)
    right = _positions(table.right, items[between[1]], by_row=table.by_row)
    if between[0] == between[1] and np.any(left == right):
        itself = table.left[left == right][0].item()
        raise LinkError(
            f"links within view {between[0]!r} must join two different items, but "
            f"{itself!r} is linked to itself. Remove that pair."
        )
    return PairTable(
        table.left, table.right, table.weights, (left, right), by_row=table.by_row
    )


def pair_matrix(
    pairs: Sequence[tuple[ViewPair, PairTable]],
    views: ViewPair,
    shape: tuple[int, int],
) -> sparse.csr_array:
    """Return the sum of all single pairs of two views as a sparse matrix.

    Parameters
    ----------
    pairs : sequence of ((str, str), PairTable)
        Names of the views and the pairs between them.
    views : tuple of two str
        Views of the rows and of the columns; twice the same for links within one,
        which are symmetric.
    shape : tuple of two int
        Numbers of items of these views.

    Returns
    -------
    total : csr_array of shape (n, m)
    """
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
    kinds = f"{n_must:,} must and {len(table) - n_must:,} cannot"
    if between[0] == between[1]:
        return f"{kinds} within {between[0]}"
    return f"{kinds} between {between[0]} and {between[1]}"


def _positions(ids: Array, items: Items, *, by_row: bool) -> Array:
    """Return the positions of ids, which are themselves positions if by row."""
    if not by_row:
        return items.positions(ids)
    if ids.max(initial=-1) >= items.n_items:
        raise UnknownItemError(
            f"matched views must have every matched row, but {ids.max() + 1:,} rows "
            f"are matched and view {items.view!r} has {items.n_items:,}. Lower "
            "`n_items` or add the missing rows."
        )
    return ids
