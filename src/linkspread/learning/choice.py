"""Choosing by held-out judgements: kernels, ridges, weights, hub correction.

Judgements whose items are held out are predicted by fits without them. What counts is
the likelihood of the held-out partner among many candidates, as a search would meet it:
``log softmax(t s(x, .))[y]``, both directions. Where the views share a space everything
is drawn towards its cosine: a setting must earn its place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from linkspread.cores import hold_blas
from linkspread.learning.evidence import Evidence
from linkspread.learning.terms import (
    MAPS_INTO,
    Fitting,
    Rows,
    Setting,
    Sides,
    Term,
    fit_term,
    score_pieces,
)

__all__ = ["Choice", "choose", "hub_strengths", "term_scores"]

Array = np.ndarray

# Ridges to choose from, in units of the mean squared length of the features.
RIDGES, STEP = (0.1, 1.0, 10.0, 100.0), 10.0
# Judged pairs are noisier; what is predicted column by column wants less; what tells
# classes smooths, the other terms find the partner within.
RIDGES_OF: dict[str, tuple[float, ...]] = {
    "pairs": (1.0, 3.0, 10.0, 30.0, 100.0),
    "classes of partners": (100.0,),
    **dict.fromkeys(MAPS_INTO, (0.001, 0.01, 0.1, 1.0, 10.0)),
}
# Kernels of each kind of term; judged pairs are fitted by all kernels together.
SUITED = {
    "displacement": ("linear", "linear + gaussian"),
    "grid": ("linear", "linear + gaussian", "gaussian"),
    "into left": ("linear", "linear + gaussian"),
    "into right": ("linear", "linear + gaussian"),
    "classes of partners": ("graph",),
    "pairs": ("linear",),
}
# Used where too little is known to choose: few judgements want a large ridge.
DEFAULT_RIDGE, DEFAULT_HUBS = 10.0, 0.5
N_FOLDS = 5
# Fewer held-out pairs than this say nothing about what to choose.
LEAST_PAIRS = 4
# Held-out pairs and strangers of each view that are looked at: enough for a likelihood.
MOST_HELD_OUT, N_STRANGERS, FEW_STRANGERS = 200, 500, 100
# Judged pairs, and must-links alone, that choosing learns from; the fit has all.
MOST_PAIRS, MOST_MUSTS = 3000, 600
# Neighbours whose mean score is the hub correction, as in [Conneau2018].
N_HUB_NEIGHBORS = 10
HUB_STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Choice:
    """What was chosen for two views, and how good it is on held-out judgements.

    Parameters
    ----------
    terms : tuple of Setting
    hubs : float
        Strength of the hub correction.
    n_held_out : int
        Held-out judgements it was chosen by; 0 where too few were known.
    quality : dict from str to float
        Mean reciprocal rank of held-out partners: "model", "chance" and, where there
        is one, "prior".
    """

    terms: tuple[Setting, ...]
    hubs: float
    n_held_out: int
    quality: Mapping[str, float]


@dataclass
class _Fold:
    """One fold: what is known in it, and the items that are asked for."""

    known: Fitting
    left: Rows
    right: Rows
    n_held: int
    terms: dict[Setting, Term] = field(default_factory=dict)

    def fit(self, setting: Setting) -> Term:
        """Return a term fitted without what is held out, made once."""
        key = replace(setting, weight=1.0)
        if key not in self.terms:
            self.terms[key] = fit_term(setting, self.known)
        return self.terms[key]


@dataclass
class _Scores:
    """Scores of the held-out items of one fold with its candidates, both ways.

    `all` has those between all candidates, where they were asked for.
    """

    there: Array
    back: Array
    all: Array | None = None


def choose(sides: Sides, evidence: Evidence, *, seed: int = 0) -> Choice:
    """Choose the terms, their weights and the hub correction by held-out pairs.

    Parameters
    ----------
    sides : Sides
    evidence : Evidence
    seed : int, default=0
        Of the folds.

    Returns
    -------
    choice : Choice
    """
    kinds = _kinds(sides, evidence)
    if kinds == ["labels"]:
        return Choice((Setting("labels"),), 0.0, 0, {})
    # Hundreds of small products: several threads would only wait for each other.
    with hold_blas(1):
        folds = list(_make_folds(sides, evidence, seed))
        n_held = sum(fold.n_held for fold in folds)
        if n_held < LEAST_PAIRS:
            return _default(sides, evidence)
        if sides.prior is None:
            return _choose(kinds, False, folds, n_held)
        # Columns of one number may share nothing: then known partners are no likelier
        # by the cosine than by chance, and likelier by what is learnt without it.
        if not _tells((_PRIOR,), folds) and len(kinds) > 1:
            without = [kind for kind in kinds if kind != "displacement"]
            choice = _choose(without, False, folds, n_held)
            if _tells(choice.terms, folds):
                return choice
        # A displacement is a map already.
        kinds = [kind for kind in kinds if kind not in MAPS_INTO]
        return _choose(kinds, True, folds, n_held)


def _tells(terms: Sequence[Setting], folds: Sequence[_Fold]) -> bool:
    """Tell whether held-out partners are clearly likelier than by chance."""
    scores = _combined(terms, folds)
    chance = _log_likelihoods(scores, 0.0)
    return _exceeds(_log_likelihoods(scores, _best_scale(scores)), chance, errors=2.0)


def _choose(
    kinds: Sequence[str], has_prior: bool, folds: Sequence[_Fold], n_held: int
) -> Choice:
    """Choose a setting of each kind, then how much each counts.

    There is something to start from: the cosine of a shared space, or the regression
    on judged pairs by both kinds of kernels. Held-out partners must be likelier by two
    standard errors before anything else is taken, because what else there is was
    chosen on the same partners.
    """
    start = _start(kinds, has_prior, folds)
    found = [_best_setting(kind, folds) for kind in kinds]
    first = start[0].kind if start else None
    aim = np.array([float(t.kind == first or not start) for t, _ in found])
    if "displacement" in kinds:
        aim = np.eye(len(kinds))[0]
    weights = _stack([scores for _, scores in found], aim / aim.sum())
    terms = tuple(
        replace(term, weight=float(weight * term.weight))
        for (term, _), weight in zip(found, weights, strict=True)
        if weight > 0
    )
    if start and not (terms and _is_better(terms, start, folds)):
        terms = start
    together = _combined(terms, folds)
    # Partners are searched among hubs; members of a class are not alone.
    are_partners = has_prior or terms[0].kind == "grid"
    hubs = _choose_hubs(together, are_partners)
    quality = {
        "model": _reciprocal_rank([_without_hubs(s, hubs) for s in together]),
        "chance": _chance(together),
    }
    if has_prior:
        quality["prior"] = _reciprocal_rank(_setting_scores(_PRIOR, folds))
    return Choice(terms, hubs, n_held, quality)


_PRIOR = Setting("prior")


def _start(
    kinds: Sequence[str], has_prior: bool, folds: Sequence[_Fold]
) -> tuple[Setting, ...]:
    """Return what stands until something is clearly better."""
    if has_prior:
        return (_PRIOR,)
    if "labels" in kinds or "pairs" not in kinds:
        return ()
    return (_best_setting("pairs", folds)[0],)


def _is_better(
    terms: Sequence[Setting], others: Sequence[Setting], folds: Sequence[_Fold]
) -> bool:
    """Tell whether held-out partners are clearly likelier by some terms."""
    parts = [_combined(own, folds) for own in (terms, others)]
    ours, theirs = (_log_likelihoods(own, _best_scale(own)) for own in parts)
    return _exceeds(ours, theirs, errors=2.0)


def _exceeds(ours: Array, theirs: Array, *, errors: float) -> bool:
    """Tell whether likelihoods are larger by so many standard errors."""
    gain = ours - theirs
    # Few pairs do not tell their own spread: as for Student's distribution.
    spread = gain.std(ddof=1) * (1 + 2 / len(gain))
    return bool(gain.sum() > errors * spread * np.sqrt(len(gain)))


@dataclass(frozen=True)
class _Tried:
    """A setting, its scores in every fold, and how likely it makes the partners."""

    setting: Setting
    scores: list[_Scores]
    scale: float
    likelihoods: Array


def _tried(setting: Setting, folds: Sequence[_Fold]) -> _Tried:
    """Return how a setting does on what is held out."""
    scores = _setting_scores(setting, folds)
    scale = _best_scale(scores)
    return _Tried(setting, scores, scale, _log_likelihoods(scores, scale))


def _kinds(sides: Sides, evidence: Evidence) -> list[str]:
    """Return the kinds of term that the judgements allow."""
    kinds = ["labels"] if evidence.labels is not None else []
    has_graph = all(own.has("graph") for own in sides.maps)
    if sides.prior is not None:
        kinds.insert(0, "displacement")
    is_mixed = len(evidence.cannot[0]) or evidence.labels is not None
    if len(evidence.must[0]) > 1 and (evidence.are_partners() or not is_mixed):
        kinds += ["grid", "classes of partners"] if has_graph else ["grid"]
        kinds += MAPS_INTO
    if len(evidence.cannot[0]):
        kinds.append("pairs")
    return kinds


def _default(sides: Sides, evidence: Evidence) -> Choice:
    """Return what is taken where too little is known to choose."""
    if sides.prior is not None:
        return Choice((_PRIOR,), DEFAULT_HUBS, 0, {})
    terms = [Setting("labels")] if evidence.labels is not None else []
    if evidence.n_pairs:
        kind = (
            "pairs" if len(evidence.cannot[0]) or len(evidence.must[0]) < 2 else "grid"
        )
        terms.append(Setting(kind, "linear + gaussian", DEFAULT_RIDGE))
    hubs = DEFAULT_HUBS if terms[-1].kind == "grid" else 0.0
    return Choice(tuple(terms), hubs, 0, {})


def _make_folds(sides: Sides, evidence: Evidence, seed: int) -> Iterator[_Fold]:
    """Yield folds of items: nothing that is known in one touches what it holds out."""
    rng = np.random.default_rng(seed)
    sizes = [m.n_items for m in sides.maps]
    partners = evidence.must[:2]
    if evidence.labels is not None and len(partners[0]) < LEAST_PAIRS:
        partners = _same_class(evidence.labels, rng)
    n_folds = min(N_FOLDS, len(partners[0]))
    if n_folds < 2:
        return
    fold_of = _fold_items(partners, sizes, n_folds, rng)
    n_most = MOST_PAIRS if len(evidence.cannot[0]) else MOST_MUSTS
    for k in range(n_folds):
        held, known = evidence.split(*(own == k for own in fold_of))
        i, j = partners
        inside = (fold_of[0][i] == k) & (fold_of[1][j] == k)
        i, j = i[inside], j[inside]
        if not len(i) or (len(known.must[0]) < 2 and known.labels is None):
            continue
        chosen = rng.permutation(len(i))[: max(1, MOST_HELD_OUT // n_folds)]
        i, j = i[chosen], j[chosen]
        strangers = [
            rng.permutation(_unjudged(size, own))[:N_STRANGERS]
            for size, own in zip(sizes, known.judged_items(), strict=True)
        ]
        # Pairs that were judged apart are the strangers that look most alike.
        hard = held.cannot
        left = np.concatenate([i, np.setdiff1d([*strangers[0], *hard[0]], i)])
        right = np.concatenate([j, np.setdiff1d([*strangers[1], *hard[1]], j)])
        yield _Fold(
            Fitting(sides, known.sample(n_most, rng), rough=True),
            sides.rows(0, left.astype(np.intp)),
            sides.rows(1, right.astype(np.intp)),
            len(i),
        )


def _same_class(labels: tuple[Any, Any], rng: np.random.Generator) -> Any:
    """Return random pairs of labelled items of one class, each item at most once."""
    left, right = [], []
    sides = [[own[:, [c]].nonzero()[0] for c in range(own.shape[1])] for own in labels]
    for one, other in zip(*sides, strict=True):
        n = min(len(one), len(other))
        left.append(rng.permutation(one)[:n])
        right.append(rng.permutation(other)[:n])
    i, first = np.unique(np.concatenate(left), return_index=True)
    return i, np.concatenate(right)[first]


def _unjudged(n_items: int, judged: Array) -> Array:
    """Return the items that nobody judged, or all where these are few."""
    unjudged = np.setdiff1d(np.arange(n_items), judged)
    return unjudged if len(unjudged) >= FEW_STRANGERS else np.arange(n_items)


def _fold_items(
    partners: Any, sizes: Sequence[int], n_folds: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return the fold of each item; partners are in the same fold where they can be."""
    left, right = (rng.integers(n_folds, size=size) for size in sizes)
    i, j = partners
    order = rng.permutation(len(i))
    i, j = i[order], j[order]
    _, first = np.unique(i, return_index=True)
    # Even folds: pairs are dealt in turn.
    left[i[first]] = np.arange(len(first)) % n_folds
    right[j] = left[i]
    return left, right


def _best_setting(kind: str, folds: Sequence[_Fold]) -> tuple[Setting, list[_Scores]]:
    """Return the setting of a kind whose held-out likelihood is largest.

    Towards the prior the strongest ridge within one standard error is taken.
    """
    tried = [_tried(setting, folds) for setting in _settings(kind)]
    best = max(tried, key=lambda entry: entry.likelihoods.sum())
    if np.isfinite(best.setting.ridge) and kind in ("grid", "displacement"):
        # A finer look around the best.
        finer = [best.setting.ridge * step for step in (STEP**-0.5, STEP**0.5)]
        tried += [_tried(replace(best.setting, ridge=own), folds) for own in finer]
        best = max(tried, key=lambda entry: entry.likelihoods.sum())
    if kind == "pairs":
        usual = _tried(Setting("pairs", ridge=DEFAULT_RIDGE), folds)
        if not _exceeds(best.likelihoods, usual.likelihoods, errors=1.0):
            best = usual
    if kind == "displacement":
        for entry in sorted(tried, key=lambda entry: -entry.setting.ridge):
            if not _exceeds(best.likelihoods, entry.likelihoods, errors=1.0):
                best = entry
                break
    return replace(best.setting, weight=best.scale), best.scores


def _settings(kind: str) -> list[Setting]:
    """Return the settings of a kind to choose from."""
    if kind == "labels":
        return [Setting(kind)]
    own = "grid" if kind == "classes of partners" else kind
    ridges = RIDGES_OF.get(kind, RIDGES)
    settings = [Setting(own, m, r) for m in SUITED[kind] for r in ridges]
    if kind == "displacement":
        settings.append(Setting(kind))
    return settings


def _setting_scores(
    setting: Setting, folds: Sequence[_Fold], *, whole: bool = False
) -> list[_Scores]:
    """Return the scores of a setting in every fold, fitted without what is held out."""
    found = []
    for fold in folds:
        term, n = fold.fit(setting), fold.n_held
        if whole:
            S = term_scores(term, 0, fold.left, fold.right)
            found.append(_Scores(S[:n], S[:, :n].T, S))
        else:
            there = term_scores(term, 0, fold.left[:n], fold.right)
            back = term_scores(term, 1, fold.right[:n], fold.left)
            found.append(_Scores(there, back))
    return found


def term_scores(term: Term, side: int, queries: Rows, targets: Rows) -> Array:
    """Return the scores of queries of one side with targets of the other.

    Parameters
    ----------
    term : Term
    side : {0, 1}
        Of the queries.
    queries, targets : Rows

    Returns
    -------
    scores : ndarray of shape (n_queries, n_targets)
    """
    classes = getattr(term, "classes", None)
    if classes is not None:
        targets = replace(targets, classes=classes(1 - side, targets))
    return score_pieces(
        term.pieces(side, queries), targets, term.scale(1 - side, targets)
    )


def _log_likelihoods(scores: Sequence[_Scores], scale: float) -> Array:
    """Return the log-likelihood of each held-out pair, both directions together."""
    found = []
    for fold in scores:
        own = 0.0
        for S in (fold.there, fold.back):
            logits = scale * S
            top = logits.max(axis=1, keepdims=True)
            total = np.log(np.exp(logits - top).sum(axis=1)) + top[:, 0]
            own = own + np.diagonal(logits) - total
        found.append(own)
    return np.concatenate(found)


def _best_scale(scores: Sequence[_Scores]) -> float:
    """Return the scale of the scores with the largest likelihood, by Newton steps."""
    spread = float(np.mean([fold.there.std() for fold in scores])) or 1.0
    scale = 1 / spread
    for _ in range(12):
        slope = curvature = 0.0
        for fold in scores:
            for S in (fold.there, fold.back):
                p = np.exp(scale * S - (scale * S).max(axis=1, keepdims=True))
                p /= p.sum(axis=1, keepdims=True)
                mean = np.sum(p * S, axis=1)
                slope += float(np.sum(np.diagonal(S) - mean))
                curvature += float(np.sum(p * S**2) - np.sum(mean**2))
        step = slope / max(curvature, 1e-12 / scale**2)
        before = scale
        scale = float(np.clip(scale + step, scale / 3, scale * 3))
        scale = min(max(scale, 1e-3 / spread), 1e3 / spread)
        if abs(scale - before) <= 1e-3 * before:
            break
    return scale


def _stack(terms: Sequence[Sequence[_Scores]], aim: Array) -> Array:
    """Return the weight of each term, in units of its own best scale.

    Drawn to an aim with the strength of one held-out judgement.
    """
    scales = np.array([_best_scale(scores) for scores in terms])
    n = len(terms)
    if n == 1:
        return aim
    parts = [
        np.stack(
            [s * getattr(own[k], way) for s, own in zip(scales, terms, strict=True)]
        )
        for k in range(len(terms[0]))
        for way in ("there", "back")
    ]

    def loss(weights: Array) -> tuple[float, Array]:
        away = weights - aim
        value, slope = 0.5 * float(away @ away), away.copy()
        for part in parts:
            logits = np.tensordot(weights, part, 1)
            logits -= logits.max(axis=1, keepdims=True)
            p = np.exp(logits)
            total = p.sum(axis=1)
            value -= float(np.sum(np.diagonal(logits) - np.log(total)))
            p /= total[:, None]
            slope += np.einsum("nm,qnm->q", p, part, optimize=True)
            slope -= np.einsum("qnn->q", part[:, :, : part.shape[1]])
        return value, slope

    found = minimize(loss, aim, jac=True, method="L-BFGS-B", bounds=[(0, None)] * n,
                     options={"maxiter": 50})  # fmt: skip
    return np.where(found.x > 1e-3, found.x, 0.0)


def _combined(terms: Sequence[Setting], folds: Sequence[_Fold]) -> list[_Scores]:
    """Return the weighted sum of all terms in every fold, between all candidates."""
    parts = [_setting_scores(term, folds, whole=True) for term in terms]
    together = []
    for own in zip(*parts, strict=True):
        S = sum(t.weight * p.all for t, p in zip(terms, own, strict=True))
        n = len(own[0].there)
        together.append(_Scores(S[:n], S[:, :n].T, S))
    return together


def hub_strengths(scores: Array, n_items: int) -> Array:
    """Return the mean of the largest scores of each column, a sample of rows given."""
    n_rows = scores.shape[0]
    k = max(1, min(n_rows, round(N_HUB_NEIGHBORS * n_rows / max(n_items, n_rows))))
    return np.partition(scores, n_rows - k, axis=0)[n_rows - k :].mean(axis=0)


def _without_hubs(scores: _Scores, strength: float) -> _Scores:
    """Return scores less a share of the hub strengths of the candidates."""
    if strength == 0:
        return scores
    S, n = scores.all, len(scores.there)
    assert S is not None
    rows = strength * hub_strengths(S.T, S.shape[1])
    cols = strength * hub_strengths(S, S.shape[0])
    return _Scores(S[:n] - cols, S[:, :n].T - rows, S)


def _choose_hubs(scores: Sequence[_Scores], are_partners: bool) -> float:
    """Return the usual strength of the hub correction, or a better one.

    Members of a class are near to each other, which a correction undoes: a few
    held-out pairs that are likelier with it must be much likelier.
    """
    usual, errors = (DEFAULT_HUBS, 1.0) if are_partners else (0.0, 3.0)
    likelihoods = {}
    for strength in HUB_STRENGTHS:
        corrected = [_without_hubs(own, strength) for own in scores]
        likelihoods[strength] = _log_likelihoods(corrected, _best_scale(corrected))
    best = max(HUB_STRENGTHS, key=lambda strength: likelihoods[strength].sum())
    is_better = _exceeds(likelihoods[best], likelihoods[usual], errors=errors)
    return best if is_better else usual


def _chance(scores: Sequence[_Scores]) -> float:
    """Return the mean reciprocal rank of a random order of the candidates."""
    sizes = [S.shape[1] for fold in scores for S in (fold.there, fold.back)]
    return float(np.mean([np.mean(1 / np.arange(1, size + 1)) for size in sizes]))


def _reciprocal_rank(scores: Sequence[_Scores]) -> float:
    """Return the mean reciprocal rank of held-out partners, both directions."""
    values = []
    for fold in scores:
        for S in (fold.there, fold.back):
            own = np.diagonal(S)[:, None]
            before = (S > own).sum(axis=1) + ((S == own).sum(axis=1) - 1) / 2
            values.append(1 / (1 + before))
    return float(np.mean(np.concatenate(values)))
