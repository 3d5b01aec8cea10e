"""Links within one view, as the constrained graphs take them."""

from typing import Any

import scipy.sparse as sp

from linkspread.exceptions import LinkError
from linkspread.links import LinkMatrix, Links

__all__ = ["links_within"]


def links_within(
    links: Any, *, view: str | None, balance: str | float, n_items: int
) -> Any:
    """Return the links among the items of a graph, or say why there are none.

    Parameters
    ----------
    links : Links, sparse, ndarray or LinkMatrix of shape (n_items, n_items)
    view : str or None
        Which view of the Links.
    balance : str or float
        Of the Links; matrices are taken as they are.
    n_items : int

    Returns
    -------
    Z : sparse, ndarray or LinkMatrix of shape (n_items, n_items)
    """
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
