"""Probabilities from scores: how often pairs that score so belong together.

Scores of pairs that a model has seen flatter it. Those of pairs held out do not: each
fold of the links is scored by a model fitted to the other folds, and a rising curve is
fitted to what was scored and what is known.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.validation import check_is_fitted

from linkspread.ground.checks import check_count
from linkspread.ground.errors import ColumnWarning, FewLinksError, LinkspreadError
from linkspread.links import Links
from linkspread.selection.folds import LabelFolds, item_trials, link_trials
from linkspread.selection.questions import ItemQuestion, PairQuestion, Trial
from linkspread.tables.validation import as_mapping, check_columns, check_views

Array = np.ndarray

# Pairs of labelled items that are scored in each fold.
LARGEST_SAMPLE = 100_000


@dataclass(frozen=True)
class ScoreCalibration:
    """Turn scores of one model between two views into probabilities.

    Attributes
    ----------
    source, target : str
        Views that the scores are between.
    curve : IsotonicRegression
        Fitted to held-out scores in units of `scale`.
    scale : float
        Root mean square of all scores of the model.
    n_pairs : int
        Held-out pairs that the curve was fitted to.
    base_rate : float
        Share of must-links among them.
    """

    source: str
    target: str
    curve: IsotonicRegression
    scale: float
    n_pairs: int
    base_rate: float

    def probability(self, scores: Any) -> Array:
        """Return the probability of belonging together, for each score.

        Parameters
        ----------
        scores : array-like of any shape
            Of the model that was calibrated, between the same views.

        Returns
        -------
        probabilities : ndarray of the same shape
            For pairs drawn like the judged ones: where every tenth judged pair was a
            must-link, they average a tenth.
        """
        scores = np.asarray(scores, dtype=float)
        return self.curve.predict(scores.ravel() / self.scale).reshape(scores.shape)


def calibrate(
    model: Any,
    views: Any,
    *,
    source: str,
    target: str,
    n_splits: int = 5,
    random_state: int = 0,
) -> ScoreCalibration:
    """Learn what probability a score means, from links held out of the fit.

    Takes `n_splits` further fits. Where items of both views have labels, these are
    held out; else judged pairs.

    Parameters
    ----------
    model : LinkSpreading, or a rival of :mod:`linkspread.studies.baselines`
        Fitted; its `links_` are what is held out.
    views : mapping from str to table of shape (n_items, n_features)
        Those that the model was fitted to.
    source, target : str
        Views that the scores are between.
    n_splits : int, default=5
        Folds; fewer where there are not so many links of a kind.
    random_state : int, default=0

    Returns
    -------
    calibration : ScoreCalibration

    Examples
    --------
    >>> import linkspread as ls
    >>> from linkspread.selection import calibrate
    >>> data = ls.datasets.make_views(150, n_classes=3, random_state=0)
    >>> model = ls.LinkSpreading(n_neighbors=8).fit(data.views(), data.labels)
    >>> calibration = calibrate(model, data.views(), source="text", target="image")
    >>> _, scores = model.search(7, source="text", target="image", n_results=3)
    >>> calibration.probability(scores).shape
    (3,)
    """
    check_is_fitted(model)
    check_count(n_splits, name="n_splits", at_least=2, remedy="The default is 5.")
    ids = {view: items.ids for view, items in model.items_.items() if items.has_ids}
    views = {
        view: check_columns(own, model._columns.get(view), view=view)
        for view, own in as_mapping(views).items()
    }
    tables = check_views(views, ids).tables
    trials = _make_trials(
        model.links_, tables, (source, target), n_splits, random_state
    )
    with warnings.catch_warnings():
        # The fit of the model itself has told of its columns.
        warnings.simplefilter("ignore", ColumnWarning)
        scored = [_score(clone(model), trial, ids, random_state) for trial in trials]
    scores, is_must = (np.concatenate(part) for part in zip(*scored, strict=True))
    scale = _scale(model, source, target)
    curve, base_rate = _fit_curve(scores, is_must), float(is_must.mean())
    return ScoreCalibration(source, target, curve, scale, len(scores), base_rate)


def _make_trials(
    links: Links,
    tables: Mapping[str, Any],
    views: tuple[str, str],
    n_splits: int,
    random_state: int,
) -> list[Trial]:
    """Return the fits to make, each with the questions that lie between two views."""
    if links.memberships(views[0], shared_with=views[1]) is not None:
        splitter = LabelFolds(n_splits, random_state=random_state)
        folds = item_trials(tables, links, splitter, protocol="transductive")
    else:
        _check_both_kinds(links, views)
        folds = link_trials(tables, links, n_splits=n_splits, n_repeats=1,
                            random_state=random_state)  # fmt: skip
    trials = [trial for fold in folds for trial in fold]
    asked = [_only_between(trial, views) for trial in trials]
    return _check_asked([trial for trial in asked if trial.questions], links, views)


def _only_between(trial: Trial, views: tuple[str, str]) -> Trial:
    """Return a trial with only those questions that are between two views."""
    questions = (q for q in trial.questions if {q.source, q.target} == set(views))
    return Trial(trial.views, trial.links, tuple(questions))


def _check_asked(
    trials: list[Trial], links: Links, views: tuple[str, str]
) -> list[Trial]:
    """Return the trials, of which there must be some."""
    if not trials:
        raise LinkspreadError(
            "`source` and `target` must be views whose links can be held out, got "
            f"{views[0]!r} and {views[1]!r} with {links!r}. Calibrate two views that "
            "links join."
        )
    return trials


def _check_both_kinds(links: Links, views: tuple[str, str]) -> None:
    """Refuse judged pairs that are all of one kind."""
    weights = links.judged(*views).data
    n_must, n_cannot = int(np.sum(weights > 0)), int(np.sum(weights < 0))
    if min(n_must, n_cannot) < 2:
        raise FewLinksError(
            f"a calibration between {views[0]!r} and {views[1]!r} must have at least "
            f"two must- and two cannot-links, got {n_must} and {n_cannot}. Judge a few "
            "pairs of both kinds; scores can be ranked without."
        )


def _score(
    model: Any, trial: Trial, ids: Mapping[str, Any], random_state: int
) -> tuple[Array, Array]:
    """Return scores of held-out pairs, and which of them belong together."""
    model.fit(trial.views, trial.links, ids=ids)
    parts = []
    for question in trial.questions:
        rows, cols, is_must = _pairs_of(question, random_state)
        scale = _scale(model, question.source, question.target)
        left, right = model.embeddings(question.source, question.target)
        scores = np.einsum("ij,ij->i", left[rows], right[cols]) / scale
        parts.append((scores.astype(float), is_must))
    scores, is_must = (np.concatenate(part) for part in zip(*parts, strict=True))
    return scores, is_must


def _pairs_of(question: Any, random_state: int) -> tuple[Array, Array, Array]:
    """Return the positions of the pairs that a question asks for, and the answers."""
    if isinstance(question, PairQuestion):
        return question.rows, question.cols, question.weights > 0
    assert isinstance(question, ItemQuestion)
    rng = np.random.default_rng(random_state)
    n_pairs = len(question.rows) * len(question.cols)
    n_sampled = min(n_pairs, LARGEST_SAMPLE)
    chosen = rng.choice(n_pairs, n_sampled, replace=False)
    i, j = np.divmod(chosen, len(question.cols))
    same = question.query_labels[i] == question.item_labels[j]
    different = i != j if question.source == question.target else np.ones_like(same)
    i, j, same = i[different], j[different], same[different]
    return question.rows[i], question.cols[j], same


def _scale(model: Any, source: str, target: str) -> float:
    """Return the root mean square of all scores, from the vectors of both views.

    A model that saw fewer links scores lower. In units of its own scores, those of
    every fold and of the whole fit mean the same.
    """
    left, right = (side.astype(float) for side in model.embeddings(source, target))
    total = np.sum((left.T @ left) * (right.T @ right))
    scale = float(np.sqrt(max(total, 0.0) / (len(left) * len(right))))
    if scale == 0:
        raise LinkspreadError(
            f"scores between {source!r} and {target!r} must not all be 0 for a "
            "calibration, and they are after a part of the links was held out. Give "
            "more links, or a larger `alpha`."
        )
    return scale


def _fit_curve(scores: Array, is_must: Array) -> IsotonicRegression:
    """Return a rising curve from scores to frequencies."""
    if is_must.all() or not is_must.any():
        raise FewLinksError(
            "held-out links must be of both kinds for a calibration, got "
            f"{len(scores):,} of one. Add links of the other kind."
        )
    # Scores are too unevenly spread for a logistic curve: most are near 0.
    steps = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    return steps.fit(scores, is_must)
