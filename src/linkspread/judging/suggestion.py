"""Pairs to judge next, and the variance of all pairs that a judgement explains.

Links propagate over a view's graph, so a judgement is informative about neighbours. In
the kernel of a short diffusion over the graph, the next representative of a view is
the item that explains most of the remaining variance: the greedy choice of Nystrom
landmarks.

All representatives of one view are paired with all of the other, in a block that grows
by one of each. An item judged against the whole block gets must- and cannot-links;
scattered pairs are mostly cannot-links.

The covariance of pairs is the product of both kernels, ``cov(f_ij, f_ab) = K_ia L_jb``,
and a judgement is a noisy value of f. Both kernels have few features, so nothing of the
size of all pairs is needed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil, isqrt
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from linkspread.compiled.singular import orthonormal, range_basis
from linkspread.graphs.normalize import normalize

Array = np.ndarray

# Largest number of representatives of a view.
MAX_REPRESENTATIVES = 512
# Candidates for representatives; a sample of larger views suffices.
N_CANDIDATES = 4096
# Steps of the diffusion, and directions kept of it.
N_STEPS = 8
N_DIRECTIONS = 64
# Noise of a judgement, as a share of the mean variance.
NOISE = 0.1
# Judged pairs that are used; a sample of more gives slightly larger gains.
MAX_JUDGED = 2000
# With this many times as many pairs as closed or wanted ones, random draws suffice.
ROOM = 8


@dataclass(frozen=True)
class OpenPairs:
    """Pairs of some rows and columns that may still be judged, without a list.

    A pair is closed if it was judged, or if the labels of both items are known.
    """

    rows: Array
    columns: Array
    known: tuple[Array, Array]  # which items of each view have labels
    judged: tuple[Array, Array]
    within: bool = False  # one view: (a, b) and (b, a) are one pair

    def keys(self, i: Array, j: Array) -> Array:
        """Return a number of each pair."""
        low, high = (np.minimum(i, j), np.maximum(i, j)) if self.within else (i, j)
        return np.asarray(low, dtype=np.int64) * len(self.known[1]) + high

    def first(self, i: Array, j: Array, n: int, *, taken: Array) -> tuple[Array, Array]:
        """Return the first open pairs of a list, without repeated and taken ones."""
        keys = self.keys(i, j)
        is_new = np.zeros(len(keys), dtype=bool)
        is_new[np.unique(keys, return_index=True)[1]] = True
        is_new &= ~(self.known[0][i] & self.known[1][j])
        is_new &= ~np.isin(keys, self._closed) & ~np.isin(keys, taken)
        if self.within:
            is_new &= i != j
        found = np.flatnonzero(is_new)[:n]
        return i[found], j[found]

    def count(self) -> int:
        """Return the number of open pairs."""
        known_rows = self.rows[self.known[0][self.rows]]
        known_columns = self.columns[self.known[1][self.columns]]
        n_possible = self._n_pairs(self.rows, self.columns)
        n_possible -= self._n_pairs(known_rows, known_columns)
        i, j = np.divmod(self._closed, len(self.known[1]))
        is_among = np.isin(i, self.rows) & np.isin(j, self.columns)
        if self.within:
            is_among |= np.isin(j, self.rows) & np.isin(i, self.columns)
            is_among &= i != j
        is_among &= ~(self.known[0][i] & self.known[1][j])
        return n_possible - int(is_among.sum())

    def draw(
        self, n: int, rng: np.random.Generator, *, taken: Array
    ) -> tuple[Array, Array]:
        """Draw open pairs at random, none of them twice."""
        rows, n_unknown = _unknown_first(self.rows, self.known[0])
        columns, width = _unknown_first(self.columns, self.known[1])
        n_first = n_unknown * len(columns)

        def at(places: Array) -> tuple[Array, Array]:
            # First unknown rows with every column, then known ones with unknown ones.
            row, column = np.divmod(places, max(len(columns), 1))
            later_row, later_column = np.divmod(places - n_first, max(width, 1))
            is_first = places < n_first
            i = np.where(is_first, row, n_unknown + later_row)
            return rows[i], columns[np.where(is_first, column, later_column)]

        n_places = n_first + (len(rows) - n_unknown) * width
        if n_places <= ROOM * (n + len(taken) + len(self._closed)):
            return self.first(*at(rng.permutation(n_places)), n, taken=taken)
        i = j = np.empty(0, dtype=np.int64)
        while len(i) < n:
            used = np.concatenate([taken, self.keys(i, j)])
            drawn = at(rng.integers(n_places, size=2 * n))
            more = self.first(*drawn, n - len(i), taken=used)
            i, j = np.concatenate([i, more[0]]), np.concatenate([j, more[1]])
        return i, j

    @cached_property
    def _closed(self) -> Array:
        """Keys of judged pairs, sorted."""
        return np.unique(self.keys(*self.judged))

    def _n_pairs(self, rows: Array, columns: Array) -> int:
        """Return the number of pairs of some rows and some columns, each once."""
        n_pairs = len(rows) * len(columns)
        if not self.within:
            return n_pairs
        n_both = len(np.intersect1d(rows, columns))
        return n_pairs - n_both - n_both * (n_both - 1) // 2


def suggest(
    pairs: OpenPairs,
    n: int,
    *,
    features: tuple[Array, Array],
    score: Callable[[Array, Array], Array],
    seed: int = 0,
) -> tuple[Array, Array]:
    """Return open pairs of two views, the most informative first."""
    n = min(n, pairs.count())
    known = [np.flatnonzero(own) for own in pairs.known]
    i = j = np.empty(0, dtype=np.int64)
    for size in _block_sizes(n, len(pairs.rows), len(pairs.columns)):
        rows, columns = (
            choose_representatives(own, allowed, n_chosen, known=of, seed=seed)
            for own, allowed, n_chosen, of in zip(
                features, (pairs.rows, pairs.columns), size, known, strict=True
            )
        )
        i, j = pairs.first(*_in_layers(rows, columns, score), n, taken=i[:0])
        if len(i) == n:
            break
    # Beyond the largest block, pairs are random.
    rng = np.random.default_rng(seed)
    more = pairs.draw(n - len(i), rng, taken=pairs.keys(i, j))
    return np.concatenate([i, more[0]]), np.concatenate([j, more[1]])


def diffusion_features(W: Any, *, seed: int) -> Array:
    """Return features whose inner products are nearly ``((I + S) / 2) ** N_STEPS``."""
    S, n_items = normalize(W), W.shape[0]

    def diffuse(block: Array) -> Array:
        for _ in range(N_STEPS):
            block = (block + S @ block) / 2
        return block

    rng = np.random.default_rng(seed)
    probes = rng.standard_normal((n_items, min(N_DIRECTIONS, n_items)))
    probes = range_basis(diffuse, orthonormal(probes))
    image = diffuse(probes)
    values, vectors = np.linalg.eigh(probes.T @ image)
    kept = values > 1e-9 * values[-1]
    return image @ (vectors[:, kept] / np.sqrt(values[kept]))


def choose_representatives(
    features: Array,
    allowed: Array,
    n_chosen: int,
    *,
    known: Array | None = None,
    seed: int = 0,
) -> Array:
    """Choose the items that explain most of a view, the most informative first."""
    # Whole multiples, so that a slightly larger n_chosen has the same sample.
    candidates, n_compared = allowed, N_CANDIDATES * -(-n_chosen // N_CANDIDATES)
    if len(allowed) > n_compared:
        rng = np.random.default_rng(seed)
        candidates = allowed[
            np.sort(rng.choice(len(allowed), n_compared, replace=False))
        ]
    rows = features[candidates]
    noise = NOISE * float(np.mean(np.sum(features**2, axis=1)))
    spread = features.T @ features
    # The covariance of the directions, given what is known.
    unexplained = np.eye(features.shape[1])
    if known is not None and len(known) and noise:
        given = features[known].T @ features[known]
        unexplained = np.linalg.inv(unexplained + given / noise)
    is_left, chosen = np.ones(len(candidates), dtype=bool), []
    for _ in range(min(n_chosen, len(candidates))):
        explained = unexplained @ spread @ unexplained
        own = np.einsum("ij,ij->i", rows @ unexplained, rows)
        total = np.einsum("ij,ij->i", rows @ explained, rows)
        gains = total / np.maximum(own + noise, np.finfo(float).tiny)
        best = int(np.argmax(np.where(is_left, gains, -np.inf)))
        is_left[best] = False
        chosen.append(candidates[best])
        seen = unexplained @ rows[best]
        unexplained = unexplained - np.outer(seen, seen) / (rows[best] @ seen + noise)
    return np.array(chosen, dtype=np.int64)


def explained_shares(
    features: tuple[Array, Array],
    pairs: tuple[Array, Array],
    *,
    judged: tuple[Array, Array],
    seed: int = 0,
) -> Array:
    """Return the share of the variance of all pairs that each pair would explain.

    ``sum_ij cov(f_ij, f_c)^2 / (var(f_c) + noise)``, given the judged pairs.
    """
    left, right = (own.astype(np.float64) for own in features)
    variance = np.sum(left**2) * np.sum(right**2)
    noise = NOISE * variance / max(len(left) * len(right), 1)
    if variance == 0:
        return np.zeros(len(pairs[0]))
    i, j = judged
    if len(i) > MAX_JUDGED:
        some = np.random.default_rng(seed).choice(len(i), MAX_JUDGED, replace=False)
        i, j = i[some], j[some]
    A, B = left[i], right[j]
    related = (A @ A.T) * (B @ B.T)
    factor = cho_factor(related + noise * np.eye(len(A))) if len(A) else None
    spread = left.T @ left, right.T @ right
    shares = []
    for x, y in zip(left[pairs[0]], right[pairs[1]], strict=True):
        # x yᵀ minus its part explained by the judged pairs.
        rest = np.outer(x, y)
        if factor is not None:
            weights = cho_solve(factor, (A @ x) * (B @ y))
            rest -= (A.T * weights) @ B
        own = max(x @ rest @ y, 0.0)
        gain = float(np.sum((spread[0] @ rest @ spread[1]) * rest) / (own + noise))
        shares.append(gain / variance)
    return np.array(shares)


def _block_sizes(n: int, n_rows: int, n_columns: int) -> Iterator[tuple[int, int]]:
    """Yield the sizes of blocks, doubled each time, as square as the views allow."""
    side = isqrt(n) + 1
    limits = min(n_rows, MAX_REPRESENTATIVES), min(n_columns, MAX_REPRESENTATIVES)
    size = 0, 0
    while n > 0 and min(limits) > 0 and size != limits:
        narrow = min(side, *limits)
        wide = ceil(side * side / narrow)
        size = min(wide, limits[0]), min(wide, limits[1])
        yield size
        side *= 2


def _in_layers(
    rows: Array, columns: Array, score: Callable[[Array, Array], Array]
) -> tuple[Array, Array]:
    """Return the pairs of a block, smaller blocks first.

    Within a layer, pairs with high scores come first: must-links are rare, and more
    informative.
    """
    scores = score(rows, columns)
    a, b = np.indices(scores.shape).reshape(2, -1)
    order = np.lexsort((-scores.ravel(), np.maximum(a, b)))
    return rows[a[order]], columns[b[order]]


def _unknown_first(positions: Array, known: Array) -> tuple[Array, int]:
    """Return positions, unlabelled items first, and the number of these."""
    is_known = known[positions]
    ordered = np.concatenate([positions[~is_known], positions[is_known]])
    return ordered, int(np.sum(~is_known))
