"""Must-links alone: partners told from all others, by a kernel of each view.

Where no cannot-link was judged, pairs of linked items that nobody linked stand for
them. The target is the matrix B of links less what chance would give,
``H = B - r c' / sum(B)`` with the sums r of its rows and c of its columns, and the
scores are ``F = K_x G_x H G_y K_y`` with ``G = (K + ridge)^-1`` among linked items.

Leaving items out needs no other fit: row i of ``K G``, without its diagonal h_i and
divided by ``1 - h_i``, is the row that item i would have had.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.special import log_softmax

from linkspread.fitting.nystrom import kernel_directions, leading_features
from linkspread.fitting.pairs import Term
from linkspread.fitting.view_kernels import FeatureKernel, ViewKernel
from linkspread.kernels.singular import svd

__all__ = [
    "LinkedSide",
    "MatchCoefficients",
    "MatchFit",
    "ask_links",
    "fit_matches",
    "partner_targets",
]

Array = np.ndarray

# Linked items of a view up to which their kernel is factorised whole, those up to which
# it is formed, and the directions that are then kept of it.
WHOLE_MATCHES = 600
DENSE_MATCHES = 3000
N_DIRECTIONS = 500
# Links whose partners are searched to compare ridges and kernels.
N_ASKED = 600
# Factors of unit scores among which the likeliest is taken.
SHARPNESSES = np.geomspace(0.1, 30.0, 12)
# Directions of a kernel that count less than this share of the first are dropped.
NEGLIGIBLE = 1e-10


@dataclass(frozen=True, eq=False)
class LinkedSide:
    """The kernel among linked items of a view, ``vectors diag(values) vectors'``.

    Attributes
    ----------
    items : ndarray of int of shape (n_linked,)
        Their positions.
    vectors : ndarray of shape (n_linked, r)
        Orthonormal columns.
    values : ndarray of shape (r,)
    """

    items: Array
    vectors: Array
    values: Array

    @classmethod
    def of(cls, kernel: ViewKernel, items: Array, *, seed: int) -> "LinkedSide":
        """Factorise the whole kernel among not too many items, or its directions.

        Parameters
        ----------
        kernel : ViewKernel
        items : ndarray of int of shape (n_linked,)
        seed : int
            Another for each of two views.

        Returns
        -------
        side : LinkedSide
        """
        if isinstance(kernel, FeatureKernel) or len(items) > DENSE_MATCHES:
            return cls._of_features(items, kernel_directions(kernel, seed=seed)[items])
        K = np.asarray(kernel.block(items, items), dtype=np.float64)
        if len(items) > WHOLE_MATCHES:
            leading = leading_features(K, len(K), N_DIRECTIONS, seed=seed)
            return cls._of_features(items, leading)
        values, vectors = eigh(K, check_finite=False)
        kept = values > NEGLIGIBLE * values.max()
        return cls(items, vectors[:, kept], values[kept])

    @classmethod
    def _of_features(cls, items: Array, features: Array) -> "LinkedSide":
        """Factorise a kernel that is the inner product of features."""
        features = features.astype(np.float64)
        vectors, singular, _ = svd(features)
        kept = singular > NEGLIGIBLE**0.5 * singular.max()
        return cls(items, vectors[:, kept], singular[kept] ** 2)

    def reached(self, row: Array, ridge: float) -> Array:
        """Return ``(K + ridge)^-1 row`` among the linked items.

        Parameters
        ----------
        row : ndarray of shape (n_items,)
            Of all items of the view.
        ridge : float

        Returns
        -------
        reached : ndarray of shape (n_linked,)
        """
        inner = (self.vectors.T @ row[self.items]) / (self.values + ridge)
        return self.vectors @ inner


@dataclass(frozen=True, eq=False)
class MatchCoefficients:
    """The matrix ``weight G_x H G_y`` over all items, never filled in.

    Attributes
    ----------
    left, right : LinkedSide
    middle : ndarray of shape (r, s)
        H between the vectors of both sides.
    ridge : float
    shape : tuple of two int
        Numbers of items of both views.
    weight : float, default=1.0
    """

    left: LinkedSide
    right: LinkedSide
    middle: Array
    ridge: float
    shape: tuple[int, int]
    weight: float = 1.0

    @property
    def T(self) -> "MatchCoefficients":
        """The matrix with rows and columns exchanged."""
        return replace(
            self,
            left=self.right,
            right=self.left,
            middle=self.middle.T,
            shape=self.shape[::-1],
        )

    def __matmul__(self, block: Array) -> Array:
        """Return the product with a thin block."""
        x, y = self.left, self.right
        inner = (y.vectors.T @ block[y.items]) / (y.values + self.ridge)[:, None]
        outer = (self.middle @ inner) / (x.values + self.ridge)[:, None]
        product = np.zeros((self.shape[0], block.shape[1]))
        product[x.items] = self.weight * (x.vectors @ outer)
        return product

    def __rmul__(self, factor: float) -> "MatchCoefficients":
        """Return the matrix times a number."""
        return replace(self, weight=factor * self.weight)


@dataclass(frozen=True, eq=False)
class MatchFit:
    """Must-links fitted by two kernels.

    Attributes
    ----------
    kernels : tuple of two ViewKernel
    coefficients : MatchCoefficients of shape (n, m)
        Scores are ``K_x @ coefficients @ K_y``.
    held_out : ndarray of shape (n_asked, n_asked)
        Scores of the row items of the links asked about with their column items,
        each pair as if all links of both items were unknown; in units of their
        standard deviation.
    scale : float
        That deviation.
    """

    kernels: tuple[ViewKernel, ViewKernel]
    coefficients: MatchCoefficients
    held_out: Array
    scale: float

    @property
    def terms(self) -> list[Term]:
        """What the scores are the sum of."""
        return [(self.coefficients, *self.kernels)]


def fit_matches(
    kernels: tuple[ViewKernel, ViewKernel],
    links: sparse.csr_array,
    *,
    ridges: Sequence[float],
) -> MatchFit:
    """Fit must-links, with the ridge that makes left-out partners likeliest.

    Parameters
    ----------
    kernels : tuple of two ViewKernel
        Of the views of the rows and of the columns.
    links : csr_array of shape (n, m)
        Weights of must-links; a few cannot-links among them are negative.
    ridges : sequence of float

    Returns
    -------
    fit : MatchFit
    """
    i, j = links.tocoo().coords
    rows, columns = np.unique(i), np.unique(j)
    B = links[rows][:, columns].tocsr()
    sides = (
        LinkedSide.of(kernels[0], rows, seed=0),
        LinkedSide.of(kernels[1], columns, seed=1),
    )
    middle = _centred(sides[0].vectors, B, sides[1].vectors)
    asked = ask_links(links)
    own = np.searchsorted(rows, i[asked]), np.searchsorted(columns, j[asked])
    targets = partner_targets(links)
    tried = [_leave_out(sides, B, middle, ridge, own) for ridge in ridges]
    best = int(np.argmax([_likelihood(left_out, targets) for left_out in tried]))
    scale = float(tried[best].std()) or 1.0
    coefficients = MatchCoefficients(*sides, middle, ridges[best], links.shape)
    return MatchFit(kernels, coefficients, tried[best] / scale, scale)


def ask_links(links: sparse.csr_array) -> Array:
    """Return which links are asked about, the same for all kernels.

    Parameters
    ----------
    links : csr_array of shape (n, m)

    Returns
    -------
    asked : ndarray of int
        Among the positive entries of ``links.tocoo()``.
    """
    must = np.flatnonzero(links.tocoo().data > 0)
    order = np.random.default_rng(0).permutation(len(must))
    return np.sort(must[order[:N_ASKED]])


def partner_targets(links: sparse.csr_array) -> Array:
    """Return for each link asked about which column items belong to its row item.

    Parameters
    ----------
    links : csr_array of shape (n, m)

    Returns
    -------
    targets : ndarray of shape (n_asked, n_asked)
        Nothing below 0.
    """
    i, j = links.tocoo().coords
    asked = ask_links(links)
    return np.maximum(links[i[asked]][:, j[asked]].toarray(), 0.0)


def _centred(V: Array, B: sparse.csr_array, W: Array) -> Array:
    """Return ``V' (B - r c' / sum(B)) W``; sums are those of the must-links."""
    must = B.maximum(0)
    r, c = must.sum(axis=1), must.sum(axis=0)
    return V.T @ (B @ W) - np.outer(r @ V, c @ W) / r.sum()


def _leave_out(
    sides: tuple[LinkedSide, LinkedSide],
    B: sparse.csr_array,
    middle: Array,
    ridge: float,
    asked: tuple[Array, Array],
) -> Array:
    """Return the scores of asked items, each pair left out with all its links."""
    (p, q), (x, y) = asked, sides
    shrunk = [side.vectors * (side.values / (side.values + ridge)) for side in sides]
    own = [np.einsum("ir,ir->i", s, side.vectors) for s, side in
           zip(shrunk, sides, strict=True)]  # fmt: skip
    left, right = shrunk[0][p], shrunk[1][q]
    must = B.maximum(0)
    r, c = must.sum(axis=1), must.sum(axis=0)
    total = r.sum()
    # What the links of the row item, of the column item and of both contribute.
    by_row = B[p] @ y.vectors - np.outer(r[p], c @ y.vectors) / total
    by_column = B.T.tocsr()[q] @ x.vectors - np.outer(c[q], r @ x.vectors) / total
    by_both = B[p][:, q].toarray() - np.outer(r[p], c[q]) / total
    h_p, h_q = own[0][p][:, None], own[1][q][None, :]
    scores = left @ middle @ right.T
    scores -= h_p * (by_row @ right.T) + (left @ by_column.T) * h_q
    scores += h_p * by_both * h_q
    return scores / (np.maximum(1 - h_p, 1e-9) * np.maximum(1 - h_q, 1e-9))


def _likelihood(left_out: Array, targets: Array) -> float:
    """Return how likely the partners are among all, both ways, at the best scale."""
    unit = left_out / (float(left_out.std()) or 1.0)

    def mean_log(scores: Array, wanted: Array) -> float:
        return float(np.sum(wanted * log_softmax(scores, axis=1)) / wanted.sum())

    return max(
        mean_log(sharp * unit, targets) + mean_log(sharp * unit.T, targets.T)
        for sharp in SHARPNESSES
    )
