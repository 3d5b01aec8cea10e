"""Run the tasks of a study: choose parameters, fit and score; continue a study."""

import datetime
import importlib.metadata
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from linkspread.ground.errors import FewLinksError, LinkspreadError
from linkspread.ground.progress import announce
from linkspread.links import Links
from linkspread.metrics import mean_average_precision
from linkspread.selection import Tuning, tune
from linkspread.selection.tune import flatten
from linkspread.studies.methods import Method
from linkspread.studies.report.study import Budget, Cell, ParameterCurve, Run, Study

Array = np.ndarray
# Kind and amount of supervision, and the name of a row.
Key = tuple[str, int | None, str]
Keep = Callable[[Study], Any]
Step = Callable[[str], None]

PACKAGES = ("linkspread", "numpy", "scipy", "scikit-learn", "numba")


@dataclass(frozen=True)
class Task:
    """A method to measure on a split, and the cells of the study that it fills.

    `given` is what the study needs to measure it.
    """

    method: Method
    split: str
    cells: tuple[Key, ...]
    given: Any = None

    @property
    def text(self) -> str:
        """Name of the task, for progress."""
        budget = Budget(*self.cells[0][:2])
        return f"{self.split}, {budget.text}: {self.method.name}"


class Measured(NamedTuple):
    """A run of one cell, and the curves of its chosen parameters."""

    key: Key
    run: Run
    curves: tuple[ParameterCurve, ...] = ()


def measured(
    task: Task,
    key: Key,
    score: float,
    start: float,
    parameters: dict[str, Any],
    details: dict[str, float] | None = None,
) -> Measured:
    """Return the run of a cell that was measured since a time, and announce it."""
    seconds = time.perf_counter() - start
    announce(f"{task.text}: {key[2]}: {score:.3f}, {seconds:.0f} s")
    run = Run(task.split, score, details or {}, {"total": seconds}, parameters)
    return Measured(key, run)


def run_tasks(
    study: Study,
    tasks: Sequence[Task],
    measure: Callable[[Task], Iterable[Measured]],
    *,
    n_jobs: int = 1,
    before: Study | None = None,
    keep: Keep | None = None,
    step: Step = print,
) -> Study:
    """Measure all tasks that are not in `before`, in order, and keep each result.

    With `n_jobs` several processes measure at once; results are in the order of tasks.
    """
    runs: dict[tuple[Key, str], Run] = {}
    curves: dict[str, tuple[ParameterCurve, ...]] = {}
    if before is not None:
        check_continued(before, study.collection)
        for cell in before.cells:
            key = (*cell.budget, cell.method)
            runs |= {(key, run.split): run for run in cell.runs}
        for curve in before.curves:
            curves[curve.method] = (*curves.get(curve.method, ()), curve)
    planned = [(key, task.split) for task in tasks for key in task.cells]
    names = dict.fromkeys(task.method.name for task in tasks)

    def so_far() -> Study:
        """Return the study with all runs, those of tasks first and in their order."""
        own: dict[Key, list[Run]] = {}
        for key, split in dict.fromkeys([*planned, *runs]):
            if (key, split) in runs:
                own.setdefault(key, []).append(runs[key, split])
        cells = (Cell(m, kind, n, tuple(r)) for (kind, n, m), r in own.items())
        drawn = (curve for name in names for curve in curves.get(name, ()))
        return replace(study, cells=tuple(cells), curves=tuple(drawn))

    missing = []
    for task in tasks:
        if all((key, task.split) in runs for key in task.cells):
            step(task.text)
        else:
            missing.append(task)
    found: Any = map(measure, missing)
    if n_jobs > 1:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
        found = parallel(delayed(measure)(task) for task in missing)
    for task in missing:
        step(task.text)
        for key, run, own in next(found):
            runs[key, run.split] = run
            if own:
                curves[task.method.name] = own
        if keep is not None:
            keep(so_far())
    return so_far()


def check_continued(before: Study, name: str) -> None:
    """Refuse to continue a study on another collection."""
    if before.collection != name:
        raise LinkspreadError(
            f"a study must be continued on its own collection, {before.collection!r}, "
            f"got {name!r}. Use another folder."
        )


def choose(
    method: Method,
    views: Mapping[str, Any],
    links: Links,
    *,
    protocol: str = "transductive",
    n_splits: int = 5,
    n_repeats: int = 1,
) -> tuple[Any, Tuning | None]:
    """Choose the parameters of a method by cross-validation on its links."""
    if not method.grid:
        return clone(method.model), None
    settings: dict[str, Any] = {"n_splits": n_splits, "n_repeats": n_repeats}
    settings |= {"model": method.model, "protocol": protocol}
    try:
        tuning = tune(views, links, list(method.grid), **settings)
    except FewLinksError:
        return clone(method.model), None
    return tuning.model, tuning


def chosen_parameters(
    tuning: Tuning | None, inherited: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the parameters that were chosen, for the report."""
    if tuning is None:
        return {}
    known = tuning.model.get_params(deep=False)
    return flatten({n: known[n] for n in inherited} | tuning.best_parameters)


def both_directions(views: Iterable[str]) -> tuple[str, str]:
    """Return the names of both directions, the second view's queries first."""
    first, second = views
    return f"{second} to {first}", f"{first} to {second}"


def score_test(
    model: Any, views: Mapping[str, Any], links: Links, test: Array, *, protocol: str
) -> dict[str, Array]:
    """Fit a model and return its scores among the test items, by direction."""
    first, second = views
    ways = both_directions(views)
    if protocol == "transductive":
        fitted = clone(model).fit(views, links)
        block = fitted.scores(first, second, rows=test, cols=test)
        return dict(zip(ways, (np.ascontiguousarray(block.T), block), strict=True))
    sizes = {view: table.shape[0] for view, table in views.items()}
    blocks = {}
    for way, source, target in zip(ways, (second, first), (first, second), strict=True):
        # The queries are not in the fit.
        kept = np.setdiff1d(np.arange(sizes[source]), test)
        seen = {**views, source: views[source][kept]}
        fitted = clone(model).fit(seen, links.resolve(sizes).select({source: kept}))
        rows = views[source][test]
        blocks[way] = fitted.scores(source, target, rows=rows, cols=test)
    return blocks


def average_of_directions(blocks: Iterable[Array], labels: Array) -> float:
    """Return the mean average precision of blocks of scores of test items."""
    values = [mean_average_precision(block, labels, labels) for block in blocks]
    return float(np.mean(values))


def describe_environment() -> dict[str, str]:
    """Return versions, the processor, its cores and the date."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {
        "python": platform.python_version(),
        **versions,
        "processor": name_processor(),
        "cores": str(os.cpu_count()),
        "date": datetime.date.today().isoformat(),
    }


def name_processor() -> str:
    """Return the name of the processor, or what the platform reports."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.machine()
