"""Finding partners: recall against the number of matched or judged pairs.

Each item has at most one partner, which is searched among all items of the other view.
Before any pair is known, the search is the cosine in a shared space, else chance.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linkspread.datasets import load_catalogues, load_digits_views, load_fonts
from linkspread.datasets.collection import Partners
from linkspread.graphs.neighbors import cache_tables
from linkspread.ground.errors import FewLinksError, LinkspreadError
from linkspread.links import Links
from linkspread.metrics import assignment_quality, partner_ranks, rank_summary
from linkspread.studies.baselines import (
    BilinearRidge,
    CosineMatching,
    RidgeMap,
    RidgeToIdentity,
)
from linkspread.studies.baselines.matching import PairMatching, corrected_scores
from linkspread.studies.methods import CHANCE, LEARNER, Chance, Method, partner_methods
from linkspread.studies.report.study import Budget, Study
from linkspread.studies.running import (
    Measured,
    Task,
    choose,
    chosen_parameters,
    measured,
    run_tasks,
)

Array = np.ndarray

MATCHED = (0, 10, 30, 100, 300, 1_000)
JUDGED = (0, 30, 100, 300, 1_000, 3_000)
HUBS = 10  # neighbours, as in [Conneau2018]
COSINE, WITH_HUBS = "cosine", " + hubs"
# Results of each search that are judged.
N_RESULTS = 5
# Pairs that are known at first where views share no space and cannot be searched.
N_START = 10
DIGITS = ("kar-pix", "kar-fac", "fou-fac", "zer-pix")
PARTNERS = (
    "abt-buy",
    "amazon-google",
    "abt-buy-sentences",
    "amazon-google-sentences",
    *(f"digits-{pair}" for pair in DIGITS),
    "fonts",
)


def load_partners(name: str, folder: Path | None = None) -> Partners:
    """Load a collection of partners by name."""
    if name not in PARTNERS:
        raise LinkspreadError(
            f"the collection must be one of {list(PARTNERS)}, got {name!r}. Choose one "
            "of these."
        )
    if name == "fonts":
        return load_fonts()
    if not name.startswith("digits-"):
        shop = name.removesuffix("-sentences")
        features = "tfidf" if shop == name else "sentences"
        return load_catalogues(shop, folder, features=features)
    data, views = load_digits_views(folder), name.split("-")[1:]
    return replace(
        data,
        views={view: data.views[view] for view in views},
        ids={view: data.ids[view] for view in views},
        metrics={view: data.metrics[view] for view in views},
    )


def plan_partners(
    collection: Partners,
    *,
    matched: Sequence[int] = MATCHED,
    judged: Sequence[int] = JUDGED,
) -> list[tuple[Budget, Method, tuple[str, ...]]]:
    """Return the measurements of each repetition, with the names of the rows."""
    had = Method(CHANCE, "", Chance())
    if collection.shared_space:
        had = Method(COSINE, "", CosineMatching())
    plan: list[tuple[Budget, Method, tuple[str, ...]]] = []
    for kind, amounts in (("matched pairs", matched), ("judged pairs", judged)):
        learning = partner_methods(
            collection.metrics,
            shared_space=collection.shared_space,
            with_cannot=kind == "judged pairs",
        )
        for amount in amounts:
            for method in [had, *learning] if amount else [had]:
                rows: tuple[str, ...] = (method.name,)
                is_pair = isinstance(method.model, PairMatching)
                if is_pair and not isinstance(method.model, BilinearRidge):
                    rows = method.name, method.name + WITH_HUBS
                plan.append((Budget(kind, amount), method, rows))
    return plan


def run_partners(
    study: Study,
    collection: Partners,
    *,
    matched: Sequence[int] = MATCHED,
    judged: Sequence[int] = JUDGED,
    n_repetitions: int = 5,
    n_splits: int = 3,
    **running: Any,
) -> Study:
    """Measure every method at every amount of pairs."""
    study = replace(
        study,
        ours=LEARNER,
        measure="recall at 1",
        had=COSINE if collection.shared_space else "",
    )
    known = _KnownPairs(collection, sorted(judged))
    # Drawn here, so that processes need not draw them again for each method.
    for seed in range(n_repetitions) if judged else ():
        known.at(Budget("judged pairs", 0), seed)
    plan = plan_partners(collection, matched=matched, judged=judged)
    tasks = [
        Task(
            method,
            f"draw {seed + 1}",
            tuple((*budget, row) for row in rows),
            (budget, seed),
        )
        for seed in range(n_repetitions)
        for budget, method, rows in plan
    ]

    def measure(task: Task) -> list[Measured]:
        return _measure(collection, known.at(*task.given), task, n_splits)

    return run_tasks(study, tasks, measure, **running)


class _Known(NamedTuple):
    """The links known at a budget, and the pairs to find."""

    links: Links
    pairs: Array


def _measure(
    collection: Partners, known: _Known, task: Task, n_splits: int
) -> list[Measured]:
    """Choose a method's parameters, and measure with and without hub correction.

    The correction uses the parameters that were chosen without it.
    """
    start = time.perf_counter()
    with cache_tables():
        model, tuning = choose(
            task.method, collection.views, known.links, n_splits=n_splits
        )
        scores, back = _all_scores(model, collection, known)
    found = []
    for key in task.cells:
        if key[2].endswith(WITH_HUBS):
            scores = corrected_scores(scores, HUBS)
            back = scores.T
        details = _qualities(scores, back, collection, known)
        score, chosen = details["recall at 1"], chosen_parameters(tuning)
        # A row with hub correction includes the time of the row without.
        found.append(measured(task, key, score, start, chosen, details))
    return found


def _all_scores(model: Any, collection: Partners, known: _Known) -> tuple[Array, Array]:
    """Fit a model to known links; return the scores of all items, both ways."""
    first, second = collection.views
    shape = tuple(X.shape[0] for X in collection.views.values())
    is_symmetric = isinstance(model, PairMatching)
    if is_symmetric:
        # Only scores are needed: vectors are made only where scores need them.
        model.sharing_with(None)
    try:
        # All scores at once: these collections are small.
        model.fit(collection.views, known.links)
    except FewLinksError:
        # Too few links to learn from: all scores are equal.
        return np.zeros(shape), np.zeros(shape[::-1])
    scores = model.scores(first, second)
    return scores, scores.T if is_symmetric else model.scores(second, first)


def _qualities(
    scores: Array, back: Array, collection: Partners, known: _Known
) -> dict[str, float]:
    """Return how well scores find the partners that are not known."""
    first, second = collection.views
    i, j = known.pairs.T
    ways = {
        f"{first} to {second}": (scores, i, j),
        f"{second} to {first}": (back, j, i),
    }
    summaries = {}
    for way, (table, queries, partners) in ways.items():
        ranks = partner_ranks(
            table.__getitem__, queries, partners, n_candidates=table.shape[1]
        )
        summaries[way] = rank_summary(ranks)
    details = {
        measure: float(np.mean([own[measure] for own in summaries.values()]))
        for measure in next(iter(summaries.values()))
    }
    for way, own in summaries.items():
        details[f"recall at 1, {way}"] = own["recall at 1"]
    # Catalogues are matched row by row, pictures are searched.
    if collection.texts is not None:
        details |= _assigned(scores + back.T, collection, known)
    return details


def _assigned(scores: Array, collection: Partners, known: _Known) -> dict[str, float]:
    """Return the quality of a one-to-one assignment of items without must-links."""
    first, second = collection.views
    sizes = {view: X.shape[0] for view, X in collection.views.items()}
    links = known.links.resolve(sizes)
    taken = [np.zeros(size, dtype=bool) for size in sizes.values()]
    if links.connects(first, second):
        judged = links.judged(first, second).tocoo()
        taken[0][judged.row[judged.data > 0]] = True
        taken[1][judged.col[judged.data > 0]] = True
    rows, cols = (np.flatnonzero(~own) for own in taken)
    i, j = collection.pairs.T
    i, j = (own[~taken[0][i] & ~taken[1][j]] for own in (i, j))
    places = np.searchsorted(rows, i), np.searchsorted(cols, j)
    quality = assignment_quality(scores[np.ix_(rows, cols)], np.column_stack(places))
    return {f"assignment {name}": value for name, value in quality._asdict().items()}


class _KnownPairs:
    """Draw the known pairs of each budget, once for all methods."""

    def __init__(self, collection: Partners, judged: Sequence[int]) -> None:
        self.collection, self.amounts = collection, judged
        self._drawn: dict[int, tuple[Array, Array]] = {}

    def at(self, budget: Budget, seed: int) -> _Known:
        kind, amount = budget
        if kind == "judged pairs":
            if seed not in self._drawn:
                self._drawn[seed] = self._judge(np.random.default_rng(seed))
            table, test = self._drawn[seed]
            return _Known(_links(self.collection, table[:amount]), test)
        # Larger amounts hold the smaller ones.
        pairs, amount = self.collection.pairs, amount or 0
        order = np.random.default_rng(seed).permutation(pairs)
        if amount >= len(pairs):
            raise LinkspreadError(
                f"matched pairs must leave some partners to be found, got {amount} of "
                f"{len(pairs)}. Take fewer."
            )
        return _Known(_links(self.collection, order[:amount]), order[amount:])

    def _judge(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return judged pairs in their order, and the partners to find.

        Half of the partners, and of the items without one, are never judged.
        """
        known, test = np.array_split(rng.permutation(self.collection.pairs), 2)
        judge = _Judge(self.collection, known, rng)
        for amount in self.amounts:
            judge.judge(amount)
        return judge.table(), test


def _links(collection: Partners, table: Array) -> Links:
    """Return links of a table, which may be empty."""
    first, second = collection.views
    return Links.from_pairs(table, between=(first, second)) if len(table) else Links()


class _Judge:
    """Simulate a person: judge results of the current search, and random pairs."""

    def __init__(
        self, collection: Partners, pairs: Array, rng: np.random.Generator
    ) -> None:
        self.collection, self.rng = collection, rng
        self.partner_of = dict(pairs.tolist())
        # The items of known pairs and half of those without a partner.
        self.items = []
        for k, X in enumerate(collection.views.values()):
            unpaired = np.setdiff1d(np.arange(X.shape[0]), collection.pairs[:, k])
            chosen = rng.permutation(unpaired)[::2]
            self.items.append(np.concatenate([pairs[:, k], chosen]))
        self.verdicts: dict[tuple[int, int], bool] = {}
        if not collection.shared_space:
            for pair in pairs[:N_START].tolist():
                self._decide(*pair)

    def judge(self, amount: int) -> None:
        """Judge up to so many pairs, every other one a random pair."""
        if amount <= len(self.verdicts):
            return
        results = self._results()
        while len(self.verdicts) < amount:
            for pair in next(results):
                self._decide(*pair)
                self._decide(*(int(self.rng.choice(own)) for own in self.items))
                if len(self.verdicts) >= amount:
                    break

    def table(self) -> Array:
        """Return rows of (item, item, 1 or -1)."""
        rows = [(i, j, 1.0 if same else -1.0) for (i, j), same in self.verdicts.items()]
        return np.array(rows).reshape(-1, 3)

    def _decide(self, i: int, j: int) -> None:
        """Judge a pair once."""
        self.verdicts.setdefault((i, j), self.partner_of.get(i) == j)

    def _results(self) -> Iterator[list[tuple[int, int]]]:
        """Yield the first results of random searches, both directions in turn."""
        scores = self._search()
        while True:
            for k in (0, 1):
                query = int(self.rng.integers(len(self.items[k])))
                row = scores[query] if k == 0 else scores[:, query]
                best = np.argsort(-row, kind="stable")[:N_RESULTS]
                one, many = self.items[k][query], self.items[1 - k][best]
                yield [
                    (int(one), int(m)) if k == 0 else (int(m), int(one)) for m in many
                ]

    def _search(self) -> Array:
        """Return the current scores between the items that may be judged."""
        first, second = self.collection.views
        table = self.table()
        must = table[table[:, 2] > 0, :2].astype(np.int64)
        model: Any = CosineMatching()
        if not self.collection.shared_space:
            model = RidgeMap()
        elif len(must):
            model = RidgeToIdentity()
        links = _links(self.collection, must)
        model.fit(self.collection.views, links)
        return model.scores(first, second, rows=self.items[0], cols=self.items[1])
