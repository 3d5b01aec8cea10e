"""Choose parameters by cross-validation over two views or more."""

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from linkspread.estimators import LinkSpreading
from linkspread.estimators.link_choice import choose_links
from linkspread.exceptions import ColumnWarning, LinkError, LinkspreadError
from linkspread.graphs.table_memory import remember_tables
from linkspread.links import Items, Links
from linkspread.parameter_checks import check_count
from linkspread.progress import track
from linkspread.selection.folds import LabelFolds, item_trials, link_trials
from linkspread.selection.grids import (
    Parameters,
    check_model,
    check_names,
    expand_grid,
    group_settings,
    refine_stages,
)
from linkspread.selection.questions import Trial
from linkspread.selection.runners import choose_runner
from linkspread.selection.tuning import Tuning
from linkspread.tables import Views
from linkspread.validation import check_views

__all__ = ["DEFAULT_GRID", "tune"]

Array = np.ndarray
Trials = list[list[Trial]]

PROTOCOLS = ("transductive", "inductive")
FOLDS = ("auto", "items", "links")

# Few and far apart: with few links, choosing among many settings is choosing noise.
DEFAULT_GRID: Mapping[str, Sequence[Any]] = {
    "n_neighbors": (10, 30, 90),
    "alpha": (0.025, 0.1, 0.3, 0.6, 0.9),
    "beta": (0.5, 0.95),
}


def tune(
    views: Any,
    links: Any,
    grid: Any = None,
    *,
    model: Any = None,
    n_splits: int = 5,
    n_repeats: int = 1,
    protocol: str = "transductive",
    folds: str = "auto",
    ids: Mapping[str, Any] | None = None,
    columns: Mapping[str, Any] | None = None,
    random_state: int = 0,
    verbose: bool = False,
) -> Tuning:
    """Try a grid of parameters on folds of the labels or links, and choose.

    A whole grid of `alpha` and `beta` of `LinkSpreading` costs about one propagation
    for each graph and fold.

    Parameters
    ----------
    views : mapping from str to table of shape (n_items, n_features)
        As for :meth:`LinkSpreading.fit`.
    links : Links, or mapping from str to labels
        Only these are used: what is hidden from the links cannot be tuned on.
    grid : mapping, or sequence of mappings, default=None
        Lists of values by the name of the parameter; a dict by view in place of a
        list tries all combinations of the views' values. A sequence of grids is
        searched in stages, each starting from the best setting of those before.
        None takes `DEFAULT_GRID`.
    model : estimator, default=None
        With ``fit(views, links)`` and ``scores``; None is ``LinkSpreading()``.
    n_splits : int, default=5
        Folds; fewer where there are not so many labels of a class.
    n_repeats : int, default=1
        How often all folds are drawn anew; more for few labels.
    protocol : {"transductive", "inductive"}, default="transductive"
        Whether queries take part in the fit, without a label, or are new.
    folds : {"auto", "items", "links"}, default="auto"
        Hide labels of items and search among these, or hold out judged pairs and
        tell must from cannot; "auto" takes items where there are labels. Must-links
        alone are scored by the mean reciprocal rank of held-out partners among all
        items without a link.
    ids : mapping from str to array-like of shape (n_items,), default=None
    columns : mapping from str to list of str, default=None
        Both as for :meth:`LinkSpreading.fit`.
    random_state : int, default=0
    verbose : bool, default=False
        Show how far it is.

    Returns
    -------
    tuning : Tuning
        Its `model` is ready to be fitted.

    Examples
    --------
    >>> import linkspread as ls
    >>> from linkspread.selection import tune
    >>> data = ls.datasets.make_views(150, n_classes=3, random_state=0)
    >>> tuning = tune(data.views(), data.labels, {"alpha": [0.1, 0.5]}, n_splits=3)
    >>> len(tuning.settings), 0 < tuning.best_score <= 1
    (2, True)
    """
    start = time.perf_counter()
    model = check_model(LinkSpreading() if model is None else model)
    read = check_views(views, ids, columns)
    read.tell(verbose=verbose)
    trials = _make_trials(
        read, links, n_splits, n_repeats, protocol, folds, random_state
    )
    stages = refine_stages(_default_grid(trials) if grid is None else grid)
    chosen: Parameters = {}
    tried: list[Parameters] = []
    scores: list[Array] = []
    with remember_tables(), warnings.catch_warnings():
        # The whole views were told of; each fold would tell it again.
        warnings.simplefilter("ignore", ColumnWarning)
        for stage in stages:
            check_names(stage, model)
            settings = [chosen | setting for setting in expand_grid(stage)]
            tried += settings
            scores.append(_measure(model, settings, trials, verbose=verbose))
            chosen = tried[int(np.argmax(np.vstack(scores).mean(axis=1)))]
    seconds = time.perf_counter() - start
    best = clone(model).set_params(**chosen)
    return Tuning(best, tuple(tried), np.vstack(scores), seconds, protocol)


def _make_trials(
    read: Views,
    links: Any,
    n_splits: int,
    n_repeats: int,
    protocol: str,
    folds: str,
    random_state: int,
) -> Trials:
    """Check what was given and part it into folds."""
    _check_choice(protocol, PROTOCOLS, "protocol")
    check_count(n_splits, name="n_splits", at_least=2, remedy="The default is 5.")
    check_count(n_repeats, name="n_repeats", remedy="The default is 1.")
    _check_choice(folds, FOLDS, "folds")
    tables = read.tables
    items = {view: Items(own, view=view) for view, own in read.ids.items()}
    resolved: Links = choose_links(links, tables).resolve(items)
    has_labels = any(resolved.memberships(view) is not None for view in tables)
    if folds == "items" and not has_labels:
        raise LinkError(
            f"`folds` must be 'links' or 'auto' where no item has a label, got 'items' "
            f"and {resolved!r}. Leave it out, or give labels."
        )
    if folds != "links" and has_labels:
        splitter = LabelFolds(n_splits, n_repeats=n_repeats, random_state=random_state)
        return item_trials(tables, resolved, splitter, protocol=protocol)
    if protocol == "inductive":
        raise LinkspreadError(
            "`protocol` must be 'transductive' where pairs are held out, got "
            "'inductive'. Leave it at its default, or give labels."
        )
    return link_trials(
        tables,
        resolved,
        n_splits=n_splits,
        n_repeats=n_repeats,
        random_state=random_state,
    )


def _measure(
    model: Any, settings: list[Parameters], trials: Trials, *, verbose: bool
) -> Array:
    """Return the score of every setting on every fold."""
    runner = choose_runner(model, settings)
    groups = group_settings(settings, runner.together)
    values = np.zeros((len(settings), len(trials)))
    steps = [(group, fold) for group in groups for fold in range(len(trials))]
    label = f"{len(settings):,} settings on {len(trials)} folds"
    for (common, members), fold in track(
        steps, total=len(steps), label=label, verbose=verbose
    ):
        own = [
            {n: v for n, v in settings[k].items() if n not in common} for k in members
        ]
        if fold == 0:
            runner.prepare([t for trial in trials for t in trial], common, own)
        answers: list[list[float]] = [[] for _ in members]
        for trial in trials[fold]:
            for found, scores in zip(
                answers, runner.run(trial, common, own), strict=True
            ):
                found += trial.measure(scores)
        values[members, fold] = [np.mean(found) for found in answers]
    return values


def _default_grid(trials: Trials) -> dict[str, list[Any]]:
    """Return the default grid, without more neighbours than a view has items."""
    smallest = min(
        table.shape[0] for fold in trials for t in fold for table in t.views.values()
    )
    grid = {name: list(values) for name, values in DEFAULT_GRID.items()}
    fitting = [k for k in grid["n_neighbors"] if k < smallest]
    return grid | {"n_neighbors": fitting or [max(1, smallest - 1)]}


def _check_choice(value: Any, choices: tuple[str, ...], name: str) -> None:
    """Refuse what is not one of the choices."""
    if value not in choices:
        raise LinkspreadError(
            f"`{name}` must be one of {list(choices)}, got {value!r}. Use "
            f"{choices[0]!r} if in doubt."
        )
