"""Choose parameters by cross-validation."""

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone

from linkspread.compiled.backends import count_rows, own_threads
from linkspread.graphs.neighbors import cache_tables
from linkspread.ground.checks import check_count, check_name
from linkspread.ground.errors import ColumnWarning, LinkspreadError
from linkspread.ground.notebook import ShownAsText
from linkspread.links import Items, Links
from linkspread.links.collection import choose_links
from linkspread.models import LinkSpreading
from linkspread.selection.folds import (
    ItemTest,
    PartnerTest,
    Trial,
    item_trials,
    link_trials,
)
from linkspread.selection.runners import choose_runner
from linkspread.tables.validation import Views, check_views, per_view

Array = np.ndarray
Parameters = dict[str, Any]
Trials = list[list[Trial]]

PROTOCOLS = ("transductive", "inductive")

# Few and far apart: with few links, the best of many settings is best by chance.
DEFAULT_GRID: Mapping[str, Sequence[Any]] = {
    "n_neighbors": (10, 30, 90),
    "alpha": (0.025, 0.1, 0.3, 0.6, 0.9),
    "beta": (0.5, 0.95),
}


@dataclass(frozen=True)
class Tuning(ShownAsText):
    """Settings, their scores on every fold, and the best one.

    Attributes
    ----------
    model : estimator
        Not fitted, with the best parameters set.
    settings : tuple of dict
    fold_scores : ndarray of shape (n_settings, n_folds)
    default : dict
        The model's own values of the parameters that were tried.
    default_fold_scores : ndarray of shape (n_folds,)
        NaN where these views are too small for the default.
    measure : str
        Name of the score.
    seconds : float
    protocol : {"transductive", "inductive"}
    """

    model: Any
    settings: tuple[Parameters, ...]
    fold_scores: Array
    default: Parameters
    default_fold_scores: Array
    measure: str
    seconds: float
    protocol: str

    def __str__(self) -> str:
        own, best = (
            f"{folds.mean():.3f} ± {folds.std():.3f}"
            for folds in (self.default_fold_scores, self.fold_scores[self.best_index])
        )
        found = f"default {own}, best {best}"
        if self.keeps_default:
            found = f"default {own} stays, best setting tried {best}"
        elif np.isnan(self.default_score):
            found = f"best {best}, the views are too small for the default"
        return f"{found}: {self.measure} (± standard deviation over the folds)"

    @property
    def scores(self) -> Array:
        """Mean of the folds, for each setting."""
        return self.fold_scores.mean(axis=1)

    @property
    def default_score(self) -> float:
        """Mean of the folds, for the default."""
        return float(self.default_fold_scores.mean())

    @property
    def best_index(self) -> int:
        """Position of the best setting, the first of equal ones."""
        return int(np.argmax(self.scores))

    @property
    def keeps_default(self) -> bool:
        """Whether no setting has a larger mean than the default."""
        return bool(self.scores[self.best_index] <= self.default_score)

    @property
    def best_parameters(self) -> Parameters:
        """The setting with the largest mean, the default if none has a larger one."""
        return self.default if self.keeps_default else self.settings[self.best_index]

    @property
    def best_score(self) -> float:
        """Mean of the best setting, slightly too high because it was chosen."""
        return float(np.nanmax([self.scores[self.best_index], self.default_score]))

    def curve(self, parameter: str) -> tuple[list[Any], Array]:
        """Return the scores against one parameter, others as in the best setting.

        The values are in the order of the grid; `parameter` is a name such as "beta",
        or "alpha text" for the alpha of one view.
        """
        rows = [flatten(setting) for setting in self.settings]
        best = rows[self.best_index]
        if parameter not in best:
            raise LinkspreadError(
                f"`parameter` must be one that was tried, {list(best)}, got "
                f"{parameter!r}. Correct the name."
            )
        others = {name: value for name, value in best.items() if name != parameter}
        found: dict[Any, float] = {}
        for row, score in zip(rows, self.scores, strict=True):
            if {n: value for n, value in row.items() if n != parameter} == others:
                found.setdefault(row[parameter], float(score))
        return list(found), np.array(list(found.values()))


def tune(
    views: Any,
    links: Any,
    grid: Any = None,
    *,
    model: Any = None,
    n_splits: int = 5,
    n_repeats: int = 1,
    protocol: str = "transductive",
    ids: Mapping[str, Any] | None = None,
    random_state: int = 0,
) -> Tuning:
    """Choose parameters from a grid by cross-validation on labels or links.

    The model's own parameters are measured too, and stay unless a setting has a larger
    mean. A whole grid of `alpha` and `beta` of `LinkSpreading` costs about one
    propagation for each graph and fold. Labels are held out and their items searched,
    or where there are none, judged pairs: must is distinguished from cannot, or without
    cannot-links partners are searched.

    Parameters
    ----------
    views : mapping from str to table of shape (n_items, n_features)
    links : Links, or mapping from str to labels
    grid : mapping, or sequence of mappings, default=None
        Lists of values by the name of the parameter; a dict of lists by view tries all
        combinations. A sequence of grids is searched in stages, each from the best
        setting of earlier ones. None takes `DEFAULT_GRID`.
    model : estimator, default=None
        With ``fit(views, links)`` and ``scores``; None is ``LinkSpreading()``.
    n_splits : int, default=5
        Folds; fewer where there are fewer labels of a class.
    n_repeats : int, default=1
        How often all folds are drawn; several help where labels are few.
    protocol : {"transductive", "inductive"}, default="transductive"
        Whether queries take part in the fit, without a label, or are new.
    ids : mapping from str to array-like of shape (n_items,), default=None
        As for :meth:`LinkSpreading.fit`.
    random_state : int, default=0

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
    model = LinkSpreading() if model is None else model
    missing = [n for n in ("get_params", "fit", "scores") if not hasattr(model, n)]
    if missing:
        raise LinkspreadError(
            "`model` must be an estimator with fit(views, links) and scores, got "
            f"{model!r:.60} without {missing[0]!r}. Use LinkSpreading() or one of "
            "`linkspread.studies.baselines`."
        )
    check_name(protocol, PROTOCOLS, name="protocol")
    check_count(n_splits, name="n_splits", at_least=2, remedy="The default is 5.")
    check_count(n_repeats, name="n_repeats", remedy="The default is 1.")
    read = check_views(views, ids)
    read.report_columns()
    drawn = {
        "n_splits": n_splits,
        "n_repeats": n_repeats,
        "random_state": random_state,
    }
    trials = _make_trials(read, links, protocol, drawn)
    stages = _stages(_default_grid(trials) if grid is None else grid, model)
    chosen = default = _own_setting(model, stages, trials[0][0].views)
    tried: list[Parameters] = []
    scores, own_scores = np.zeros((0, len(trials))), np.zeros(0)
    threads = own_threads(getattr(model, "n_jobs", None), count_rows(views))
    with threads, cache_tables(), warnings.catch_warnings():
        # Warned of once, for the whole views.
        warnings.simplefilter("ignore", ColumnWarning)
        for stage in stages:
            settings = [chosen | setting for setting in expand_grid(stage)]
            same = [k for k, own in enumerate(settings) if _equal(default, own)]
            if tried or same:
                found = _measure(model, settings, trials)
            else:
                both, same = [*settings, default], [len(settings)]
                found = _measure(model, both, trials, optional=same[0])
            if not tried:
                own_scores = found[same[0]]
            tried += settings
            scores = np.vstack([scores, found[: len(settings)]])
            best = int(np.argmax(scores.mean(axis=1)))
            keeps = scores[best].mean() <= own_scores.mean()
            chosen = default if keeps else tried[best]
    return Tuning(
        model=clone(model).set_params(**chosen),
        settings=tuple(tried),
        fold_scores=scores,
        default=default,
        default_fold_scores=own_scores,
        measure=_name_measure(trials),
        seconds=time.perf_counter() - start,
        protocol=protocol,
    )


def _make_trials(
    read: Views, links: Any, protocol: str, drawn: dict[str, int]
) -> Trials:
    """Split labels or links into folds."""
    tables = read.tables
    items = {view: Items(own, view=view) for view, own in read.ids.items()}
    # Trials identify items by position, so that no fit needs ids.
    resolved: Links = choose_links(links, tables).resolve(items).select({})
    has_labels = any(resolved.memberships(view) is not None for view in tables)
    if has_labels:
        return item_trials(tables, resolved, protocol=protocol, **drawn)
    if protocol == "inductive":
        raise LinkspreadError(
            "`protocol` must be 'transductive' where pairs are held out, got "
            "'inductive'. Leave it at its default, or give labels."
        )
    return link_trials(tables, resolved, **drawn)


def _measure(
    model: Any,
    settings: list[Parameters],
    trials: Trials,
    *,
    optional: int | None = None,
) -> Array:
    """Return the score of every setting on every fold; NaN if `optional` fails."""
    values = np.full((len(settings), len(trials)), np.nan)
    runner = choose_runner(model)
    groups = group_settings(settings, runner.joint)
    steps = [(group, fold) for group in groups for fold in range(len(trials))]
    for members, fold in steps:
        models = [clone(model).set_params(**settings[k]) for k in members]
        try:
            if fold == 0:
                runner.prepare([t for trial in trials for t in trial], models)
            results: list[list[float]] = [[] for _ in models]
            for trial in trials[fold]:
                run = runner.run(trial, models)
                for found, scores in zip(results, run, strict=True):
                    found += trial.measure(scores)
            values[members, fold] = [float(np.mean(found)) for found in results]
        except LinkspreadError:
            # The default may need larger views; other settings are compared anyway.
            if members != [optional]:
                raise
    return values


def _name_measure(trials: Trials) -> str:
    """Return the name of the score of a setting."""
    tests = [test for fold in trials for trial in fold for test in trial.tests]
    both = ", both directions"
    if all(isinstance(test, PartnerTest) for test in tests):
        what, ways = "mean reciprocal rank of held-out partners", both
    elif all(isinstance(test, ItemTest) for test in tests):
        what = "mean average precision of held-out labels"
        ways = "" if tests[0].source == tests[0].target else both
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


def _stages(grid: Any, model: Any) -> list[Mapping[str, Any]]:
    """Return the grids that are searched one after the other, checked."""
    is_one = isinstance(grid, str | Mapping) or not isinstance(grid, Sequence)
    stages = [grid] if is_one else list(grid)
    known = list(model.get_params(deep=False))
    for stage in stages:
        expand_grid(stage)
        unknown = [name for name in stage if name not in known]
        if unknown:
            raise LinkspreadError(
                f"`grid` must name parameters of {type(model).__name__}, {known}, got "
                f"{unknown[0]!r}. Correct the name."
            )
    if not stages:
        raise LinkspreadError(
            "`grid` must have at least one stage, got an empty list. Leave it out for "
            "the default grid."
        )
    return stages


def expand_grid(grid: Mapping[str, Any]) -> list[Parameters]:
    """Return every setting of a grid, the last parameter changing fastest."""
    if not isinstance(grid, Mapping):
        raise LinkspreadError(
            f"`grid` must map names of parameters to lists of values, got "
            f'{grid!r:.60}. Write {{"alpha": [0.1, 0.5]}}.'
        )
    choices = [_choices(name, values) for name, values in grid.items()]
    return [dict(zip(grid, values, strict=True)) for values in product(*choices)]


def _choices(name: str, values: Any) -> list[Any]:
    """Return the values that one parameter takes."""
    if isinstance(values, Mapping):
        combinations = product(*(_choices(name, v) for v in values.values()))
        return [dict(zip(values, chosen, strict=True)) for chosen in combinations]
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise LinkspreadError(
            f"`grid` must have a list of values for {name!r}, got {values!r:.60}. "
            f"Write [{values!r:.60}] for a single one."
        )
    chosen = list(values)
    if not chosen:
        raise LinkspreadError(
            f"`grid` must have at least one value for {name!r}, got none. Remove it "
            "to keep the model's own."
        )
    return chosen


def _own_setting(
    model: Any, stages: Sequence[Mapping[str, Any]], views: Mapping[str, Any]
) -> Parameters:
    """Return the model's own values of the tried parameters, by view as in grids."""
    own = model.get_params(deep=False)
    tried = [item for stage in stages for item in stage.items()]
    for name, values in tried:
        if isinstance(values, Mapping):
            own[name] = per_view(own[name], views, name=name)
    return {name: own[name] for name, _ in tried}


def group_settings(
    settings: Sequence[Parameters], joint: Iterable[str]
) -> list[list[int]]:
    """Return groups of settings that differ in the `joint` parameters only."""
    groups: list[tuple[Parameters, list[int]]] = []
    for k, setting in enumerate(settings):
        common = {n: v for n, v in setting.items() if n not in joint}
        for known, members in groups:
            if _equal(known, common):
                members.append(k)
                break
        else:
            groups.append((common, [k]))
    return [members for _, members in groups]


def _equal(one: Parameters, other: Parameters) -> bool:
    """Return whether two settings are the same; arrays and functions by identity."""
    plain = str, int, float, dict, tuple
    return one.keys() == other.keys() and all(
        value is other[name]
        or (
            isinstance(value, plain)
            and isinstance(other[name], plain)
            and value == other[name]
        )
        for name, value in one.items()
    )


def flatten(setting: Parameters) -> Parameters:
    """Return a setting with one name for each view's value, such as "alpha text"."""
    flat: Parameters = {}
    for name, value in setting.items():
        own = value if isinstance(value, dict) else {"": value}
        flat |= {f"{name} {view}".strip(): part for view, part in own.items()}
    return flat


def unflatten(flat: Parameters) -> Parameters:
    """Return the setting that `flatten` flattened."""
    setting: Parameters = {}
    for key, value in flat.items():
        # Names of parameters have no space; those of views may have some.
        name, is_by_view, view = key.partition(" ")
        if is_by_view:
            setting.setdefault(name, {})[view] = value
        else:
            setting[name] = value
    return setting
