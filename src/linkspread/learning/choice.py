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
from linkspread.learning.cores import (
    Decomposition,
    Term,
    decompose,
    fit_displacement,
    fit_grid,
    fit_pairs,
    fit_prior,
)
from linkspread.learning.evidence import Evidence
from linkspread.learning.maps import ViewMap

__all__ = ["Choice", "Chosen", "Sides", "choose", "fit_term", "hub_strengths"]

Array = np.ndarray

# Ridges to choose from, in units of the mean squared length of the features.
RIDGES = (0.3, 1.0, 3.0, 10.0, 30.0)
# Sums of kernels that suit each kind of term: a graph tells classes, not partners.
SUITED = {
    "displacement": ("linear", "linear + gaussian"),
    "grid": ("linear", "linear + gaussian", "gaussian"),
    "pairs": ("linear + gaussian", "all", "graph"),
}
# Used where too little is known to choose.
DEFAULT = ("linear + gaussian", 1.0)
N_FOLDS = 5
# Fewer held-out pairs than this say nothing about what to choose.
LEAST_PAIRS = 4
# Held-out pairs and strangers of each view that are looked at: enough for a likelihood.
MOST_HELD_OUT, N_STRANGERS = 200, 1000
# Neighbours whose mean score is the hub correction, as in [Conneau2018].
N_HUB_NEIGHBORS = 10
HUB_STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
DEFAULT_HUBS = 0.5
# Judged pairs that choosing looks at; the fit has all.
MOST_PAIRS = 1000


@dataclass(frozen=True)
class Sides:
    """Maps of two views, and their rows in a shared space if there is one.

    Parameters
    ----------
    maps : tuple of two ViewMap
    prior : tuple of two tables, default=None
        Unit rows of both views, of one width.
    """

    maps: tuple[ViewMap, ViewMap]
    prior: tuple[Any, Any] | None = None


@dataclass(frozen=True)
class Chosen:
    """One term with its kernels, its ridge and its weight.

    Parameters
    ----------
    kind : {"prior", "displacement", "grid", "pairs"}
    mixture : str
        Sum of kernels, one of `maps.MIXTURES`.
    ridge : float
    weight : float
    """

    kind: str
    mixture: str
    ridge: float
    weight: float


@dataclass(frozen=True)
class Choice:
    """What was chosen for two views, and how good it is on held-out judgements.

    Parameters
    ----------
    terms : tuple of Chosen
    hubs : float
        Strength of the hub correction.
    n_held_out : int
        Held-out judgements it was chosen by; 0 where too few were known.
    quality : dict from str to float
        Mean reciprocal rank of held-out partners, "model" and, where there is one,
        "prior".
    """

    terms: tuple[Chosen, ...]
    hubs: float
    n_held_out: int
    quality: Mapping[str, float]


@dataclass
class _Fold:
    """One fold: what is known in it, and the items that are asked for."""

    known: Evidence
    left: Array
    right: Array
    n_held: int
    _decomposed: dict[str, tuple[Decomposition, Decomposition]] = field(
        default_factory=dict
    )


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
    # Hundreds of small products: several threads would only wait for each other.
    with hold_blas(1):
        return _choose(sides, evidence, seed)


def _choose(sides: Sides, evidence: Evidence, seed: int) -> Choice:
    """Choose the terms, their weights and the hub correction."""
    folds = list(_make_folds(sides, evidence, seed))
    n_held = sum(fold.n_held for fold in folds)
    if n_held < LEAST_PAIRS:
        return Choice(_default_terms(sides, evidence), DEFAULT_HUBS, 0, {})
    found = [_best_setting(kind, sides, folds) for kind in _kinds(sides, evidence)]
    weights = _stack([scores for _, scores in found], has_prior=sides.prior is not None)
    terms = tuple(
        replace(term, weight=float(weight * term.weight))
        for (term, _), weight in zip(found, weights, strict=True)
        if weight > 0
    )
    if sides.prior is not None and not _is_better(terms, sides, folds):
        terms = (_PRIOR,)
    together = _combined(terms, sides, folds)
    hubs = _choose_hubs(together)
    quality = {"model": _reciprocal_rank([_without_hubs(s, hubs) for s in together])}
    if sides.prior is not None:
        quality["prior"] = _reciprocal_rank(_term_scores(_PRIOR, sides, folds))
    return Choice(terms, hubs, n_held, quality)


def _is_better(terms: Sequence[Chosen], sides: Sides, folds: Sequence[_Fold]) -> bool:
    """Tell whether held-out partners are likelier by the terms than by the cosine.

    By two standard errors: the terms were chosen on the same partners.
    """
    parts = [_combined(own, sides, folds) for own in (terms, (_PRIOR,))]
    ours, prior = (_log_likelihoods(own, _best_scale(own)) for own in parts)
    gain = ours - prior
    return bool(gain.sum() > 2 * gain.std() * np.sqrt(len(gain)))


_PRIOR = Chosen("prior", "linear", np.inf, 1.0)


def _kinds(sides: Sides, evidence: Evidence) -> list[str]:
    """Return the kinds of term that the judgements allow."""
    kinds = ["displacement", "grid"] if sides.prior is not None else ["grid"]
    return [*kinds, "pairs"] if len(evidence.cannot[0]) else kinds


def _default_terms(sides: Sides, evidence: Evidence) -> tuple[Chosen, ...]:
    """Return what is taken where too little is known to choose."""
    if sides.prior is not None:
        return (_PRIOR,)
    kind = "grid" if len(evidence.must[0]) > 1 else "pairs"
    return (Chosen(kind, *DEFAULT, 1.0),)


def fit_term(
    term: Chosen,
    sides: Sides,
    evidence: Evidence,
    decomposed: dict[str, tuple[Decomposition, Decomposition]] | None = None,
) -> Term:
    """Fit one term to what is known."""
    if term.kind == "prior" or (term.kind == "displacement" and np.isinf(term.ridge)):
        return fit_prior()
    left, right = (m.features(term.mixture) for m in sides.maps)
    if term.kind == "pairs":
        i, j, z, weights = evidence.judged()
        return fit_pairs(left[i], right[j], z, weights, term.ridge)
    i, j, _ = evidence.must
    if len(i) < 2:
        # Too few are left to describe anything by: live links can be taken back.
        return fit_term(_fallback(term, sides), sides, evidence)
    kept = {} if decomposed is None else decomposed
    if term.mixture not in kept:
        kept[term.mixture] = decompose(left[i]), decompose(right[j])
    both = kept[term.mixture]
    if term.kind == "grid":
        return fit_grid(*both, term.ridge)
    assert sides.prior is not None
    known = sides.prior[0][i], sides.prior[1][j]
    return fit_displacement(*both, known, term.ridge)


def _fallback(term: Chosen, sides: Sides) -> Chosen:
    """Return what stands for a term that needs more pairs than there are."""
    kind = "pairs" if sides.prior is None else "prior"
    return replace(term, kind=kind)


def _make_folds(sides: Sides, evidence: Evidence, seed: int) -> Iterator[_Fold]:
    """Yield folds of items: nothing that is known in one touches what it holds out."""
    rng = np.random.default_rng(seed)
    sizes = [m.n_items for m in sides.maps]
    n_folds = min(N_FOLDS, len(evidence.must[0]))
    if n_folds < 2:
        return
    fold_of = _fold_items(evidence, sizes, n_folds, rng)
    for k in range(n_folds):
        held, known = evidence.split(*(own == k for own in fold_of))
        i, j, _ = held.must
        if not len(i) or len(known.must[0]) < 2:
            continue
        chosen = rng.permutation(len(i))[: max(1, MOST_HELD_OUT // n_folds)]
        i, j = i[chosen], j[chosen]
        strangers = [
            rng.choice(size, min(size, N_STRANGERS), replace=False) for size in sizes
        ]
        # Pairs that were judged apart are the strangers that look most alike.
        hard = held.cannot
        left = np.concatenate([i, np.setdiff1d([*strangers[0], *hard[0]], i)])
        right = np.concatenate([j, np.setdiff1d([*strangers[1], *hard[1]], j)])
        known = known.sample(MOST_PAIRS, rng)
        yield _Fold(known, left.astype(np.intp), right.astype(np.intp), len(i))


def _fold_items(
    evidence: Evidence, sizes: Sequence[int], n_folds: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return the fold of each item; partners are in the same fold where they can be."""
    left, right = (rng.integers(n_folds, size=size) for size in sizes)
    i, j, _ = evidence.must
    order = rng.permutation(len(i))
    i, j = i[order], j[order]
    _, first = np.unique(i, return_index=True)
    # Even folds: pairs are dealt in turn.
    left[i[first]] = np.arange(len(first)) % n_folds
    right[j] = left[i]
    return left, right


def _best_setting(
    kind: str, sides: Sides, folds: Sequence[_Fold]
) -> tuple[Chosen, list[_Scores]]:
    """Return the setting of a kind whose held-out likelihood is largest.

    Towards the prior the strongest ridge within one standard error is taken.
    """
    settings = [Chosen(kind, m, r, 1.0) for m in SUITED[kind] for r in RIDGES]
    if kind == "displacement":
        settings.append(Chosen(kind, "linear", np.inf, 1.0))
    tried = []
    for setting in settings:
        scores = _term_scores(setting, sides, folds)
        scale = _best_scale(scores)
        tried.append((setting, scores, scale, _log_likelihoods(scores, scale)))
    best = max(tried, key=lambda entry: entry[3].sum())
    if kind == "displacement":
        for entry in sorted(tried, key=lambda entry: -entry[0].ridge):
            loss = best[3] - entry[3]
            error = loss.std() * np.sqrt(len(loss))
            if loss.sum() <= error:
                best = entry
                break
    setting, scores, scale, _ = best
    return replace(setting, weight=scale), scores


def _term_scores(
    setting: Chosen, sides: Sides, folds: Sequence[_Fold], *, whole: bool = False
) -> list[_Scores]:
    """Return the scores of a setting in every fold, fitted without what is held out."""
    found = []
    for fold in folds:
        term = fit_term(setting, sides, fold.known, fold._decomposed)
        L = term.left(*_rows(sides, 0, fold.left, setting.mixture))
        R = term.right(*_rows(sides, 1, fold.right, setting.mixture))
        n = fold.n_held
        S = _product(L, R) if whole else None
        found.append(_Scores(_product(L[:n], R), _product(R[:n], L), S))
    return found


def _rows(sides: Sides, side: int, items: Array, mixture: str) -> tuple[Array, Any]:
    """Return features and prior rows of some items."""
    prior = None if sides.prior is None else sides.prior[side][items]
    return sides.maps[side].features(mixture)[items], prior


def _product(L: Any, R: Any) -> Array:
    S = L @ R.T
    return S.toarray() if hasattr(S, "toarray") else S


def _log_likelihoods(scores: Sequence[_Scores], scale: float) -> Array:
    """Return the log-likelihood of each held-out partner, both directions."""
    found = []
    for fold in scores:
        for S in (fold.there, fold.back):
            logits = scale * S
            top = logits.max(axis=1, keepdims=True)
            total = np.log(np.exp(logits - top).sum(axis=1)) + top[:, 0]
            found.append(np.diagonal(logits) - total)
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
        scale = float(np.clip(scale + step, scale / 3, scale * 3))
        scale = min(max(scale, 1e-3 / spread), 1e3 / spread)
    return scale


def _stack(terms: Sequence[Sequence[_Scores]], *, has_prior: bool) -> Array:
    """Return the weight of each term, in units of its own best scale.

    Drawn to the first term alone where there is a prior, to equal shares otherwise,
    with the strength of one held-out judgement.
    """
    scales = np.array([_best_scale(scores) for scores in terms])
    n = len(terms)
    aim = np.eye(n)[0] if has_prior else np.full(n, 1 / n)
    if n == 1:
        return aim

    def loss(weights: Array) -> float:
        joined = [
            _Scores(*(sum(w * s * getattr(own[k], part)
                          for w, s, own in zip(weights, scales, terms, strict=True))
                      for part in ("there", "back")))
            for k in range(len(terms[0]))
        ]  # fmt: skip
        penalty = 0.5 * np.sum((weights - aim) ** 2)
        return float(penalty - _log_likelihoods(joined, 1.0).sum())

    found = minimize(loss, aim, method="L-BFGS-B", bounds=[(0, None)] * n,
                     options={"maxiter": 30})  # fmt: skip
    return np.where(found.x > 1e-3, found.x, 0.0)


def _combined(
    terms: Sequence[Chosen], sides: Sides, folds: Sequence[_Fold]
) -> list[_Scores]:
    """Return the weighted sum of all terms in every fold, between all candidates."""
    parts = [_term_scores(term, sides, folds, whole=True) for term in terms]
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


def _choose_hubs(scores: Sequence[_Scores]) -> float:
    """Return the strength of the hub correction with the largest likelihood."""
    likelihoods = {}
    for strength in HUB_STRENGTHS:
        corrected = [_without_hubs(own, strength) for own in scores]
        scale = _best_scale(corrected)
        likelihoods[strength] = float(_log_likelihoods(corrected, scale).sum())
    return max(HUB_STRENGTHS, key=lambda strength: likelihoods[strength])


def _reciprocal_rank(scores: Sequence[_Scores]) -> float:
    """Return the mean reciprocal rank of held-out partners, both directions."""
    values = []
    for fold in scores:
        for S in (fold.there, fold.back):
            own = np.diagonal(S)[:, None]
            before = (S > own).sum(axis=1) + ((S == own).sum(axis=1) - 1) / 2
            values.append(1 / (1 + before))
    return float(np.mean(np.concatenate(values)))
