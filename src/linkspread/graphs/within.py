"""Links within one view, as the constrained graphs take them."""

from typing import Any

import scipy.sparse as sp

from linkspread.ground.errors import LinkError
from linkspread.links import LinkMatrix, Links


def links_within(
    links: Any, *, view: str | None, balance: str | float, n_items: int
) -> Any:
    """Return the links among the items of a graph, or say why there are none."""
    if isinstance(links, Links):
        links = links.within(view, balance=balance)
    is_matrix = isinstance(links, LinkMatrix) or sp.issparse(links)
    if not is_matrix and not hasattr(links, "__array__"):
        raise LinkError(
            f"`links` must be Links or a matrix, got {type(links).__name__}. "
            "Make them with `Links.from_labels` or `Links.from_pairs`."
        )
    if tuple(links.shape) != (n_items, n_items):
        raise LinkError(
            f"`links` must be among the {n_items:,} items of the graph, got shape "
            f"{tuple(links.shape)}. Give one row and one column per item."
        )
    return links
