"""Which items are relevant to which queries, from labels or memberships.

Labels are class numbers of shape (n,), with -1 for unknown, or 0/1 memberships of
shape (n, n_classes), dense or sparse, when an item may belong to several classes. A
relevance table R of shape (n_queries, n_items) needs no entry of its own: pass it as
the memberships of the queries, with ``scipy.sparse.eye_array(n_items)`` for the
items, so that every item is a class by itself.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from linkspread.ground.errors import LinkspreadError

UNKNOWN = -1


def check_labels(query_labels: Any, item_labels: Any) -> tuple[Any, Any]:
    """Return both labels as arrays of one kind, or say why they do not fit together."""
    query_labels = _as_labels(query_labels, "query_labels")
    item_labels = _as_labels(item_labels, "item_labels")
    if query_labels.shape[1:] != item_labels.shape[1:]:
        raise LinkspreadError(
            "`query_labels` and `item_labels` must both be class numbers of shape (n,) "
            "or both memberships of shape (n, n_classes) with the same classes, got "
            f"shapes {query_labels.shape} and {item_labels.shape}. Give both in the "
            "same form."
        )
    return query_labels, item_labels


def relevant(query_labels: Any, item_labels: Any) -> NDArray[np.bool_]:
    """Tell which items share a class with which queries."""
    if query_labels.ndim == 1:
        same = query_labels[:, np.newaxis] == item_labels
        # Two unknown items are equal in their label, but not known to be of one class.
        return same & (item_labels != UNKNOWN)
    shared = query_labels @ item_labels.T
    return (shared.toarray() if issparse(shared) else shared) > 0


def _as_labels(labels: Any, name: str) -> Any:
    """Convert labels of either form."""
    table = csr_array(labels) if issparse(labels) else np.asarray(labels)
    if table.ndim == 2:
        return _as_memberships(table, name)
    if table.ndim != 1:
        raise LinkspreadError(
            f"`{name}` must have shape (n,) or (n, n_classes), got shape {table.shape}."
            " Pass one class number per item, or a table of memberships."
        )
    # An empty list becomes an array of floats, which is no mistake of the caller.
    if table.size and table.dtype.kind not in "iub":
        raise LinkspreadError(
            f"`{name}` must hold integers, got values of type {table.dtype}. Number "
            "the classes over queries and items together, with -1 for unknown."
        )
    return table.astype(np.int64)


def _as_memberships(table: Any, name: str) -> Any:
    """Convert a table of memberships, which must be 0 or 1."""
    if table.dtype.kind not in "iubf":
        raise LinkspreadError(
            f"`{name}` with two dimensions must hold memberships 0 or 1, got values "
            f"of type {table.dtype}. Convert them to booleans."
        )
    values = table.data if issparse(table) else table
    # Soft memberships are all positive, which would make every item relevant.
    strange = values[(values != 0) & (values != 1)]
    if strange.size:
        raise LinkspreadError(
            f"`{name}` with two dimensions must hold memberships 0 or 1, got "
            f"{strange[0]:.6g}. Round soft memberships, or pass class numbers in one "
            "dimension."
        )
    return table.astype(np.float32)
