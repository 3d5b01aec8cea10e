"""Simulated judging: precision against pairs judged, suggested ones and random ones.

Labels of the training items answer every pair that is asked: must-link for the same
class, cannot-link otherwise. One learner with fixed parameters learns from both kinds.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from linkspread.ground.errors import LinkspreadError
from linkspread.links import Links
from linkspread.metrics import mean_average_precision
from linkspread.models import LinkSpreading
from linkspread.studies.report import BudgetCell, BudgetStudy
from linkspread.studies.splits import Split, random_links

Array = np.ndarray

SUGGESTED, RANDOM = "suggested pairs", "random pairs"
# A model must be fitted to suggest: so many pairs are random, and count as judged.
N_START = 10
AMOUNTS = (50, 100, 200, 300, 500, 1_000)


@dataclass(frozen=True)
class _Result:
    """What one learner reached with one number of judged pairs."""

    amount: int
    method: str
    score: float
    seconds: float
    n_musts: int


def judging_learner(metrics: Mapping[str, Sequence[str]]) -> LinkSpreading:
    """Return the learner of the study, not fitted."""
    metric = {view: names[-1] for view, names in metrics.items()}
    return LinkSpreading(metric=metric, alpha=0.9, rank=16, tol=1e-3)


def run_judging(
    collection: Any,
    splits: Sequence[Split],
    learner: Any,
    *,
    title: str,
    introduction: str,
    command: str,
    name: str,
    environment: Mapping[str, str],
    amounts: Sequence[int] = AMOUNTS,
    keep: Callable[[BudgetStudy], Any] | None = None,
    step: Callable[[str], None] = print,
) -> BudgetStudy:
    """Measure what judged pairs teach, suggested ones against random ones.

    Suggested pairs are asked in rounds: the model fitted to one amount suggests the
    pairs up to the next. Test items are in the graphs, and in no pair.
    """
    _check_amounts(amounts)
    study = BudgetStudy(
        title, introduction, command, name, SUGGESTED, (), dict(environment)
    )
    results: list[_Result] = []
    for seed, split in enumerate(splits):
        for measure in (_suggested, _random):
            for result in measure(collection, split, learner, amounts, seed):
                step(f"split {seed + 1}, {result.amount} {result.method}")
                results.append(result)
                study = replace(study, cells=_cells(results))
                if keep is not None:
                    keep(study)
    return study


def needed_judgements(study: BudgetStudy, n_random: int) -> int | None:
    """Return how many suggested pairs reach the precision of so many random ones."""
    aim = study.cell(("links", n_random), RANDOM)
    cells = [study.cell(budget, SUGGESTED) for budget in study.budgets]
    reached = [c.amount for c in cells if c and aim and c.mean >= aim.mean]
    return reached[0] if reached else None


def _suggested(
    collection: Any, split: Split, learner: Any, amounts: Sequence[int], seed: int
) -> Iterator[_Result]:
    """Judge what the model suggests, round by round."""
    first, second = collection.views
    start = time.perf_counter()
    links = random_links(
        collection.labels, split.train, (first, second), N_START, seed=seed
    )
    model, n_judged = clone(learner).fit(collection.views, links), N_START
    for amount in amounts:
        i, j = model.suggest_pairs(
            amount - n_judged,
            source=first,
            target=second,
            queries=split.train,
            exclude=split.test,
            random_state=seed,
        )
        links, n_judged = links + _answers(collection, i, j), amount
        model = clone(learner).fit(collection.views, links)
        yield _result(model, collection, split, SUGGESTED, amount, start)
        start = time.perf_counter()


def _random(
    collection: Any, split: Split, learner: Any, amounts: Sequence[int], seed: int
) -> Iterator[_Result]:
    """Judge pairs of training items that are drawn blindly."""
    views = list(collection.views)
    for amount in amounts:
        start = time.perf_counter()
        links = random_links(collection.labels, split.train, views, amount, seed=seed)
        model = clone(learner).fit(collection.views, links)
        yield _result(model, collection, split, RANDOM, amount, start)


def _answers(collection: Any, i: Array, j: Array) -> Links:
    """Return the links that somebody who knows all labels gives some pairs."""
    labels = collection.labels
    table: Any = np.column_stack([i, j, np.where(labels[i] == labels[j], 1.0, -1.0)])
    first, second = collection.views
    return Links.from_pairs(table, between=(first, second))


def _result(
    model: Any, collection: Any, split: Split, method: str, amount: int, start: float
) -> _Result:
    """Measure a fitted model among the test items, in both directions."""
    y = collection.labels[split.test]
    first, second = collection.views
    block = model.scores(first, second, rows=split.test, cols=split.test)
    values = [
        mean_average_precision(scores, y, y)
        for scores in (block, np.ascontiguousarray(block.T))
    ]
    seconds = time.perf_counter() - start
    n_musts = int(np.sum(model.links_.judged(first, second).data > 0))
    return _Result(amount, method, float(np.mean(values)), seconds, n_musts)


def _cells(results: Sequence[_Result]) -> tuple[BudgetCell, ...]:
    """Return the results by amount and method, repetitions together."""
    keys = dict.fromkeys((result.amount, result.method) for result in results)
    cells = []
    for amount, method in keys:
        own = [r for r in results if (r.amount, r.method) == (amount, method)]
        cells.append(
            BudgetCell(
                kind="links",
                amount=amount,
                method=method,
                scores=tuple(r.score for r in own),
                seconds=float(np.mean([r.seconds for r in own])),
                parameters=tuple({"must-links": r.n_musts} for r in own),
            )
        )
    return tuple(cells)


def _check_amounts(amounts: Sequence[int]) -> None:
    """Refuse amounts that cannot be reached one after the other."""
    steps = np.diff([N_START, *amounts])
    if len(steps) == 0 or np.any(steps <= 0):
        raise LinkspreadError(
            f"`amounts` must increase, from more than {N_START} on, got "
            f"{list(amounts)}. Leave them out for the default."
        )
