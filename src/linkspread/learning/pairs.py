"""Judged pairs: ridge regression on products of features, updated pair by pair.

``M = argmin sum_p w_p (z_p - phi(x_p)' M phi(y_p))^2 + ridge |M|^2``. The kernel of two
pairs is the mean, over kernels, of the product of the kernel values of their items in
both views. Targets z are 1 and 0 minus the share of must-links; see `Evidence.targets`.

- Up to `MAX_EXACT` pairs it is exact: ``(K + ridge / w) c = z``, with K the kernel of
  all pairs.
- More are described by their kernel values at landmark pairs, ``f_p = R^-1
  k_p`` with ``R R' = K_LL``, and ``(F W F' + ridge I) g = F W z``. With all pairs as
  landmarks both are the same.

`LivePairs` stores the inverse of either matrix; a judgement changes it by rank one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.linalg.blas import dsymv, dsyr, dsyrk, dtrsv, ssyrk
from scipy.linalg.lapack import dpotri, dsygst, ssygst

from linkspread.compiled.backends import small_loops
from linkspread.compiled.cpu import add_products
from linkspread.learning.cores import FEW, MIN_PIVOT
from linkspread.learning.maps import tiles

Array = np.ndarray

# Pairs of the exact regression, and landmarks of a larger one; fewer for fits that only
# choose. Of very many pairs one in SPARSE is a landmark, up to twice the number.
MAX_EXACT, MAX_COMPARED, SPARSE = 2000, 1000, 12
# Pairs computed at once, and items up to which all kernel values are computed once.
TILE, FEW_ITEMS = 4096, 1024
# Rank-one changes after which the inverse is computed again.
MAX_CHANGES = 10_000


class Product(NamedTuple):
    """A kernel of both views: its columns and weight."""

    left: slice
    right: slice
    share: float


@dataclass(frozen=True, eq=False)
class PairRows:
    """Features of both items of some pairs, and the kernels."""

    columns: Sequence[Product]
    left: Array
    right: Array

    @classmethod
    def of(
        cls, values: Any, columns: Any, i: Array, j: Array, dtype: Any = np.float64
    ) -> "PairRows":
        """Return the features of pairs of items."""
        return cls(columns, values[0][i].astype(dtype), values[1][j].astype(dtype))

    def kernel(self, values: Any, i: Array, j: Array) -> Array:
        """Return kernel values of pairs with these, of shape (n_pairs, n_rows)."""
        found = [K for _, K in self.kernels(values, i, j, size=max(len(i), 1))]
        return found[0] if found else np.zeros((0, len(self.left)), self.left.dtype)

    def kernels(
        self, values: Any, i: Array, j: Array, *, size: int = TILE
    ) -> Iterator[tuple[slice, Array]]:
        """Yield tiles of pairs and their kernel values, in an array that is reused.

        With few distinct items, their kernel values are computed once for all tiles.
        """
        room = np.empty((min(size, len(i)), len(self.left)), self.left.dtype)
        is_few = max(len(np.unique(i)), len(np.unique(j))) <= FEW_ITEMS
        for part in tiles(len(i), max(len(i), 1) if is_few else size):
            (rows, at), (cols, to) = (
                np.unique(k[part], return_inverse=True) for k in (i, j)
            )
            own = PairRows.of(values, self.columns, rows, cols, self.left.dtype)
            near = [
                (
                    self.left.dtype.type(share) * own.left[:, a] @ self.left[:, a].T,
                    own.right[:, b] @ self.right[:, b].T,
                )
                for a, b, share in self.columns
            ]
            for tile in tiles(len(at), size):
                total = room[: len(at[tile])]
                total[:] = 0
                with small_loops(total.size):
                    for one, other in near:
                        add_products(one, other, at[tile], to[tile], total)
                yield slice(part.start + tile.start, part.start + tile.stop), total

    def factor(self) -> Array:
        """Return the Cholesky factor of the kernel of these pairs."""
        both = (self.left, self.right)
        (left, i), (right, j) = (
            np.unique(own, axis=0, return_inverse=True) for own in both
        )
        K = self.kernel((left, right), i, j)
        # Duplicate pairs would make it singular.
        jitter = np.finfo(K.dtype).eps ** 0.6
        K[np.diag_indices_from(K)] += jitter * np.trace(K) / max(len(K), 1)
        return np.asfortranarray(cholesky(K, lower=True))

    def cores(self, c: Array) -> list[Array]:
        """Return the matrix of each kernel for coefficients of these pairs."""
        return [
            self.left[:, a].T @ ((share * c)[:, None] * self.right[:, b])
            for a, b, share in self.columns
        ]


def scores_at(cores: Sequence[Array], columns: Any, values: Any, i: Any, j: Any) -> Any:
    """Return ``sum_q phi_q(x)' M_q phi_q(y)`` for pairs of items."""
    (rows, at), (cols, to) = (np.unique(k, return_inverse=True) for k in (i, j))
    left, right = values[0][rows], values[1][cols]
    found = np.zeros(len(i))
    for core, (a, b, _) in zip(cores, columns, strict=True):
        turned = left[:, a] @ core
        for tile in tiles(len(i), TILE):
            there = right[to[tile], b]
            found[tile] += np.einsum("nd,nd->n", turned[at[tile]], there)
    return found


class PairRegression:
    """Ridge regression of judged pairs, for any ridge.

    Pairs are positions of items and weights, below 0 for cannot. Given landmarks, with
    their factor, are used for any number of pairs.
    """

    def __init__(
        self,
        values: tuple[Array, Array],
        columns: Sequence[Product],
        pairs: tuple[Array, Array, Array],
        *,
        most: int = MAX_EXACT,
        dtype: Any = np.float64,
        landmarks: tuple[PairRows, Array] | None = None,
    ) -> None:
        self.pairs = i, j, signed = pairs
        self.factor: Array | None = None
        self.tally = _tally(signed)
        if landmarks is None and len(i) <= most:
            self.rows = PairRows.of(values, columns, i, j, dtype)
            self.gram = self.rows.kernel(values, i, j)
            return
        if landmarks is None:
            some = _landmarks(signed, max(most, min(len(i) // SPARSE, 2 * most)))
            rows = PairRows.of(values, columns, i[some], j[some], dtype)
            landmarks = rows, rows.factor()
        self.rows, self.factor = landmarks
        n_rows = len(self.rows.left)
        # The lower triangle of K W K', in Fortran order; and two K W z.
        gram = np.zeros((n_rows, n_rows), dtype, order="F")
        sums = np.zeros((2, n_rows))
        syrk = ssyrk if dtype == np.float32 else dsyrk
        weights = np.stack([np.maximum(signed, 0), np.abs(signed)])
        is_weighted = bool((weights[1] != 1).any())
        for tile, K in self.rows.kernels(values, i, j):
            sums += weights[:, tile] @ K
            if is_weighted:
                K *= np.sqrt(weights[1, tile, None]).astype(dtype)
            syrk(1.0, K.T, beta=1.0, c=gram, lower=1, overwrite_c=1)
        # Whitened on both sides: F W F', its lower triangle, and F W z.
        sygst = ssygst if dtype == np.float32 else dsygst
        self.gram = sygst(gram, self.factor, lower=1, overwrite_a=1)[0]
        self.sums = solve_triangular(self.factor, sums.T, lower=True).T

    def system(self, ridge: float) -> Array:
        """Return the matrix to invert."""
        H = self.gram.copy(order="F")
        own = ridge if self.factor is not None else ridge / np.abs(self.pairs[2])
        H[np.diag_indices_from(H)] += own
        return H

    def solve(self, ridge: float) -> Array:
        """Return the coefficients of the pairs, or of the landmarks."""
        if not len(self.gram):
            return np.zeros(0)
        shift = _shift(self.tally)
        solved = cho_factor(self.system(ridge), lower=True, overwrite_a=True)
        if self.factor is None:
            return cho_solve(solved, (self.pairs[2] > 0) - shift)
        g = cho_solve(solved, self.sums[0] - shift * self.sums[1])
        return solve_triangular(self.factor, g, lower=True, trans="T")


def _tally(signed: Any) -> Array:
    """Return the numbers of must- and cannot-links, and their total weights."""
    kinds = np.maximum(np.outer([1, -1], signed), 0)
    return np.stack([np.count_nonzero(kinds, axis=1), kinds.sum(axis=1)])


def _shift(tally: Array) -> float:
    """Return the mean to subtract from targets; for one kind they are 1 or -1."""
    if not tally[0].all():
        return float(tally[0, 0] == 0)
    return float(tally[1, 0] / tally[1].sum())


class LivePairs:
    """A regression with its inverse, which judgements update in place.

    Holders store its `version`; one with an older version, such as a snapshot, must not
    change it. `rows` and coefficients are never overwritten.
    """

    def __init__(self, regression: PairRegression, ridge: float) -> None:
        i, j, signed = regression.pairs
        self.ridge, self.version = ridge, 0
        self.tally, self.factor = regression.tally, regression.factor
        solved = cho_factor(regression.system(ridge), lower=True, overwrite_a=True)[0]
        # Lower triangles only, in Fortran order, for BLAS.
        self.inverse = np.asfortranarray(np.tril(dpotri(solved, lower=1)[0]))
        self._rows, self.n_rows = regression.rows, len(regression.rows.left)
        if self.factor is None:
            self.i, self.j, self.signed = i.copy(), j.copy(), signed.astype(np.float64)
        else:
            # Right-hand sides of must-links and of all pairs, and their solutions.
            self.sums = regression.sums
            self.solved = np.stack(
                [dsymv(1.0, self.inverse, own, lower=1) for own in self.sums]
            )

    @property
    def rows(self) -> PairRows:
        """The pairs of the coefficients."""
        own, n = self._rows, self.n_rows
        return PairRows(own.columns, own.left[:n], own.right[:n])

    def coefficients(self) -> Array:
        """Return the coefficients of the rows."""
        shift = _shift(self.tally)
        if self.factor is None:
            z = (self.signed > 0) - shift * (self.signed != 0)
            return dsymv(1.0, self.inverse, z, lower=1)[: self.n_rows]
        g = self.solved[0] - shift * self.solved[1]
        return dtrsv(self.factor, g, lower=1, trans=1)

    def change(self, values: Any, i: int, j: int, before: float, after: float) -> bool:
        """Change the weight of a pair, 0 for none; return whether that was possible.

        If not, the object is invalid.
        """
        self.version += 1
        self.tally = self.tally + _tally([after]) - _tally([before])
        if self.version > MAX_CHANGES:
            return False
        if self.factor is not None:
            return self._change_weight(values, i, j, before, after)
        if self.tally[0].sum() <= FEW:
            return False
        if before == 0:
            return self._append(values, i, j, after)
        return self._change_row(i, j, before, after)

    def _change_weight(
        self, values: Any, i: int, j: int, before: float, after: float
    ) -> bool:
        """Change the weight of a pair in a regression with landmarks."""
        k = self._rows.kernel(values, np.array([i]), np.array([j]))[0]
        f = dtrsv(self.factor, k, lower=1)
        u = dsymv(1.0, self.inverse, f, lower=1)
        more = abs(after) - abs(before)
        pivot = 1 + more * float(f @ u)
        steps = np.array([[max(after, 0) - max(before, 0)], [more]])
        self.sums = self.sums + steps * f
        steps = steps - more / pivot * (self.sums @ u)[:, None]
        self.solved = self.solved + steps * u
        return self._add(-more, pivot, u)

    def _append(self, values: Any, i: int, j: int, weight: float) -> bool:
        """Add a pair to an exact regression."""
        # Removed pairs keep rows.
        n, most_rows = self.n_rows, MAX_EXACT + MAX_EXACT // 4
        if self.tally[0].sum() > MAX_EXACT or n >= most_rows:
            return False
        if n == len(self.inverse):
            self._grow(min(most_rows, n + n // 4 + 16))
        k = np.zeros(len(self.inverse))
        asked = np.array([i]), np.array([j])
        k[:n] = np.where(self.signed[:n], self.rows.kernel(values, *asked)[0], 0)
        self._rows.left[n], self._rows.right[n] = values[0][i], values[1][j]
        self.i[n], self.j[n], self.signed[n] = i, j, weight
        self.n_rows = n + 1
        own = self._rows.left[n : n + 1], self._rows.right[n : n + 1]
        alone = PairRows(self._rows.columns, *own)
        first = np.zeros(1, dtype=np.intp)
        size = float(alone.kernel(own, first, first)[0, 0]) + self.ridge / abs(weight)
        u = dsymv(1.0, self.inverse, k, lower=1)
        left = size - float(k @ u)
        u[n] = -1.0
        return left > MIN_PIVOT * size and self._add(1.0, left, u)

    def _change_row(self, i: int, j: int, before: float, after: float) -> bool:
        """Change the weight of a pair of an exact regression, or remove it."""
        found = np.flatnonzero((self.i == i) & (self.j == j) & (self.signed == before))
        if len(found) != 1:
            return False
        s = int(found[0])
        u = np.concatenate([self.inverse[s, :s], self.inverse[s:, s]])
        self.signed[s] = after
        if after == 0:
            done = self._add(-1.0, float(u[s]), u)
            self.inverse[s, :s] = self.inverse[s:, s] = 0
            return done
        more = self.ridge / abs(after) - self.ridge / abs(before)
        return self._add(-more, 1 + more * float(u[s]), u)

    def _add(self, factor: float, pivot: float, u: Array) -> bool:
        """Add ``factor / pivot u u'`` to the inverse in place."""
        if not pivot > MIN_PIVOT:
            return False
        if factor:
            dsyr(factor / pivot, u, lower=1, a=self.inverse, overwrite_a=1)
        return True

    def _grow(self, size: int) -> None:
        """Enlarge the arrays for more pairs."""
        more = size - len(self.inverse)
        self.inverse = np.asfortranarray(np.pad(self.inverse, (0, more)))
        self.i, self.j, self.signed = (
            np.pad(own, (0, more)) for own in (self.i, self.j, self.signed)
        )
        room = (0, size - len(self._rows.left)), (0, 0)
        left, right = (np.pad(own, room) for own in (self._rows.left, self._rows.right))
        self._rows = PairRows(self._rows.columns, left, right)


def _landmarks(signed: Array, most: int) -> Array:
    """Return landmarks: three quarters must-links, which are more informative."""
    rng = np.random.default_rng(0)
    kinds = [rng.permutation(np.flatnonzero(own)) for own in (signed > 0, signed < 0)]
    n_must = min(len(kinds[0]), max(3 * most // 4, most - len(kinds[1])))
    return np.sort(np.concatenate([kinds[0][:n_must], kinds[1][: most - n_must]]))
