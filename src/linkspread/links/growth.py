"""Links of views that have got more items, or fewer."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.links.changes import join_pairs
from linkspread.links.collection import Links
from linkspread.links.conflicts import find_conflicts, warn_of_conflicts
from linkspread.links.items import Items
from linkspread.links.tables import PairTable


def add_pairs(links: Links, more: Links) -> Links:
    """Return links with more pairs of the same items, and warn where these conflict.

    As ``links + more``, but what was in conflict before is not looked for again.
    """
    joined = Links(
        labels=links._labels,
        pairs=join_pairs(links.pair_tables, more.pair_tables),
        items=links._items,
    )
    touched = []
    for between, table in joined.pair_tables:
        is_new = np.zeros(len(table), dtype=bool)
        for known, own in more.pair_tables:
            if set(known) == set(between):
                ends = np.concatenate(own.known_positions(known))
                left, right = table.known_positions(between)
                is_new |= np.isin(left, ends) & np.isin(right, ends)
        touched.append((between, table.take(is_new)))
    warn_of_conflicts(find_conflicts([own for own in touched if len(own[1])]))
    return joined


def grow_links(links: Links, items: Mapping[str, Items]) -> Links:
    """Return the same links among more items, of which nothing is known yet."""
    labels = [
        {view: _grow_rows(own, items[view].n_items) for view, own in given.items()}
        for given in links._labels
    ]
    return Links(labels=labels, pairs=links.pair_tables, items=items)


def keep_items(links: Links, view: str, kept: np.ndarray) -> Links:
    """Return the links of some items of a view, which keep their ids."""
    places = np.full(links._items[view].n_items, -1)
    places[kept] = np.arange(len(kept))
    pairs = []
    for between, table in links.pair_tables:
        rows, columns = (
            places[own] if name == view else own
            for name, own in zip(between, table.known_positions(between), strict=True)
        )
        stays = (rows >= 0) & (columns >= 0)
        rows, columns = rows[stays], columns[stays]
        part = table.take(stays)
        ids = (rows, columns) if table.by_row else (part.left, part.right)
        moved = PairTable(*ids, part.weights, (rows, columns), by_row=table.by_row)
        pairs += [(between, moved)] if len(moved) else []
    labels = [
        {name: own[kept] if name == view else own for name, own in given.items()}
        for given in links._labels
    ]
    items = {**links._items, view: links._items[view].take(kept)}
    return Links(labels=labels, pairs=pairs, items=items)


def _grow_rows(memberships: Any, n_items: int) -> Any:
    """Return memberships with rows of zeros at the end."""
    n_more = n_items - memberships.shape[0]
    if n_more == 0:
        return memberships
    shape = n_more, memberships.shape[1]
    if sparse.issparse(memberships):
        none = sparse.csr_array(shape, dtype=memberships.dtype)
        return sparse.vstack([memberships, none], format="csr")
    return np.vstack([memberships, np.zeros(shape, dtype=memberships.dtype)])
