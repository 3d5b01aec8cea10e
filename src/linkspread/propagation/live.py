"""Spread links that change: vectors kept up with links added and taken away.

Spread links are linear in the links, and one link is spread by a few filtered columns
of each graph: ``phi_r(S_x) e_i`` and ``psi_s(S_y) e_j``. These join orthonormal bases
of both views, so that a change costs the same however many links came before. Bases
that have grown too wide are turned towards what the scores need, and cut.

Links come in parts whose weights may change without any spreading, because what a
cannot-link weighs depends on all others.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.kernels.singular import svd
from linkspread.kernels.threads import small_algebra
from linkspread.propagation.chebyshev import filtered_sums
from linkspread.propagation.exact import COARSE, spread_links, spread_responses
from linkspread.propagation.filter import separate
from linkspread.propagation.parameters import working_graphs
from linkspread.propagation.spread import Spread

__all__ = ["LiveSpread"]

Array = np.ndarray

# Directions that may join the bases before they are turned and cut.
SLACK = 64
# Share of `tol` that a cut may cost: there are many cuts.
CUT = 0.01
# An error so many times that after spreading, and so many `tol`, is too much.
STALE = 2.0
STALE_TOL = 5.0
# Fitted scores, those of new rows and those of new columns.
N_RESPONSES = 3


class LiveSpread:
    """Scores of two views for links that change.

    Parameters
    ----------
    S_x, S_y : csr_array of shape (n, n) and (m, m)
        Normalised graphs.
    parts : sequence of LinkMatrix, sparse or Spread of shape (n, m), or None
        Links that are weighed together, spread here if they are not yet; None for
        a part without links so far.
    weights : sequence of float
        Of the parts.
    alpha : tuple of two floats
    beta : float
    tol : float
    rank : int or None
        All as in :func:`spread_links`.

    Attributes
    ----------
    error : float
        Relative error of the fitted scores in Frobenius norm, estimated.
    is_stale : bool
        Whether all links should be spread anew.
    """

    def __init__(
        self,
        S_x: sparse.csr_array,
        S_y: sparse.csr_array,
        parts: Sequence[Any],
        weights: Sequence[float],
        *,
        alpha: tuple[float, float],
        beta: float,
        tol: float,
        rank: int | None,
    ) -> None:
        none = sparse.csr_array((S_x.shape[0], S_y.shape[0]))
        self.S_x, self.S_y = working_graphs(S_x, none, S_y)
        self.tol, self.rank = tol, rank
        responses = spread_responses(alpha, beta)
        self._separable = separate(responses, tol=tol / 2)
        self._left = _Basis(self.S_x)
        self._right = _Basis(self.S_y)
        self._cores = np.zeros((len(parts), N_RESPONSES, 0, 0))
        self._weights = np.asarray(weights, dtype=float)
        spread = {"alpha": alpha, "beta": beta, "tol": tol, "rank": rank}
        given = [_as_spread(S_x, Z, S_y, spread) for Z in parts]
        for k, part in enumerate(given):
            if part is not None:
                self._join(k, part.left, part.right, part.cores())
        # Squares, because what is dropped at one time has little to do with another.
        self._dropped = sum(
            (weight * _lost(part)) ** 2
            for weight, part in zip(self._weights, given, strict=True)
            if part is not None
        )
        self._fresh = 0.0
        self._cut()
        self._fresh = self.error
        if self._fresh > 10 * COARSE:
            # What the rank drops hides an error of the filter that is much smaller.
            self._separable = separate(responses, tol=max(tol, COARSE))

    @property
    def error(self) -> float:
        """Relative error of the fitted scores, as estimated from all that was cut."""
        whole = self._size() ** 2 + self._dropped
        return float(np.sqrt(self._dropped / whole)) if whole else 0.0

    @property
    def is_stale(self) -> bool:
        """Whether cuts have cost so much that all links should be spread anew."""
        lost_half = 1 - self.error**2 < (1 - self._fresh**2) / 2
        return lost_half or self.error > STALE * self._fresh + STALE_TOL * self.tol

    def add(self, part: int, changes: sparse.csr_array) -> None:
        """Add to the links of a part, or take away from them.

        Parameters
        ----------
        part : int
        changes : csr_array of shape (n, m)
            What is added to each link.
        """
        entries = changes.tocoo()
        # A few at a time: bases wider than they need be cost their square.
        n_functions = max(len(self._separable.left), len(self._separable.right))
        step = max(1, SLACK // n_functions)
        for start in range(0, entries.nnz, step):
            some = slice(start, start + step)
            coords = tuple(own[some] for own in entries.coords)
            piece = sparse.csr_array((entries.data[some], coords), shape=changes.shape)
            self._add_few(part, piece)

    def _add_few(self, part: int, changes: sparse.csr_array) -> None:
        """Spread a few changes, and cut the bases if that made them too wide."""
        rows, columns = (np.unique(own) for own in changes.tocoo().coords)
        G = changes[rows][:, columns].toarray()
        left = _filter_units(self.S_x, rows, self._separable.left)
        right = _filter_units(self.S_y, columns, self._separable.right)
        cores = [np.kron(core, G) for core in self._separable.cores]
        self._join(part, left, right, cores)
        if max(self._left.width, self._right.width) > self._widest():
            self._cut()

    def weigh(self, weights: Sequence[float]) -> None:
        """Give the parts other weights.

        Parameters
        ----------
        weights : sequence of float
        """
        self._weights = np.asarray(weights, dtype=float)

    def spread(self) -> Spread:
        """Return the scores as they are now, ready to be searched.

        Returns
        -------
        spread : Spread
            Its bases are copies, which later changes leave alone.
        """
        dtype = self.S_x.dtype
        core, new_left, new_right = self._total().astype(dtype)
        left, right = self._left.copy(), self._right.copy()
        return Spread(left, right, core, new_left, new_right, self.error)

    def _join(self, k: int, left: Array, right: Array, cores: Sequence[Array]) -> None:
        """Add ``left @ core @ right.T`` for every response to a part."""
        to_left, to_right = self._left.join(left), self._right.join(right)
        grown = np.zeros((*self._cores.shape[:2], len(to_left), len(to_right)))
        old = self._cores.shape
        grown[:, :, : old[2], : old[3]] = self._cores
        grown[k] += np.stack([to_left @ core @ to_right.T for core in cores])
        self._cores = grown

    def _total(self) -> Array:
        """Return the cores of all parts together, one for each response."""
        return np.tensordot(self._weights, self._cores, 1)

    def _size(self) -> float:
        """Return the Frobenius norm of the fitted scores."""
        return float(np.linalg.norm(self._total()[0]))

    def _widest(self) -> int:
        """Return how many directions the bases may have before they are cut."""
        kept = max(self._kept, self.rank or 0)
        return kept + SLACK

    def _cut(self) -> None:
        """Turn the bases to what the scores need, and drop what they do not."""
        self._kept = 0
        if self._cores.size == 0:
            return
        weighed = self._cores * self._weights[:, None, None, None]
        before = self._total()[0]
        U = _directions(weighed, self.tol * CUT, self.rank)
        V = _directions(weighed.transpose(0, 1, 3, 2), self.tol * CUT, self.rank)
        self._left.turn(U)
        self._right.turn(V)
        self._cores = U.T @ self._cores @ V
        dropped = float(np.sum((before - U @ self._total()[0] @ V.T) ** 2))
        self._dropped += dropped
        # Links spread anew would lose about as much as a single cut does.
        whole = float(np.sum(before**2)) or 1.0
        self._fresh = max(self._fresh, np.sqrt(dropped / whole))
        self._kept = max(U.shape[1], V.shape[1])


class _Basis:
    """Orthonormal columns to which others can be joined without a copy of all."""

    def __init__(self, S: sparse.csr_array) -> None:
        self.width = 0
        self._columns = np.zeros((S.shape[0], SLACK), dtype=S.dtype)

    def copy(self) -> Array:
        """Return the columns."""
        return self._columns[:, : self.width].copy()

    def join(self, block: Array) -> Array:
        """Reach all columns of a block; return its coordinates in the basis."""
        block = np.asarray(block, dtype=self._columns.dtype)
        own, rest = self._split(block)
        with small_algebra(rest.size):
            Q, R = np.linalg.qr(rest)
            U, singular, Vt = svd(R.astype(np.float64), full_matrices=True)
        size = np.linalg.norm(block.astype(np.float64)) or 1.0
        # What rounding left of a column that the basis had reached is no direction.
        kept = singular > 10 * np.finfo(block.dtype).eps * size
        fresh = Q @ U[:, : len(singular)][:, kept].astype(block.dtype)
        self._append(self._remove(fresh))
        return np.vstack([own, singular[kept, None] * Vt[: len(singular)][kept]])

    def turn(self, rotation: Array) -> None:
        """Replace the columns by combinations of them."""
        turned = self._columns[:, : self.width] @ rotation.astype(self._columns.dtype)
        self.width = 0
        self._append(turned)

    def _split(self, block: Array) -> tuple[Array, Array]:
        """Return the coordinates of a block in the basis, and what is beyond it."""
        basis = self._columns[:, : self.width]
        own = basis.T @ block
        rest = block - basis @ own
        # Twice is enough to make up for cancellation.
        again = basis.T @ rest
        return (own + again).astype(np.float64), rest - basis @ again

    def _remove(self, fresh: Array) -> Array:
        """Return columns without what rounding left in them of the basis."""
        basis = self._columns[:, : self.width]
        return fresh - basis @ (basis.T @ fresh)

    def _append(self, fresh: Array) -> None:
        """Write columns behind the others, with more room if that is needed."""
        width = self.width + fresh.shape[1]
        if width > self._columns.shape[1]:
            wider = np.zeros((len(fresh), width + SLACK), dtype=fresh.dtype)
            wider[:, : self.width] = self._columns[:, : self.width]
            self._columns = wider
        self._columns[:, self.width : width] = fresh
        self.width = width


def _as_spread(S_x: Any, Z: Any, S_y: Any, how: dict[str, Any]) -> Spread | None:
    """Return links after spreading; None for no links."""
    if Z is None or isinstance(Z, Spread):
        return Z
    return spread_links(S_x, Z, S_y, **how)


def _lost(part: Spread) -> float:
    """Return the norm of what truncation took from spread links."""
    kept = float(np.linalg.norm(part.core))
    return kept * part.error / np.sqrt(max(1 - part.error**2, 1e-12))


def _filter_units(S: sparse.csr_array, positions: Array, functions: Array) -> Array:
    """Return the filtered columns of single items, side by side."""
    units = np.zeros((S.shape[0], len(positions)), dtype=S.dtype)
    units[positions, np.arange(len(positions))] = 1
    return filtered_sums(S, units, functions).reshape(S.shape[0], -1)


def _directions(cores: Array, tol: float, rank: int | None) -> Array:
    """Return the row directions that cores of shape (n_parts, n_responses, r, s) need.

    Where not all fit into the rank, the fitted scores of the parts decide.
    """
    sizes = np.linalg.norm(cores.sum(axis=0), axis=(1, 2))
    scaled = cores / np.where(sizes > 0, sizes, 1.0)[None, :, None, None]
    kept = _leading(scaled.transpose(2, 0, 1, 3).reshape(cores.shape[2], -1), tol)
    if rank is None or kept.shape[1] <= rank:
        return kept
    fitted = scaled[:, 0].transpose(1, 0, 2).reshape(cores.shape[2], -1)
    return _leading(fitted, tol)[:, :rank]


def _leading(wide: Array, tol: float) -> Array:
    """Return the left singular vectors without which more than `tol` is lost."""
    with small_algebra(wide.size):
        # Of the triangle: the matrix itself is much wider than high.
        triangle = np.linalg.qr(wide.T)[1]
        U, singular, _ = svd(triangle.T, full_matrices=True)
    dropped = np.sqrt(np.cumsum(singular[::-1] ** 2))[::-1]
    return U[:, : int(np.sum(dropped > tol))]
