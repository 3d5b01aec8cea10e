"""Fit a method to a split, choose its parameters there, and measure it."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from linkspread.ground.errors import FewLinksError
from linkspread.links import Links
from linkspread.metrics import average_precision, precision_recall_curve
from linkspread.selection import Tuning, tune
from linkspread.selection.tune import flatten
from linkspread.studies.methods import Method
from linkspread.studies.report import Run
from linkspread.studies.splits import Split

Array = np.ndarray
Block = tuple[Array, str, str]


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
    try:
        tuning = tune(
            views,
            links,
            list(method.grid),
            model=method.model,
            n_splits=n_splits,
            n_repeats=n_repeats,
            protocol=protocol,
        )
    except FewLinksError:
        return clone(method.model), None
    return tuning.model, tuning


def ask(
    model: Any, views: Mapping[str, Any], links: Links, test: Array, *, protocol: str
) -> dict[str, Array]:
    """Fit a model and return its scores among the test items, by direction."""
    first, second = views
    if protocol == "transductive":
        block = clone(model).fit(views, links).scores(
            first, second, rows=test, cols=test
        )  # fmt: skip
        return {
            f"{second} to {first}": np.ascontiguousarray(block.T),
            f"{first} to {second}": block,
        }
    ways = [(second, first), (first, second)]
    return {f"{a} to {b}": _ask_new(model, views, links, test, a, b) for a, b in ways}


def measure(
    method: Method,
    collection: Any,
    split: Split,
    links: Links,
    *,
    protocol: str,
    n_splits: int = 5,
) -> tuple[Run, Tuning | None]:
    """Choose, fit and measure a method on one split."""
    views, labels = collection.views, collection.labels[split.test]
    start = time.perf_counter()
    known_views, known_links = _known_part(views, links, split, protocol)
    model, tuning = choose(
        method, known_views, known_links, protocol=protocol, n_splits=n_splits
    )
    chosen = time.perf_counter()
    blocks = ask(model, views, links, split.test, protocol=protocol)
    fitted = time.perf_counter()
    values = {way: average_precision(b, labels, labels) for way, b in blocks.items()}
    run = Run(
        split=split.name,
        precision={way: float(np.nanmean(v)) for way, v in values.items()},
        seconds={"choose": chosen - start, "fit and score": fitted - chosen},
        parameters=chosen_parameters(tuning, method.inherited),
        per_class=_per_class(values, labels, collection.label_names),
        curve=_curves(blocks, labels),
    )
    return run, tuning


def chosen_parameters(
    tuning: Tuning | None, inherited: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the parameters that were chosen, for the report."""
    if tuning is None:
        return {}
    known = tuning.model.get_params(deep=False)
    return flatten({n: known[n] for n in inherited} | tuning.best_parameters)


def _ask_new(
    model: Any,
    views: Mapping[str, Any],
    links: Links,
    test: Array,
    source: str,
    target: str,
) -> Array:
    """Fit without the queries and search with their features."""
    n_items = views[source].shape[0]
    kept = np.setdiff1d(np.arange(n_items), test)
    sizes = {view: table.shape[0] for view, table in views.items()}
    seen = {**views, source: views[source][kept]}
    fitted = clone(model).fit(seen, links.resolve(sizes).select({source: kept}))
    return fitted.scores(source, target, rows=views[source][test], cols=test)


def _known_part(
    views: Mapping[str, Any], links: Links, split: Split, protocol: str
) -> tuple[Mapping[str, Any], Links]:
    """Return what may be used to choose: all rows, or without the test rows."""
    if protocol == "transductive":
        return views, links
    sizes = {view: table.shape[0] for view, table in views.items()}
    rows = dict.fromkeys(views, split.train)
    tables = {view: table[split.train] for view, table in views.items()}
    return tables, links.resolve(sizes).select(rows)


def _per_class(
    values: Mapping[str, Array], labels: Array, names: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Return the mean average precision of the queries of each class."""
    return {
        way: {names[c]: float(np.nanmean(own[labels == c])) for c in np.unique(labels)}
        for way, own in values.items()
    }


def _curves(blocks: Mapping[str, Array], labels: Array) -> dict[str, list[float]]:
    """Return the precision at eleven levels of recall."""
    return {
        way: precision_recall_curve(block, labels, labels)[0].tolist()
        for way, block in blocks.items()
    }
