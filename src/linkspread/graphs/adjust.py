"""Constrained weight adjustment (CWA): edge weights changed by links.

>>> from linkspread.graphs import adjust_weights
>>> from linkspread.links import Links
>>> W = [[0, 0.5, 0.5], [0.5, 0, 0], [0.5, 0, 0]]
>>> links = Links.from_pairs([(0, 1, 1.0), (0, 2, -1.0)], between=("text", "text"))
>>> adjust_weights(W, links.resolve({"text": 3}), alpha=0).toarray()[0].tolist()
[0.0, 1.0, 0.0]
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from linkspread.graphs.normalize import check_graph, normalize
from linkspread.ground.errors import LinkError
from linkspread.links import LinkMatrix, Links
from linkspread.propagation import Factored, propagate

Array = np.ndarray

# Edges whose propagated links are evaluated at a time.
EDGE_BLOCK = 1 << 16
# Items of largest norm that are searched for the largest propagated link.
MAX_SEARCHED = 20_000
# Weights below this are rounding.
ROUNDING = 1e-14


def adjust_weights(
    W: Any,
    links: Any,
    *,
    view: str | None = None,
    alpha: float = 0.1,
    beta: float = 0.95,
    balance: str | float = "auto",
    tol: float = 1e-6,
    rank: int | None = None,
) -> sp.csr_array:
    """Adjust the weights of a graph by links within its view.

    Links are propagated over the graph itself, ``F = h(S, S) o Z``, divided by their
    largest entry, and each weight of at most 1 moves towards 1 or towards 0:
    ``1 - (1 - f)(1 - w)`` where f >= 0, ``(1 + f) w`` where f < 0.

    Parameters
    ----------
    W : array-like or sparse of shape (n_items, n_items)
        Symmetric affinities; divided by the largest if that is above 1.
    links : Links, sparse, ndarray or LinkMatrix of shape (n_items, n_items)
        Links within the view, positive for must and negative for cannot.
    view : str, default=None
        Which view of the Links; may be omitted if they are of one view only.
    alpha : float, default=0.1
    beta : float, default=0.95
        Smoothing of the propagation, as in `propagate`.
    balance : {"auto", "literal"} or float, default="auto"
        Weight of cannot-links, as in `Links.between`.
    tol : float, default=1e-6
    rank : int, default=None
        Accuracy of the propagation, as in `propagate`.

    Returns
    -------
    adjusted : csr_array of shape (n_items, n_items)
        Symmetric, between 0 and 1, zero diagonal. An edge whose weight falls to 0 is
        removed.
    """
    W = check_graph(W)
    W.setdiag(0)
    W.eliminate_zeros()
    W.data = W.data / max(float(W.data.max(initial=0)), 1.0)
    n_items = W.shape[0]
    Z = links_within(links, view=view, balance=balance, n_items=n_items)
    S = normalize(W)
    F = propagate(S, Z, S, alpha=alpha, beta=beta, tol=tol, rank=rank)
    adjusted = adjust_edges(W, F, _largest_entry(F, W) or 1.0)
    # Average with the transpose, which differs only by rounding.
    adjusted = sp.csr_array((adjusted + adjusted.T) * W.dtype.type(0.5))
    adjusted.eliminate_zeros()
    adjusted.sort_indices()
    return adjusted


def links_within(
    links: Any, *, view: str | None, balance: str | float, n_items: int
) -> Any:
    """Return the links among the items of a graph as a matrix."""
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


def adjust_edges(W: sp.csr_array, F: Factored, largest: float) -> sp.csr_array:
    """Adjust the weights of existing edges."""
    w, f = W.data, np.clip(values_on_edges(F, W) / largest, -1, 1)
    moved = np.where(f >= 0, 1 - (1 - f) * (1 - w), (1 + f) * w)
    adjusted = W.copy()
    # Where f is -1 up to rounding, the edge is removed.
    adjusted.data = np.where(moved > ROUNDING, moved, 0).astype(W.dtype)
    return adjusted


def values_on_edges(F: Factored, W: sp.csr_array) -> Array:
    """Return the entries of F at the edges of a graph."""
    rows = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    values = np.empty(W.nnz)
    for start in range(0, W.nnz, EDGE_BLOCK):
        part = slice(start, start + EDGE_BLOCK)
        left, right = F.left[rows[part]], F.right[W.indices[part]]
        values[part] = np.einsum("er,er->e", left, right)
    return values


def _largest_entry(F: Factored, W: sp.csr_array) -> float:
    """Return the largest entry of F, no smaller than that of any edge."""
    diagonal = np.einsum("ir,ir->i", F.left, F.right)
    best = float(max(values_on_edges(F, W).max(initial=0), diagonal.max(initial=0)))
    return largest_product(F.left, F.right, best)


def largest_product(left: Array, right: Array, best: float) -> float:
    """Return the largest inner product of two sets of vectors, or a larger value.

    By Cauchy-Schwarz, vectors are tried by decreasing norm until no product can exceed
    the best one. Only the `MAX_SEARCHED` vectors of largest norm are tried.
    """
    left, left_norms = longest_vectors(left)
    right, right_norms = longest_vectors(right)
    step = max(1, EDGE_BLOCK // max(len(right), 1) * 16)
    for start in range(0, len(left), step):
        n_columns = int(np.sum(left_norms[start] * right_norms > best))
        if n_columns == 0:
            break
        products = left[start : start + step] @ right[:n_columns].T
        best = max(best, float(products.max(initial=0)))
    return best


def longest_vectors(vectors: Array) -> tuple[Array, Array]:
    """Return the vectors of largest norm, the largest first, and their norms."""
    norms = np.linalg.norm(vectors, axis=1)
    order = np.argsort(-norms, kind="stable")[:MAX_SEARCHED]
    return vectors[order], norms[order]
