"""Held-out scores of judged pairs, and the probability of a must-link by its score.

Each judged pair is scored by terms that were fitted without it, and a logistic curve
through these scores turns scores into probabilities. The maps, scales and biases are
those of the whole fit, so the cost depends on the number of judgements only.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from linkspread.ground.cores import hold_blas
from linkspread.learning import Choice, ScoreFactors, fit_factors
from linkspread.links.evidence import Evidence, Judged

Array = np.ndarray

# Parts of the judgements that are held out in turn.
N_FOLDS = 10
# Rows of pairs that are scored at once.
TILE = 256
# Prior precision of the slope of a curve, in units of standardized scores: few
# judgements do not make probabilities of 0 and 1.
PRECISION = 0.1


@dataclass(frozen=True)
class HeldOut:
    """Judged pairs, the fold of each, and their scores without that fold."""

    i: Array
    j: Array
    signed: Array  # weights, below 0 for cannot
    scores: Array
    fold: Array
    factors: tuple[ScoreFactors, ...]  # of each fold, fitted without it
    evidence: tuple[Evidence, ...]  # what each was fitted to

    @property
    def is_must(self) -> Array:
        """Which of the pairs are must-links."""
        return self.signed > 0


@dataclass(frozen=True)
class Curve:
    """A logistic curve: the probability of a must-link for a score."""

    intercept: float
    slope: float

    def logits(self, scores: Array) -> Array:
        """Return the log odds of must-links."""
        return self.intercept + self.slope * scores

    def __call__(self, scores: Array) -> Array:
        """Return the probabilities of must-links."""
        return np.asarray(expit(self.logits(scores)))


def hold_out(
    factors: ScoreFactors,
    evidence: Evidence,
    choice: Choice,
    *,
    n_folds: int = N_FOLDS,
    seed: int = 0,
) -> HeldOut:
    """Score each judged pair by terms fitted without it, fold by fold."""
    i, j, signed = evidence.signed()
    keys = i * np.int64(max(int(j.max(initial=0)), int(i.max(initial=0))) + 1) + j
    if factors.is_within:
        # Both orders of a pair are one judgement.
        size = max(int(j.max(initial=0)), int(i.max(initial=0))) + 1
        keys = np.minimum(i, j) * np.int64(size) + np.maximum(i, j)
    distinct, place = np.unique(keys, return_inverse=True)
    n_folds = max(1, min(n_folds, len(distinct)))
    rng = np.random.default_rng(seed)
    fold = (rng.permutation(len(distinct)) % n_folds)[place]
    scores = np.zeros(len(i))
    made, known = [], []
    is_must = signed > 0
    # The products are short: threads would cost more than they save.
    with hold_blas(1):
        for k in range(n_folds):
            rest = fold != k
            own = replace(
                evidence,
                must=_taken(i, j, signed, rest & is_must),
                cannot=_taken(i, j, signed, rest & ~is_must),
            )
            known.append(own)
            made.append(fit_factors(factors.sides, own, choice, before=factors))
            scores[~rest] = pair_scores(made[-1], i[~rest], j[~rest])
    return HeldOut(i, j, signed, scores, fold, tuple(made), tuple(known))


def _taken(i: Array, j: Array, signed: Array, some: Array) -> Judged:
    """Return some pairs with positive weights."""
    return i[some], j[some], np.abs(signed[some])


def pair_scores(factors: ScoreFactors, i: Array, j: Array) -> Array:
    """Return the scores of single pairs of items."""
    found = np.zeros(len(i))
    order = np.argsort(i, kind="stable")
    for start in range(0, len(i), TILE):
        some = order[start : start + TILE]
        rows, at = np.unique(i[some], return_inverse=True)
        cols, to = np.unique(j[some], return_inverse=True)
        block = factors.prepare(0, factors.fitted(0, rows)).scores(cols)
        found[some] = block[at, to]
    return found


def fit_curve(scores: Array, is_must: Array, weights: Array | None = None) -> Curve:
    """Fit the probability of a must-link to held-out scores; it never falls."""
    n = np.ones(len(scores)) if weights is None else weights
    center = float(np.average(scores, weights=n)) if n.sum() else 0.0
    spread = float(np.sqrt(np.average((scores - center) ** 2, weights=n))) or 1.0
    X, sign = (scores - center) / spread, np.where(is_must, 1.0, -1.0)

    def loss(b: Array) -> tuple[float, Array]:
        margins = sign * (b[0] + b[1] * X)
        slope = -n * sign * expit(-margins)
        value = float(n @ np.logaddexp(0, -margins)) + 0.5 * PRECISION * b[1] ** 2
        # Half a judgement of each kind keeps the odds finite.
        value += 0.5 * float(np.logaddexp(0, b[0]) + np.logaddexp(0, -b[0]))
        first = slope.sum() + 0.5 * (expit(b[0]) - expit(-b[0]))
        return value, np.array([first, slope @ X + PRECISION * b[1]])

    b = minimize(loss, np.zeros(2), jac=True, bounds=[(None, None), (0, None)]).x
    return Curve(float(b[0] - b[1] * center / spread), float(b[1] / spread))
