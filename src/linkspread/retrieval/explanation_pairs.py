"""What judged pairs that were fitted by kernels contribute to one score.

``F = sum_k K_xk C_k K_yk``: with coefficients C at the judged pairs only, a pair (a, b)
contributes ``K_ia C_ab K_jb`` for each fit. Must-links alone are fitted otherwise, see
`linkspread.fitting.matches`: ``C = G_x H G_y`` with ``H = B - r c' / sum(B)``. A link
then contributes ``(k_i' G_x)_a B_ab (G_y k_j)_b``, and chance the rest.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from linkspread.fitting.mass import LENGTH_POWERS
from linkspread.fitting.matches import MatchCoefficients
from linkspread.fitting.view_kernels import ViewKernel
from linkspread.retrieval.explanation_kernels import (
    Asked,
    Steps,
    kernel_row,
    take_steps,
)
from linkspread.retrieval.explanation_shares import (
    Parts,
    pair_shares,
    single_share,
)

__all__ = ["PairTerm", "explain_pairs"]

Array = np.ndarray


class PairTerm(NamedTuple):
    """One fit of judged pairs: scores are ``left @ coefficients @ right``.

    Attributes
    ----------
    coefficients : csr_array or MatchCoefficients of shape (n, m)
        With the weight of the fit.
    left, right : ViewKernel
    """

    coefficients: Any
    left: ViewKernel
    right: ViewKernel

    @property
    def T(self) -> "PairTerm":
        """The fit with the views exchanged."""
        C = self.coefficients.T
        C = C.tocsr() if sparse.issparse(C) else C
        return PairTerm(C, self.right, self.left)


def explain_pairs(
    terms: Sequence[PairTerm],
    pairs: sparse.csr_array,
    i: Asked,
    j: Asked,
    *,
    mass: str = "none",
    within: bool = False,
) -> Parts:
    """Return the parts of one score that judged pairs give.

    Parameters
    ----------
    terms : sequence of PairTerm
    pairs : csr_array of shape (n, m)
        The judged pairs with their weights.
    i, j : Asked
        The items of the source and of the target.
    mass : {"none", "length", "root length"}, default="none"
        By what of the lengths of both items' rows of scores a score is divided.
    within : bool, default=False
        Whether both views are the same.

    Returns
    -------
    parts : dict from str to list of Shares
    """
    rows = [(kernel_row(x, i), kernel_row(y, j)) for _, x, y in terms]
    power = LENGTH_POWERS[mass]
    scale = _lengths(terms, rows) ** -power if power else 1.0
    amounts, chance = np.zeros(pairs.nnz), 0.0
    for term, (k_i, k_j) in zip(terms, rows, strict=True):
        if isinstance(term.coefficients, MatchCoefficients):
            own, less = _match_amounts(term.coefficients, pairs, k_i, k_j)
            chance += less
        else:
            own = _judged_amounts(term.coefficients, pairs, k_i, k_j)
        amounts += own
    shares = [pair_shares(pairs, scale * amounts, within=within)]
    if chance:
        shares.append(single_share("chance", -scale * chance))
    source = scale * _add_steps(terms, [k_j for _, k_j in rows], i)
    target = scale * _add_steps([t.T for t in terms], [k_i for k_i, _ in rows], j)
    return {
        "links": shares,
        "source_neighbors": source.shares(of_source=True),
        "target_neighbors": target.shares(of_source=False),
    }


def _judged_amounts(
    C: sparse.csr_array, pairs: sparse.csr_array, k_i: Array, k_j: Array
) -> Array:
    """Return ``K_ia C_ab K_jb`` for each judged pair (a, b)."""
    a, b = pairs.tocoo().coords
    # A fit has a coefficient for each pair, so that both have one pattern.
    return k_i[a] * C.sorted_indices().data * k_j[b]


def _match_amounts(
    C: MatchCoefficients, pairs: sparse.csr_array, k_i: Array, k_j: Array
) -> tuple[Array, float]:
    """Return what each must-link contributes, and what chance takes away."""
    a, b = pairs.tocoo().coords
    g = C.weight * C.left.reached(k_i, C.ridge)
    h = C.right.reached(k_j, C.ridge)
    g = g[np.searchsorted(C.left.items, a)]
    h = h[np.searchsorted(C.right.items, b)]
    must = np.maximum(pairs.data, 0.0)
    return pairs.data * g * h, float(must @ g) * float(must @ h) / float(must.sum())


def _lengths(terms: Sequence[PairTerm], rows: Sequence[tuple[Array, Array]]) -> float:
    """Return the product of the lengths of the rows of scores of both items."""
    row, column = np.zeros(1), np.zeros(1)
    for (C, x, y), (k_i, k_j) in zip(terms, rows, strict=True):
        row = row + (y @ (C.T @ k_i[:, None]))
        column = column + (x @ (C @ k_j[:, None]))
    lengths = float(np.linalg.norm(row)), float(np.linalg.norm(column))
    return (lengths[0] or 1.0) * (lengths[1] or 1.0)


def _add_steps(terms: Sequence[PairTerm], ends: Sequence[Array], item: Asked) -> Steps:
    """Return the steps of an item by all fits, whose other ends are known."""
    first, *others = (
        take_steps(term.left, item, (term.coefficients @ end[:, None])[:, 0])
        for term, end in zip(terms, ends, strict=True)
    )
    return sum(others, first)
