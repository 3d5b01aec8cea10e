"""Which items of two views are the same: candidates, assignment, probabilities.

Candidates are the best entries of each row and of each column of the scores. The
probability that a candidate is the partner is its marginal in a random matching, in
which a set of pairs without common items has the probability ``prod exp(f_ij) / const``
and f is linear in the similarities of a pair. The marginals are computed by belief
propagation, which for matchings always converges; the coefficients of f are fitted to
judged pairs.

>>> import numpy as np
>>> from linkspread.search.matching import assign
>>> left, right = np.array([0, 0, 1]), np.array([0, 1, 0])
>>> assign(left, right, np.array([0.9, 0.8, 0.7]), (2, 2)).tolist()
[False, True, True]
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment, minimize
from scipy.sparse.csgraph import (
    connected_components,
    min_weight_full_bipartite_matching,
)

from linkspread.compiled.cpu import keep_largest, keep_largest_stored

Array = np.ndarray
Shape = tuple[int, int]

# Which items have at most one partner: those of the source, those of the target.
SHAPES = {
    "one-to-one": (True, True),
    "one-to-many": (False, True),
    "many-to-one": (True, False),
}
# Components with fewer entries are solved as dense tables.
SMALL = 1 << 12
# The logarithm of the weight of a pair stays within this.
MAX_LOG = 20.0
# Rounds of belief propagation, and the change of messages that ends them.
MAX_ROUNDS, TOLERANCE = 200, 1e-4
# Prior means and deviations of the coefficients, in units of deviations among the
# candidates: of the constant, of the score, of other similarities.
CONSTANT, SCORE, OTHER = (3.0, 3.0), (2.0, 1.0), (0.0, 1.0)
# With fewer judged candidates, or fewer of either verdict, there is no probability.
MIN_JUDGED, MIN_OF_A_KIND = 10, 2
# The marginals of pairs further away than this many steps hardly matter to one.
N_STEPS = 2


class Candidates(NamedTuple):
    """Pairs of items that may be partners, by row and then by column."""

    left: Array
    right: Array
    shape: Shape

    def places(self, left: Array, right: Array) -> Array:
        """Return the places of pairs among the candidates, -1 for others."""
        keys = self.left * self.shape[1] + self.right
        wanted = np.asarray(left, np.int64) * self.shape[1] + right
        found = np.searchsorted(keys, wanted)
        found[found == len(keys)] = 0
        return np.where(keys[found] == wanted, found, -1) if len(keys) else found - 1


def find_candidates(
    block: Callable[[slice], Any],
    shape: Shape,
    *,
    n_candidates: int,
    step: int,
    bias: tuple[Array, Array] | None = None,
) -> tuple[Candidates, Array]:
    """Return the best pairs of each row and each column, and their scores.

    `block` returns the scores of some rows with all columns, without the bias of rows
    and columns; each is asked for once. Of a sparse block only stored pairs count.
    """
    offsets = tuple(np.zeros(size, np.float32) for size in shape)
    if bias is not None:
        offsets = tuple(own.astype(np.float32) for own in bias)
    kept = [
        (
            np.full((size, min(n_candidates, other)), np.inf, dtype=np.float32),
            np.full((size, min(n_candidates, other)), -1, dtype=np.int64),
        )
        for size, other in (shape, shape[::-1])
    ]
    for start in range(0, shape[0], step) if min(shape) else ():
        tile = block(slice(start, min(start + step, shape[0])))
        if sp.issparse(tile):
            parts = tile.data.astype(np.float32, copy=False), tile.indices, tile.indptr
            keep_largest_stored(*parts, start, offsets, *kept)
        else:
            tile = np.ascontiguousarray(tile, dtype=np.float32)
            keep_largest(tile, start, offsets, *kept)
    (row_keys, row_ids), (column_keys, column_ids) = kept
    by_row = np.arange(shape[0])[:, None] * shape[1] + row_ids
    by_column = column_ids * shape[1] + np.arange(shape[1])[:, None]
    keys = np.concatenate([by_row[row_ids >= 0], by_column[column_ids >= 0]])
    values = np.concatenate([row_keys[row_ids >= 0], column_keys[column_ids >= 0]])
    pairs, first = np.unique(keys, return_index=True)
    left, right = np.divmod(pairs, max(shape[1], 1))
    return Candidates(left, right, shape), -values[first].astype(np.float64)


def assign(
    left: Array,
    right: Array,
    weights: Array,
    shape: Shape,
    unique: tuple[bool, bool] = (True, True),
) -> Array:
    """Return which candidates the assignment of the largest sum of weights has.

    Exact. Items may stay without a partner; weights up to 0 are never chosen. Only
    items of sides that are `unique` have one partner at most.
    """
    chosen = np.zeros(len(left), dtype=bool)
    if not all(unique):
        side = left if unique[0] else right if unique[1] else np.arange(len(left))
        order = np.lexsort((-weights, side))
        is_first = np.diff(side[order], prepend=-1) != 0
        chosen[order[is_first]] = True
        return chosen & (weights > 0)
    open_ = np.flatnonzero(weights > 0)
    while len(open_):
        i, j, w = left[open_], right[open_], weights[open_]
        # A pair that outweighs all that it excludes is part of a best assignment.
        rivals = _second(w, i, shape[0]) + _second(w, j, shape[1])
        sure = w >= rivals
        taken = open_[sure & _is_first_of(sure, i, w) & _is_first_of(sure, j, w)]
        if not len(taken):
            break
        chosen[taken] = True
        rows, columns = np.zeros(shape[0], bool), np.zeros(shape[1], bool)
        rows[left[taken]] = columns[right[taken]] = True
        open_ = open_[~rows[i] & ~columns[j]]
    for part in _components(left[open_], right[open_], shape):
        some = open_[part]
        chosen[some[_solve(left[some], right[some], weights[some])]] = True
    return chosen


def _second(weights: Array, items: Array, n_items: int) -> Array:
    """Return the largest weight of the other pairs of each pair's item, at least 0."""
    best = np.zeros(n_items)
    np.maximum.at(best, items, weights)
    is_best = weights == best[items]
    many = np.bincount(items[is_best], minlength=n_items) > 1
    second = np.zeros(n_items)
    np.maximum.at(second, items[~is_best], weights[~is_best])
    second = np.where(many, best, second)
    return np.where(is_best, second[items], best[items])


def _is_first_of(some: Array, items: Array, weights: Array) -> Array:
    """Return which of some pairs are the first of their item, one for each."""
    places = np.flatnonzero(some)
    order = places[np.lexsort((places, -weights[places], items[places]))]
    is_first = np.zeros(len(some), dtype=bool)
    is_first[order[np.diff(items[order], prepend=-1) != 0]] = True
    return is_first


def _components(left: Array, right: Array, shape: Shape) -> Iterator[Array]:
    """Yield the places of the pairs of each connected component."""
    if not len(left):
        return
    rows, i = np.unique(left, return_inverse=True)
    columns, j = np.unique(right, return_inverse=True)
    size = len(rows) + len(columns)
    graph = sp.coo_array((np.ones(len(i)), (i, len(rows) + j)), shape=(size, size))
    label = connected_components(graph, directed=False)[1][i]
    order = np.argsort(label, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(label[order])) + 1)


def _solve(left: Array, right: Array, weights: Array) -> Array:
    """Return the places of the best assignment of one component."""
    rows, i = np.unique(left, return_inverse=True)
    columns, j = np.unique(right, return_inverse=True)
    if len(rows) * len(columns) <= SMALL:
        table = np.zeros((len(rows), len(columns)))
        table[i, j] = weights
        a, b = linear_sum_assignment(table, maximize=True)
        return np.flatnonzero(np.isin(i * len(columns) + j, a * len(columns) + b))
    # A column of its own for each row that stays without a partner. The sparse solver
    # takes no weights of 0.
    top = weights.max() + 1
    spare = np.arange(len(rows))
    table = sp.csr_array(
        (
            np.concatenate([top - weights, np.full(len(rows), top)]),
            (np.concatenate([i, spare]), np.concatenate([j, len(columns) + spare])),
        ),
        shape=(len(rows), len(columns) + len(rows)),
    )
    a, b = min_weight_full_bipartite_matching(table)
    return np.flatnonzero(np.isin(i * table.shape[1] + j, a * table.shape[1] + b))


class Matching(NamedTuple):
    """Candidates with weights ``exp(f)``, and which items have one partner at most."""

    left: Array
    right: Array
    shape: Shape
    unique: tuple[bool, bool]

    def marginals(self, f: Array) -> tuple[Array, Array, Array]:
        """Return the probability of each pair, and the messages of both sides."""
        w = np.exp(np.clip(f, -MAX_LOG, MAX_LOG))
        a = b = np.ones(len(w))
        for _ in range(MAX_ROUNDS):
            before = a
            a = 1 / (1 + self._others(0, w * b))
            b = 1 / (1 + self._others(1, w * a))
            if not len(a) or np.abs(a - before).max() < TOLERANCE:
                break
        odds = w * a * b
        return odds / (1 + odds), a, b

    def gradient(self, f: Array, errors: Array) -> Array:
        """Return the derivative of a likelihood by f.

        `errors` are the verdicts minus the marginals of judged pairs, 0 for others.
        """
        _, a, b = self.marginals(f)
        w = np.exp(np.clip(f, -MAX_LOG, MAX_LOG))
        by_a, by_b = errors / a, errors / b
        back_a, back_b = by_a, by_b
        for _ in range(MAX_ROUNDS):
            before = back_a
            by_v = -self._others(1, b**2 * back_b)
            back_a = by_a + w * by_v
            by_u = -self._others(0, a**2 * back_a)
            back_b = by_b + w * by_u
            change = np.abs(back_a - before).max(initial=0)
            if change <= TOLERANCE * max(np.abs(back_a).max(initial=0), 1e-12):
                break
        by_v = -self._others(1, b**2 * back_b)
        return errors + w * (b * by_u + a * by_v)

    def _others(self, side: int, values: Array) -> Array:
        """Return the sum over the other pairs of each pair's item on one side."""
        if not self.unique[side]:
            return np.zeros(len(values))
        items = self.left if side == 0 else self.right
        sums = np.bincount(items, values, self.shape[side])[items] - values
        return np.maximum(sums, 0) if values.min(initial=0) >= 0 else sums

    def near(self, places: Array) -> Array:
        """Return the places of pairs within a few steps of some pairs."""
        rows, columns = np.zeros(self.shape[0], bool), np.zeros(self.shape[1], bool)
        rows[self.left[places]] = columns[self.right[places]] = True
        for _ in range(N_STEPS - 1):
            touched = rows[self.left] | columns[self.right]
            rows[self.left[touched]] = columns[self.right[touched]] = True
        return np.flatnonzero(rows[self.left] | columns[self.right])


@dataclass(frozen=True)
class Judged:
    """Judged candidates: their places, verdicts, and similarities of all candidates.

    The similarities are of a model that did not know these judgements.
    """

    places: Array
    is_must: Array
    similarities: Array  # of shape (n_candidates, n_similarities), the score first


@dataclass(frozen=True)
class PairCalibration:
    """Coefficients of ``f``, for similarities in deviations from their means."""

    mean: Array
    deviation: Array
    coefficients: Array  # the constant first
    n_judged: int
    is_calibrated: bool

    def log_weights(self, similarities: Array) -> Array:
        """Return f of each candidate."""
        return self.coefficients[0] + self.scaled(similarities) @ self.coefficients[1:]

    def scaled(self, similarities: Array) -> Array:
        """Return similarities in deviations from their means."""
        Z = (similarities - self.mean) / self.deviation
        # An unknown similarity says nothing.
        return np.nan_to_num(Z, nan=0.0, posinf=0.0, neginf=0.0)


def fit_calibration(
    candidates: Candidates,
    similarities: Array,
    judged: Sequence[Judged],
    unique: tuple[bool, bool],
) -> PairCalibration:
    """Fit the probabilities of candidates to judged ones; to few, return a guess."""
    mean, deviation = _centre(candidates, similarities)
    usual = np.array([CONSTANT, SCORE, *([OTHER] * (similarities.shape[1] - 1))])
    verdicts = np.concatenate([own.is_must for own in judged] or [np.zeros(0, bool)])
    n_must = int(verdicts.sum())
    start = PairCalibration(mean, deviation, usual[:, 0], len(verdicts), False)
    if len(verdicts) < MIN_JUDGED or n_must < MIN_OF_A_KIND:
        return start
    parts = []
    for own in judged:
        whole = Matching(candidates.left, candidates.right, candidates.shape, unique)
        near = whole.near(own.places)
        place = np.searchsorted(near, own.places)
        matching = whole._replace(left=whole.left[near], right=whole.right[near])
        Z = start.scaled(own.similarities[near])
        parts.append((matching, Z, place, own.is_must))

    def loss(c: Array) -> tuple[float, Array]:
        """Return minus the log likelihood of judged pairs and of the prior."""
        off = (c - usual[:, 0]) / usual[:, 1] ** 2
        total, slope = float((c - usual[:, 0]) @ off) / 2, off
        for matching, Z, place, is_must in parts:
            f = c[0] + Z @ c[1:]
            p = matching.marginals(f)[0]
            own = np.clip(p[place], 1e-9, 1 - 1e-9)
            total -= float(np.log(np.where(is_must, own, 1 - own)).sum())
            errors = np.zeros(len(p))
            errors[place] = is_must - own
            by_f = matching.gradient(f, errors)
            slope = slope - np.concatenate([[by_f.sum()], Z.T @ by_f])
        return total, slope

    found: Any = minimize(loss, usual[:, 0], jac=True, method="L-BFGS-B", tol=1e-4)
    return PairCalibration(mean, deviation, found.x, len(verdicts), True)


def _centre(candidates: Candidates, similarities: Array) -> tuple[Array, Array]:
    """Return the means and deviations of similarities; unknown ones are NaN.

    The centre of the scores is that of the best candidates of all rows.
    """
    known = np.isfinite(similarities)
    n_known = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, similarities, 0).sum(axis=0) / n_known
    squares = np.where(known, similarities - mean, 0) ** 2
    deviation = np.sqrt(squares.sum(axis=0) / n_known)
    best = np.full(candidates.shape[0], -np.inf)
    np.maximum.at(best, candidates.left, similarities[:, 0])
    if np.isfinite(best).any():
        mean[0] = np.median(best[np.isfinite(best)])
    return mean, np.where(deviation > 1e-9, deviation, 1.0)
