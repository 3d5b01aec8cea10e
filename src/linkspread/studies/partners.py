"""Finding the partner: recall against matched or judged pairs, beside what there was.

Items of one view have one partner in the other, which is searched among all items of
that view. With no pair known, the search is what the user had before: the cosine where
the views share a space, chance elsewhere.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.datasets import (
    Partners,
    load_catalogues,
    load_digits_views,
    load_fonts,
)
from linkspread.graphs.memory import remember_tables
from linkspread.ground.errors import FewLinksError, LinkspreadError
from linkspread.ground.progress import announce
from linkspread.links import Links
from linkspread.metrics import assignment_quality, partner_ranks, rank_summary
from linkspread.studies.baselines import CosineMatching, RidgeMap, RidgeToIdentity
from linkspread.studies.baselines.matching import PairMatching
from linkspread.studies.baselines.memory import Memory
from linkspread.studies.baselines.side import corrected_scores
from linkspread.studies.budgets import Budget, run_cells
from linkspread.studies.measures import choose, chosen_parameters
from linkspread.studies.methods import LEARNER, Method, partner_methods
from linkspread.studies.report import BudgetCell, BudgetStudy
from linkspread.studies.report.budgets import budget_text

Array = np.ndarray

MATCHED = (0, 10, 30, 100, 300, 1_000)
JUDGED = (0, 30, 100, 300, 1_000, 3_000)
HUBS = 10  # neighbours, as in [Conneau2018]
CHANCE, COSINE, WITH_HUBS = "chance", "cosine", " + hubs"
# A person who judges looks at so many results of each search.
N_LOOKED_AT = 5
# Where nothing is shared there is no search to judge: so many pairs are known first.
N_START = 10


def load_partners(name: str, folder: Path | None = None) -> Partners:
    """Load a collection of partners by name."""
    if name not in PARTNERS:
        raise LinkspreadError(
            f"the collection must be one of {list(PARTNERS)}, got {name!r}. Choose one "
            "of these."
        )
    return PARTNERS[name](folder)


def _catalogues(name: str, features: str = "tfidf") -> Callable[..., Partners]:
    """Return a loader of two catalogues."""
    return lambda folder: load_catalogues(name, folder, features=features)


def _digits(first: str, second: str) -> Callable[..., Partners]:
    """Return a loader of two views of the digits."""

    def load(folder: Path | None) -> Partners:
        data = load_digits_views(folder)
        return replace(
            data,
            views={view: data.views[view] for view in (first, second)},
            ids={view: data.ids[view] for view in (first, second)},
            metrics={view: data.metrics[view] for view in (first, second)},
        )

    return load


PARTNERS: dict[str, Callable[..., Partners]] = {
    "abt-buy": _catalogues("abt-buy"),
    "amazon-google": _catalogues("amazon-google"),
    "abt-buy-sentences": _catalogues("abt-buy", "sentences"),
    "amazon-google-sentences": _catalogues("amazon-google", "sentences"),
    "digits-kar-pix": _digits("kar", "pix"),
    "digits-kar-fac": _digits("kar", "fac"),
    "digits-fou-fac": _digits("fou", "fac"),
    "digits-zer-pix": _digits("zer", "pix"),
    "fonts": lambda folder: load_fonts(),
}


@dataclass(frozen=True)
class _Known:
    """What is known at a budget, and what is asked."""

    links: Links
    pairs: Array


def plan_partners(
    collection: Partners,
    *,
    matched: Sequence[int] = MATCHED,
    judged: Sequence[int] = JUDGED,
) -> list[tuple[Budget, Method, tuple[str, ...]]]:
    """Return what is measured in each repetition, with the names of the rows."""
    had = Method(CHANCE, "", _Chance())
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
            methods = [had, *learning] if amount else [had]
            plan += [((kind, amount), m, _row_names(m)) for m in methods]
    return plan


def run_partners(
    collection: Partners,
    *,
    title: str,
    introduction: str,
    command: str,
    name: str,
    environment: Mapping[str, str],
    matched: Sequence[int] = MATCHED,
    judged: Sequence[int] = JUDGED,
    n_repetitions: int = 5,
    n_splits: int = 3,
    n_jobs: int = 1,
    before: BudgetStudy | None = None,
    keep: Callable[[BudgetStudy], Any] | None = None,
    step: Callable[[str], None] = print,
) -> BudgetStudy:
    """Measure every method at every amount of pairs."""
    study = BudgetStudy(
        title=title,
        introduction=introduction,
        command=command,
        collection=name,
        ours=LEARNER,
        cells=(),
        environment=dict(environment),
        measure="recall at 1",
        had=COSINE if collection.shared_space else "",
    )
    known = _KnownPairs(collection, sorted(judged))
    if judged:
        # Drawn here, or each process would draw them anew for each method.
        for seed in range(n_repetitions):
            known.at(("judged pairs", 0), seed)

    def measure(budget: Budget, method: Method, seed: int) -> list[BudgetCell]:
        return _measure(collection, known.at(budget, seed), budget, method, n_splits)

    return run_cells(
        study,
        plan_partners(collection, matched=matched, judged=judged),
        measure,
        n_repetitions=n_repetitions,
        n_jobs=n_jobs,
        before=before,
        keep=keep,
        step=step,
    )


def _row_names(method: Method) -> tuple[str, ...]:
    """Return the names of a method's rows: with and without hub correction."""
    if "hubs" not in method.model.get_params():
        return (method.name,)
    return method.name, method.name + WITH_HUBS


def _measure(
    collection: Partners, known: _Known, budget: Budget, method: Method, n_splits: int
) -> list[BudgetCell]:
    """Choose a method's parameters from what is known; measure with and without hubs.

    Hubs are corrected with the parameters that were chosen without.
    """
    start = time.perf_counter()
    with remember_tables():
        model, tuning = choose(method, collection.views, known.links, n_splits=n_splits)
        scores, back = _all_scores(model, collection, known)
    cells = []
    for name in _row_names(method):
        if name.endswith(WITH_HUBS):
            scores = corrected_scores(scores, HUBS)
            back = scores.T
        details = _qualities(scores, back, collection, known)
        # A row with hubs corrected needs all that the one without does.
        seconds = time.perf_counter() - start
        score = details["recall at 1"]
        announce(f"{budget_text(budget)}: {name}: {score:.3f}, {seconds:.0f} s")
        cell = BudgetCell(
            *budget,
            name,
            (score,),
            seconds,
            (chosen_parameters(tuning),),
            (details,),
        )
        cells.append(cell)
    return cells


def _all_scores(model: Any, collection: Partners, known: _Known) -> tuple[Array, Array]:
    """Fit a model to what is known; return the scores of all items, both ways."""
    first, second = collection.views
    shape = tuple(X.shape[0] for X in collection.views.values())
    is_symmetric = isinstance(model, PairMatching)
    if is_symmetric:
        # Scores are all that is asked for: vectors are made only where these need them.
        model.sharing(Memory())
    try:
        # All scores at once: these collections are small.
        model.fit(collection.views, known.links)
    except FewLinksError:
        # It can learn nothing from so few: every pair scores alike.
        return np.zeros(shape), np.zeros(shape[::-1])
    scores = model.scores(first, second)
    return scores, scores.T if is_symmetric else model.scores(second, first)


def _qualities(
    scores: Array, back: Array, collection: Partners, known: _Known
) -> dict[str, float]:
    """Return how well scores find the partners of all other items."""
    first, second = collection.views
    i, j = known.pairs.T
    ways = {
        f"{first} to {second}": (scores, i, j),
        f"{second} to {first}": (back, j, i),
    }
    summaries = {way: rank_summary(_ranks(*asked)) for way, asked in ways.items()}
    details = {
        measure: float(np.mean([own[measure] for own in summaries.values()]))
        for measure in next(iter(summaries.values()))
    }
    for way, own in summaries.items():
        details[f"recall at 1, {way}"] = own["recall at 1"]
    # Catalogues are to be matched row by row, pictures are searched.
    is_matched = collection.texts is not None
    return details | (
        _assigned(scores + back.T, collection, known) if is_matched else {}
    )


def _ranks(scores: Array, queries: Array, partners: Array) -> Array:
    """Return the ranks of partners in a whole table of scores."""
    return partner_ranks(
        lambda some: scores[some], queries, partners, n_candidates=scores.shape[1]
    )


def _assigned(scores: Array, collection: Partners, known: _Known) -> dict[str, float]:
    """Return the quality of a one-to-one assignment of all items without a must."""
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


class _Chance:
    """Score every pair at random."""

    def fit(self, views: Mapping[str, Any], links: Links) -> "_Chance":
        self.sizes_ = {view: X.shape[0] for view, X in views.items()}
        return self

    def scores(self, source: str, target: str) -> Array:
        shape = self.sizes_[source], self.sizes_[target]
        return np.random.default_rng(0).random(shape)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}


class _KnownPairs:
    """Draw what is known at each budget, once for all methods."""

    def __init__(self, collection: Partners, judged: Sequence[int]) -> None:
        self.collection, self.judged = collection, judged
        self._drawn: dict[int, tuple[Array, Array]] = {}

    def at(self, budget: Budget, seed: int) -> _Known:
        kind, amount = budget
        if kind == "matched pairs":
            return self._matched(amount or 0, seed)
        table, test = self._judged(seed)
        return _Known(self._links(table[:amount]), test)

    def _matched(self, amount: int, seed: int) -> _Known:
        """Return so many random pairs; larger amounts hold the smaller ones."""
        pairs = self.collection.pairs
        order = np.random.default_rng(seed).permutation(pairs)
        known, test = order[:amount], order[amount:]
        if not len(test):
            raise LinkspreadError(
                f"matched pairs must leave some partners to be found, got {amount} of "
                f"{len(pairs)}. Take fewer."
            )
        return _Known(self._links(known), test)

    def _links(self, table: Array) -> Links:
        """Return links of a table, which may be empty."""
        first, second = self.collection.views
        return (
            Links.from_pairs(table, between=(first, second)) if len(table) else Links()
        )

    def _judged(self, seed: int) -> tuple[Array, Array]:
        """Return judged pairs in their order, and partners that nobody judged.

        Half of the partners, and of the items without one, are never judged.
        """
        if seed not in self._drawn:
            rng = np.random.default_rng(seed)
            pairs = rng.permutation(self.collection.pairs)
            known, test = np.array_split(pairs, 2)
            judge = _Judge(self.collection, known, rng)
            for amount in self.judged:
                judge.judge(amount)
            self._drawn[seed] = judge.table(), test
        return self._drawn[seed]


class _Judge:
    """Judge pairs as a person would: results of the search so far, and random pairs."""

    def __init__(
        self, collection: Partners, pairs: Array, rng: np.random.Generator
    ) -> None:
        self.collection, self.rng = collection, rng
        self.partner_of = dict(pairs.tolist())
        tables = list(collection.views.values())
        self.items = [self._judgeable(k, pairs[:, k]) for k in range(len(tables))]
        self.verdicts: dict[tuple[int, int], bool] = {}
        if not collection.shared_space:
            for pair in pairs[:N_START].tolist():
                self._decide(*pair)

    def _judgeable(self, position: int, own: Array) -> Array:
        """Return the items of known pairs and half of those without a partner."""
        X = list(self.collection.views.values())[position]
        lonely = np.setdiff1d(np.arange(X.shape[0]), self.collection.pairs[:, position])
        return np.concatenate([own, self.rng.permutation(lonely)[::2]])

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

    def _results(self) -> Any:
        """Yield the first results of random searches, both directions in turn."""
        scores = self._search()
        while True:
            for k in (0, 1):
                query = int(self.rng.integers(len(self.items[k])))
                row = scores[query] if k == 0 else scores[:, query]
                best = np.argsort(-row, kind="stable")[:N_LOOKED_AT]
                one, many = self.items[k][query], self.items[1 - k][best]
                yield [
                    (int(one), int(m)) if k == 0 else (int(m), int(one)) for m in many
                ]

    def _search(self) -> Array:
        """Return the scores of the search so far between all judgeable items."""
        views = self.collection.views
        first, second = views
        table = self.table()
        must = table[table[:, 2] > 0, :2].astype(np.int64)
        model: Any = CosineMatching()
        if self.collection.shared_space and len(must):
            model = RidgeToIdentity()
        elif not self.collection.shared_space:
            model = RidgeMap()
        links = (
            Links.from_pairs(must, between=(first, second)) if len(must) else Links()
        )
        model.fit(views, links)
        return model.scores(first, second, rows=self.items[0], cols=self.items[1])
