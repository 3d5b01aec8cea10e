"""Choose parameters by cross-validation over two views or more."""

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from linkspread.compiled.threads import count_rows, own_threads
from linkspread.graphs.memory import remember_tables
from linkspread.ground.checks import check_count
from linkspread.ground.errors import ColumnWarning, LinkError, LinkspreadError
from linkspread.ground.progress import track
from linkspread.links import Items, Links
from linkspread.models import LinkSpreading
from linkspread.models.link_choice import choose_links
from linkspread.selection.folds import LabelFolds, item_trials, link_trials
from linkspread.selection.grids import (
    Parameters,
    check_model,
    check_names,
    expand_grid,
    group_settings,
    own_setting,
    place_of,
    refine_stages,
)
from linkspread.selection.questions import ItemQuestion, PartnerQuestion, Trial
from linkspread.selection.runners import choose_runner
from linkspread.selection.tuning import Tuning
from linkspread.tables import Views
from linkspread.tables.validation import check_views

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

    Every setting is scored as a fit with it would be. The model's own parameters are
    measured too, and stay unless a setting has a larger mean. A whole grid of `alpha`
    and `beta` of `LinkSpreading` costs about one propagation for each graph and fold.

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
        With ``fit(views, links)`` and ``scores``; None is ``LinkSpreading()``. Its own
        parameters are the default that settings are compared with, and its `n_jobs`
        holds for all that is tried.
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
    >>> len(tuning.settings), tuning.default_score <= tuning.best_score <= 1
    (2, True)
    """
    start = time.perf_counter()
    model = check_model(LinkSpreading() if model is None else model)
    read = check_views(views, ids, columns)
    read.report_columns(verbose=verbose)
    trials = _make_trials(
        read, links, n_splits, n_repeats, protocol, folds, random_state
    )
    stages = refine_stages(_default_grid(trials) if grid is None else grid)
    for stage in stages:
        check_names(stage, model)
    grids = [expand_grid(stage) for stage in stages]
    chosen = default = own_setting(model, stages, trials[0][0].views)
    tried: list[Parameters] = []
    scores, own_scores = np.zeros((0, len(trials))), np.zeros(0)
    threads = own_threads(getattr(model, "n_jobs", None), count_rows(views))
    with threads, remember_tables(), warnings.catch_warnings():
        # The whole views were told of; each fold would tell it again.
        warnings.simplefilter("ignore", ColumnWarning)
        for own in grids:
            settings = [chosen | setting for setting in own]
            if not tried:
                found, own_scores = _with_default(
                    model, settings, default, trials, verbose=verbose
                )
            else:
                found = _measure(model, settings, trials, verbose=verbose)
            tried, scores = tried + settings, np.vstack([scores, found])
            best = int(np.argmax(scores.mean(axis=1)))
            keeps = scores[best].mean() <= own_scores.mean()
            chosen = default if keeps else tried[best]
    seconds = time.perf_counter() - start
    return Tuning(
        model=clone(model).set_params(**chosen),
        settings=tuple(tried),
        fold_scores=scores,
        default=default,
        default_fold_scores=own_scores,
        measure=_name_measure(trials),
        seconds=seconds,
        protocol=protocol,
    )


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
    # A trial knows items by their positions, so that no fit needs their ids.
    resolved: Links = choose_links(links, tables).resolve(items).select({})
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


def _with_default(
    model: Any,
    settings: list[Parameters],
    default: Parameters,
    trials: Trials,
    *,
    verbose: bool,
) -> tuple[Array, Array]:
    """Return the scores of settings, and those of the default, measured once."""
    place = place_of(default, settings)
    if place is not None:
        found = _measure(model, settings, trials, verbose=verbose)
        return found, found[place]
    last = len(settings)
    found = _measure(model, [*settings, default], trials, optional=last,
                     verbose=verbose)  # fmt: skip
    return found[:last], found[last]


def _measure(
    model: Any,
    settings: list[Parameters],
    trials: Trials,
    *,
    optional: int | None = None,
    verbose: bool,
) -> Array:
    """Return the score of every setting on every fold, NaN where one may fail."""
    values = np.full((len(settings), len(trials)), np.nan)
    runner = choose_runner(model)
    groups = group_settings(settings, runner.together)
    steps = [(group, fold) for group in groups for fold in range(len(trials))]
    label = f"{len(settings):,} settings on {len(trials)} folds"
    for (common, members), fold in track(
        steps, total=len(steps), label=label, verbose=verbose
    ):
        own = [
            {n: v for n, v in settings[k].items() if n not in common} for k in members
        ]
        try:
            if fold == 0:
                runner.prepare([t for trial in trials for t in trial], common, own)
            values[members, fold] = _run_fold(runner, trials[fold], common, own)
        except LinkspreadError:
            # A default that these views are too small for is no reason to stop.
            if members != [optional]:
                raise
    return values


def _run_fold(
    runner: Any, trials: list[Trial], common: Parameters, settings: list[Parameters]
) -> list[float]:
    """Return the score of each setting on one fold."""
    answers: list[list[float]] = [[] for _ in settings]
    for trial in trials:
        run = runner.run(trial, common, settings)
        for found, scores in zip(answers, run, strict=True):
            found += trial.measure(scores)
    return [float(np.mean(found)) for found in answers]


def _name_measure(trials: Trials) -> str:
    """Say what the score of a setting is the mean of."""
    questions = [q for fold in trials for trial in fold for q in trial.questions]
    both = ", both directions"
    if all(isinstance(q, PartnerQuestion) for q in questions):
        what, ways = "mean reciprocal rank of held-out partners", both
    elif all(isinstance(q, ItemQuestion) for q in questions):
        what = "mean average precision of held-out labels"
        ways = "" if questions[0].source == questions[0].target else both
    else:
        what, ways = "average precision of held-out pairs", ""
    return f"{what} over {len(trials)} folds{ways}"


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
