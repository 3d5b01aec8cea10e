"""Contributions of propagated links to one score.

Scores are linear in the links, ``F = h(S_x, S_y) o Z`` with h symmetric in each graph,
so a link z of items a and b adds ``z P_ab`` to F_ij, where
``P = h(S_x, S_y) o (e_i e_j')``: two thin recurrences give the amounts of all links.

With eigenvalues l and m, ``h(l, m) = h(0, m) + l (h(l, m) - h(0, m)) / l``, and l is
one step on the graph S_x. The first term of F_ij is the part of item i without its
graph, the second a sum over its neighbours n, weighted by S_in. A new item has only
the second. The same holds for m and item j.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.judging.explanation import Shares, pair_shares, single_share
from linkspread.links import LinkMatrix, as_link_matrix
from linkspread.propagation.chebyshev import FilterOperator, filtered_sums
from linkspread.propagation.exact import working_graphs
from linkspread.propagation.filter import (
    SeparableFilter,
    fitted_response,
    separate,
    unseen_response,
)

Array = np.ndarray
Response = Callable[[Array, Array], Array]

# For eigenvalues nearer to 0 than this the quotient is the derivative.
NEAR_ZERO = 1e-9
TINY_STEP = 1e-20


def spread_shares(
    S_x: Any,
    Z: Any,
    S_y: Any,
    i: Any,
    j: int,
    *,
    alpha: tuple[float, float],
    beta: float,
    tol: float,
    within: bool = False,
) -> dict[str, list[Shares]]:
    """Return the shares of ``F_ij`` by the names of the splits of an Explanation.

    For a new item, `i` is the sparse row of its similarities.
    """
    S_x, S_y = working_graphs(S_x, Z, S_y)
    links = as_link_matrix(Z)
    is_new = sparse.issparse(i)
    start = i.toarray().T.astype(S_x.dtype) if is_new else _unit(int(i), S_x)
    end = _unit(j, S_y)
    separable, by_source, by_target = _filters(alpha, beta, is_new, tol)
    A = filtered_sums(S_x, start, separable.left)[:, :, 0].astype(np.float64)
    B = filtered_sums(S_y, end, separable.right)[:, :, 0].astype(np.float64)
    A = A @ separable.cores[0]
    shares = _label_shares(links, A, B)
    a, b = links.pairs.tocoo().coords
    weights = links.pairs.data
    amounts = weights * np.einsum("kr,kr->k", A[a], B[b])
    shares["links"].append(pair_shares(a, b, weights, amounts, within=within))
    if is_new:
        column = FilterOperator.of(S_x, links, S_y, separable, width=1).apply(end)[0]
        near = start[:, 0]
        amounts = near * column[:, 0]
        neighbors = [Shares("neighbor", amounts, near, {0: np.arange(len(near))})]
    else:
        neighbors = _steps(S_x, links, S_y, by_source, int(i), end, side=0)
    shares["source_neighbors"] = neighbors
    shares["target_neighbors"] = _steps(S_y, links.T, S_x, by_target, j, start, side=1)
    return shares


def first_step(response: Response) -> tuple[Response, Response]:
    """Split a response into the parts with and without a step on the first graph."""

    def own(l: Array, m: Array) -> Array:
        return response(np.zeros_like(l), m)

    def stepped(l: Array, m: Array) -> Array:
        is_zero = np.abs(l) < NEAR_ZERO
        quotient = (response(l, m) - own(l, m)) / np.where(is_zero, 1.0, l)
        # A complex step gives the derivative without cancellation.
        slope = np.imag(response(np.zeros_like(l) + TINY_STEP * 1j, m)) / TINY_STEP
        return np.where(is_zero, slope, quotient)

    return stepped, own


# Cached, because many explanations share them.
@lru_cache(maxsize=32)
def _filters(
    alpha: tuple[float, float], beta: float, is_new: bool, tol: float
) -> tuple[SeparableFilter, SeparableFilter, SeparableFilter]:
    """Return the filter, and its first steps on the graphs of both views."""
    response = (unseen_response if is_new else fitted_response)(alpha, beta)
    steps = first_step(response), first_step(lambda l, m: response(m, l))
    whole = separate((response,), tol=tol)
    return whole, separate(steps[0], tol=tol), separate(steps[1], tol=tol)


def _label_shares(links: LinkMatrix, A: Array, B: Array) -> dict[str, list[Shares]]:
    """Return the contributions of labels by items of each view and by classes."""
    U, G, V = links.left, links.core, links.right
    if G.size == 0:
        return {"links": []}
    near_x, near_y = U.T @ A, V.T @ B  # how much of each class is reached
    by_class = (near_x @ near_y.T) * G
    classes = dict(enumerate(np.indices(G.shape).reshape(2, -1)))
    return {
        "links": [_labelled(U, A @ (near_y.T @ G.T), side=0)],
        "target_labels": [_labelled(V, B @ (near_x.T @ G), side=1)],
        "classes": [Shares("class", by_class.ravel(), G.ravel(), classes=classes)],
    }


def _labelled(memberships: Any, reached: Array, *, side: int) -> Shares:
    """Return the contributions of labelled items."""
    sums = np.asarray(memberships.sum(axis=1)).ravel()
    rows = np.flatnonzero(sums)
    known = memberships[rows]
    known = known.toarray() if sparse.issparse(known) else known
    amounts = np.einsum("kc,kc->k", known, reached[rows])
    # The class of largest membership.
    classes = {side: known.argmax(axis=1)}
    return Shares("label", amounts, sums[rows], {side: rows}, classes)


def _steps(
    S: sparse.csr_array,
    links: LinkMatrix,
    S_other: sparse.csr_array,
    separable: SeparableFilter,
    i: int,
    end: Array,
    *,
    side: int,
) -> list[Shares]:
    """Return the contributions of an item's neighbours, and its own."""
    stepped, own = FilterOperator.of(S, links, S_other, separable, width=1).apply(end)
    row = slice(S.indptr[i], S.indptr[i + 1])
    neighbors, weights = S.indices[row], S.data[row]
    amounts = (weights * stepped[neighbors, 0]).astype(np.float64)
    return [
        Shares("neighbor", amounts, weights, {side: neighbors}),
        single_share("own", float(own[i, 0])),
    ]


def _unit(i: int, S: sparse.csr_array) -> Array:
    """Return the unit vector of an item, as a column."""
    unit = np.zeros((S.shape[0], 1), dtype=S.dtype)
    unit[i] = 1
    return unit
