"""How well scores tell pairs that belong together from others, and how sure that is."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkspread.ground.errors import LinkError

Array = np.ndarray

# Bootstrap: draws for few pairs and for many, and the product of draws and pairs.
N_DRAWS, FEWEST_DRAWS, DRAWN_ENTRIES = 500, 100, 1 << 22
# Drawn weights that are held in memory at a time.
BLOCK_ENTRIES = 1 << 20
# The interval covers this share of the draws, so many deviations of a normal variable.
COVERED, DEVIATIONS = 0.9, 1.645
KINDS = {
    "pairs": "{must:,} must- and {cannot:,} cannot-links",
    "partners": "{judged:,} must-links, each partner against those of the others",
    "labels": "{judged:,} labelled items, those of one class against others",
}


@dataclass(frozen=True)
class Baseline:
    """What the same pairs give to something simpler than the model.

    Attributes
    ----------
    name : str
    auc, average_precision : float
    """

    name: str
    auc: float
    average_precision: float


@dataclass(frozen=True)
class Quality:
    """How well scores tell pairs that belong together from others; print it.

    Attributes
    ----------
    between : tuple of two str
    kind : {"pairs", "partners", "labels"}
        Judged pairs; must-links alone, where all other pairs of the same items stand
        for cannot-links; or labels, where these are pairs of different classes.
    n_judged : int
        Judged pairs, or labelled items.
    n_must, n_cannot : int
        Pairs of both kinds that were scored.
    auc, average_precision : float
        How often a pair that belongs together scores higher than one that does not;
        and the mean precision at each that does.
    auc_interval, average_precision_interval : tuple of two float
        90 % intervals, by a bootstrap over the items.
    baselines : tuple of Baseline
        The first is chance: what a random order of the same pairs has on average.
    hidden : tuple of str, default=()
        Views whose items were hidden from the fits that scored them.
    n_folds : int, default=0
        Parts in which they were hidden.
    n_known : int, default=0
        Pairs that were left out, because the model was told of them.
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
    baselines: tuple[Baseline, ...]
    hidden: tuple[str, ...] = field(default=())
    n_folds: int = 0
    n_known: int = 0

    def __str__(self) -> str:
        names = " and ".join(dict.fromkeys(self.hidden or self.between))
        title = f"Held-out items of {names}" if self.hidden else names
        basis = KINDS[self.kind].format(
            must=self.n_must, cannot=self.n_cannot, judged=self.n_judged
        )
        end = ""
        if self.n_folds:
            end = " in 1 fold" if self.n_folds == 1 else f" in {self.n_folds:,} folds"
        auc = self._figure("auc", "90 % interval ")
        return (
            f"{title}: AUC {auc}, average precision "
            f"{self._figure('average_precision')}, from {basis}{end}."
        )

    def _figure(self, name: str, words: str = "") -> str:
        """Return a figure with its interval and the baselines beside it."""
        low, high = getattr(self, f"{name}_interval")
        beside = "".join(f", {b.name} {getattr(b, name):.2f}" for b in self.baselines)
        return f"{getattr(self, name):.2f} ({words}{low:.2f} to {high:.2f}{beside})"


def measure_pairs(
    scores: Array,
    is_must: Array,
    rows: Array,
    cols: Array,
    *,
    widening: float = 1.0,
    **about: Any,
) -> Quality:
    """Return how well scores tell the pairs of two kinds apart.

    The bootstrap draws the items of one view, with all their pairs, and then those of
    the other; the widest interval counts, and at least that of a share among as many
    as there are items: a few pairs without an error are no proof. `widening` is
    for scores of several fits that share judgements, and so err together.
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
    # Where pairs of another score begin: equal ones tie.
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])
    found = _weighted(is_must, starts, np.ones((1, len(scores))))[:, 0]
    drawn = [_draw(is_must, starts, items[order]) for items in (rows, cols)]
    n_items = [n for own in (rows, cols) if (n := len(np.unique(own))) > 1]
    n_free = min(n_must, n_cannot, *n_items)
    ends = [(1 - COVERED) / 2, (1 + COVERED) / 2]
    intervals = []
    for k, value in enumerate(found):
        spans = [value + widening * (np.nanquantile(own[k], ends) - value)
                 for own in drawn]  # fmt: skip
        intervals.append(_span([*spans, _wilson(value, n_free)]))
    return Quality(
        n_must=n_must,
        n_cannot=n_cannot,
        auc=float(found[0]),
        average_precision=float(found[1]),
        auc_interval=intervals[0],
        average_precision_interval=intervals[1],
        baselines=(Baseline("chance", 0.5, _chance_precision(n_must, n_cannot)),),
        **about,
    )


def _chance_precision(n_must: int, n_cannot: int) -> float:
    """Return the mean average precision of all orders of the pairs.

    It is the share of must-links, and a little more where pairs are few.
    """
    n_pairs = n_must + n_cannot
    others = (n_must - 1) / (n_pairs - 1)
    first = float(np.mean(1 / np.arange(1, n_pairs + 1)))
    return others + (1 - others) * first


def _draw(is_must: Array, starts: Array, items: Array) -> Array:
    """Return AUC and average precision of pairs whose items are drawn with return."""
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
        # Cannot-links that a must-link beats, of those that tie with it a half.
        beaten = n_cannot[:, -1:] - n_cannot + cannot / 2
        auc = np.sum(must * beaten, axis=1) / (n_must[:, -1] * n_cannot[:, -1])
        precision = np.where(must > 0, n_must / (n_must + n_cannot), 0.0)
        mean = np.sum(must * precision, axis=1) / n_must[:, -1]
    return np.stack([auc, mean])


def _wilson(share: float, n: int) -> Array:
    """Return the interval of a share among n, never a point [Wilson1927]."""
    z = DEVIATIONS**2 / n
    middle = (share + z / 2) / (1 + z)
    half = np.sqrt(share * (1 - share) * z + z**2 / 4) / (1 + z)
    return np.array([middle - half, middle + half])


def _span(intervals: list[Array]) -> tuple[float, float]:
    """Return the smallest interval that holds all, within 0 and 1."""
    low, high = np.clip(
        [min(i[0] for i in intervals), max(i[1] for i in intervals)], 0, 1
    )
    return float(low), float(high)
