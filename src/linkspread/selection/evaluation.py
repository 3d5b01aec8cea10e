"""Measure a fitted model by searches and by judged pairs, and calibrate its scores."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.validation import check_is_fitted

from linkspread.ground.checks import check_count
from linkspread.ground.errors import (
    ColumnWarning,
    FewLinksError,
    LinkError,
    LinkspreadError,
)
from linkspread.ground.notebook import ShownAsText
from linkspread.links import Links
from linkspread.links.labels import number_classes
from linkspread.metrics import average_precision, ndcg, precision_at_k
from linkspread.selection.folds import (
    PairTest,
    Trial,
    item_trials,
    judged_pairs,
    link_trials,
)
from linkspread.tables.validation import as_mapping, check_columns, check_views

Array = np.ndarray
K = 10
# Partners of which all pairs of items are scored, where there are no cannot-links.
MAX_PARTNERS = 300
# Most pairs of labelled items that are scored in each fold of a calibration.
LARGEST_SAMPLE = 100_000


# Bootstrap: draws for few pairs and for many, and the product of draws and pairs.
N_DRAWS, FEWEST_DRAWS, DRAWN_ENTRIES = 500, 100, 1 << 22
# Drawn weights that are in memory at a time.
BLOCK_ENTRIES = 1 << 20
# Share of the draws in an interval, and its half width in standard deviations.
COVERED, DEVIATIONS = 0.9, 1.645
KINDS = {
    "pairs": "{must:,} must- and {cannot:,} cannot-links",
    "partners": "{judged:,} must-links, each partner against those of the others",
}


@dataclass(frozen=True)
class Quality(ShownAsText):
    """How well scores distinguish pairs that belong together; print it.

    Attributes
    ----------
    between : tuple of two str
    kind : {"pairs", "partners"}
        Judged pairs; or must-links, with all other pairs of their items as
        cannot-links.
    n_judged : int
        Judged pairs.
    n_must, n_cannot : int
        Pairs of both kinds that were scored.
    auc, average_precision : float
        How often a pair that belongs together scores higher than one that does not,
        0.5 by chance, and the mean precision at the ranks of pairs that do.
    auc_interval, average_precision_interval : tuple of two float
        90 % intervals, by a bootstrap over the items.
    chance_precision : float
        Average precision of a random order of the same pairs.
    n_known : int, default=0
        Pairs left out because the model knew them.
    """

    between: tuple[str, str]
    kind: str
    n_judged: int
    n_must: int
    n_cannot: int
    auc: float
    average_precision: float
    auc_interval: tuple[float, float]
    average_precision_interval: tuple[float, float]
    chance_precision: float
    n_known: int = 0

    def __str__(self) -> str:
        title = " and ".join(dict.fromkeys(self.between))
        basis = KINDS[self.kind].format(
            must=self.n_must, cannot=self.n_cannot, judged=self.n_judged
        )
        auc, precision = (
            "{:.2f} to {:.2f}".format(*interval)
            for interval in (self.auc_interval, self.average_precision_interval)
        )
        return (
            f"{title}: AUC {self.auc:.2f} (90 % interval {auc}, chance 0.50), average "
            f"precision {self.average_precision:.2f} ({precision}, chance "
            f"{self.chance_precision:.2f}), from {basis}."
        )


@dataclass(frozen=True)
class SearchQuality:
    """How well items of one class find each other from one view to another.

    Attributes
    ----------
    source, target : str
        Views of the queries and of the items that are searched.
    n_queries, n_items : int
        Queries with an item of their class to find, and items searched.
    mean_average_precision : float
    precision_at_10 : float
        Share of the first ten results that are of the query's class.
    ndcg : float
    """

    source: str
    target: str
    n_queries: int
    n_items: int
    mean_average_precision: float
    precision_at_10: float
    ndcg: float


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
            Of the calibrated model, between the same views.

        Returns
        -------
        probabilities : ndarray of the same shape
            For pairs drawn like the judged ones: where every tenth judged pair was a
            must-link, they average a tenth.
        """
        scores = np.asarray(scores, dtype=float)
        return self.curve.predict(scores.ravel() / self.scale).reshape(scores.shape)


def evaluate_search(
    model: Any, labels: Mapping[str, Any], *, include_known: bool = False
) -> list[SearchQuality]:
    """Search between all views that have labels, and measure what is found.

    Parameters
    ----------
    model : CrossViewSearch or LinkSpreading
        Fitted.
    labels : mapping from str to array-like of shape (n_items,)
        Classes of the fitted items, as for `Links.from_labels`; items without a class
        are neither queries nor results.
    include_known : bool, default=False
        Whether to count items whose label the model knows.

    Returns
    -------
    qualities : list of SearchQuality
        Both directions between each two views that are searched directly.

    Examples
    --------
    >>> import numpy as np
    >>> import linkspread as ls
    >>> from linkspread.selection import evaluate_search
    >>> data = ls.datasets.make_views(90, n_classes=3, random_state=0)
    >>> known = {v: np.where(np.arange(90) < 30, y, -1) for v, y in data.labels.items()}
    >>> model = ls.LinkSpreading(n_neighbors=10).fit(data.views(), known)
    >>> [quality.n_queries for quality in evaluate_search(model, data.labels)]
    [60, 60]
    """
    classes = number_classes(labels)
    tested = {}
    for view, own in classes.items():
        known = None if include_known else model.links_.labelled(view)
        is_tested = (own >= 0) & (True if known is None else ~known)
        tested[view] = np.flatnonzero(is_tested)
        if not is_tested.any():
            raise LinkspreadError(
                f"view {view!r} must have items with a label that the model does not "
                f"know, got none of {int(np.sum(own >= 0)):,}. Give labels of other "
                "items, or pass `include_known=True`."
            )
    joined = {frozenset(pair) for pair in model.pairs_}
    found = [
        _measure_search(model, classes, tested, *direction)
        for a, b in combinations(classes, 2)
        if {a, b} in joined
        for direction in ((a, b), (b, a))
    ]
    if not found:
        raise LinkspreadError(
            "`labels` must be of two views that the model joins, got labels of "
            f"{', '.join(map(repr, classes)) or 'none'}. Give those of another view."
        )
    return found


def _measure_search(
    model: Any,
    classes: Mapping[str, Array],
    tested: Mapping[str, Array],
    source: str,
    target: str,
) -> SearchQuality:
    """Search one view from another, a block of queries at a time."""
    rows, cols = tested[source], tested[target]
    own, others = classes[source][rows], classes[target][cols]
    counted = np.isin(own, others)
    if not counted.any():
        raise LinkspreadError(
            f"some items of view {source!r} must have a label that some item of "
            f"view {target!r} has too, got none of {len(rows):,}. Give classes the "
            "same names in both views."
        )
    scores = _ScoreRows(model, source, target, rows, cols)
    precisions = average_precision(scores, own, others)
    return SearchQuality(
        source,
        target,
        n_queries=int(counted.sum()),
        n_items=len(cols),
        mean_average_precision=float(precisions[counted].mean()),
        precision_at_10=precision_at_k(scores, own, others, k=K),
        ndcg=ndcg(scores, own, others),
    )


def evaluate_pairs(
    model: Any, links: Links, *, include_known: bool = False
) -> list[Quality]:
    """Score judged pairs, and measure how well must is separated from cannot.

    Without cannot-links, partners are compared with the partners of other items.

    Parameters
    ----------
    model : CrossViewSearch or LinkSpreading
        Fitted.
    links : Links
        Judged pairs of items of the model.
    include_known : bool, default=False
        Whether to count pairs that the model knows, as pairs or by both labels.

    Returns
    -------
    qualities : list of Quality
        One for each two views.
    """
    resolved = links.resolve(model.items_)
    # Tables of the same two views in either order are one.
    known = {frozenset(between): between for between, _ in resolved.pair_tables}
    return [
        _measure_pairs(model, resolved, between, include_known)
        for between in known.values()
    ]


def _measure_pairs(
    model: Any, links: Links, between: tuple[str, str], include_known: bool
) -> Quality:
    """Score the pairs of two views."""
    i, j, weights = judged_pairs(links, between)
    is_known = np.zeros(len(i), dtype=bool)
    if not include_known:
        # By a link, or by labels of both items.
        is_known = np.asarray(model.links_.judged(*between).astype(bool)[i, j]).ravel()
        left, right = (
            model.links_.labelled(view, shared_with=other)
            for view, other in (between, between[::-1])
        )
        if left is not None and right is not None:
            is_known |= left[i] & right[j]
    i, j, weights = (own[~is_known] for own in (i, j, weights))
    if not np.any(weights > 0):
        raise LinkError(
            "`links` must have must-links that the model does not know, got 0 must and "
            f"{len(weights):,} cannot between {between[0]!r} and {between[1]!r}. Judge "
            "more pairs, or pass `include_known=True`."
        )
    kind, test = "pairs", PairTest(*between, i, j, weights)
    if weights.min() > 0:
        kind = "partners"
        test = PairTest.of_partners(*between, i, j, n_tested=MAX_PARTNERS)

    def scores(source: str, target: str, *, rows: Array, cols: Array) -> Array:
        return _ScoreRows(model, source, target, rows, cols).rows(slice(None))

    return measure_pairs(
        test.pair_scores(scores),
        test.weights > 0,
        test.rows,
        test.cols,
        between=between,
        kind=kind,
        n_judged=len(weights),
        n_known=int(is_known.sum()),
    )


@dataclass(frozen=True)
class _ScoreRows:
    """Scores of some items of two views, computed row by row on demand."""

    model: Any
    source: str
    target: str
    queries: Array
    items: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Number of queries and number of items."""
        return len(self.queries), len(self.items)

    def rows(self, index: Any) -> Array:
        """Return the scores of the queries in `index`."""
        chosen = (self.source, self.queries[index]), (self.target, self.items)
        rows, cols = (self._mask(view, positions) for view, positions in chosen)
        return self.model.scores(self.source, self.target, rows=rows, cols=cols)

    def _mask(self, view: str, positions: Array) -> Array:
        """Return sorted positions as a mask, as ids may be integers too."""
        mask = np.zeros(self.model.items_[view].n_items, dtype=bool)
        mask[positions] = True
        return mask


def calibrate(
    model: Any,
    views: Any,
    *,
    source: str,
    target: str,
    n_splits: int = 5,
    random_state: int = 0,
) -> ScoreCalibration:
    """Map scores to probabilities, learnt by `n_splits` fits without some links.

    Labels are held out where both views have them, else judged pairs.

    Parameters
    ----------
    model : LinkSpreading, or a baseline of :mod:`linkspread.studies.baselines`
        Fitted; its `links_` are held out.
    views : mapping from str to table of shape (n_items, n_features)
        Those that the model was fitted to.
    source, target : str
        Views that the scores are between.
    n_splits : int, default=5
        Folds; fewer where there are fewer links of a kind.
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
    between = source, target
    trials = _calibration_trials(model.links_, tables, between, n_splits, random_state)
    parts = []
    with warnings.catch_warnings():
        # The fit of the model has given these warnings.
        warnings.simplefilter("ignore", ColumnWarning)
        for trial in trials:
            fitted = clone(model).fit(trial.views, trial.links, ids=ids)
            parts += [_held_out_scores(fitted, t, random_state) for t in trial.tests]
    scores, is_must = (np.concatenate(own) for own in zip(*parts, strict=True))
    if is_must.all() or not is_must.any():
        raise FewLinksError(
            "held-out links must be of both kinds for a calibration, got "
            f"{len(scores):,} of one kind. Add links of the other."
        )
    # Scores are too unevenly spread for a logistic curve: most are near 0.
    curve = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    curve.fit(scores, is_must)
    base_rate = float(is_must.mean())
    scale = _score_scale(model, source, target)
    return ScoreCalibration(source, target, curve, scale, len(scores), base_rate)


def _calibration_trials(
    links: Links,
    tables: Mapping[str, Any],
    views: tuple[str, str],
    n_splits: int,
    random_state: int,
) -> list[Trial]:
    """Return the trials with tests between two views."""
    drawn = {"n_splits": n_splits, "random_state": random_state}
    if links.memberships(views[0], shared_with=views[1]) is not None:
        folds = item_trials(tables, links, protocol="transductive", **drawn)
    else:
        weights = links.judged(*views).data
        n_must, n_cannot = int(np.sum(weights > 0)), int(np.sum(weights < 0))
        if min(n_must, n_cannot) < 2:
            raise FewLinksError(
                f"a calibration between {views[0]!r} and {views[1]!r} must have at "
                f"least two must- and two cannot-links, got {n_must} and {n_cannot}. "
                "Judge a few pairs of both kinds."
            )
        folds = link_trials(tables, links, **drawn)
    trials = [
        Trial(trial.views, trial.links, own)
        for trial in (trial for fold in folds for trial in fold)
        if (own := tuple(t for t in trial.tests if {t.source, t.target} == {*views}))
    ]
    if not trials:
        raise LinkspreadError(
            "`source` and `target` must be views whose links can be held out, got "
            f"{views[0]!r} and {views[1]!r} with {links!r}. Calibrate two views that "
            "links join."
        )
    return trials


def _held_out_scores(model: Any, test: Any, random_state: int) -> tuple[Array, Array]:
    """Return scores of the pairs of a test, and which of them belong together."""
    if isinstance(test, PairTest):
        rows, cols, is_must = test.rows, test.cols, test.weights > 0
    else:
        n_pairs = len(test.rows) * len(test.cols)
        n_sampled = min(n_pairs, LARGEST_SAMPLE)
        rng = np.random.default_rng(random_state)
        chosen = rng.choice(n_pairs, n_sampled, replace=False)
        i, j = np.divmod(chosen, len(test.cols))
        if test.source == test.target:
            i, j = i[i != j], j[i != j]
        rows, cols = test.rows[i], test.cols[j]
        is_must = test.query_labels[i] == test.item_labels[j]
    left, right = model.embeddings(test.source, test.target)
    scores = np.einsum("ij,ij->i", left[rows], right[cols]).astype(float)
    return scores / _score_scale(model, test.source, test.target), is_must


def _score_scale(model: Any, source: str, target: str) -> float:
    """Return the root mean square of all scores, from the vectors of both views.

    A model fitted to fewer links gives lower scores; in this unit, scores of all folds
    and of the whole fit are comparable.
    """
    left, right = (side.astype(float) for side in model.embeddings(source, target))
    total = np.sum((left.T @ left) * (right.T @ right))
    scale = float(np.sqrt(max(total, 0.0) / (len(left) * len(right))))
    if scale == 0:
        raise LinkspreadError(
            f"scores between {source!r} and {target!r} must not all be 0 for a "
            "calibration, got only 0 with a part of the links held out. Give more "
            "links, or a larger `alpha`."
        )
    return scale


def measure_pairs(
    scores: Array,
    is_must: Array,
    rows: Array,
    cols: Array,
    **about: Any,
) -> Quality:
    """Return how well scores distinguish must-links from cannot-links.

    One bootstrap draws the items of one view with all their pairs, another those of the
    other view. The interval covers both, and the Wilson interval for as many items, as
    a few pairs without an error prove little.
    """
    n_must, n_cannot = int(is_must.sum()), int((~is_must).sum())
    if not n_must or not n_cannot:
        a, b = about["between"]
        raise LinkError(
            f"pairs of both kinds must be given to measure scores of {a!r} and "
            f"{b!r}, got {n_must:,} must and {n_cannot:,} cannot. Judge a few more "
            "pairs."
        )
    order = np.argsort(-scores, kind="stable")
    ranked, is_must = scores[order], is_must[order]
    # Starts of runs of equal scores, which tie.
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])
    found = _weighted(is_must, starts, np.ones((1, len(scores))))
    ends = [(1 - COVERED) / 2, (1 + COVERED) / 2]
    spans = [
        np.nanquantile(drawn, ends, axis=1).T
        for drawn in (_draw(is_must, starts, own[order]) for own in (rows, cols))
    ]
    n_items = [n for own in (rows, cols) if (n := len(np.unique(own))) > 1]
    spans.append(_wilson(found, min(n_must, n_cannot, *n_items)))
    low = np.clip(np.min(spans, axis=0)[:, 0], 0, 1).tolist()
    high = np.clip(np.max(spans, axis=0)[:, 1], 0, 1).tolist()
    return Quality(
        n_must=n_must,
        n_cannot=n_cannot,
        auc=float(found[0, 0]),
        average_precision=float(found[1, 0]),
        auc_interval=(low[0], high[0]),
        average_precision_interval=(low[1], high[1]),
        chance_precision=_chance_precision(n_must, n_cannot),
        **about,
    )


def _chance_precision(n_must: int, n_cannot: int) -> float:
    """Return the mean average precision over all orders of the pairs.

    That is the share of must-links, and a little more where pairs are few.
    """
    n_pairs = n_must + n_cannot
    others = (n_must - 1) / (n_pairs - 1)
    first = float(np.mean(1 / np.arange(1, n_pairs + 1)))
    return others + (1 - others) * first


def _draw(is_must: Array, starts: Array, items: Array) -> Array:
    """Return AUC and average precision for items drawn with replacement."""
    known, places = np.unique(items, return_inverse=True)
    n_draws = int(np.clip(DRAWN_ENTRIES // len(items), FEWEST_DRAWS, N_DRAWS))
    rng, parts = np.random.default_rng(0), []
    step = max(1, BLOCK_ENTRIES // len(items))
    for start in range(0, n_draws, step):
        size = min(step, n_draws - start)
        weights = rng.multinomial(len(known), np.full(len(known), 1 / len(known)), size)
        parts.append(_weighted(is_must, starts, weights[:, places].astype(float)))
    return np.hstack(parts)


def _weighted(is_must: Array, starts: Array, weights: Array) -> Array:
    """Return AUC and average precision of ranked pairs, for each row of weights."""
    must, cannot = (
        np.add.reduceat(weights * kind, starts, axis=1) for kind in (is_must, ~is_must)
    )
    n_must, n_cannot = np.cumsum(must, axis=1), np.cumsum(cannot, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        # Cannot-links that score below a must-link, and half of those that tie.
        beaten = n_cannot[:, -1:] - n_cannot + cannot / 2
        auc = np.sum(must * beaten, axis=1) / (n_must[:, -1] * n_cannot[:, -1])
        precision = np.where(must > 0, n_must / (n_must + n_cannot), 0.0)
        mean = np.sum(must * precision, axis=1) / n_must[:, -1]
    return np.stack([auc, mean])


def _wilson(share: Array, n: int) -> Array:
    """Return the Wilson intervals of shares among n [Wilson1927]."""
    z = DEVIATIONS**2 / n
    middle = (share + z / 2) / (1 + z)
    half = np.sqrt(share * (1 - share) * z + z**2 / 4) / (1 + z)
    return np.hstack([middle - half, middle + half])
