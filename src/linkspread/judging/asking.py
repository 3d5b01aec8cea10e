"""Which pairs the learner should ask about next.

Two kinds of pairs are asked about:

- *likely pairs*: an item and the best of what it finds, each item once. Their share is
  the held-out reciprocal rank of the model: where searches succeed they give
  must-links, which are rare among random pairs of partners and teach most.
- *exploring pairs*: some items of one view, the anchors, with items of the other, each
  asked against one anchor after the other, likely ones first, until it has a must-link
  or enough verdicts. Where searches fail, as with few judgements of classes, likely
  pairs would only repeat what is believed.

Anchors and items are far from each other; where must-links are rare they are typical
ones instead, because what is found out about typical items holds for many.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from linkspread.judging.suggestion import OpenPairs, choose_representatives
from linkspread.learning import ScoreFactors, ViewMap

Array = np.ndarray

# Items of a view among which anchors and items are chosen, and how many are ordered.
N_POOL, N_ORDERED = 4096, 512
N_DIRECTIONS = 64  # of the kernel, for typical items
# Verdicts of an item without a must-link after which it is not asked again.
MAX_VERDICTS = 5
# Below this share of must-links, typical items are asked; it is known from so many.
RARE, N_KNOWN = 0.05, 30
# Scores computed for likely pairs, and candidates for each of them.
N_SCORES, N_CANDIDATES = 2_000_000, 4
# Cosine of two items above which they count as duplicates.
ALIKE = 0.99
# Judged items that candidates are compared with.
N_COMPARED = 1000
# Share of likely pairs before anything was held out, if the views share a space.
UNKNOWN_QUALITY = 0.5


@dataclass(frozen=True)
class Pool:
    """Items of a view in the order in which they are asked about."""

    spread: Array  # far from those before
    typical: Array  # explaining most of what those before leave unexplained
    rank: float  # effective number of directions of the view


def make_pool(own: ViewMap, *, seed: int = 0) -> Pool:
    """Order some items of a view; depends on its map only."""
    rng = np.random.default_rng(seed)
    items = rng.permutation(own.n_items)[:N_POOL]
    name = "graph" if own.has("graph") else "gaussian"
    X = own.values[items, own.columns(name)].astype(np.float64)
    # The first is drawn, each other one by its distance from those before.
    n, squares = min(N_ORDERED, len(items)), np.einsum("ij,ij->i", X, X)
    chosen = [int(rng.integers(len(items)))]
    away = np.full(len(items), np.inf)
    while len(chosen) < n:
        last = chosen[-1]
        near = squares + squares[last] - 2 * (X @ X[last])
        away = np.minimum(away, np.maximum(near, 0))
        away[chosen] = 0
        total = away.sum()
        if not total > 0:
            break
        chosen.append(int(rng.choice(len(items), p=away / total)))
    gram = X.T @ X
    rank = float(np.trace(gram) ** 2 / max(np.sum(gram * gram), 1e-300))
    # The kernel itself is not centred.
    K = X * own.blocks[name].size + own.blocks[name].mean
    first = max(K.shape[1] - N_DIRECTIONS, 0)
    _, directions = eigh(K.T @ K, subset_by_index=(first, K.shape[1] - 1))
    typical = choose_representatives(K @ directions, np.arange(len(items)), n)
    return Pool(items[np.array(chosen)], items[typical], rank)


@dataclass(frozen=True)
class Judged:
    """Judged pairs, by the positions of their rows and columns."""

    i: Array
    j: Array
    is_must: Array


def ask(
    pairs: OpenPairs,
    n: int,
    *,
    factors: ScoreFactors,
    side: int,
    pools: tuple[Pool, Pool],
    judged: Judged,
    quality: float | None,
    seed: int = 0,
) -> tuple[Array, Array]:
    """Return open pairs of rows and columns to judge.

    Rows are of one side of the factors. `quality` is the held-out reciprocal rank, None
    if nothing was held out.
    """
    rng = np.random.default_rng(seed)
    n = min(n, pairs.count())
    if quality is None:
        quality = UNKNOWN_QUALITY if factors.sides.prior is not None else 0.0
    n_likely = min(n, int(n * quality + rng.random()))
    nothing = np.zeros(0, dtype=np.int64)
    found = [(nothing, nothing)]
    for k in range(3):
        taken = np.concatenate([pairs.keys(*own) for own in found])
        n_left = n - len(taken)
        if not n_left:
            break
        if k == 0:
            new = _likely(pairs, n_likely, factors, side, judged, rng)
        elif k == 1:
            new = _exploring(pairs, n_left, factors, side, pools, judged, rng)
        else:
            new = pairs.draw(n_left, rng, taken=taken)
        found.append(pairs.first(*new, n_left, taken=taken))
    i, j = (np.concatenate(own) for own in zip(*found, strict=True))
    return i, j


def _likely(
    pairs: OpenPairs,
    n: int,
    factors: ScoreFactors,
    side: int,
    judged: Judged,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Return likely pairs of items that were not asked about, each item once."""
    columns = np.setdiff1d(pairs.columns, judged.j)
    if not n or not len(columns):
        return judged.i[:0], judged.j[:0]
    most = int(np.clip(N_SCORES // len(columns), n, N_CANDIDATES * n))
    rows = _unlike(factors, side, pairs.rows, judged.i, most, rng)
    S = factors.scores(side, factors.fitted(side, rows), columns).astype(np.float64)
    # An item that is near to everything is no likely partner, on either side.
    S += factors.bias[side][rows][:, None]
    if pairs.within:
        S[rows[:, None] == columns] = -np.inf
    taken, i, j = np.zeros(len(columns), dtype=bool), [], []
    best = np.argsort(-S, axis=1)[:, : N_CANDIDATES + 1]
    order = np.argsort(-np.take_along_axis(S, best, axis=1), axis=None)
    left = np.ones(len(rows), dtype=bool)
    for place in order:
        row, rank = divmod(int(place), best.shape[1])
        column = int(best[row, rank])
        if left[row] and not taken[column]:
            left[row], taken[column] = False, True
            i.append(rows[row])
            j.append(columns[column])
            if len(i) == n:
                break
    return np.array(i, dtype=np.int64), np.array(j, dtype=np.int64)


def _unlike(
    factors: ScoreFactors,
    side: int,
    allowed: Array,
    judged: Array,
    n: int,
    rng: np.random.Generator,
) -> Array:
    """Return items that are no duplicates of judged ones, nor of each other."""
    fresh = np.setdiff1d(allowed, judged)
    chosen = rng.permutation(fresh if len(fresh) else allowed)[: 2 * n]
    own = factors.sides.maps[side]
    name = "linear" if own.has("linear") else next(iter(own.blocks))

    def unit(items: Array) -> Array:
        X = own.values[items, own.columns(name)]
        return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)

    X = unit(chosen)
    alike = np.tril(X @ X.T > ALIKE, -1).any(axis=1)
    if len(judged):
        known = rng.permutation(np.unique(judged))[:N_COMPARED]
        alike |= (X @ unit(known).T > ALIKE).any(axis=1)
    return np.concatenate([chosen[~alike], chosen[alike]])[:n]


def _exploring(
    pairs: OpenPairs,
    n: int,
    factors: ScoreFactors,
    side: int,
    pools: tuple[Pool, Pool],
    judged: Judged,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Return pairs of anchors of one view with items of the other."""
    ends, allowed = (judged.i, judged.j), (pairs.rows, pairs.columns)
    n_judged = len(judged.i)
    is_rare = n_judged >= N_KNOWN and judged.is_must.mean() < RARE
    orders = [
        own[np.isin(own, some)]
        for own, some in zip(
            ((p.typical if is_rare else p.spread) for p in pools), allowed, strict=True
        )
    ]
    # Anchors are of the view with fewer directions, which is nearer to classes.
    a = int(pools[1].rank < pools[0].rank)
    b = 1 - a
    anchors = orders[a][: max(4, round((n_judged + n) ** 0.5))]
    if not len(anchors) or not len(orders[b]):
        return judged.i[:0], judged.j[:0]
    # Items of the other view that were asked against anchors without success.
    at_anchor = np.isin(ends[a], anchors)
    known, place = np.unique(ends[b][at_anchor], return_inverse=True)
    n_verdicts = np.bincount(place, minlength=len(known))
    n_must = np.bincount(place, judged.is_must[at_anchor], minlength=len(known))
    still = known[(n_must == 0) & (n_verdicts < MAX_VERDICTS)]
    still = rng.permutation(still[np.isin(still, allowed[b])])
    # Judges get different items: new ones are drawn from twice as many.
    fresh = orders[b][~np.isin(orders[b], known)][: 2 * n]
    items = np.concatenate([still, rng.permutation(fresh)])[:n]
    own = side if a == 0 else 1 - side
    S = factors.scores(own, factors.fitted(own, anchors), items).T.astype(np.float64)
    S = S / np.maximum(S.std(axis=1, keepdims=True), 1e-12)
    # A Gumbel variable for each makes the largest a draw from the softmax.
    S += rng.gumbel(size=S.shape)
    first = [np.repeat(items, len(anchors)), np.tile(anchors, len(items))]
    if a == 0:
        first.reverse()
    keys = pairs.keys(first[0], first[1]).reshape(S.shape)
    closed = np.isin(keys, pairs.keys(judged.i, judged.j))
    best = np.argmax(np.where(closed, -np.inf, S), axis=1)
    chosen = anchors[best]
    return (chosen, items) if a == 0 else (items, chosen)
