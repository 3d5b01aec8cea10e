"""Judging what CrossViewSearch suggests, against judging random pairs.

A simulated person judges pairs by what is known of them, some at a time; the model
learns from each batch without another fit and suggests the next. Test items, or the
partners of half of the items, are in no judged pair.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.links import Links
from linkspread.metrics import partner_ranks, rank_summary
from linkspread.models import CrossViewSearch
from linkspread.studies.collections import load_benchmark
from linkspread.studies.methods import Method
from linkspread.studies.partners import PARTNERS, load_partners
from linkspread.studies.report.study import Study
from linkspread.studies.running import (
    Measured,
    Task,
    average_of_directions,
    measured,
    run_tasks,
)

Array = np.ndarray

SUGGESTED, RANDOM = "suggested pairs", "random pairs"
AMOUNTS = {SUGGESTED: (50, 100, 200, 500), RANDOM: (50, 100, 200, 500, 1_000)}
# Pairs suggested together, and first pairs where the views share no space: random ones,
# or partners, which random pairs of single partners would hardly ever be.
BATCH, N_START = 25, 10


@dataclass
class Judging:
    """Items that may be judged, who answers, and how a model is measured."""

    views: dict[str, Any]
    rows: Array
    columns: Array
    start: Array  # pairs judged first
    labels: Array | None = None
    test: Any = None  # rows, or pairs of partners
    partners: dict[int, int] | None = None

    def judge(self, i: Array, j: Array) -> Links:
        """Return the answers to pairs."""
        if self.labels is not None:
            same = self.labels[i] == self.labels[j]
        else:
            assert self.partners is not None
            own = [self.partners.get(int(k), -1) for k in i]
            same = np.array(own, dtype=np.int64) == j
        first, second = self.views
        table: Any = np.column_stack([i, j, np.where(same, 1.0, -1.0)])
        return Links.from_pairs(table, between=(first, second))

    def quality(self, model: Any) -> float:
        """Return the precision, or the recall of partners, of both directions."""
        first, second = self.views
        if self.labels is not None:
            block = model.scores(first, second, rows=self.test, cols=self.test)
            back = model.scores(second, first, rows=self.test, cols=self.test)
            return average_of_directions((block, back), self.labels[self.test])
        found = []
        for way, (queries, partners) in (
            ((first, second), self.test.T),
            ((second, first), self.test.T[::-1]),
        ):
            table = model.scores(*way)
            ranks = partner_ranks(
                table.__getitem__, queries, partners, n_candidates=table.shape[1]
            )
            found.append(rank_summary(ranks)["recall at 1"])
        return float(np.mean(found))


def make_judgings(
    name: str, folder: Path | None, n_repetitions: int
) -> Iterator[Judging]:
    """Yield the split of each repetition of a collection."""
    if name in PARTNERS:
        data = load_partners(name, folder)
        sizes = [X.shape[0] for X in data.views.values()]
        for seed in range(n_repetitions):
            rng = np.random.default_rng(seed)
            known, test = np.array_split(rng.permutation(data.pairs), 2)
            # Half of the partners, and of the items without one, may be judged.
            sides = []
            for k, size in enumerate(sizes):
                single = np.setdiff1d(np.arange(size), data.pairs[:, k])
                chosen = rng.permutation(single)[::2]
                sides.append(np.sort(np.concatenate([known[:, k], chosen])))
            start = known[: 0 if data.shared_space else N_START]
            partners = dict(known.tolist())
            views = dict(data.views)
            rows, columns = sides
            own = views, rows, columns, start
            yield Judging(*own, test=test, partners=partners)
        return
    benchmark = load_benchmark(name, folder)
    data = benchmark.collection
    for seed, split in enumerate(benchmark.splits(n_repetitions)[1:]):
        rng = np.random.default_rng(seed)
        start = rng.choice(split.train, (N_START, 2))
        own = dict(data.views), split.train, split.train, start
        yield Judging(*own, labels=data.labels, test=split.test)


def run_suggesting(
    study: Study,
    judgings: Sequence[Judging],
    *,
    amounts: Any = None,
    batch: int = BATCH,
    **running: Any,
) -> Study:
    """Measure a model at several numbers of judgements, suggested or random."""
    amounts = AMOUNTS if amounts is None else amounts
    is_class = judgings[0].labels is not None
    measure_name = "mean average precision" if is_class else "recall at 1"
    tasks = [
        Task(
            Method(name, "", CrossViewSearch()),
            f"draw {seed + 1}",
            tuple(("links", amount, name) for amount in amounts[name]),
            (judging, seed),
        )
        for seed, judging in enumerate(judgings)
        for name in amounts
    ]

    def measure(task: Task) -> Iterator[Measured]:
        judging, seed = task.given
        name, start = task.method.name, time.perf_counter()
        session = _Session(judging, seed, name == SUGGESTED, batch)
        for key in task.cells:
            assert key[1] is not None
            session.judge(key[1])
            score = judging.quality(session.model)
            parameters = {"must-links": session.n_must}
            yield measured(task, key, score, start, parameters)

    study = replace(study, ours=SUGGESTED, measure=measure_name)
    return run_tasks(study, tasks, measure, **running)


class _Session:
    """A model and the pairs that were judged so far."""

    def __init__(self, judging: Judging, seed: int, suggested: bool, batch: int):
        self.judging, self.suggested, self.batch = judging, suggested, batch
        self.seed, self.rng = seed, np.random.default_rng(seed)
        self.n_must = 0
        start = np.unique(judging.start, axis=0)
        links = self._answer(*start.T) if len(start) else Links()
        self.asked = {(int(i), int(j)) for i, j in start}
        self.model = CrossViewSearch(random_state=seed).fit(judging.views, links)

    def judge(self, amount: int) -> None:
        """Judge pairs until there are so many."""
        while len(self.asked) < amount:
            n = min(self.batch, amount - len(self.asked))
            i, j = self._suggested(n) if self.suggested else self._random(n)
            self.asked |= set(zip(i.tolist(), j.tolist(), strict=True))
            self.model.add_links(self._answer(i, j))

    def _answer(self, i: Array, j: Array) -> Links:
        links = self.judging.judge(i, j)
        self.n_must += int(np.sum(links.pair_tables[0][1].weights > 0))
        return links

    def _suggested(self, n: int) -> tuple[Array, Array]:
        source, target = self.judging.views
        size = self.model.items_[target].n_items
        return self.model.suggest_pairs(
            n,
            source=source,
            target=target,
            queries=self.judging.rows,
            exclude=np.setdiff1d(np.arange(size), self.judging.columns),
            random_state=self.seed + len(self.asked),
        )

    def _random(self, n: int) -> tuple[Array, Array]:
        chosen: set[tuple[int, int]] = set()
        while len(chosen) < n:
            pair = (
                self.rng.choice(self.judging.rows),
                self.rng.choice(self.judging.columns),
            )
            chosen |= {(int(pair[0]), int(pair[1]))} - self.asked
        table = np.array(sorted(chosen))
        return table[:, 0], table[:, 1]
