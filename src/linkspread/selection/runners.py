"""Fit the settings of a grid to a trial, as cheaply as the model allows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from linkspread.compiled.backends import small_algebra
from linkspread.graphs import normalize
from linkspread.metrics import ScoreBlock
from linkspread.models import LinkSpreading
from linkspread.models.spreading import (
    CONSTRAINED,
    build_graphs,
    check_adjustment,
    check_alphas,
    check_parameters,
    choose_graphs,
    similarities,
)
from linkspread.models.vector_search import is_table
from linkspread.propagation import Spread, spread_links
from linkspread.propagation.filter import Setting
from linkspread.propagation.rows import SpreadRows
from linkspread.propagation.settings import (
    SettingsSpread,
    settings_bytes,
    spread_settings,
)
from linkspread.selection.folds import SingleScores, Trial

Array = np.ndarray
Way = tuple[str, str]
# The graph of each view, and the same normalised.
Graphs = Mapping[str, tuple[Any, Any]]

# Memory that the vectors shared by a grid may take; beyond it, only the rows that are
# needed are propagated.
MAX_BYTES = 2e9
# Error of the scores, too small to change a choice.
TOL = 1e-4


class ModelRunner:
    """Fit any model; one with `sharing_with` shares results with other settings."""

    def __init__(self, joint: tuple[str, ...] = ()) -> None:
        # Parameters whose settings are run jointly.
        self.joint = joint

    def prepare(self, trials: Sequence[Trial], models: Sequence[Any]) -> None:
        """Do nothing: these models share no work among trials."""

    def run(self, trial: Trial, models: Sequence[Any]) -> Iterator[ScoreBlock]:
        """Yield the scores of each model, fitted to a trial."""
        before = None
        for model in map(clone, models):
            if not hasattr(model, "sharing_with"):
                yield model.fit(trial.views, trial.links).scores
                continue
            before = model.sharing_with(before)
            fitted = before.fit(trial.views, trial.links)
            yield SingleScores(fitted.scores, fitted.pair_scores)


class SpreadingRunner:
    """Fit `LinkSpreading`: a whole grid of `alpha` and `beta` in one propagation."""

    joint = ("alpha", "beta", "rank")

    def __init__(self) -> None:
        # Trials whose links were propagated together.
        self._prepared: list[_TrialSpreads] = []

    def prepare(self, trials: Sequence[Trial], models: Sequence[Any]) -> None:
        """Propagate the links of all trials at once, where they share graphs."""
        self._prepared, first = [], trials[0]
        if any(trial.views is not first.views for trial in trials):
            return
        if has_constrained_graphs(models[0], first):
            return
        graphs = self._build(first, models)
        together = [_TrialSpreads(trial, graphs, models) for trial in trials]
        if _spread_together(together):
            self._prepared = together

    def run(self, trial: Trial, models: Sequence[Any]) -> Iterator[ScoreBlock]:
        """Yield the scores of models that differ in `alpha`, `beta` and `rank`."""
        for prepared in self._prepared:
            if prepared.trial is trial:
                return prepared.run()
        return _TrialSpreads(trial, self._build(trial, models), models).run()

    def _build(self, trial: Trial, models: Sequence[LinkSpreading]) -> Graphs:
        """Return the graph of each view and its normalised form."""
        for model in models:
            check_parameters(model)
        model = models[0]
        alphas = check_alphas(model.alpha, trial.views)
        graphs, _ = build_graphs(
            trial.views,
            choose_graphs(model, trial.views, trial.links),
            check_adjustment(model.adjustment, alphas, model.beta),
            links=trial.links,
            balance=model.balance,
            rank=model.rank,
            tol=model.tol,
            n_jobs=model.n_jobs,
            verbose=False,
        )
        return {v: (own, normalize(own.affinity_)) for v, own in graphs.items()}


class _TrialSpreads:
    """The graphs and links of a trial, and the settings to propagate them with."""

    def __init__(
        self, trial: Trial, graphs: Graphs, models: Sequence[LinkSpreading]
    ) -> None:
        self.trial = trial
        self.graphs = graphs
        self.models = models
        self.alphas = [check_alphas(m.alpha, trial.views) for m in models]
        ways = {(test.source, test.target) for test in trial.tests}
        self.links = {
            way: trial.links.between(*way, balance=models[0].balance) for way in ways
        }
        # Models without a `rank`, which can share vectors.
        self.whole = [k for k, model in enumerate(models) if model.rank is None]
        self.spreads: dict[Way, SettingsSpread] = {}
        # Views, new items and their similarities, shared by all settings.
        self._nears: list[tuple[str, Any, Any]] = []

    def run(self) -> Iterator[ScoreBlock]:
        """Yield the scores that a fit of each model would give."""
        shared = bool(self.spreads) or _spread_together([self])
        for k in range(len(self.models)):
            if shared and k in self.whole:
                yield self._shared_scores(self.whole.index(k))
            else:
                yield self._own_scores(k)

    def setting(self, k: int, way: Way) -> Setting:
        """Return alpha of both views and beta of a model."""
        alphas = self.alphas[k]
        return (alphas[way[0]], alphas[way[1]]), self.models[k].beta

    def _shared_scores(self, place: int) -> ScoreBlock:
        """Score a setting from vectors that all settings share."""

        def scores(source: str, target: str, *, rows: Any, cols: Any) -> Array:
            spread = self.spreads[source, target]
            if is_table(rows):
                own = self._near(rows, source) @ spread.left
            else:
                own = spread.left_of(rows)
            # Spinning threads of BLAS would slow down the measure that follows.
            with small_algebra(len(own) * len(cols)):
                return spread.queries(own, place) @ spread.right_of(cols).T

        return scores

    def _own_scores(self, k: int) -> ScoreBlock:
        """Propagate the links with one setting, row by row or to vectors of a rank."""
        spreads = {way: self._spread_one(k, way) for way in self.links}

        def scores(source: str, target: str, *, rows: Any, cols: Any) -> Array:
            spread = spreads[source, target]
            if is_table(rows):
                return spread.unseen_rows(self._near(rows, source))[:, cols]
            if isinstance(spread, SpreadRows):
                return spread.block(rows, cols)
            return spread.queries(rows) @ spread.right[cols].T

        return scores

    def _spread_one(self, k: int, way: Way) -> Spread | SpreadRows:
        """Propagate the links of two views with one setting."""
        Z, rank = self.links[way], self.models[k].rank
        S_x, S_y = (self.graphs[view][1] for view in way)
        alpha, beta = self.setting(k, way)
        if rank is None:
            return SpreadRows.of(S_x, Z, S_y, alpha=alpha, beta=beta, tol=TOL)
        how: dict[str, Any] = {"beta": beta, "tol": self.models[k].tol, "rank": rank}
        names = list(self.trial.views)
        if names.index(way[0]) <= names.index(way[1]):
            return spread_links(S_x, Z, S_y, alpha=alpha, **how)
        # In the order of a fit, whose truncation depends on it.
        return spread_links(S_y, Z.T, S_x, alpha=alpha[::-1], **how).T

    def _near(self, rows: Any, view: str) -> Any:
        """Return the similarities of new items to the fitted ones, searched once."""
        for known, given, near in self._nears:
            if known == view and given is rows:
                return near
        near = similarities(self.graphs[view][0], rows, view=view)
        self._nears.append((view, rows, near))
        return near


def _spread_together(trials: Sequence[_TrialSpreads]) -> bool:
    """Propagate the links of trials with the same graphs at once, if memory allows."""
    first, n_bytes = trials[0], 0.0
    if not first.whole:
        return False
    wanted = {way: _wanted_items(trials, way) for way in first.links}
    for way, (rows, cols) in wanted.items():
        for trial in trials:
            Z = trial.links[way]
            n_rows = Z.shape[0] if rows is None else len(rows)
            n_bytes += settings_bytes(Z, n_items=n_rows + len(cols))
    if n_bytes > MAX_BYTES:
        return False
    for way, (rows, cols) in wanted.items():
        S_x, S_y = (first.graphs[view][1] for view in way)
        spreads = spread_settings(
            S_x,
            [trial.links[way] for trial in trials],
            S_y,
            [first.setting(k, way) for k in first.whole],
            tol=TOL,
            unseen=any(own is None for own, _ in wanted.values()),
            rows=rows,
            cols=cols,
        )
        for trial, spread in zip(trials, spreads, strict=True):
            trial.spreads[way] = spread
    return True


def _wanted_items(
    trials: Sequence[_TrialSpreads], way: Way
) -> tuple[Array | None, Array]:
    """Return the items of two views that tests need; None for new ones."""
    tests = [test for own in trials for test in own.trial.tests]
    tests = [test for test in tests if (test.source, test.target) == way]
    cols = np.unique(np.concatenate([test.cols for test in tests]))
    if any(is_table(test.rows) for test in tests):
        return None, cols
    return np.unique(np.concatenate([test.rows for test in tests])), cols


def has_constrained_graphs(model: LinkSpreading, trial: Trial) -> bool:
    """Return whether any graph of a model is built with links."""
    choices = choose_graphs(model, trial.views, trial.links)
    kinds = [choice["graph"] for choice in choices.values()]
    return any(isinstance(kind, str) and kind in CONSTRAINED for kind in kinds)


def choose_runner(model: Any) -> ModelRunner | SpreadingRunner:
    """Return the cheapest way to try the parameters of a model."""
    if type(model) is LinkSpreading:
        return SpreadingRunner()
    shares = hasattr(model, "sharing_with")
    return ModelRunner(tuple(model.get_params(deep=False)) if shares else ())
