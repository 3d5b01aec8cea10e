"""How good searches are, and what more judgements would bring, with 90 % intervals.

Items of judged pairs are held out, and searched as new queries by cores that are
fitted without their judgements; maps stay.

- *Partners*: each held-out partner is ranked among all items of the other view. Held-
  out queries count so that their best scores are distributed as those of the items
  without judgements.
- *Judged pairs*: which pairs were judged need not be chance, so that counts of them say
  little. A logistic curve of the score and the rank of held-out judged pairs gives the
  probability that a result is relevant, and is averaged over the results of items
  without judgements.

Errors are clustered by item, in both views, since judgements of one item are alike.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import t as student

from linkspread.ground.cores import hold_blas
from linkspread.learning import Choice, ScoreFactors, fit_factors
from linkspread.links.evidence import Evidence

Array = np.ndarray

N_FOLDS = 10
# Shares of the judgements that refits learn from, for the learning curve.
SHARES = (0.25, 0.5, 1.0)
# Quality rises towards its limit like this power of the number of judgements.
POWER = -0.5
NEXT = 100  # judgements whose gain is extrapolated
ENOUGH = 0.01  # gain below which more judgements are not worth it
# Held-out partners, held-out pairs and unjudged queries of all folds.
MAX_PARTNERS, MAX_PAIRS, N_QUERIES = 2000, 4000, 400
# Fewest judgements of each kind, and judged items of each view, for an estimate.
FEWEST, FEW_ITEMS = 10, 5
N_STRATA, IN_STRATUM = 4, 8
N_RESULTS, NEAR = 10, 30  # ranks of results, and of judged pairs that tell of them
LEVEL = 0.90
# Prior precision of the slopes of a curve, and judgements of each kind in its middle.
PRECISION, PSEUDO = 0.1, 0.5


class Estimate(NamedTuple):
    """A value with the ends of its 90 % interval.

    Parameters
    ----------
    value : float
    low, high : float
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True)
class Progress:
    """How good searches of one view from another are, by held-out judgements.

    Attributes
    ----------
    n_judgements : int
        Judged pairs, and matched rows, of both views.
    measures : dict from str to Estimate
        "recall at 1", "recall at 10" and "mean reciprocal rank" of partners, or
        "precision at 10" of judged pairs; each with a 90 % interval.
    gain : Estimate or None
        What the next 100 judgements are expected to add to the last measure; None where
        that cannot be estimated.
    curve : dict from int to float
        Quality of fits to some of the judgements, by their number.
    stop : bool
        Whether more judgements are hardly worth it, by `rule`.
    rule : str
        The rule in a sentence.
    notes : tuple of str
        What cannot be estimated, and why.
    """

    n_judgements: int
    measures: Mapping[str, Estimate]
    gain: Estimate | None
    curve: Mapping[int, float]
    stop: bool
    rule: str
    notes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.n_judgements:,} judgements."]
        lines += [f"{name}: {own}" for name, own in self.measures.items()]
        if self.gain is not None:
            lines.append(f"the next {NEXT} judgements: {self.gain}")
        may = "You may stop." if self.stop else "Go on."
        return "\n".join([*lines, f"{may} Rule: {self.rule}", *self.notes])


class _Held(NamedTuple):
    """Measures of one share of the judgements, and what each item adds to errors."""

    values: Array
    influence: Array  # of each held-out judgement on each value
    i: Array
    j: Array
    n_near: Array  # for each value, as many yes or no answers tell as much


def estimate_progress(
    factors: ScoreFactors,
    evidence: Evidence,
    choice: Choice,
    *,
    side: int,
    seed: int = 0,
) -> Progress:
    """Estimate the quality of searches from one side, and what more would bring."""
    n, notes = evidence.n_pairs, list[str]()
    n_must, n_cannot = len(evidence.must[0]), len(evidence.cannot[0])
    is_partners = not n_cannot and n_must > 0 and evidence.are_partners()
    names: tuple[str, ...] = ("precision at 10",)
    held_out: Callable[..., _Held] = _judged_pairs
    if is_partners:
        names = ("recall at 1", "recall at 10", "mean reciprocal rank")
        held_out = _partners
        notes.append(
            "The measures are those of items that have a partner; items without one "
            "are unknown."
        )
    else:
        notes.append(
            "Mean average precision cannot be estimated: it depends on how relevant "
            "results of one list go together, which single judged pairs do not show."
        )
    if evidence.labels is not None:
        notes.append(
            "Labels are not held out here: `selection.evaluate` measures them."
        )
    rule = (
        f"stop if the upper end of the 90 % interval of what the next {NEXT} "
        f"judgements bring is below {ENOUGH:g} of {names[-1]}."
    )
    n_items = min(map(len, evidence.judged_items()))
    if min(n_must, n_must if is_partners else n_cannot) < FEWEST or n_items < FEW_ITEMS:
        kinds = "must-links" if not n_cannot else "must- and as many cannot-links"
        notes.append(
            f"Too little is known: {FEWEST} {kinds} of {FEW_ITEMS} items of each view "
            f"are needed, got {n_must:,} and {n_cannot:,} of {n_items:,} items."
        )
        return Progress(n, {}, None, {}, False, rule, tuple(notes))
    # The products are short: threads would cost more than they save.
    with hold_blas(1):
        found = [
            held_out(factors, evidence, choice, side=side, share=share, seed=seed)
            for share in SHARES
        ]
    # Least squares of a line in n ** POWER: what it adds is linear in the qualities.
    sizes = n * (1 - 1 / N_FOLDS) * np.array(SHARES)
    X = np.stack([np.ones(len(SHARES)), sizes**POWER], axis=1)
    slope = np.linalg.pinv(X)[1]
    # Folds lack a part of the judgements.
    more = (n**POWER - sizes[-1] ** POWER) * slope + (np.arange(len(SHARES)) == 2)
    parts = np.stack([own.influence for own in found], axis=2)
    known = np.stack([own.values for own in found], axis=1)
    left = factors.sides.maps[side].n_items - len(np.unique(_sides(evidence, side)[0]))
    # The items left are a finite sample, too, whose own mean is asked for.
    extra = 1 + len(found[0].i) / left if left and is_partners else 1.0
    errors = np.sqrt(extra * _variances(found[0], parts @ more))
    n_free = min(len(np.unique(own)) for own in (found[0].i, found[0].j)) - 1
    values = np.clip(known @ more, 0, 1)
    rows = zip(names, values, errors, found[-1].n_near / extra, strict=True)
    measures = {
        name: _bounded(value, error, n_free, most) for name, value, error, most in rows
    }
    step = ((n + NEXT) ** POWER - n**POWER) * slope
    gain = float(known[-1] @ step)
    spread = float(np.sqrt(_variances(found[0], parts[:, -1:] @ step)[0]))
    wide = student.ppf((1 + LEVEL) / 2, n_free) * spread
    # No quality is above 1, or below 0.
    ends = np.clip([gain, gain - wide, gain + wide], -values[-1], 1 - values[-1])
    bring = Estimate(*ends.tolist())
    curve = {round(s): float(o.values[-1]) for s, o in zip(sizes, found, strict=True)}
    if all(term.kind == "prior" or np.isinf(term.ridge) for term in choice.terms):
        notes.append(
            "What more judgements bring cannot be estimated: searches use nothing of "
            "them before they are significantly better by it."
        )
        return Progress(n, measures, None, curve, False, rule, tuple(notes))
    stop = bring.high < ENOUGH
    return Progress(n, measures, bring, curve, stop, rule, tuple(notes))


def _sides(evidence: Evidence, side: int) -> tuple[Array, Array, Array]:
    """Return judged pairs as queries, results and signed weights."""
    i, j, signed = evidence.signed()
    return (i, j, signed) if side == 0 else (j, i, signed)


def _known(
    factors: ScoreFactors,
    evidence: Evidence,
    queries: Array,
    results: Array,
    side: int,
    share: float,
    rng: np.random.Generator,
) -> Evidence:
    """Return a share of the judgements that have none of some items."""
    sizes = [own.n_items for own in factors.sides.maps]
    masks = [np.zeros(size, dtype=bool) for size in sizes]
    masks[side][queries] = masks[1 - side][results] = True
    rest = evidence.split(masks[0], masks[1])[1]
    kept = []
    for i, j, weights in (rest.must, rest.cannot):
        some = np.sort(rng.permutation(len(i))[: round(share * len(i))])
        kept.append((i[some], j[some], weights[some]))
    return Evidence(kept[0], kept[1], rest.labels)


def _partners(
    factors: ScoreFactors,
    evidence: Evidence,
    choice: Choice,
    *,
    side: int,
    share: float,
    seed: int,
) -> _Held:
    """Rank held-out partners among all items of the other view."""
    rng = np.random.default_rng(seed)
    queries, results, _ = _sides(evidence, side)
    order = rng.permutation(len(queries))[:MAX_PARTNERS]
    unjudged = np.setdiff1d(np.arange(factors.sides.maps[side].n_items), queries)
    asked, found, places, strata = [], [], [], []
    others = []
    for part in np.array_split(order, min(N_FOLDS, len(order))):
        i, j = queries[part], results[part]
        known = _known(factors, evidence, i, j, side, share, rng)
        own = fit_factors(factors.sides, known, choice)
        S = own.scores(side, own.fitted(side, i))
        at = S[np.arange(len(i)), j][:, None]
        ranks = 1 + (S > at).sum(axis=1) + ((S == at).sum(axis=1) - 1) / 2
        some = rng.permutation(unjudged)[: N_QUERIES // N_FOLDS]
        best = own.scores(side, own.fitted(side, some)).max(axis=1, initial=-np.inf)
        # Scores of fits differ: each is compared with those of its own fit.
        scale = np.abs(S).max() or 1.0
        strata.append(S.max(axis=1) / scale)
        others.append(best / scale)
        asked.append(i)
        found.append(j)
        places.append(ranks)
    rank = np.concatenate(places)
    values = np.stack([rank <= 1, rank <= N_RESULTS, 1 / rank], axis=1).astype(float)
    weights = _balanced(np.concatenate(strata), np.concatenate(others))
    mean = weights @ values
    influence = weights[:, None] * (values - mean)
    # Reciprocal ranks vary less than answers of yes and no with their mean.
    spread, tiny = weights @ (values - mean) ** 2, 1e-12
    n_near = (mean * (1 - mean) + tiny) / (spread + tiny) / (weights @ weights)
    return _Held(mean, influence, np.concatenate(asked), np.concatenate(found), n_near)


def _balanced(held: Array, others: Array) -> Array:
    """Return weights of held-out items with whose strata are those of the others."""
    if len(others) < IN_STRATUM:
        return np.full(len(held), 1 / len(held))
    n_strata = min(N_STRATA, max(1, len(held) // IN_STRATUM))
    # Strata are quantiles of the held-out items, so that none is empty.
    edges = np.quantile(held, np.arange(1, n_strata) / n_strata)
    of, there = np.searchsorted(edges, held), np.searchsorted(edges, others)
    shares = np.bincount(there, minlength=n_strata) / len(others)
    counts = np.bincount(of, minlength=n_strata)
    weights = shares[of] / counts[of]
    return np.asarray(weights / weights.sum())


def _judged_pairs(
    factors: ScoreFactors,
    evidence: Evidence,
    choice: Choice,
    *,
    side: int,
    share: float,
    seed: int,
) -> _Held:
    """Estimate the precision of results by a curve through held-out judged pairs."""
    rng = np.random.default_rng(seed)
    queries, results, signed = _sides(evidence, side)
    chosen = np.sort(rng.permutation(len(queries))[:MAX_PAIRS])
    queries, results, signed = queries[chosen], results[chosen], signed[chosen]
    items = rng.permutation(np.unique(queries))
    unjudged = np.setdiff1d(np.arange(factors.sides.maps[side].n_items), items)
    if len(unjudged) < N_RESULTS:
        unjudged = np.arange(factors.sides.maps[side].n_items)
    X, at = np.zeros((len(queries), 3)), []
    nothing = np.zeros(0, dtype=np.intp)
    for part in np.array_split(items, min(N_FOLDS, len(items))):
        known = _known(factors, evidence, part, nothing, side, share, rng)
        own = fit_factors(factors.sides, known, choice)
        some = rng.permutation(unjudged)[: N_QUERIES // N_FOLDS]
        S = own.scores(side, own.fitted(side, some))
        center, scale = S.mean(), S.std() or 1.0
        top = -np.sort(-S, axis=1)[:, :N_RESULTS]
        ranks = np.tile(np.arange(1.0, top.shape[1] + 1), (len(top), 1))
        at.append(_curve_features((top - center) / scale, ranks, S.shape[1]))
        for item in part:
            of = np.flatnonzero(queries == item)
            row = own.scores(side, own.fitted(side, [item]))[0]
            here = row[results[of]]
            rank = 1 + (row > here[:, None]).sum(axis=1)
            X[of] = _curve_features((here - center) / scale, rank, len(row))
    y = (signed > 0).astype(float)
    population = np.concatenate([own.reshape(-1, 3) for own in at])
    beta, H = _fit(X, y, population.mean(axis=0))
    p = expit(population @ beta)
    slope = population.T @ (p * (1 - p)) / len(p)
    own = expit(X @ beta)
    # What each adds if it is left out, since the curve follows it.
    leverage = own * (1 - own) * np.einsum("nd,nd->n", X @ np.linalg.inv(H), X)
    away = (y - own) / np.maximum(1 - leverage, 0.1)
    influence = away * (X @ np.linalg.solve(H, slope))
    near = X[:, 2] >= np.log(factors.sides.maps[1 - side].n_items / NEAR)
    n_near = np.array([float(near.sum())])
    return _Held(np.array([p.mean()]), influence[:, None], queries, results, n_near)


def _curve_features(scores: Array, ranks: Array, n_items: int) -> Array:
    """Return 1, the score, and the logarithm of the rank, of results."""
    depth = np.log(ranks / n_items)
    return np.stack([np.ones_like(scores), scores, -depth], axis=-1).astype(float)


def _fit(X: Array, y: Array, middle: Array) -> tuple[Array, Array]:
    """Fit a logistic regression; return it and its curvature.

    Half a judgement of each kind in the middle of the results keeps it from certainty.
    """
    prior = PRECISION * np.array([0.0, 1.0, 1.0])
    X, y = np.vstack([X, middle, middle]), np.append(y, [0.0, 1.0])
    n = np.append(np.ones(len(y) - 2), [PSEUDO, PSEUDO])

    def loss(b: Array) -> tuple[float, Array]:
        z = X @ b
        value = float(n @ (np.logaddexp(0, z) - y * z) + 0.5 * prior @ b**2)
        return value, X.T @ (n * (expit(z) - y)) + prior * b

    beta = minimize(loss, np.zeros(3), jac=True).x
    p = expit(X @ beta)
    return beta, (X * (n * p * (1 - p))[:, None]).T @ X + np.diag(prior + 1e-9)


def _variances(held: _Held, influence: Array) -> Array:
    """Return variances of values, clustered by the items of both views."""

    def of(groups: Array) -> Array:
        _, at = np.unique(groups, return_inverse=True)
        sums = np.zeros((int(at.max()) + 1, influence.shape[1]))
        np.add.at(sums, at, influence)
        n = len(sums)
        return np.asarray((sums**2).sum(axis=0) * n / max(n - 1, 1))

    alone = (influence**2).sum(axis=0)
    # Where clusters overlap, the sum can fall below either of its parts.
    return np.maximum.reduce([of(held.i) + of(held.j) - alone, of(held.i), of(held.j)])


def _bounded(value: float, error: float, n_free: int, n_most: float) -> Estimate:
    """Return Wilson's interval of a value between 0 and 1 with a given error."""
    z2 = student.ppf((1 + LEVEL) / 2, max(n_free, 1)) ** 2
    # As many independent judgements as have this error; not more than there are.
    n = max(n_most, 1.0)
    if error > 0:
        n = min(n, max(value * (1 - value), 0.25 / n) / error**2)
    center = (value + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (value * (1 - value) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    low, high = max(0.0, center - half), min(1.0, center + half)
    return Estimate(float(value), float(low), float(high))
