"""Folds: links held out of a fit, and the tests that measure the fit on them."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import average_precision_score
from sklearn.model_selection import RepeatedStratifiedKFold

from linkspread.ground.errors import FewLinksError
from linkspread.links import Links
from linkspread.metrics import ScoreBlock, mean_average_precision, partner_ranks

Array = np.ndarray

# Scores of held-out pairs are computed in blocks of so many entries.
BLOCK_ENTRIES = 1 << 22


@dataclass(frozen=True)
class SingleScores:
    """Scores of blocks, and of single pairs, which is faster for long vectors."""

    block: ScoreBlock
    pairs: Callable[[str, str, Array, Array], Array]

    def __call__(self, source: str, target: str, *, rows: Any, cols: Any) -> Array:
        """Return a block of scores."""
        return self.block(source, target, rows=rows, cols=cols)


@dataclass(frozen=True)
class ItemTest:
    """Find the items of the same class among items whose label was hidden."""

    source: str
    target: str
    rows: Any
    cols: Array
    query_labels: Array
    item_labels: Array
    both_ways: bool = True

    def measure(self, scores: ScoreBlock) -> float:
        """Return the mean average precision, of both directions if `both_ways`."""
        block = scores(self.source, self.target, rows=self.rows, cols=self.cols)
        labels = self.query_labels, self.item_labels
        there = mean_average_precision(block, *labels)
        if not self.both_ways:
            return there
        back = mean_average_precision(np.ascontiguousarray(block.T), *labels[::-1])
        return (there + back) / 2


@dataclass(frozen=True)
class PairTest:
    """Distinguish held-out must-links from held-out cannot-links."""

    source: str
    target: str
    rows: Array
    cols: Array
    weights: Array

    @classmethod
    def of_partners(
        cls, source: str, target: str, i: Array, j: Array, *, n_tested: int
    ) -> "PairTest":
        """Return a test of all pairs of some partners; others are cannot-links."""
        chosen = np.random.default_rng(0).permutation(len(i))[:n_tested]
        rows, own_i = np.unique(i[chosen], return_inverse=True)
        cols, own_j = np.unique(j[chosen], return_inverse=True)
        weights = np.full((len(rows), len(cols)), -1.0)
        weights[own_i, own_j] = 1.0
        # No item is its own partner.
        is_pair = (rows[:, None] != cols) | (source != target)
        p, q = np.nonzero(is_pair)
        return cls(source, target, rows[p], cols[q], weights[is_pair])

    def measure(self, scores: ScoreBlock) -> float:
        """Return the average precision of the must-links among all held-out pairs."""
        must = self.weights > 0
        return float(average_precision_score(must, self.pair_scores(scores)))

    def pair_scores(self, scores: ScoreBlock) -> Array:
        """Return the score of each pair, from blocks of a few rows if need be."""
        if isinstance(scores, SingleScores):
            return scores.pairs(self.source, self.target, self.rows, self.cols)
        cols, place = np.unique(self.cols, return_inverse=True)
        rows, row_place = np.unique(self.rows, return_inverse=True)
        values = np.empty(len(self.rows))
        step = max(1, BLOCK_ENTRIES // len(cols))
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            block = scores(self.source, self.target, rows=some, cols=cols)
            here = (row_place >= start) & (row_place < start + step)
            values[here] = block[row_place[here] - start, place[here]]
        return values


@dataclass(frozen=True)
class PartnerTest:
    """Find held-out partners among all items without a link in the fit.

    `held_out` has the positions of the items of each held-out pair; `rows` and `cols`
    are the candidates of both views, these items among them.
    """

    source: str
    target: str
    held_out: tuple[Array, Array]
    rows: Array
    cols: Array

    def measure(self, scores: ScoreBlock) -> float:
        """Return the mean reciprocal rank of the partners, the mean of both ways."""

        def there(rows: Array) -> Array:
            return scores(self.source, self.target, rows=rows, cols=self.cols)

        def back(cols: Array) -> Array:
            return scores(self.source, self.target, rows=self.rows, cols=cols).T

        def mean(score: Any, queries: Array, partners: Array, among: Array) -> float:
            is_within = self.source == self.target
            ranks = partner_ranks(
                score,
                queries,
                np.searchsorted(among, partners),
                n_candidates=len(among),
                itself=(lambda some: some[:, None] == among) if is_within else None,
            )
            return float(np.mean(1 / ranks))

        i, j = self.held_out
        return (mean(there, i, j, self.cols) + mean(back, j, i, self.rows)) / 2


HeldOutTest = ItemTest | PairTest | PartnerTest


@dataclass(frozen=True)
class Trial:
    """One fit and its tests."""

    views: Mapping[str, Any]
    links: Links
    tests: tuple[HeldOutTest, ...]

    def measure(self, scores: ScoreBlock) -> list[float]:
        """Return the result of every test."""
        return [test.measure(scores) for test in self.tests]


def label_folds(
    y: Any, n_splits: int = 5, *, n_repeats: int = 1, random_state: int = 0
) -> Iterator[tuple[Array, Array]]:
    """Yield train and test parts with the same classes, as `cv` of scikit-learn.

    Items without a label, -1, are in every training part and in no test part.
    """
    y = np.asarray(y)
    known = np.flatnonzero(y != -1)
    most = int(np.bincount(y[known], minlength=1).max())
    if most < 2:
        raise FewLinksError(
            "folds must leave labels of a class on both sides, and no class has more "
            f"than {most}. Label two items of each class, or keep the default "
            "parameters."
        )
    folds = RepeatedStratifiedKFold(
        n_splits=min(n_splits, most), n_repeats=n_repeats, random_state=random_state
    )
    with warnings.catch_warnings():
        # A class with fewer labels than folds is not in every test part.
        warnings.filterwarnings("ignore", message="The least populated class")
        for _, test in folds.split(known, y[known]):
            yield np.setdiff1d(np.arange(len(y)), known[test]), known[test]


def item_trials(
    views: Mapping[str, Any], links: Links, *, protocol: str, **folds: int
) -> list[list[Trial]]:
    """Return the trials of each of the `label_folds`, whose labels are held out.

    Transductive fits have all items; inductive ones lack the queries.
    """
    labelled = [view for view in views if links.memberships(view) is not None]
    labels = {view: links.classes(view) for view in labelled}

    def transductive(hidden: Mapping[str, Array]) -> Trial:
        own = {view: labels[view][items] for view, items in hidden.items()}
        ways = list(combinations(hidden, 2)) or [(view, view) for view in hidden]
        tests = (ItemTest(a, b, hidden[a], hidden[b], own[a], own[b]) for a, b in ways)
        return Trial(views, links.hide(hidden), tuple(tests))

    def inductive(hidden: Mapping[str, Array], source: str, target: str) -> Trial:
        queries, items = hidden[source], hidden[target]
        kept = np.setdiff1d(np.arange(len(labels[source])), queries)
        own = labels[source][queries], labels[target][items]
        rows = views[source][queries]
        test = ItemTest(source, target, rows, items, *own, both_ways=False)
        shown = links.hide({target: items}).select({source: kept})
        return Trial({**views, source: views[source][kept]}, shown, (test,))

    hidden = hidden_items(labels, **folds)
    if protocol == "transductive":
        return [[transductive(own)] for own in hidden]
    return [[inductive(own, *way) for way in permutations(own, 2)] for own in hidden]


def hidden_items(labels: Mapping[str, Array], **folds: int) -> list[dict[str, Array]]:
    """Return the items of each view whose labels each fold holds out.

    Where all views have the same labels row by row, matched rows are held out together:
    the label of a picture must not give away that of its text.
    """
    first, *others = labels.values()
    if all(np.array_equal(first, other) for other in others):
        return [dict.fromkeys(labels, test) for _, test in label_folds(first, **folds)]
    parts = [[test for _, test in label_folds(y, **folds)] for y in labels.values()]
    return [dict(zip(labels, own, strict=True)) for own in zip(*parts, strict=False)]


def link_trials(
    views: Mapping[str, Any],
    links: Links,
    *,
    n_splits: int,
    n_repeats: int = 1,
    random_state: int = 0,
) -> list[list[Trial]]:
    """Return the trial of each fold, with the pairs of the fold held out."""
    groups = _pair_groups(links)
    weights = [table.weights for _, table in links.pair_tables]
    # All judgements of a pair add up.
    is_must = np.bincount(groups, np.concatenate([*weights, np.zeros(0)])) > 0
    rarest = np.unique(is_must, return_counts=True)[1].min(initial=len(is_must))
    if rarest < 2:
        raise FewLinksError(
            "folds must leave pairs of each kind on both sides, got "
            f"{int(is_must.sum())} must and {int((~is_must).sum())} cannot. Judge a "
            "few more, or keep the default parameters."
        )
    n_splits = min(n_splits, int(rarest))
    splitter = RepeatedStratifiedKFold(
        n_splits=n_splits, n_repeats=n_repeats, random_state=random_state
    )
    trials = []
    for _, test in splitter.split(is_must, is_must):
        held_out = np.isin(groups, test)
        shown = links.pick(~held_out)
        trials.append([Trial(views, shown, _pair_tests(links.pick(held_out), shown))])
    return trials


def _pair_groups(links: Links) -> Array:
    """Return a number for every pair, the same for pairs of the same two items."""
    names = sorted(links.views)
    keys = [np.zeros((0, 4), dtype=np.int64)]
    for between, table in links.pair_tables:
        views, positions = map(names.index, between), table.known_positions(between)
        places = zip(views, positions, strict=True)
        (a, i), (b, j) = sorted(places, key=lambda place: place[0])
        keys.append(np.column_stack([np.full_like(i, a), np.full_like(j, b), i, j]))
    return np.unique(np.vstack(keys), axis=0, return_inverse=True)[1].ravel()


def _pair_tests(held_out: Links, shown: Links) -> tuple[HeldOutTest, ...]:
    """Return a test for every two views with held-out pairs.

    Without cannot-links between them, partners are searched among all items without a
    link in the fit: among a few held-out partners any score would find them.
    """
    tests: list[HeldOutTest] = []
    for between, table in held_out.pair_tables:
        if len(table) == 0:
            continue
        i, j = table.known_positions(between)
        judged = shown.judged(*between)
        if table.weights.min() <= 0 or judged.data.min(initial=1) <= 0:
            tests.append(PairTest(*between, i, j, table.weights))
            continue
        known, (n, m) = judged.tocoo(), judged.shape
        rows = np.union1d(np.setdiff1d(np.arange(n), known.row), i)
        cols = np.union1d(np.setdiff1d(np.arange(m), known.col), j)
        tests.append(PartnerTest(*between, (i, j), rows, cols))
    return tuple(tests)


def judged_pairs(links: Links, between: tuple[str, str]) -> tuple[Array, Array, Array]:
    """Return rows, columns and weights of judged pairs, each pair once."""
    pairs = links.judged(*between)
    pairs = (sparse.triu(pairs) if between[0] == between[1] else pairs).tocoo()
    return pairs.row, pairs.col, pairs.data
