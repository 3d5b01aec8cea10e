"""One table: every method on the published split, and perhaps on others."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np
from sklearn.base import clone

from linkspread.ground.errors import LinkspreadError
from linkspread.ground.progress import announce, format_seconds
from linkspread.selection import Tuning
from linkspread.selection.tune import flatten, unflatten
from linkspread.studies.budgets import check_continued
from linkspread.studies.examples import describe_searches
from linkspread.studies.measures import ask, measure
from linkspread.studies.methods import OURS, PRINTED, Method
from linkspread.studies.report import (
    MethodResult,
    ParameterCurve,
    Run,
    Search,
    TableStudy,
)
from linkspread.studies.splits import Split, label_links

# By the names of the method and the split.
Runs = dict[tuple[str, str], Run]
# Of the first split, by the name of the method.
Curves = dict[str, list[ParameterCurve]]


def run_table(
    collection: Any,
    methods: Sequence[Method],
    splits: Sequence[Split],
    *,
    title: str,
    introduction: str,
    command: str,
    name: str,
    environment: Mapping[str, str],
    protocol: str = "transductive",
    n_splits: int = 5,
    printed: bool = True,
    before: TableStudy | None = None,
    keep: Callable[[TableStudy], Any] | None = None,
    step: Callable[[str], None] = print,
) -> TableStudy:
    """Measure every method on every split."""
    directions = _directions(collection.views)
    study = TableStudy(
        title=title,
        introduction=introduction,
        command=command,
        collection=name,
        directions=tuple(directions),
        methods=(),
        curves=(),
        examples=(),
        environment=dict(environment),
    )
    runs, curves = _taken_over(before, study, methods, splits)
    for method in methods:
        for split in splits:
            step(f"{method.name}, {split.name} split")
            if (method.name, split.name) in runs:
                continue
            started = _start(method, methods, runs, split)
            run, tuning = _measure(started, collection, split, protocol, n_splits)
            runs[method.name, split.name] = run
            if split is splits[0]:
                curves[method.name] = _curves(method, tuning)
            _tell(method, run)
            if keep is not None:
                keep(_with_results(study, methods, splits, runs, curves, printed))
    step("examples")
    model = _best_of_ours(methods, runs, splits[0])
    examples = _examples(collection, model, splits[0], protocol)
    study = _with_results(study, methods, splits, runs, curves, printed)
    return replace(study, examples=examples)


def _taken_over(
    before: TableStudy | None,
    study: TableStudy,
    methods: Sequence[Method],
    splits: Sequence[Split],
) -> tuple[Runs, Curves]:
    """Return what was measured before, refused where another plan measured it."""
    runs: Runs = {}
    curves: Curves = {}
    if before is None:
        return runs, curves
    check_continued(before, study.collection)
    _check_introduction(before.introduction, study.introduction)
    for result in before.methods:
        for run in result.runs:
            _check_planned(result.method, run, methods, splits)
            runs[result.method, run.split] = run
    for curve in before.curves:
        curves.setdefault(curve.method, []).append(curve)
    return runs, curves


def _check_introduction(before: str, now: str) -> None:
    """Refuse a table of other items or of another protocol."""
    pairs = zip_longest(before.split(". "), now.split(". "), fillvalue="")
    for old, new in pairs:
        if old != new:
            raise LinkspreadError(
                f"a table must be continued as it was begun, {old!r}, got {new!r}. Use "
                "another folder."
            )


def _check_planned(
    name: str, run: Run, methods: Sequence[Method], splits: Sequence[Split]
) -> None:
    """Refuse a run that these methods on these splits would not come to."""
    method = next((m for m in methods if m.name == name), None)
    if method is None:
        raise LinkspreadError(
            f"a table must be continued with all its methods, got none of the name "
            f"{name!r}. Use another folder."
        )
    if run.split not in [split.name for split in splits]:
        raise LinkspreadError(
            f"a table must be continued on all its splits, got none of the name "
            f"{run.split!r}. Ask for as many re-splits, or use another folder."
        )
    chosen = {name for stage in method.grid for name in stage}.union(method.inherited)
    other = unflatten(run.parameters).keys() - chosen
    if other:
        raise LinkspreadError(
            f"a table must be continued with its own choices, which have "
            f"{min(other)!r} for {name!r}, got {sorted(chosen)}. Use another folder."
        )


def _with_results(
    study: TableStudy,
    methods: Sequence[Method],
    splits: Sequence[Split],
    runs: Runs,
    curves: Curves,
    printed: bool,
) -> TableStudy:
    """Return a study with all that is measured, in the order of the plan."""
    results = []
    for method in methods:
        keys = [(method.name, split.name) for split in splits]
        own = tuple(runs[key] for key in keys if key in runs)
        figures = _printed(method, study.directions) if printed else None
        if own:
            results.append(MethodResult(method.name, method.group, figures, own))
    shown = (curve for method in methods for curve in curves.get(method.name, ()))
    return replace(study, methods=tuple(results), curves=tuple(shown))


def _start(
    method: Method, methods: Sequence[Method], runs: Runs, split: Split
) -> Method:
    """Return a method that starts from what was chosen for an earlier one."""
    run = runs.get((method.after, split.name))
    if run is None or not run.parameters:
        return method
    earlier = next(m for m in methods if m.name == method.after)
    known = _chosen(earlier, run).get_params(deep=False)
    inherited = {name: known[name] for name in method.inherited}
    return replace(method, model=clone(method.model).set_params(**inherited))


def _chosen(method: Method, run: Run) -> Any:
    """Return the model of a method with the parameters of a run, not fitted."""
    # From the run in place of its search, so that a stored one gives the same.
    return clone(method.model).set_params(**unflatten(run.parameters))


def _measure(
    method: Method, collection: Any, split: Split, protocol: str, n_splits: int
) -> tuple[Run, Tuning | None]:
    """Give a method the labels of the training rows, and measure it."""
    links = label_links(
        collection.labels, split.train, list(collection.views), matched=method.matched
    )
    return measure(
        method, collection, split, links, protocol=protocol, n_splits=n_splits
    )


def _directions(views: Iterable[str]) -> list[str]:
    """Return the names of both directions, the second view's queries first."""
    first, second = views
    return [f"{second} to {first}", f"{first} to {second}"]


def _printed(method: Method, directions: Sequence[str]) -> dict[str, float] | None:
    """Return what the paper prints for a method."""
    if method.name not in PRINTED:
        return None
    return dict(zip((*directions, "average"), PRINTED[method.name], strict=True))


def _curves(method: Method, tuning: Tuning | None) -> list[ParameterCurve]:
    """Return the cross-validated scores of our methods against each parameter."""
    if tuning is None or method.group != OURS:
        return []
    curves = []
    for parameter in flatten(tuning.best_parameters):
        values, scores = tuning.curve(parameter)
        best = values[int(np.argmax(scores))]
        if len(values) > 1:
            curve = ParameterCurve(
                method.name, parameter, tuple(values), tuple(scores.tolist()), best
            )
            curves.append(curve)
    return curves


def _best_of_ours(methods: Sequence[Method], runs: Runs, split: Split) -> Any:
    """Return the best of our methods on a split, with its parameters, not fitted."""
    ours = [method for method in methods if method.group == OURS]
    if not ours:
        return None
    best = max(ours, key=lambda method: runs[method.name, split.name].average)
    return _chosen(_start(best, methods, runs, split), runs[best.name, split.name])


def _examples(
    collection: Any, model: Any, split: Split, protocol: str
) -> tuple[Search, ...]:
    """Search for test items with test items, in both directions."""
    if model is None:
        return ()
    views = collection.views
    links = label_links(collection.labels, split.train, list(views))
    found: tuple[Search, ...] = ()
    blocks = ask(model, views, links, split.test, protocol=protocol)
    for way, block in blocks.items():
        source, _, target = way.partition(" to ")
        found += describe_searches(collection, source, target, split.test, block)
    return found


def _tell(method: Method, run: Run) -> None:
    """Log what came out, for those who follow."""
    announce(
        f"{method.name}, {run.split}: {run.average:.3f} after "
        f"{format_seconds(sum(run.seconds.values()))}, {run.parameters}"
    )
