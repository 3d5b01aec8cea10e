"""Held-out quality: a model measured by judgements of items that are held out.

Items of a held-out pair would still be judged in other pairs, unlike most items of a
collection. So whole items are held out, with all their links.
"""

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from sklearn.base import clone

from linkspread.graphs.memory import cache_tables
from linkspread.ground.errors import FewLinksError, LinkError, LinkspreadError
from linkspread.ground.progress import format_seconds, track
from linkspread.links import Items, Links
from linkspread.models.link_choice import choose_links, hard_labels
from linkspread.selection.folds import (
    PairTest,
    Trial,
    deal_items,
    hidden_items,
    judged_pairs,
)
from linkspread.selection.runners import (
    SpreadingRunner,
    choose_runner,
    has_constrained_graphs,
)
from linkspread.tables.validation import as_mapping, check_columns, check_views

Array = np.ndarray

FEWEST = 10
# Folds of items: where graphs are shared, and where each fold takes a fit.
N_FOLDS, N_REFITS = 5, 3
# Judged pairs, or labelled items, after which no further fold is measured.
ENOUGH = 300
# Most items of each view whose pairs are all tested in one fold.
MAX_ITEMS = 100
# Share of cannot-links below which must-links alone are used.
FEW_CANNOT = 0.05
# Bootstrap: draws for few pairs and for many, and the product of draws and pairs.
N_DRAWS, FEWEST_DRAWS, DRAWN_ENTRIES = 500, 100, 1 << 22
# Drawn weights that are in memory at a time.
BLOCK_ENTRIES = 1 << 20
# Share of the draws in an interval, and its half width in standard deviations.
COVERED, DEVIATIONS = 0.9, 1.645
KINDS = {
    "pairs": "{must:,} must- and {cannot:,} cannot-links",
    "partners": "{judged:,} must-links, each partner against those of the others",
    "labels": "{judged:,} labelled items, those of one class against others",
}


@dataclass(frozen=True)
class Quality:
    """How well scores distinguish pairs that belong together; print it.

    Attributes
    ----------
    between : tuple of two str
    kind : {"pairs", "partners", "labels"}
        Judged pairs; must-links, with all other pairs of their items as cannot-links;
        or labels, with pairs of different classes as cannot-links.
    n_judged : int
        Judged pairs, or labelled items.
    n_must, n_cannot : int
        Pairs of both kinds that were scored.
    auc, average_precision : float
        How often a pair that belongs together scores higher than one that does not,
        0.5 by chance, and the mean precision at the ranks of pairs that do.
    auc_interval, average_precision_interval : tuple of two float
        90 % intervals, by a bootstrap over the items.
    chance_precision : float
        Average precision of a random order of the same pairs.
    hidden : tuple of str, default=()
        Views whose items were held out.
    n_folds : int, default=0
        Number of folds.
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
    hidden: tuple[str, ...] = ()
    n_folds: int = 0
    n_known: int = 0

    def __str__(self) -> str:
        names = " and ".join(dict.fromkeys(self.hidden or self.between))
        title = f"Held-out items of {names}" if self.hidden else names
        basis = KINDS[self.kind].format(
            must=self.n_must, cannot=self.n_cannot, judged=self.n_judged
        )
        if self.n_folds:
            basis += f" in {self.n_folds:,} fold{'s' * (self.n_folds > 1)}"
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
class HeldOutPlan:
    """The judgements to hold out; print it.

    Attributes
    ----------
    between : tuple of two str
    kind : {"pairs", "partners", "labels"}
    n_judged : int
    """

    between: tuple[str, str]
    kind: str
    n_judged: int

    def __str__(self) -> str:
        names = " and ".join(dict.fromkeys(self.between))
        what = {"labels": "labelled items", "partners": "must-links"}
        return f"{self.n_judged:,} {what.get(self.kind, 'judged pairs')} of {names}"


@dataclass(frozen=True)
class _Part:
    """One fold: its fit, its test, and the judgements that are tested and left."""

    trial: Trial
    test: PairTest
    hidden: tuple[str, ...]
    n_tested: int
    n_left: int


def held_out_quality(
    model: Any,
    views: Any,
    links: Any = None,
    *,
    ids: Mapping[str, Any] | None = None,
    columns: Mapping[str, Any] | None = None,
    max_seconds: float = math.inf,
    verbose: bool = False,
) -> Quality:
    """Measure a model by its own judgements, of held-out items.

    Items are held out in a few folds, with all their pairs and labels, and pairs of
    held-out items are scored by fits to the rest. Fits of `LinkSpreading` share their
    graphs, which makes them cheap.

    Parameters
    ----------
    model : LinkSpreading, or a baseline of :mod:`linkspread.studies.baselines`
        Only its parameters are used where `links` are given.
    views : mapping from str to table of shape (n_items, n_features)
        Those of the fit.
    links : Links, or mapping from str to labels, default=None
        None takes the links of the fitted model.
    ids : mapping from str to array-like of shape (n_items,), default=None
    columns : mapping from str to list of str, default=None
        Both as for :meth:`LinkSpreading.fit`, where `links` are given.
    max_seconds : float, default=inf
        Refuse if the fits would take longer, where that is known.
    verbose : bool, default=False
        Show progress.

    Returns
    -------
    quality : Quality
        For the two views with the most judgements; print it.

    Examples
    --------
    >>> import linkspread as ls
    >>> data = ls.datasets.make_views(90, n_classes=3, random_state=0)
    >>> model = ls.LinkSpreading(n_neighbors=10).fit(data.views(), data.labels)
    >>> quality = ls.selection.held_out_quality(model, data.views())
    >>> quality.kind, quality.auc > 0.5
    ('labels', True)
    """
    with warnings.catch_warnings(), cache_tables():
        # The fit of the model has given these warnings.
        warnings.simplefilter("ignore", UserWarning)
        if links is not None:
            read = check_views(views, ids, columns)
            tables = read.tables
            items = {view: Items(own, view=view) for view, own in read.ids.items()}
            links = choose_links(links, tables).resolve(items)
            model = clone(model)
        else:
            given = as_mapping(views).items()
            fitted = {v: check_columns(X, model._columns[v], view=v) for v, X in given}
            own_ids = {view: items.ids for view, items in model.items_.items()}
            tables, links = check_views(fitted, own_ids).tables, model.links_
        known = links.select({})
        plan = plan_held_out(known)
        return _hold_out(model, tables, known, plan, max_seconds, verbose)


def plan_held_out(links: Links) -> HeldOutPlan:
    """Return which of these links to hold out; refuse too few.

    Parameters
    ----------
    links : Links
        Resolved.

    Returns
    -------
    plan : HeldOutPlan
    """
    plans = [
        plan
        for between in combinations_with_replacement(links.views, 2)
        for plan in _plans_between(links, between)
    ]
    # Links within a view count where there are no others, as in a fit.
    plans.sort(key=lambda plan: (plan.between[0] == plan.between[1], -plan.n_judged))
    if not plans or plans[0].n_judged < FEWEST:
        got = plans[0] if plans else "none"
        raise FewLinksError(
            f"held-out quality must have at least {FEWEST} judgements and a must-link "
            f"among them, got {got}. Judge a few more pairs."
        )
    return plans[0]


def _plans_between(links: Links, between: tuple[str, str]) -> Iterator[HeldOutPlan]:
    """Yield the labels and the judged pairs of two views that can be held out."""
    labels = _labels(links, between)
    if labels is not None:
        n_judged = sum(int(np.sum(own >= 0)) for own in labels.values())
        yield HeldOutPlan(between, "labels", n_judged)
    weights = judged_pairs(links, between)[2]
    n_must, n_cannot = int(np.sum(weights > 0)), int(np.sum(weights < 0))
    if n_must and n_cannot and n_cannot >= FEW_CANNOT * len(weights):
        yield HeldOutPlan(between, "pairs", len(weights))
    elif n_must:
        yield HeldOutPlan(between, "partners", n_must)


def _labels(links: Links, between: tuple[str, str]) -> dict[str, Array] | None:
    """Return the class of each view's items, -1 for unknown, or None without labels."""
    labels = {}
    for view, other in (between, between[::-1]):
        known = links.memberships(view, shared_with=other)
        if known is None or not known.sum():
            return None
        labels[view] = hard_labels(links, view, shared_with=other)
    return labels


def _hold_out(
    model: Any,
    tables: Mapping[str, Any],
    links: Links,
    plan: HeldOutPlan,
    max_seconds: float,
    verbose: bool,
) -> Quality:
    """Fit without each fold of items, and score their pairs."""
    runner = choose_runner(model)
    # Fits that share their graphs are cheap.
    is_cheap = isinstance(runner, SpreadingRunner)
    if is_cheap and not has_constrained_graphs(model, Trial(tables, links, ())):
        runner = SpreadingRunner(getattr(model, "graphs_", None))
    else:
        is_cheap = False
    make = _label_parts if plan.kind == "labels" else _pair_parts
    parts = list(make(tables, links, plan, N_FOLDS if is_cheap else N_REFITS))
    if (report := getattr(model, "report_", None)) is not None:
        # The fit took as long; graphs are shared where folds are cheap.
        steps = [*report.spreads.values()]
        steps += [] if is_cheap else report.graphs.values()
        seconds = len(parts) * sum(step.seconds for step in steps)
        if seconds > max_seconds:
            raise LinkspreadError(
                f"held-out quality must take at most {format_seconds(max_seconds)}, "
                f"got {len(parts)} fits of about {format_seconds(seconds)} in all. "
                "Judge pairs that are not in the fit, and measure with "
                "`linkspread evaluate MODEL --links`."
            )
    runner.prepare([part.trial for part in parts], [model])
    scores = []
    label = f"held-out quality by {len(parts)} fits"
    for part in track(parts, total=len(parts), label=label, verbose=verbose):
        (block,) = runner.run(part.trial, [model])
        scores.append(part.test.pair_scores(block))
    tests = [part.test for part in parts]
    n_tested = sum(part.n_tested for part in parts)
    n_left = float(np.mean([part.n_left for part in parts]))
    return measure_pairs(
        np.concatenate(scores),
        np.concatenate([test.weights for test in tests]) > 0,
        np.concatenate([test.rows for test in tests]),
        np.concatenate([test.cols for test in tests]),
        # Errors of fits that share judgements are correlated; see [Nadeau2003].
        widening=math.sqrt(1 + n_tested / n_left),
        between=plan.between,
        kind=plan.kind,
        n_judged=n_tested,
        hidden=parts[0].hidden,
        n_folds=len(parts),
    )


def _label_parts(
    tables: Mapping[str, Any], links: Links, plan: HeldOutPlan, n_folds: int
) -> Iterator[_Part]:
    """Yield folds of labelled items, and all pairs of these as a test."""
    a, b = plan.between
    labels = _labels(links, plan.between)
    assert labels is not None
    rng, n_tested = np.random.default_rng(0), 0
    for hidden in hidden_items(labels, n_splits=n_folds):
        some = {v: rng.permutation(own)[:MAX_ITEMS] for v, own in hidden.items()}
        rows, cols = some[a], some[b]
        same = labels[a][rows][:, None] == labels[b][cols]
        i, j = np.nonzero(np.triu(np.ones_like(same), 1) if a == b else same | True)
        test = PairTest(a, b, rows[i], cols[j], np.where(same[i, j], 1.0, -1.0))
        trial = Trial(tables, links.hide(hidden), (test,))
        n_new = sum(map(len, hidden.values()))
        yield _Part(trial, test, tuple(hidden), n_new, plan.n_judged - n_new)
        n_tested += n_new
        if n_tested >= ENOUGH:
            return


def _pair_parts(
    tables: Mapping[str, Any], links: Links, plan: HeldOutPlan, n_folds: int
) -> Iterator[_Part]:
    """Yield folds of judged items, and the judged pairs of these as a test."""
    i, j, weights = judged_pairs(links, plan.between)
    if plan.kind == "partners":
        i, j, weights = i[weights > 0], j[weights > 0], weights[weights > 0]
    is_within = plan.between[0] == plan.between[1]
    left, right = deal_items(i, j, weights, n_folds, is_within=is_within)
    # The folds of rows and of columns that pairs have, equal ones first.
    both = np.sort([left, right], axis=0) if is_within else np.stack([left, right])
    cells = [(int(a), int(b)) for a, b in np.unique(both, axis=1).T]
    n_tested = 0
    for a, b in sorted(cells, key=lambda cell: cell[0] != cell[1]):
        tested, out = (left == a) & (right == b), (left == a, right == b)
        if is_within:
            tested |= (left == b) & (right == a)
            out = np.isin(left, (a, b)), np.isin(right, (a, b))
        hidden: dict[str, Array] = {}
        for view, own, is_out in zip(plan.between, (i, j), out, strict=True):
            # The only judged item of a view is not held out.
            if len(np.unique(own)) > 1:
                before = hidden.get(view, np.zeros(0, dtype=np.int64))
                hidden[view] = np.union1d(before, own[is_out])
        rest = links.hide(hidden)
        n_left = len(judged_pairs(rest, plan.between)[0])
        if n_left and n_tested < ENOUGH:
            test = PairTest(*plan.between, i[tested], j[tested], weights[tested])
            if plan.kind == "partners":
                pairs = test.rows, test.cols
                test = PairTest.of_partners(*plan.between, *pairs, n_tested=MAX_ITEMS)
            n_new = int(tested.sum())
            trial = Trial(tables, rest, (test,))
            yield _Part(trial, test, tuple(hidden), n_new, n_left)
            n_tested += n_new
    if not n_tested:
        raise FewLinksError(
            "judged pairs must be of different items for held-out quality, got "
            f"{plan}, of which no fold leaves any. Judge pairs of other items."
        )


def measure_pairs(
    scores: Array,
    is_must: Array,
    rows: Array,
    cols: Array,
    *,
    widening: float = 1.0,
    **about: Any,
) -> Quality:
    """Return how well scores distinguish must-links from cannot-links.

    One bootstrap draws the items of one view with all their pairs, another those of the
    other view. The interval covers both, and the Wilson interval for as many items, as
    a few pairs without an error prove little. `widening` is for scores of several fits
    that share judgements, whose errors are correlated.
    """
    n_must, n_cannot = int(is_must.sum()), int((~is_must).sum())
    if not n_must or not n_cannot:
        a, b = about["between"]
        raise LinkError(
            f"pairs of both kinds must be held out to measure scores of {a!r} and "
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
        found + widening * (np.nanquantile(drawn, ends, axis=1).T - found)
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
