"""Matching two catalogues: F1 against the number of judged candidates.

All methods get the same candidates and the same judgements, of random candidates or of
those that `CrossViewSearch` suggests. Judged pairs are known to all of them: must-links
are kept, cannot-links left out, and the rest is an assignment of the largest sum of
probabilities above a threshold.
"""

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from linkspread.datasets.collection import Partners
from linkspread.features.catalogues import describe_catalogues
from linkspread.ground.errors import LinkspreadError
from linkspread.judging.match_suggestion import suggest_matches
from linkspread.links import Links
from linkspread.models import CrossViewSearch
from linkspread.search.matching import assign
from linkspread.studies.methods import LEARNER, Method
from linkspread.studies.pair_classifiers import CLASSIFIERS, Catalogue
from linkspread.studies.report.study import Study
from linkspread.studies.running import Measured, Task, measured, run_tasks

Array = np.ndarray

AMOUNTS = (0, 30, 100, 300, 1_000)
SUGGESTED, RANDOM = "suggested judgements", "random judgements"
# Suggestions at a time: more at once where many are judged already.
STEPS = ((100, 20), (300, 100), (1_000, 350))
N_FOLDS = 5


class Known(NamedTuple):
    """Judged pairs, in the order in which they were judged."""

    left: Array
    right: Array
    is_must: Array

    def first(self, n: int) -> "Known":
        """Return the first judged pairs."""
        return Known(*(own[:n] for own in self))


@dataclass
class MatchingTask:
    """Two catalogues to match, with their candidates before anything is judged."""

    collection: Partners

    def __post_init__(self) -> None:
        first, second = self.collection.views
        self.views = first, second
        columns = self.collection.columns
        if columns is None:
            raise LinkspreadError(
                "the study of matching must have two catalogues with columns, got a "
                "collection without. Choose abt-buy or amazon-google."
            )
        self.compare = describe_catalogues(columns).compare
        self.model = CrossViewSearch().fit(self.collection.views)
        found = self.model.match(*self.views, compare=self.compare)
        assert found.rated is not None
        self.candidates = found.rated.pairs
        pairs = self.collection.pairs.astype(np.int64)
        self.true = np.sort(pairs[:, 0] * self.candidates.shape[1] + pairs[:, 1])
        self._drawn: dict[tuple[str, int], Known] = {}
        self._ours: dict[tuple[str, int, int], dict[str, float]] = {}

    @cached_property
    def catalogue(self) -> Catalogue:
        """What the baselines know of the catalogues."""
        columns = self.collection.columns
        assert columns is not None
        return Catalogue(self.collection.views, dict(columns), self.compare)

    def are_true(self, left: Array, right: Array) -> Array:
        """Return which pairs are partners."""
        return np.isin(
            left.astype(np.int64) * self.candidates.shape[1] + right, self.true
        )

    def known(self, kind: str, seed: int, amounts: Sequence[int]) -> Known:
        """Return the judged pairs of a repetition, for the largest amount."""
        if (kind, seed) not in self._drawn:
            if kind == RANDOM:
                rng = np.random.default_rng(seed)
                some = rng.permutation(len(self.candidates.left))[: amounts[-1]]
                i, j = self.candidates.left[some], self.candidates.right[some]
                self._drawn[kind, seed] = Known(i, j, self.are_true(i, j))
            else:
                self._drawn[kind, seed] = self._session(seed, amounts)
        return self._drawn[kind, seed]

    def _session(self, seed: int, amounts: Sequence[int]) -> Known:
        """Judge what is suggested, until the largest amount."""
        empty = np.zeros(0, np.int64)
        known = Known(empty, empty, empty.astype(bool))
        # Answers are added as a person's are: few of them choose the terms again.
        model = copy.copy(self.model)
        while True:
            matches = model.match(*self.views, compare=self.compare)
            n = len(known.left)
            if n in amounts:
                self._ours[SUGGESTED, seed, n] = self.quality_of(matches)
            if n >= amounts[-1]:
                return known
            step = next(own for most, own in STEPS if n < most)
            step = min(step, next(a for a in amounts if a > n) - n)
            i, j = suggest_matches(matches, step, random_state=seed)
            if not len(i):
                return known
            more = Known(i, j, self.are_true(i, j))
            model.add_links(self._links(more))
            known = Known(*map(np.concatenate, zip(known, more, strict=True)))

    def _links(self, known: Known) -> Links:
        """Return judged pairs as links."""
        verdicts = np.where(known.is_must, 1.0, -1.0)
        rows = np.column_stack([known.left, known.right, verdicts])
        return Links.from_pairs(rows, between=self.views)

    def match(self, known: Known) -> Any:
        """Match by `CrossViewSearch` with some judged pairs."""
        model = copy.copy(self.model)
        if len(known.left):
            model.add_links(self._links(known))
        return model.match(*self.views, compare=self.compare)

    def ours(self, kind: str, seed: int, amount: int, known: Known) -> dict[str, float]:
        """Return the quality of `CrossViewSearch`, perhaps measured before."""
        key = kind, seed, amount
        if key not in self._ours:
            self._ours[key] = self.quality_of(self.match(known))
        return self._ours[key]

    def quality_of(self, matches: Any) -> dict[str, float]:
        """Return the quality of matches by position."""
        right = self.are_true(matches.source_ids, matches.target_ids)
        found = self.quality(right, matches.is_judged)
        if matches.precision is not None:
            found["expected precision"] = matches.precision
        return found

    def quality(self, right: Array, is_judged: Array) -> dict[str, float]:
        """Return F1, precision and recall; precision also of matches not judged."""
        n_right, n = int(right.sum()), max(len(right), 1)
        new = right[~is_judged]
        return {
            "F1": 2 * n_right / (len(right) + len(self.true)),
            "precision": n_right / n,
            "recall": n_right / len(self.true),
            "precision of new matches": float(new.mean()) if len(new) else 1.0,
        }

    def classified(self, name: str, known: Known, seed: int) -> dict[str, float]:
        """Return the quality of a baseline that classifies candidates."""
        shape = self.candidates.shape
        pairs = [
            np.concatenate([a, b])
            for a, b in zip(self.candidates[:2], known[:2], strict=True)
        ]
        keys = np.unique(pairs[0] * shape[1] + pairs[1])
        i, j = np.divmod(keys, shape[1])
        judged = np.searchsorted(keys, known.left * shape[1] + known.right)
        y, make = known.is_must, CLASSIFIERS[name]
        p = self.catalogue.cosine(i, j)
        places, threshold = _shares(p), 0.0
        # Too few of a kind to learn from: the cosine, and all of its assignment.
        if min(y.sum(), (~y).sum()) >= 2:
            p = make(self.catalogue).fit(i[judged], j[judged], y).probability(i, j)
            places, held, held_p = _shares(p), _shares(p), p.copy()
            fold = np.random.default_rng(seed).integers(N_FOLDS, size=len(y))
            for k in range(N_FOLDS) if make.is_held_out else ():
                out, rest = judged[fold == k], judged[fold != k]
                kinds = y[fold != k]
                if len(out) and min(kinds.sum(), (~kinds).sum()) >= 2:
                    model = make(self.catalogue).fit(i[rest], j[rest], kinds)
                    own = model.probability(i, j)
                    held[out], held_p[out] = _shares(own)[out], own[out]
            chosen = assign(i, j, held_p + 1e-9, shape)[judged]
            threshold = _best_threshold(held[judged], chosen, y)
        must, out = judged[y], judged[~y]
        weight = p + 1e-9
        rows, columns = np.zeros(shape[0], bool), np.zeros(shape[1], bool)
        rows[i[must]] = columns[j[must]] = True
        weight[rows[i] | columns[j]] = 0
        weight[out] = 0
        chosen = assign(i, j, weight, shape) & (places >= threshold)
        chosen[must] = True
        is_judged = np.isin(np.arange(len(i)), must)
        return self.quality(self.are_true(i[chosen], j[chosen]), is_judged[chosen])


def _shares(p: Array) -> Array:
    """Return the share of pairs below each: comparable between fits, unlike p."""
    return (rankdata(p) - 1) / len(p)


def _best_threshold(held: Array, chosen: Array, y: Array) -> float:
    """Return the threshold with the largest F1 on judged pairs, held out."""
    best = 0.0, 0.0
    for threshold in np.unique(held):
        found = chosen & (held >= threshold)
        f1 = 2 * (found & y).sum() / max(found.sum() + y.sum(), 1)
        if f1 > best[0]:
            best = float(f1), float(threshold)
    return best[1]


def plan_matching(
    amounts: Sequence[int] = AMOUNTS,
) -> list[tuple[str, int, Method]]:
    """Return kind, amount and method of each measurement of a repetition."""
    methods = [Method(name, "", None) for name in (LEARNER, *CLASSIFIERS)]
    plan = [(RANDOM, 0, methods[0])]
    for kind in (SUGGESTED, RANDOM):
        plan += [(kind, n, method) for n in amounts if n for method in methods]
    return plan


def run_matching(
    study: Study,
    collection: Partners,
    *,
    amounts: Sequence[int] = AMOUNTS,
    n_repetitions: int = 5,
    **running: Any,
) -> Study:
    """Measure every method with suggested and with random judgements."""
    study = replace(study, ours=LEARNER, measure="F1")
    matching = MatchingTask(collection)
    tasks = [
        Task(method, f"draw {seed + 1}", ((kind, n, method.name),), (kind, n, seed))
        for seed in range(n_repetitions)
        for kind, n, method in plan_matching(amounts)
    ]

    def measure(task: Task) -> list[Measured]:
        kind, n, seed = task.given
        start = time.perf_counter()
        known = matching.known(kind, seed, amounts).first(n)
        if task.method.name == LEARNER:
            details = matching.ours(kind, seed, n, known)
        else:
            details = matching.classified(task.method.name, known, seed)
        return [measured(task, task.cells[0], details["F1"], start, {}, details)]

    return run_tasks(study, tasks, measure, **running)
