"""The paper's table: every method on the published split and on re-splits."""

import base64
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from sklearn.base import clone

from linkspread.datasets.glyphs import make_glyph_image
from linkspread.ground.errors import LinkspreadError
from linkspread.ground.progress import announce, format_seconds
from linkspread.metrics import average_precision, precision_recall_curve
from linkspread.selection import Tuning
from linkspread.selection.tune import flatten, unflatten
from linkspread.studies.collections import Split, label_links
from linkspread.studies.methods import OURS, PRINTED, Method
from linkspread.studies.report.page import ink_data_uri
from linkspread.studies.report.study import (
    Budget,
    Card,
    Hit,
    ParameterCurve,
    Run,
    Search,
    Study,
)
from linkspread.studies.running import (
    Measured,
    Step,
    Task,
    both_directions,
    check_continued,
    choose,
    chosen_parameters,
    run_tasks,
    score_test,
)

Array = np.ndarray
# By the names of the method and the split.
Runs = dict[tuple[str, str], Run]

ALL_LABELS = Budget("labels per class", None)
N_RESULTS = 5
# Side of the pictures of glyphs in pixels.
DRAWN_SIZE = 96


def run_table(
    study: Study,
    collection: Any,
    methods: Sequence[Method],
    splits: Sequence[Split],
    *,
    protocol: str = "transductive",
    n_splits: int = 5,
    printed: bool = True,
    before: Study | None = None,
    step: Step = print,
    **running: Any,
) -> Study:
    """Measure every method on every split."""
    directions = both_directions(collection.views)
    ways = (*directions, "average")
    known = {m.name: PRINTED[m.name] for m in methods if printed and m.name in PRINTED}
    study = replace(
        study,
        directions=directions,
        groups={method.name: method.group for method in methods},
        printed={m: dict(zip(ways, own, strict=True)) for m, own in known.items()},
    )
    runs: Runs = {}
    if before is not None:
        check_continued(before, study.collection)
        if before.introduction != study.introduction:
            raise LinkspreadError(
                f"a table must be continued as it was begun, {before.introduction!r}, "
                f"got {study.introduction!r}. Use another folder."
            )
        runs = {(c.method, run.split): run for c in before.cells for run in c.runs}
        missing = runs.keys() - {
            (m.name, split.name) for m in methods for split in splits
        }
        if missing:
            raise LinkspreadError(
                "a table must be continued with all its methods and splits, got none "
                f"of {min(missing)}. Give as many re-splits, or use another folder."
            )

    scored: dict[str, dict[str, Array]] = {}  # of our methods on the first split

    def measure_task(task: Task) -> list[Measured]:
        method, split = task.method, task.given
        inheriting = _inheriting(method, methods, runs, split)
        settings: Any = {"protocol": protocol, "n_splits": n_splits}
        run, tuning, blocks = measure(inheriting, collection, split, **settings)
        runs[method.name, split.name] = run
        if split is splits[0] and method.group == OURS:
            scored[method.name] = blocks
        announce(
            f"{method.name}, {run.split}: {run.score:.3f} after "
            f"{format_seconds(run.total_seconds)}, {run.parameters}"
        )
        curves = _curves(method, tuning) if split is splits[0] else ()
        return [Measured(task.cells[0], run, curves)]

    tasks = [
        Task(method, split.name, ((*ALL_LABELS, method.name),), split)
        for method in methods
        for split in splits
    ]
    study = run_tasks(study, tasks, measure_task, before=before, step=step, **running)
    step("examples")
    ours = [method for method in methods if method.group == OURS]
    if not ours:
        return study
    best = max(ours, key=lambda method: runs[method.name, splits[0].name].score)
    blocks = scored.get(best.name)
    if blocks is None:  # of a study that is continued
        model = _inheriting(best, methods, runs, splits[0])
        chosen = _chosen(model, runs[best.name, splits[0].name])
        links = label_links(collection.labels, splits[0].train, list(collection.views))
        given = chosen, collection.views, links, splits[0].test
        blocks = score_test(*given, protocol=protocol)
    return replace(study, examples=_examples(collection, blocks, splits[0].test))


def measure(
    method: Method,
    collection: Any,
    split: Split,
    *,
    protocol: str,
    n_splits: int = 5,
) -> tuple[Run, Tuning | None, dict[str, Array]]:
    """Choose, fit and measure a method on one split, from the training labels."""
    views, labels = collection.views, collection.labels[split.test]
    links = label_links(
        collection.labels, split.train, list(views), matched=method.matched
    )
    start = time.perf_counter()
    known_views, known_links = views, links
    if protocol != "transductive":
        # Parameters are chosen without the test rows.
        sizes = {view: table.shape[0] for view, table in views.items()}
        known_views = {view: table[split.train] for view, table in views.items()}
        rows = dict.fromkeys(views, split.train)
        known_links = links.resolve(sizes).select(rows)
    model, tuning = choose(
        method, known_views, known_links, protocol=protocol, n_splits=n_splits
    )
    chosen = time.perf_counter()
    blocks = score_test(model, views, links, split.test, protocol=protocol)
    fitted = time.perf_counter()
    values = {way: average_precision(b, labels, labels) for way, b in blocks.items()}
    precision = {way: float(np.nanmean(v)) for way, v in values.items()}
    names = collection.label_names
    run = Run(
        split=split.name,
        score=fmean(precision.values()),
        details=precision,
        seconds={"choose": chosen - start, "fit and score": fitted - chosen},
        parameters=chosen_parameters(tuning, method.inherited),
        per_class={
            way: {
                names[c]: float(np.nanmean(own[labels == c])) for c in np.unique(labels)
            }
            for way, own in values.items()
        },
        curve={
            way: precision_recall_curve(block, labels, labels)[0].tolist()
            for way, block in blocks.items()
        },
    )
    return run, tuning, blocks


def _inheriting(
    method: Method, methods: Sequence[Method], runs: Runs, split: Split
) -> Method:
    """Return a method with the parameters that it inherits from an earlier one."""
    run = runs.get((method.after, split.name))
    if run is None or not run.parameters:
        return method
    earlier = next(m for m in methods if m.name == method.after)
    known = _chosen(earlier, run).get_params(deep=False)
    inherited = {name: known[name] for name in method.inherited}
    return replace(method, model=clone(method.model).set_params(**inherited))


def _chosen(method: Method, run: Run) -> Any:
    """Return the model of a method with the parameters of a run, not fitted."""
    # From the run, which may have been loaded, not from the tuning.
    return clone(method.model).set_params(**unflatten(run.parameters))


def _curves(method: Method, tuning: Tuning | None) -> tuple[ParameterCurve, ...]:
    """Return the cross-validated scores of our methods against each parameter."""
    if tuning is None or method.group != OURS:
        return ()
    curves = []
    for parameter in flatten(tuning.best_parameters):
        values, scores = tuning.curve(parameter)
        best = values[int(np.argmax(scores))]
        if len(values) > 1:
            own = tuple(values), tuple(scores.tolist())
            curves.append(ParameterCurve(method.name, parameter, *own, best))
    return tuple(curves)


def choose_queries(
    labels: Array, hidden: Array, n_queries: int = 3, *, random_state: int = 0
) -> Array:
    """Choose hidden items of different classes to search with."""
    shuffled = np.random.default_rng(random_state).permutation(hidden)
    first_of_class = np.unique(labels[shuffled], return_index=True)[1]
    return shuffled[np.sort(first_of_class)[:n_queries]]


def _examples(
    collection: Any, blocks: Mapping[str, Array], test: Array
) -> tuple[Search, ...]:
    """Search for test items with a few of different classes, in both directions."""
    labels, searches = collection.labels, []
    for way, block in blocks.items():
        source, _, target = way.partition(" to ")
        for place in choose_queries(labels[test], np.arange(len(test))):
            query, scores = int(test[place]), block[place]
            hits = [
                Hit(
                    _card(collection, target, int(test[b])),
                    float(scores[b]),
                    bool(labels[test[b]] == labels[query]),
                )
                for b in np.argsort(-scores, kind="stable")[:N_RESULTS]
            ]
            card = _card(collection, source, query)
            searches.append(Search(source, target, card, tuple(hits)))
    return tuple(searches)


def _card(collection: Any, view: str, row: int) -> Card:
    """Return an item for display, with its words or picture and its class."""
    label = collection.label_names[collection.labels[row]]
    family = f"class {label}"
    characters = getattr(collection, "characters", None)
    if characters is not None:
        is_picture = view == "image"
        image = make_glyph_image(characters[row], DRAWN_SIZE) if is_picture else None
        picture = None if image is None else ink_data_uri(image)
        return Card(str(collection.names[row]), label, picture)
    pictures = getattr(collection, "pictures", None)
    if view == "image" and pictures is not None:
        path = Path(pictures[row])
        data = base64.b64encode(path.read_bytes()).decode("ascii")
        return Card(path.stem, family, f"data:image/jpeg;base64,{data}")
    words = getattr(collection, "words", None)
    if view == "text" and words is not None:
        own = collection.views["text"][[row]].nonzero()[-1]
        return Card(", ".join(words[k] for k in own), family)
    ids = getattr(collection, "ids", None)
    named = ids.get(view) if isinstance(ids, dict) else ids
    return Card(f"item {row}" if named is None else str(named[row]), family)
