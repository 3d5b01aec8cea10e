"""Mean average precision against how much is known, every method tuned within it."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from linkspread.ground.errors import FewLinksError, LinkspreadError
from linkspread.ground.progress import announce
from linkspread.links import Links
from linkspread.metrics import mean_average_precision
from linkspread.studies.measures import ask, choose, chosen_parameters
from linkspread.studies.methods import (
    LEARNER,
    Method,
    label_methods,
    link_methods,
    matched_methods,
)
from linkspread.studies.report import BudgetCell, BudgetStudy
from linkspread.studies.report.budgets import budget_text
from linkspread.studies.splits import (
    Split,
    label_links,
    matched_links,
    random_links,
)

Array = np.ndarray
Budget = tuple[str, int | None]
Key = tuple[str, int | None, str]

# Labels a class, None for all of them, and random links.
LABELS = (1, 3, 10, 30, None)
LINKS = (300, 1_000, 3_000, 10_000, 30_000, 100_000)

# Few labels make noisy folds: they are drawn several times.
N_REPEATS_FOR_FEW = 3
FEW = 10


def run_budgets(
    collection: Any,
    splits: Sequence[Split],
    *,
    metrics: Mapping[str, Sequence[str]],
    title: str,
    introduction: str,
    command: str,
    name: str,
    environment: Mapping[str, str],
    labels: Sequence[int | None] = LABELS,
    links: Sequence[int] = LINKS,
    matched: bool = True,
    n_splits: int = 5,
    before: BudgetStudy | None = None,
    keep: Callable[[BudgetStudy], Any] | None = None,
    step: Callable[[str], None] = print,
) -> BudgetStudy:
    """Measure every method at every amount of supervision.

    One split after the other, so that a study which is cut short has measured all
    methods equally often.
    """
    plan = plan_budgets(metrics, labels=labels, links=links, matched=matched)
    study = BudgetStudy(
        title=title,
        introduction=introduction,
        command=command,
        collection=name,
        ours=LEARNER,
        cells=(),
        environment=dict(environment),
    )

    def measure(budget: Budget, method: Method, seed: int) -> list[BudgetCell]:
        return [_measure(collection, splits[seed], seed, budget, method, n_splits)]

    return run_cells(
        study,
        [(budget, method, (method.name,)) for budget, method in plan],
        measure,
        n_repetitions=len(splits),
        before=before,
        keep=keep,
        step=step,
    )


def run_cells(
    study: BudgetStudy,
    plan: Sequence[tuple[Budget, Method, Sequence[str]]],
    measure: Callable[[Budget, Method, int], Sequence[BudgetCell]],
    *,
    n_repetitions: int,
    n_jobs: int = 1,
    before: BudgetStudy | None = None,
    keep: Callable[[BudgetStudy], Any] | None = None,
    step: Callable[[str], None] = print,
) -> BudgetStudy:
    """Measure a plan so many times, and take over what `before` measured.

    An entry of the plan names the rows that `measure` returns for it. Several
    processes measure at once with `n_jobs`; results are kept in the order of the plan.
    """
    cells = _known_cells(before, study.collection)
    keys = [(*budget, row) for budget, _, rows in plan for row in rows]
    for seed in range(n_repetitions):
        missing = []
        for budget, method, rows in plan:
            own = [(*budget, row) for row in rows]
            if all(key in cells and len(cells[key].scores) > seed for key in own):
                step(f"split {seed + 1}, {budget_text(budget)}: {method.name}")
            else:
                missing.append((budget, method))
        run = Parallel(n_jobs=n_jobs, return_as="generator")
        found = run(
            delayed(measure)(budget, method, seed) for budget, method in missing
        )
        for budget, method in missing:
            step(f"split {seed + 1}, {budget_text(budget)}: {method.name}")
            for cell in next(found):
                key = (*cell.budget, cell.method)
                cells[key] = _joined(cells[key], cell) if key in cells else cell
            study = replace(study, cells=_in_order(cells, keys))
            if keep is not None:
                keep(study)
    return replace(study, cells=_in_order(cells, keys))


def plan_budgets(
    metrics: Mapping[str, Sequence[str]],
    *,
    labels: Sequence[int | None] = LABELS,
    links: Sequence[int] = LINKS,
    matched: bool = True,
) -> list[tuple[Budget, Method]]:
    """Return what is measured on each split, in this order."""
    budgets: list[tuple[Budget, list[Method]]] = []
    budgets += [(("labels per class", k), label_methods(metrics)) for k in labels]
    budgets += [(("links", k), link_methods(metrics)) for k in links]
    if matched:
        budgets.append((("matched pairs", None), matched_methods(metrics)))
    return [(budget, method) for budget, methods in budgets for method in methods]


def check_continued(before: Any, name: str) -> None:
    """Refuse to continue a study on another collection."""
    if before.collection != name:
        raise LinkspreadError(
            f"a study must be continued on its own collection, {before.collection!r}, "
            f"got {name!r}. Use another folder."
        )


def _measure(
    collection: Any,
    split: Split,
    seed: int,
    budget: Budget,
    method: Method,
    n_splits: int,
) -> BudgetCell:
    """Measure one method at one budget, on one split."""
    start = time.perf_counter()
    links = _known_links(collection, split, budget, seed)
    is_few = budget[0] == "labels per class" and (budget[1] or FEW) < FEW
    model, tuning = choose(
        method,
        collection.views,
        links,
        n_splits=n_splits,
        n_repeats=N_REPEATS_FOR_FEW if is_few else 1,
    )
    score = _average(model, collection, split, links)
    seconds = time.perf_counter() - start
    announce(f"{budget_text(budget)}: {method.name}: {score:.3f}, {seconds:.0f} s")
    parameters = chosen_parameters(tuning)
    return BudgetCell(*budget, method.name, (score,), seconds, (parameters,))


def _known_cells(before: BudgetStudy | None, name: str) -> dict[Key, BudgetCell]:
    """Return what was measured before, by budget and method."""
    if before is None:
        return {}
    check_continued(before, name)
    return {(cell.kind, cell.amount, cell.method): cell for cell in before.cells}


def _joined(one: BudgetCell, other: BudgetCell) -> BudgetCell:
    """Return the repetitions of both, in this order."""
    n, m = len(one.scores), len(other.scores)
    return replace(
        one,
        scores=one.scores + other.scores,
        seconds=(n * one.seconds + m * other.seconds) / (n + m),
        parameters=one.parameters + other.parameters,
        details=one.details + other.details,
    )


def _in_order(
    cells: Mapping[Key, BudgetCell], keys: Sequence[Key]
) -> tuple[BudgetCell, ...]:
    """Return cells in the order of the plan, then those measured by another plan."""
    planned = [cells[key] for key in keys if key in cells]
    return (*planned, *(cell for key, cell in cells.items() if key not in keys))


def _average(model: Any, collection: Any, split: Split, links: Links) -> float:
    """Return the mean average precision among the test items, of both directions."""
    y = collection.labels[split.test]
    try:
        blocks = ask(
            model, collection.views, links, split.test, protocol="transductive"
        )
    except FewLinksError:
        # It can learn nothing from so few: every pair scores alike.
        blocks = {"nothing learnt": np.zeros((len(y), len(y)))}
    values = [mean_average_precision(block, y, y) for block in blocks.values()]
    return float(np.mean(values))


def _known_links(collection: Any, split: Split, budget: Budget, seed: int) -> Links:
    """Return what is known of the training rows at this budget."""
    kind, amount = budget
    views = list(collection.views)
    if kind == "links" and amount is not None:
        return random_links(collection.labels, split.train, views, amount, seed=seed)
    if kind == "matched pairs":
        return matched_links(split.train, views)
    known = _choose_rows(collection.labels, split.train, amount, seed)
    return label_links(collection.labels, known, views)


def _choose_rows(labels: Array, train: Array, amount: int | None, seed: int) -> Array:
    """Return so many training rows of each class, or all of them."""
    if amount is None:
        return train
    order = np.random.default_rng(seed).permutation(train)
    chosen = [order[labels[order] == label][:amount] for label in np.unique(labels)]
    return np.sort(np.concatenate(chosen))
