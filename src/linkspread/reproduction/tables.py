"""One table: every method on the published split, and perhaps on others."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from linkspread.progress import announce, format_seconds
from linkspread.report import MethodResult, ParameterCurve, Run, Search, TableStudy
from linkspread.reproduction.examples import describe_searches
from linkspread.reproduction.measures import ask, measure
from linkspread.reproduction.methods import OURS, PRINTED, Method
from linkspread.reproduction.splits import Split, label_links
from linkspread.selection import Tuning
from linkspread.selection.tuning import flatten

__all__ = ["run_table"]


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
    keep: Callable[[TableStudy], Any] | None = None,
    step: Callable[[str], None] = print,
) -> TableStudy:
    """Measure every method on every split.

    Parameters
    ----------
    collection : Collection
        With two views.
    methods : sequence of Method
    splits : sequence of Split
        The first is the one the table is about.
    title, introduction, command, name : str
        For the report: `name` is that of the collection.
    environment : mapping from str to str
        Versions and machine.
    protocol : {"transductive", "inductive"}, default="transductive"
    n_splits : int, default=5
        Folds of the cross-validation.
    printed : bool, default=True
        Whether the paper's figures are for this collection.
    keep : callable, default=None
        Called with what there is after every method, so that nothing is lost.
    step : callable, default=print
        Called with the name of each step.

    Returns
    -------
    study : TableStudy
    """
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
    tunings: dict[tuple[str, str], Tuning | None] = {}
    for method in methods:
        runs = []
        for split in splits:
            step(f"{method.name}, {split.name} split")
            started = _start(method, tunings.get((method.after, split.name)))
            run, tuning = _measure(started, collection, split, protocol, n_splits)
            tunings[method.name, split.name] = tuning
            _tell(method, run)
            runs.append(run)
        figures = _printed(method, directions) if printed else None
        result = MethodResult(method.name, method.group, figures, tuple(runs))
        curves = _curves(method, tunings[method.name, splits[0].name])
        study = replace(
            study, methods=(*study.methods, result), curves=(*study.curves, *curves)
        )
        if keep is not None:
            keep(study)
    step("examples")
    model = _best_of_ours(methods, study.methods, tunings, splits[0])
    examples = _examples(collection, model, splits[0], protocol)
    return replace(study, examples=examples)


def _start(method: Method, earlier: Tuning | None) -> Method:
    """Return a method that starts from what was chosen for an earlier one."""
    if earlier is None:
        return method
    known = earlier.model.get_params(deep=False)
    inherited = {name: known[name] for name in method.inherited}
    return replace(method, model=clone(method.model).set_params(**inherited))


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


def _best_of_ours(
    methods: Sequence[Method],
    results: Sequence[MethodResult],
    tunings: Mapping[tuple[str, str], Tuning | None],
    split: Split,
) -> Any:
    """Return the best of our methods on a split, with its parameters, not fitted."""
    pairs = zip(methods, results, strict=True)
    ours = [(r.runs[0].average, m.name, m) for m, r in pairs if m.group == OURS]
    if not ours:
        return None
    best = max(ours, key=lambda entry: entry[0])[-1]
    tuning = tunings[best.name, split.name]
    return best.model if tuning is None else tuning.model


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
