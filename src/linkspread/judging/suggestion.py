"""Which pairs to judge next: a complete block of the most telling items of two views.

Every representative of one view is paired with every one of the other, and the block
grows by one of each. An item judged against all others of the block is known by must-
and cannot-links alike; single pairs all over two views mostly say what an item is not.
"""

from collections.abc import Callable, Iterator
from math import ceil, isqrt

import numpy as np

from linkspread.judging.suggestion_pairs import OpenPairs
from linkspread.judging.suggestion_representatives import choose_representatives

Array = np.ndarray

# Representatives of a view beyond which one is as good as another.
MAX_REPRESENTATIVES = 512


def suggest(
    pairs: OpenPairs,
    n: int,
    *,
    features: tuple[Array, Array],
    score: Callable[[Array, Array], Array],
    seed: int = 0,
) -> tuple[Array, Array]:
    """Return open pairs of two views, the most telling first."""
    n = min(n, pairs.count())
    i, j = _from_block(pairs, n, features, score, seed)
    # Where the block has no more, one pair is as good as another.
    rng = np.random.default_rng(seed)
    more = pairs.draw(n - len(i), rng, taken=pairs.keys(i, j))
    return np.concatenate([i, more[0]]), np.concatenate([j, more[1]])


def _from_block(
    pairs: OpenPairs,
    n: int,
    features: tuple[Array, Array],
    score: Callable[[Array, Array], Array],
    seed: int,
) -> tuple[Array, Array]:
    """Return the first open pairs of a block that is large enough, if one is."""
    i = j = np.empty(0, dtype=np.int64)
    for n_rows, n_columns in _block_sizes(n, len(pairs.rows), len(pairs.columns)):
        rows = choose_representatives(
            features[0], pairs.rows, n_rows, known=_known(pairs, 0), seed=seed
        )
        columns = choose_representatives(
            features[1], pairs.columns, n_columns, known=_known(pairs, 1), seed=seed
        )
        i, j = _in_layers(rows, columns, score(rows, columns))
        i, j = pairs.first(i, j, n, taken=i[:0])
        if len(i) == n:
            break
    return i, j


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


def _known(pairs: OpenPairs, side: int) -> Array:
    """Return the items of a view whose labels are known."""
    return np.flatnonzero(pairs.known[side])


def _in_layers(rows: Array, columns: Array, scores: Array) -> tuple[Array, Array]:
    """Return the pairs of a block, so that smaller blocks are complete before larger.

    Within a layer those come first that the model takes for must-links: these are
    rare, and a right guess tells more than a wrong one.
    """
    a, b = np.indices(scores.shape).reshape(2, -1)
    order = np.lexsort((-scores.ravel(), np.maximum(a, b)))
    return rows[a[order]], columns[b[order]]
