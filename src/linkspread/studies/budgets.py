"""Precision against the amount of labels, links, matched rows or judged pairs.

Every method is tuned on what is known. In the study of judging, one model with fixed
parameters is fitted to pairs that it suggested, and to random pairs.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from linkspread.ground.errors import FewLinksError, LinkspreadError
from linkspread.links import Links
from linkspread.models import LinkSpreading
from linkspread.studies.collections import (
    Split,
    judged_links,
    label_links,
    matched_links,
    random_links,
)
from linkspread.studies.methods import (
    LEARNER,
    Method,
    label_methods,
    link_methods,
    matched_methods,
)
from linkspread.studies.report.study import Budget, Study
from linkspread.studies.running import (
    Measured,
    Task,
    average_of_directions,
    choose,
    chosen_parameters,
    measured,
    run_tasks,
    score_test,
)

Array = np.ndarray

# Labels a class, None for all of them, and random links.
LABELS = (1, 3, 10, 30, None)
LINKS = (300, 1_000, 3_000, 10_000, 30_000, 100_000)
# Few labels make noisy folds: they are drawn several times.
N_REPEATS_FOR_FEW = 3
FEW = 10

SUGGESTED, RANDOM = "suggested pairs", "random pairs"
# Random pairs for the first fit, before which nothing can be suggested; they count.
N_START = 10
AMOUNTS = (50, 100, 200, 300, 500, 1_000)


def run_budgets(
    study: Study,
    collection: Any,
    splits: Sequence[Split],
    *,
    metrics: Mapping[str, Sequence[str]],
    labels: Sequence[int | None] = LABELS,
    links: Sequence[int] = LINKS,
    matched: bool = True,
    n_splits: int = 5,
    **running: Any,
) -> Study:
    """Measure every method at every amount of supervision.

    Split by split, so that an interrupted study has measured all methods equally often.
    """
    plan = plan_budgets(metrics, labels=labels, links=links, matched=matched)
    tasks = [
        Task(method, split.name, ((*budget, method.name),), (split, seed, budget))
        for seed, split in enumerate(splits)
        for budget, method in plan
    ]

    def measure(task: Task) -> list[Measured]:
        split, seed, budget = task.given
        start = time.perf_counter()
        known = _known_links(collection, split, budget, seed)
        is_few = budget.kind == "labels per class" and (budget.amount or FEW) < FEW
        repeats = N_REPEATS_FOR_FEW if is_few else 1
        settings: Any = {"n_splits": n_splits, "n_repeats": repeats}
        model, tuning = choose(task.method, collection.views, known, **settings)
        score = _average(model, collection, split, known)
        chosen = chosen_parameters(tuning)
        return [measured(task, task.cells[0], score, start, chosen)]

    study = replace(study, ours=LEARNER)
    return run_tasks(study, tasks, measure, **running)


def plan_budgets(
    metrics: Mapping[str, Sequence[str]],
    *,
    labels: Sequence[int | None] = LABELS,
    links: Sequence[int] = LINKS,
    matched: bool = True,
) -> list[tuple[Budget, Method]]:
    """Return the measurements of each split, in order."""
    budgets = [(Budget("labels per class", k), label_methods(metrics)) for k in labels]
    budgets += [(Budget("links", k), link_methods(metrics)) for k in links]
    if matched:
        budgets.append((Budget("matched pairs", None), matched_methods(metrics)))
    return [(budget, method) for budget, methods in budgets for method in methods]


def _known_links(collection: Any, split: Split, budget: Budget, seed: int) -> Links:
    """Return what is known of the training rows at this budget."""
    labels, views = collection.labels, list(collection.views)
    if budget.kind == "links" and budget.amount is not None:
        return random_links(labels, split.train, views, budget.amount, seed=seed)
    if budget.kind == "matched pairs":
        return matched_links(split.train, views)
    known = split.train
    if budget.amount is not None:
        order = np.random.default_rng(seed).permutation(split.train)
        classes = np.unique(labels)
        chosen = [order[labels[order] == c][: budget.amount] for c in classes]
        known = np.sort(np.concatenate(chosen))
    return label_links(labels, known, views)


def _average(model: Any, collection: Any, split: Split, links: Links) -> float:
    """Return the mean average precision among the test items, of both directions."""
    y = collection.labels[split.test]
    views = collection.views
    try:
        blocks = score_test(model, views, links, split.test, protocol="transductive")
    except FewLinksError:
        # Too few links to learn from: all scores are equal.
        return average_of_directions([np.zeros((len(y), len(y)))], y)
    return average_of_directions(blocks.values(), y)


def judging_learner(metrics: Mapping[str, Sequence[str]]) -> LinkSpreading:
    """Return the model of the study of judging, not fitted."""
    metric = {view: names[-1] for view, names in metrics.items()}
    return LinkSpreading(metric=metric, alpha=0.9, rank=16, tol=1e-3)


def run_judging(
    study: Study,
    collection: Any,
    splits: Sequence[Split],
    learner: Any,
    *,
    amounts: Sequence[int] = AMOUNTS,
    **running: Any,
) -> Study:
    """Measure the gain from judged pairs, suggested ones against random ones.

    Pairs are judged by the labels of the training items. Suggested pairs come in
    rounds: the model fitted to one amount suggests the pairs up to the next. Test items
    are in the graphs, and in no pair.
    """
    steps = np.diff([N_START, *amounts])
    if len(steps) == 0 or np.any(steps <= 0):
        raise LinkspreadError(
            f"`amounts` must increase and be above {N_START}, got {list(amounts)}. "
            "Leave them out for the default."
        )
    rounds = {SUGGESTED: _suggested_rounds, RANDOM: _random_rounds}
    tasks = [
        Task(
            Method(name, "", learner),
            split.name,
            tuple(("links", amount, name) for amount in amounts),
            (split, partial(make, collection, split, learner, amounts, seed)),
        )
        for seed, split in enumerate(splits)
        for name, make in rounds.items()
    ]

    def measure(task: Task) -> list[Measured]:
        split, make = task.given
        models, found = make(), []
        for key in task.cells:
            start = time.perf_counter()
            model = next(models)
            views, rows = list(collection.views), split.test
            block = model.scores(*views, rows=rows, cols=rows)
            both = block, np.ascontiguousarray(block.T)
            score = average_of_directions(both, collection.labels[rows])
            must = int(np.sum(model.links_.judged(*views).data > 0))
            found.append(measured(task, key, score, start, {"must-links": must}))
        return found

    study = replace(study, ours=SUGGESTED)
    return run_tasks(study, tasks, measure, **running)


def needed_judgements(study: Study, n_random: int) -> int | None:
    """Return how many suggested pairs reach the precision of so many random ones."""
    aim = study.cell(("links", n_random), RANDOM)
    if aim is None or aim.mean is None:
        return None
    cells = [study.cell(budget, SUGGESTED) for budget in study.budgets]
    reached = [c.amount for c in cells if c and (c.mean or 0.0) >= aim.mean]
    return reached[0] if reached else None


def _suggested_rounds(
    collection: Any, split: Split, learner: Any, amounts: Sequence[int], seed: int
) -> Iterator[Any]:
    """Yield a model for each amount of pairs, suggested by the one before."""
    views, labels = list(collection.views), collection.labels
    links = random_links(labels, split.train, views, N_START, seed=seed)
    model, n_judged = clone(learner).fit(collection.views, links), N_START
    for amount in amounts:
        i, j = model.suggest_pairs(
            amount - n_judged,
            source=views[0],
            target=views[1],
            queries=split.train,
            exclude=split.test,
            random_state=seed,
        )
        links, n_judged = links + judged_links(labels, i, j, views), amount
        model = clone(learner).fit(collection.views, links)
        yield model


def _random_rounds(
    collection: Any, split: Split, learner: Any, amounts: Sequence[int], seed: int
) -> Iterator[Any]:
    """Yield a model for each amount of random pairs of training items."""
    views = list(collection.views)
    for amount in amounts:
        links = random_links(collection.labels, split.train, views, amount, seed=seed)
        yield clone(learner).fit(collection.views, links)
