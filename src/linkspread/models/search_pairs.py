"""Pairs of views of CrossViewSearch: cost and fit, directions, explanations."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from linkspread.ground.errors import LinkError, ViewError
from linkspread.ground.progress import format_bytes
from linkspread.judging.explanation import Shares, pair_shares, single_share
from linkspread.judging.suggestion import N_DIRECTIONS
from linkspread.learning import (
    Choice,
    Rows,
    ScoreFactors,
    Setting,
    Sides,
    ViewMap,
    choose,
    fit_factors,
    renew_factors,
)
from linkspread.learning.factors import QueryBatch
from linkspread.learning.maps import N_COMPONENTS, landmark_count, unit_rows
from linkspread.learning.terms import Fitting, LabelTerm, PairsTerm, PriorTerm
from linkspread.links import Links
from linkspread.links.evidence import Evidence, read_evidence
from linkspread.tables.validation import check_views

Array = np.ndarray
Pair = tuple[str, str]

# Kernels that compare items of one view before anything is judged.
OWN_MIXTURE = "linear + gaussian"
# Items of an intermediate view that are used to search through it.
N_BETWEEN = 1000
# Bytes of the scores that are computed at once.
BLOCK_BYTES = 2**26
# At most so many queries and at least so many targets are searched by bounds first: one
# product scores eight queries as fast, and fewer targets within 3 ms.
FEW_QUERIES, MANY_TARGETS = 6, 32_768
# Rows of a map that are read at once.
TILE = 4096
# Measured on two views of 10,000 to 40,000 items and 128 to 1,024 columns: the largest
# memory of a fit of `CrossViewSearch` is 0.9 to 1.05 times the sum of so many times its
# maps and so many times its tables; 0.6 times without links.
TIMES_MAPS, TIMES_TABLES = 3, 8
# Name of each kind of term in a summary.
TERMS = {
    "prior": "the cosine",
    "displacement": "the cosine, corrected by known pairs",
    "grid": "likeness to known pairs",
    "into left": "{left} as predicted from {right}",
    "into right": "{right} as predicted from {left}",
    "pairs": "regression on judged pairs",
    "labels": "the classes",
}


class _Blocks:
    """Blocks of scores, for directions and chains alike."""

    shape: Any  # numbers of source and target items
    block: Any
    dtype = np.dtype(np.float32)

    @property
    def rows_at_a_time(self) -> int:
        """Rows of scores that fit into a block."""
        return max(1, BLOCK_BYTES // (4 * self.shape[1]))

    def rows(self, i: Array) -> Array:
        """Return the scores of fitted items with all others."""
        return self.block(i, slice(None))


@dataclass(frozen=True)
class Direction(_Blocks):
    """Searches of one view from another."""

    factors: ScoreFactors
    side: int

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of source and target items."""
        sizes = [own.n_items for own in self.factors.sides.maps]
        return sizes[self.side], sizes[1 - self.side]

    @property
    def few_queries(self) -> int:
        """Largest number of queries that bounds answer faster than all scores."""
        return FEW_QUERIES if self.shape[1] >= MANY_TARGETS else 0

    def block(self, i: Array, j: Any) -> Array:
        """Return the scores of fitted items with some others."""
        return self.prepare(i).scores(j)

    def unseen_rows(self, rows: Rows) -> Array:
        """Return the scores of new items."""
        return self.prepare_unseen(rows).scores()

    def prepare(self, i: Array) -> QueryBatch:
        """Return fitted items as queries."""
        return self.factors.prepare(self.side, self.factors.fitted(self.side, i))

    def prepare_unseen(self, rows: Rows) -> QueryBatch:
        """Return new items as queries."""
        return self.factors.prepare(self.side, self.known(rows))

    def query_vectors(self, rows: Rows) -> Array:
        """Return the vectors of new items, before the rotation of `vectors`."""
        return self.factors.query_vectors(self.side, self.known(rows))

    def vectors(self) -> tuple[Array, Array, Array]:
        """Return the vectors of sources and targets, and the rotation of new ones."""
        return self.factors.vectors(self.side)

    def known(self, rows: Rows) -> Rows:
        """Return new items with what the terms need."""
        if self.factors.sides.prior is None:
            return replace(rows, prior=None)
        if self.factors.is_within:
            return replace(rows, prior=_own_prior(self.factors.sides.maps[0], rows))
        if rows.prior is None:
            raise ViewError(
                "new items must have a row in `prior` too, which was given as tables. "
                "Fit again with these items."
            )
        return rows


@dataclass(frozen=True)
class Chained(_Blocks):
    """Searches through another view: inner products of scores with its items."""

    first: "Direction | Chained"
    second: "Direction | Chained"

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of source and target items."""
        return self.first.shape[0], self.second.shape[1]

    @property
    def _between(self) -> Array:
        rng = np.random.default_rng(0)
        return np.sort(rng.permutation(self.first.shape[1])[:N_BETWEEN])

    def _centred(self, scores: Array) -> Array:
        return (scores - scores.mean(axis=1, keepdims=True)) / len(self._between)

    def block(self, i: Array, j: Any) -> Array:
        """Return the scores of fitted items with some others."""
        near = self._centred(self.first.block(i, self._between))
        return near @ self.second.block(self._between, j)

    def unseen_rows(self, rows: Rows) -> Array:
        """Return the scores of new items."""
        return self.query_vectors(rows) @ self.second.rows(self._between)

    def query_vectors(self, rows: Rows) -> Array:
        """Return the vectors of new items, before the rotation of `vectors`."""
        return self._centred(self.first.unseen_rows(rows)[:, self._between])

    def vectors(self) -> tuple[Array, Array, Array]:
        """Return the vectors of sources and targets, and the rotation of new ones."""
        sources = np.arange(self.shape[0])
        searching = self._centred(self.first.block(sources, self._between))
        found = np.ascontiguousarray(self.second.rows(self._between).T)
        return searching, found, np.eye(len(self._between), dtype=np.float32)


def searched_pairs(
    tables: Mapping[str, Any], priors: Mapping[str, Any], links: Links
) -> list[Pair]:
    """Return the views that share a space or have links."""
    return [
        (a, b)
        for a, b in combinations(tables, 2)
        if links.connects(a, b) or _share_space(priors, a, b)
    ]


def make_sides(
    maps: Mapping[str, ViewMap], priors: Mapping[str, Any], pair: Pair
) -> Sides:
    """Return the maps of two views, or of one, and the space that they share."""
    a, b = pair
    if a == b:
        prior = _own_prior(maps[a], Rows(maps[a].values))
        return Sides((maps[a], maps[a]), (prior, prior))
    shared = (priors[a], priors[b]) if _share_space(priors, a, b) else None
    return Sides((maps[a], maps[b]), shared)


def fit_pair(
    sides: Sides, evidence: Evidence, *, seed: int
) -> tuple[Choice, ScoreFactors]:
    """Choose the terms for two views, or for one, and fit them."""
    choice = choose(sides, evidence, seed=seed)
    return choice, fit_factors(sides, evidence, choice)


def renew_pair(
    factors: ScoreFactors,
    sides: Sides,
    choice: Choice,
    places: tuple[Array, Array],
    evidence: tuple[Evidence, Evidence],
    *,
    seed: int,
) -> tuple[Choice, ScoreFactors]:
    """Return the choice and the scores of two views after items of one changed.

    `places` has the earlier position of each item, -1 where it is new or changed;
    `evidence` is that before and after.
    """
    before, now = evidence
    if now.labels is None and any(term.kind == "labels" for term in choice.terms):
        return fit_pair(sides, now, seed=seed)
    labelled = [_labelled(before, side) for side in (0, 1)]
    judged = map(np.union1d, before.judged_items(), labelled)
    # Terms are fitted again if judged items were removed or changed, or items moved.
    is_known = not all(map(_are_kept, judged, places))
    moved = any(
        not np.array_equal(own[own >= 0], np.arange((own >= 0).sum())) for own in places
    )
    return choice, renew_factors(
        factors,
        sides,
        choice,
        places,
        evidence=now if is_known or moved else None,
        keep_labels=all(map(_are_kept, labelled, places)),
    )


def check_still_linked(evidence: Evidence, pair: Pair, *, has_prior: bool) -> None:
    """Refuse to remove the last links of views without a shared space."""
    if not has_prior and not evidence.n_pairs and evidence.labels is None:
        raise LinkError(
            f"links must leave a pair of {pair[0]!r} and {pair[1]!r}, which share no "
            "space, got none left. Keep one, or fit again."
        )


def unjudged_factors(map_: ViewMap) -> ScoreFactors:
    """Return the scores within one view before anything is judged."""
    sides = make_sides({"own": map_}, {}, ("own", "own"))
    plain = Choice((Setting("prior"),), 0.0, 0, {})
    nothing = np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0)
    return fit_factors(sides, Evidence(nothing, nothing), plain)


def leading_features(map_: ViewMap) -> Array:
    """Return items in the leading directions of the kernel of a view."""
    name = "graph" if map_.has("graph") else "gaussian"
    block, columns = map_.blocks[name], map_.columns(name)
    width = columns.stop - columns.start

    def kernel_features(start: int) -> Array:
        """Return the features of the kernel, not centred."""
        centred = map_.values[start : start + TILE, columns].astype(np.float64)
        return centred * block.size + block.mean

    starts = range(0, map_.n_items, TILE)
    gram = np.zeros((width, width))
    for start in starts:
        rows = kernel_features(start)
        gram += rows.T @ rows
    first = max(width - N_DIRECTIONS, 0)
    _, directions = eigh(gram, subset_by_index=(first, width - 1))
    return np.vstack([kernel_features(start) @ directions for start in starts])


def explain_pair(
    direction: Direction, evidence: Evidence, query: Rows, j: int
) -> list[Shares]:
    """Return what each pair, each class, the prior, hubs and chance add to a score."""
    factors, side = direction.factors, direction.side
    target = factors.fitted(1 - side, [j])
    n_must, n_pairs = len(evidence.must[0]), evidence.n_pairs
    pairs, prior, chance = np.zeros(n_pairs), 0.0, 0.0
    shares, fitting = [], Fitting(factors.sides, evidence)
    for (term, weight), scales in zip(
        factors.terms, factors.scales[1 - side], strict=True
    ):
        scale = 1.0 if scales is None else float(scales[j])
        parts, rest = term.contributions(side, query, target, scale, fitting)
        if isinstance(term, LabelTerm):
            # A class adds to a score only as the class of both items.
            both = dict.fromkeys((0, 1), np.arange(len(parts)))
            ones = np.ones(len(parts))
            shares.append(Shares("class", weight * parts, ones, classes=both))
            chance += weight * rest
            continue
        prior += weight * rest
        if isinstance(term, PairsTerm):
            pairs += weight * parts
        elif not isinstance(term, PriorTerm):
            pairs[:n_must] += weight * parts
    if n_pairs:
        judged = zip(evidence.must, evidence.cannot, strict=True)
        left, right, _ = map(np.concatenate, judged)
        i, k = (left, right) if side == 0 else (right, left)
        weights = np.concatenate([evidence.must[2], -evidence.cannot[2]])
        within = factors.is_within
        shares.append(pair_shares(i, k, weights, pairs, within=within))
    own = (prior, float(factors.bias[1 - side][j]), chance)
    return [*shares, *map(single_share, ("prior", "hubs", "chance"), own)]


def summarize(
    choices: Mapping[Pair, Choice], factors: Mapping[Pair, ScoreFactors], links: Links
) -> str:
    """Return sentences on what is known of each two views, their terms and quality."""
    sentences = []
    for pair, choice in choices.items():
        evidence, sides = read_evidence(links, *pair), factors[pair].sides
        sentences.append(_describe_evidence(pair, evidence, sides))
        sentences.append(_describe_terms(pair, choice))
        if choice.n_held_out:
            prior = choice.quality.get("prior")
            beside = "" if prior is None else f", {prior:.2f} by the cosine alone"
            beside += f", {choice.quality['chance']:.2f} by chance"
            sentences.append(
                f"{choice.n_held_out} held-out partners: mean reciprocal rank "
                f"{choice.quality['model']:.2f}{beside}."
            )
    return " ".join(sentences)


def _describe_evidence(pair: Pair, evidence: Evidence, sides: Sides) -> str:
    """Return a sentence on what is known of two views."""
    a, b = pair
    n_must, n_cannot = len(evidence.must[0]), len(evidence.cannot[0])
    if a == b:
        n_must, n_cannot = n_must // 2, n_cannot // 2
        start = f"Within {a} items are compared by their columns"
    else:
        start = f"{a} and {b} share {'a' if sides.prior is not None else 'no'} space"
    labelled = ""
    if evidence.labels is not None:
        counts = [np.count_nonzero(np.diff(own.indptr)) for own in evidence.labels]
        n_classes = evidence.labels[0].shape[1]
        of = f"{counts[0]:,}" if a == b else f"{counts[0]:,} and {counts[1]:,}"
        labelled = f"; {of} items have labels of {n_classes:,} classes"
    return (
        f"{start}{labelled}; {n_must:,} pairs are known to belong together, "
        f"{n_cannot:,} not to."
    )


def _describe_terms(pair: Pair, choice: Choice) -> str:
    """Return a sentence on the terms of two views."""
    words = []
    for term in choice.terms:
        is_plain = term.kind == "displacement" and np.isinf(term.ridge)
        word = TERMS["prior" if is_plain else term.kind]
        by = " by the graph" if term.mixture == "graph" else ""
        words.append(word.format(left=pair[0], right=pair[1]) + by)
    hubs = f"; hub correction {choice.hubs:g}" if choice.hubs else ""
    return f"What counts: {', '.join(words)}{hubs}."


def _own_prior(map_: ViewMap, rows: Rows) -> Array:
    """Return the unit rows that compare items of one view."""
    return unit_rows(rows.values[:, map_.columns(OWN_MIXTURE)])


def _share_space(priors: Mapping[str, Any], a: str, b: str) -> bool:
    """Return whether two views have rows of one width to compare."""
    return a in priors and b in priors and priors[a].shape[1] == priors[b].shape[1]


def _labelled(evidence: Evidence, side: int) -> Array:
    """Return the items of one side that have labels."""
    if evidence.labels is None:
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(np.diff(evidence.labels[side].indptr))


def _are_kept(items: Array, places: Array) -> bool:
    """Return whether all items remain, unchanged."""
    return bool(np.isin(items, places).all())


class SearchPlan(NamedTuple):
    """Resolved links, features of each view's map, and the cost in words."""

    links: Links
    widths: dict[str, int]
    cost: str


def plan_search(
    views: Any, links: Links, *, ids: Mapping[str, Any] | None = None
) -> SearchPlan:
    """Return the expected cost of a fit; views and links are checked as by a fit."""
    read = check_views(views, ids)
    tables, links = read.tables, links.resolve(read.ids)
    widths = {view: _map_width(X, links, view) for view, X in tables.items()}
    maps = sum(4 * tables[view].shape[0] * width for view, width in widths.items())
    n_bytes = TIMES_MAPS * maps + TIMES_TABLES * sum(map(_table_bytes, tables.values()))
    how = "terms are chosen on held-out judgements"
    if not links.views:
        how = "the cosine alone, as there are no links"
        if len({X.shape[1] for X in tables.values()}) == len(tables):
            how = "nothing, as there are no links and no two views share a space"
    shown = ", ".join(f"{view} {width:,}" for view, width in widths.items())
    cost = f"about {format_bytes(n_bytes)} beyond the tables"
    return SearchPlan(
        links, widths, f"{cost}: features of each item ({shown}), then {how}"
    )


def _map_width(X: Any, links: Links, view: str) -> int:
    """Return the number of features of a map: columns, and landmarks of kernels."""
    n_items, width = X.shape
    n_linear = N_COMPONENTS if min(X.shape) > N_COMPONENTS else width
    labelled = links.labelled(view)
    n_landmarks = landmark_count(n_items, 0 if labelled is None else labelled.sum())
    return n_linear + n_landmarks * (2 if view in links.views else 1)


def _table_bytes(X: Any) -> int:
    """Return the bytes of a table."""
    if sparse.issparse(X):
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return X.nbytes
