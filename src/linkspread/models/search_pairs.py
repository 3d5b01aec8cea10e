"""Two views as they are searched: what they share, what is fitted, which way."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from linkspread.ground.errors import LinkError, ViewError
from linkspread.learning import (
    Choice,
    Evidence,
    Rows,
    ScoreFactors,
    Setting,
    Sides,
    ViewMap,
    choose,
    fit_factors,
)
from linkspread.learning.factors import Asked
from linkspread.learning.maps import unit_rows
from linkspread.links import Links

Array = np.ndarray
Pair = tuple[str, str]

# Kernels by which items of one view are alike before anything is judged.
OWN_MIXTURE = "linear + gaussian"
# Items of a view between two others through which these are searched.
N_BETWEEN = 1000
# Scores that are computed at once, in bytes.
BLOCK_BYTES = 2**26
# Queries and targets for which bounds are computed first. Eight queries at once are as
# soon scored by one product; fewer targets are scored in 3 ms, and need no codes.
FEW_QUERIES, MANY_TARGETS = 6, 32_768


@dataclass(frozen=True)
class Direction:
    """Searches of one view from another."""

    factors: ScoreFactors
    side: int

    @property
    def shape(self) -> tuple[int, int]:
        """Items that search, and items that are found."""
        sizes = [own.n_items for own in self.factors.sides.maps]
        return sizes[self.side], sizes[1 - self.side]

    @property
    def dtype(self) -> Any:
        """Of the scores."""
        return np.dtype(np.float32)

    @property
    def rows_at_a_time(self) -> int:
        """Rows of scores that fit into a block."""
        return max(1, BLOCK_BYTES // (4 * self.shape[1]))

    @property
    def few_queries(self) -> int:
        """Queries whose best are found by bounds sooner than by all scores."""
        return FEW_QUERIES if self.shape[1] >= MANY_TARGETS else 0

    def rows(self, i: Array) -> Array:
        """Return the scores of fitted items with all others."""
        return self.block(i, slice(None))

    def block(self, i: Array, j: Any) -> Array:
        """Return the scores of fitted items with some others."""
        return self.ask(i).scores(j)

    def unseen_rows(self, rows: Rows) -> Array:
        """Return the scores of new items."""
        return self.ask_unseen(rows).scores()

    def ask(self, i: Array) -> Asked:
        """Return fitted items as queries."""
        return self.factors.ask(self.side, self.factors.fitted(self.side, i))

    def ask_unseen(self, rows: Rows) -> Asked:
        """Return new items as queries."""
        return self.factors.ask(self.side, self.known(rows))

    def query_vectors(self, rows: Rows) -> Array:
        """Return the vectors of new items, to be turned as `vectors` tells."""
        return self.factors.query_vectors(self.side, self.known(rows))

    def vectors(self) -> tuple[Array, Array, Array]:
        """Return the vectors that search, those found, and the turn of new ones."""
        return self.factors.vectors(self.side)

    def known(self, rows: Rows) -> Rows:
        """Return new items with what the terms need."""
        if self.factors.sides.prior is None:
            return replace(rows, prior=None)
        if self.factors.is_within:
            own = own_prior(self.factors.sides.maps[0], rows)
            return replace(rows, prior=own)
        if rows.prior is None:
            raise ViewError(
                "new items must have a row in `prior` too, which was given as tables. "
                "Fit again with these items."
            )
        return rows


@dataclass(frozen=True)
class Chained:
    """Searches through views between: by how alike the scores with their items are."""

    first: Direction
    second: "Direction | Chained"

    @property
    def shape(self) -> tuple[int, int]:
        """Items that search, and items that are found."""
        return self.first.shape[0], self.second.shape[1]

    @property
    def dtype(self) -> Any:
        """Of the scores."""
        return self.first.dtype

    @property
    def rows_at_a_time(self) -> int:
        """Rows of scores that fit into a block."""
        return max(1, BLOCK_BYTES // (4 * self.shape[1]))

    @property
    def _between(self) -> Array:
        rng = np.random.default_rng(0)
        return np.sort(rng.permutation(self.first.shape[1])[:N_BETWEEN])

    def _centred(self, scores: Array) -> Array:
        return (scores - scores.mean(axis=1, keepdims=True)) / len(self._between)

    def rows(self, i: Array) -> Array:
        """Return the scores of fitted items with all others."""
        return self.block(i, slice(None))

    def block(self, i: Array, j: Any) -> Array:
        """Return the scores of fitted items with some others."""
        near = self._centred(self.first.block(i, self._between))
        return near @ self.second.block(self._between, j)

    def unseen_rows(self, rows: Rows) -> Array:
        """Return the scores of new items."""
        return self.query_vectors(rows) @ self.second.rows(self._between)

    def query_vectors(self, rows: Rows) -> Array:
        """Return the vectors of new items, to be turned as `vectors` tells."""
        return self._centred(self.first.unseen_rows(rows)[:, self._between])

    def vectors(self) -> tuple[Array, Array, Array]:
        """Return the vectors that search, those found, and the turn of new ones."""
        everyone = np.arange(self.shape[0])
        searching = self._centred(self.first.block(everyone, self._between))
        found = np.ascontiguousarray(self.second.rows(self._between).T)
        return searching, found, np.eye(len(self._between), dtype=np.float32)


def searched_pairs(
    tables: Mapping[str, Any], priors: Mapping[str, Any], links: Links
) -> list[Pair]:
    """Return the views that share a space or have links."""
    return [
        (a, b)
        for a, b in combinations(tables, 2)
        if links.connects(a, b) or share_space(priors, a, b)
    ]


def make_sides(
    maps: Mapping[str, ViewMap], priors: Mapping[str, Any], pair: Pair
) -> Sides:
    """Return the maps of two views, or of one, and the space that they share."""
    a, b = pair
    if a == b:
        prior = own_prior(maps[a], Rows(maps[a].values))
        return Sides((maps[a], maps[a]), (prior, prior))
    shared = (priors[a], priors[b]) if share_space(priors, a, b) else None
    return Sides((maps[a], maps[b]), shared)


def fit_pair(
    sides: Sides, evidence: Evidence, *, seed: int
) -> tuple[Choice, ScoreFactors]:
    """Choose what counts for two views, or for one, and fit it."""
    choice = choose(sides, evidence, seed=seed)
    return choice, fit_factors(sides, evidence, choice)


def check_left(evidence: Evidence, pair: Pair, *, has_prior: bool) -> None:
    """Refuse to take back all that two views are searched by."""
    if not has_prior and not evidence.n_pairs and evidence.labels is None:
        raise LinkError(
            f"links must leave a pair of {pair[0]!r} and {pair[1]!r}, which share no "
            "space, got none left. Keep one, or fit again."
        )


def alike(map_: ViewMap) -> ScoreFactors:
    """Return how alike the items of one view are before anything is judged."""
    sides = make_sides({"own": map_}, {}, ("own", "own"))
    plain = Choice((Setting("prior"),), 0.0, 0, {})
    nothing = np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0)
    return fit_factors(sides, Evidence(nothing, nothing), plain)


def own_prior(map_: ViewMap, rows: Rows) -> Array:
    """Return unit rows by which items of one view are compared."""
    return unit_rows(rows.values[:, map_.columns(OWN_MIXTURE)])


def shortest_chain(
    pairs: Any, source: str, target: str
) -> list[tuple[str, str]] | None:
    """Return the steps of the shortest way between two views, or None."""
    near: dict[str, list[str]] = {}
    for a, b in pairs:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    ways, seen = [[source]], {source}
    while ways:
        way = ways.pop(0)
        for view in near.get(way[-1], []):
            if view == target:
                return list(pairwise([*way, view]))
            if view not in seen:
                seen.add(view)
                ways.append([*way, view])
    return None


def share_space(priors: Mapping[str, Any], a: str, b: str) -> bool:
    """Tell whether two views have rows of one width to compare."""
    return a in priors and b in priors and priors[a].shape[1] == priors[b].shape[1]
