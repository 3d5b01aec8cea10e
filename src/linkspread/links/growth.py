"""Links of views that have got more items."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.links.collection import Links
from linkspread.links.items import Items

__all__ = ["grow_links"]


def grow_links(links: Links, items: Mapping[str, Items]) -> Links:
    """Return the same links among more items, of which nothing is known yet.

    Parameters
    ----------
    links : Links
        Resolved.
    items : mapping from str to Items
        Of all views, those there were first and in their order.

    Returns
    -------
    links : Links
    """
    labels = [
        {view: _grow_rows(own, items[view].n_items) for view, own in given.items()}
        for given in links._labels
    ]
    return Links(labels=labels, pairs=links.pair_tables, items=items)


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
