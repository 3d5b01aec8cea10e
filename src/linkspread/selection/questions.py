"""What is asked of a fitted model when its parameters are compared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.metrics import average_precision_score

from linkspread.links import Links
from linkspread.metrics import ScoreBlock, mean_average_precision, partner_ranks

Array = np.ndarray

# Scores of held-out pairs are computed in blocks of so many entries.
BLOCK_ENTRIES = 1 << 22


@dataclass(frozen=True)
class SingleScores:
    """Scores of blocks, and of single pairs without the blocks around them.

    Where vectors are long, a block of all their products takes far longer than what
    is asked of it.
    """

    block: ScoreBlock
    pairs: Callable[[str, str, Array, Array], Array]

    def __call__(self, source: str, target: str, *, rows: Any, cols: Any) -> Array:
        """Return a block of scores."""
        return self.block(source, target, rows=rows, cols=cols)


class Question(Protocol):
    """Something to measure with the scores of two views."""

    @property
    def source(self) -> str:
        """View of the queries."""

    @property
    def target(self) -> str:
        """View of the items that are searched."""

    @property
    def rows(self) -> Any:
        """Positions of the queries, or their features where they are new."""

    @property
    def cols(self) -> Array:
        """Positions of the items."""

    def measure(self, scores: ScoreBlock) -> float:
        """Return how well the scores answer; larger is better."""


@dataclass(frozen=True)
class ItemQuestion:
    """Find the items of the same class among items whose label was hidden."""

    source: str
    target: str
    rows: Any
    cols: Array
    query_labels: Array
    item_labels: Array
    both_ways: bool = True

    def measure(self, scores: ScoreBlock) -> float:
        """Return the mean average precision, the mean of both directions if asked."""
        block = scores(self.source, self.target, rows=self.rows, cols=self.cols)
        there = mean_average_precision(block, self.query_labels, self.item_labels)
        if not self.both_ways:
            return there
        back = np.ascontiguousarray(block.T)
        return (there + mean_average_precision(back, self.item_labels,
                                               self.query_labels)) / 2  # fmt: skip


@dataclass(frozen=True)
class PairQuestion:
    """Tell held-out must-links from held-out cannot-links."""

    source: str
    target: str
    rows: Array
    cols: Array
    weights: Array

    @classmethod
    def of_partners(
        cls, source: str, target: str, i: Array, j: Array, *, n_asked: int
    ) -> "PairQuestion":
        """Ask for all pairs of some partners' items, those not linked as cannot."""
        chosen = np.random.default_rng(0).permutation(len(i))[:n_asked]
        rows, own_i = np.unique(i[chosen], return_inverse=True)
        cols, own_j = np.unique(j[chosen], return_inverse=True)
        weights = np.full((len(rows), len(cols)), -1.0)
        weights[own_i, own_j] = 1.0
        p, q = (own.ravel() for own in np.indices(weights.shape))
        # Within a view nothing is its own partner.
        apart = rows[p] != cols[q] if source == target else p >= 0
        p, q = p[apart], q[apart]
        return cls(source, target, rows[p], cols[q], weights[p, q])

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
            block = scores(
                self.source, self.target, rows=rows[start : start + step], cols=cols
            )
            here = (row_place >= start) & (row_place < start + step)
            values[here] = block[row_place[here] - start, place[here]]
        return values


@dataclass(frozen=True)
class PartnerQuestion:
    """Find held-out partners among all items that no link of the fit judges.

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

        def is_same(candidates: Array) -> Callable[[Array], Array] | None:
            if self.source != self.target:
                return None
            return lambda some: some[:, None] == candidates

        i, j = self.held_out
        ways = (there, i, j, self.cols), (back, j, i, self.rows)
        ranks = [
            partner_ranks(
                score,
                queries,
                np.searchsorted(candidates, partners),
                n_candidates=len(candidates),
                itself=is_same(candidates),
            )
            for score, queries, partners, candidates in ways
        ]
        return float(np.mean([1 / own for own in ranks]))


@dataclass(frozen=True)
class Trial:
    """One fit and what is asked of it."""

    views: Mapping[str, Any]
    links: Links
    questions: tuple[Question, ...]

    def measure(self, scores: ScoreBlock) -> list[float]:
        """Return the answer to every question."""
        return [question.measure(scores) for question in self.questions]
