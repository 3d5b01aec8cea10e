"""Candidates of a matching to judge next: uncertain ones, and a few certain ones."""

import numpy as np

from linkspread.search.matches import Matches

Array = np.ndarray

# One in so many suggestions is a random match, however certain: without these, nothing
# would show that certain matches are wrong.
ONE_IN = 10


def suggest_matches(
    matches: Matches, n_pairs: int, *, random_state: int = 0
) -> tuple[Array, Array]:
    """Return positions of pairs to judge, the most uncertain first.

    No item is in two of them, so that one answer does not decide another.
    """
    rated = matches.rated
    if rated is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    pairs, p = rated.pairs, rated.probabilities
    rng = np.random.default_rng([random_state, matches.n_judged])
    certain = rng.permutation(np.flatnonzero(rated.is_open & rated.is_match))
    order = rng.permutation(np.flatnonzero(rated.is_open))
    order = order[np.argsort(np.abs(p[order] - 0.5), kind="stable")]
    taken: tuple[set[int], set[int]] = (set(), set())
    chosen: list[int] = []

    def take(places: Array, most: int) -> None:
        for place in places.tolist():
            if len(chosen) >= most:
                return
            i, j = int(pairs.left[place]), int(pairs.right[place])
            if i not in taken[0] and j not in taken[1]:
                chosen.append(place)
                taken[0].add(i)
                taken[1].add(j)

    n_certain = n_pairs // ONE_IN
    take(order, n_pairs - n_certain)
    take(certain, n_pairs)
    take(order, n_pairs)
    return pairs.left[chosen], pairs.right[chosen]
