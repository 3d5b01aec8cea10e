"""How well a fitted model searches, by labels or pairs that it was not told."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from linkspread.ground.errors import LinkError, LinkspreadError
from linkspread.links import Links
from linkspread.links.labels import number_classes
from linkspread.metrics import average_precision, ndcg, precision_at_k
from linkspread.selection.folds import judged_pairs
from linkspread.selection.quality import Quality, measure_pairs
from linkspread.selection.questions import PairQuestion

Array = np.ndarray
K = 10
# Must-links alone of which all pairs of items are scored.
MAX_PARTNERS = 300


@dataclass(frozen=True)
class SearchQuality:
    """How well items of one class find each other from one view to another.

    Attributes
    ----------
    source, target : str
        Views of the queries and of the items that are searched.
    n_queries, n_items : int
        Queries that have something to find, and items searched.
    mean_average_precision : float
    precision_at_10 : float
        Share of the first ten that are of the query's class.
    ndcg : float
    """

    source: str
    target: str
    n_queries: int
    n_items: int
    mean_average_precision: float
    precision_at_10: float
    ndcg: float


def evaluate_search(
    model: Any, labels: Mapping[str, Any], *, include_known: bool = False
) -> list[SearchQuality]:
    """Search between all views that have labels, and measure what is found.

    Parameters
    ----------
    model : CrossViewSearch or LinkSpreading
        Fitted.
    labels : mapping from str to array-like of shape (n_items,)
        Classes of the fitted items, as for `Links.from_labels`; those unknown are
        neither asked nor searched.
    include_known : bool, default=False
        Whether items count whose label the model was told.

    Returns
    -------
    qualities : list of SearchQuality
        Both directions between each two views that links or a common space join.

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
    asked = {v: _asked(model, v, own, include_known) for v, own in classes.items()}
    joined = {frozenset(pair) for pair in model.pairs_}
    found = [
        _measure(model, classes, asked, *direction)
        for a, b in combinations(classes, 2)
        if {a, b} in joined
        for direction in ((a, b), (b, a))
    ]
    if not found:
        raise LinkspreadError(
            "there must be labels of two views that the model joins, got labels of "
            f"{', '.join(map(repr, classes)) or 'none'}. Give those of another view."
        )
    return found


def evaluate_pairs(
    model: Any, links: Links, *, include_known: bool = False
) -> list[Quality]:
    """Score judged pairs, and measure how well must is told from cannot.

    Where there is no cannot-link, partners are told from those of the others.

    Parameters
    ----------
    model : CrossViewSearch or LinkSpreading
        Fitted.
    links : Links
        Pairs with their verdicts, of items of the model.
    include_known : bool, default=False
        Whether pairs count that the model was told, as pairs or by labels of both.

    Returns
    -------
    qualities : list of Quality
        One for each two views.
    """
    resolved = links.resolve(model.items_)
    known = {frozenset(b): b for b, _ in resolved.pair_tables}
    return [
        _measure_pairs(model, resolved, between, include_known)
        for between in known.values()
    ]


def _asked(model: Any, view: str, classes: Array, include_known: bool) -> Array:
    """Return the positions of the items that count."""
    counted = classes >= 0
    told = None if include_known else model.links_.memberships(view)
    if told is not None:
        counted = counted & (np.asarray(told.sum(axis=1)).ravel() == 0)
    if not counted.any():
        raise LinkspreadError(
            f"view {view!r} must have items with a label that the model was not told, "
            f"got none of {int(np.sum(classes >= 0)):,}. Give labels of other items, "
            "or count all of them."
        )
    return np.flatnonzero(counted)


def _measure(
    model: Any,
    classes: Mapping[str, Array],
    asked: Mapping[str, Array],
    source: str,
    target: str,
) -> SearchQuality:
    """Search one view from another, a block of queries at a time."""
    rows, cols = asked[source], asked[target]
    scores = _ScoreRows(model, source, target, rows, cols)
    given = scores, classes[source][rows], classes[target][cols]
    precisions = average_precision(*given)
    counted = ~np.isnan(precisions)
    if not counted.any():
        raise LinkspreadError(
            f"at least one item of view {source!r} must have a label that some item of "
            f"view {target!r} has too, got none of {len(rows):,}. Name the classes "
            "alike in both views."
        )
    return SearchQuality(
        source,
        target,
        n_queries=int(counted.sum()),
        n_items=len(cols),
        mean_average_precision=float(precisions[counted].mean()),
        precision_at_10=precision_at_k(*given, k=K),
        ndcg=ndcg(*given),
    )


@dataclass(frozen=True)
class _ScoreRows:
    """Scores of some items of two views, computed when their rows are asked for."""

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
        chosen = [_mask(self.model, self.source, self.queries[index])]
        chosen.append(_mask(self.model, self.target, self.items))
        return self.model.scores(
            self.source, self.target, rows=chosen[0], cols=chosen[1]
        )


def _mask(model: Any, view: str, positions: Array) -> Array:
    """Return positions, which are in order, as a mask: ids may be numbers too."""
    mask = np.zeros(model.items_[view].n_items, dtype=bool)
    mask[positions] = True
    return mask


def _measure_pairs(
    model: Any, links: Links, between: tuple[str, str], include_known: bool
) -> Quality:
    """Score the pairs of two views."""
    i, j, weights = judged_pairs(links, between)
    is_known = _is_known(model.links_, between, i, j)
    if not include_known:
        i, j, weights = (own[~is_known] for own in (i, j, weights))
    must = weights > 0
    if not must.any():
        raise LinkError(
            "there must be must-links that the model was not told of, got 0 must and "
            f"{len(weights):,} cannot between {between[0]!r} and {between[1]!r}. Judge "
            "more pairs, or count all."
        )
    kind, question = "pairs", PairQuestion(*between, i, j, weights)
    if must.all():
        kind = "partners"
        question = PairQuestion.of_partners(*between, i, j, n_asked=MAX_PARTNERS)
    return measure_pairs(
        question.pair_scores(_by_position(model)),
        question.weights > 0,
        question.rows,
        question.cols,
        between=between,
        kind=kind,
        n_judged=len(weights),
        n_known=0 if include_known else int(is_known.sum()),
    )


def _is_known(links: Links, between: tuple[str, str], i: Array, j: Array) -> Array:
    """Tell which pairs links judge, or give both items of a label."""
    is_known = np.asarray(links.judged(*between).astype(bool)[i, j]).ravel()
    a, b = between
    left, right = (links.memberships(a, shared_with=b),
                   links.memberships(b, shared_with=a))  # fmt: skip
    if left is None or right is None:
        return is_known
    labelled = [np.asarray(own.sum(axis=1)).ravel() > 0 for own in (left, right)]
    return is_known | (labelled[0][i] & labelled[1][j])


def _by_position(model: Any) -> Any:
    """Return the scores of a model by positions, which ids may be mistaken for."""

    def scores(source: str, target: str, *, rows: Array, cols: Array) -> Array:
        return model.scores(
            source,
            target,
            rows=_mask(model, source, rows),
            cols=_mask(model, target, cols),
        )

    return scores
