"""Choosing by held-out judgements: kernels, ridges, weights, hub correction.

Held-out judgements are predicted by fits without their items. The criterion is the
likelihood of the held-out partner among many candidates, as in a search:
``log softmax(t s(x, .))[y]``, in both directions. If the views share a space, its
cosine is the default: sums of terms must be significantly better.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from linkspread.compiled.backends import small_loops
from linkspread.compiled.cpu import largest_means
from linkspread.ground.cores import hold_blas
from linkspread.ground.errors import LinkError
from linkspread.learning.maps import dense
from linkspread.learning.rows import Rows, Setting, Sides
from linkspread.learning.terms import MAPS_INTO, Fitting, LabelTerm, Term, fit_term
from linkspread.links.evidence import Evidence

Array = np.ndarray

# Mixtures of kernels and ridges to choose from for each kind of term; ridges are in
# units of the mean squared norm of the features. Judged pairs are noisy and need larger
# ridges; maps predict each column, and a grid damps three times, so they need smaller.
# "classes of partners" finds the class, the others the partner within.
CANDIDATES: dict[str, tuple[tuple[str, ...], tuple[float, ...]]] = {
    "labels": (("linear",), (np.inf,)),
    # Of equal ones the first is chosen: the cosine.
    "displacement": (("linear", "linear + gaussian"), (np.inf, 100.0, 10.0, 1.0, 0.1)),
    "grid": (("linear", "linear + gaussian", "gaussian"), (0.1, 1.0, 10.0)),
    "classes of partners": (("graph",), (10.0,)),
    "pairs": (("linear",), (1.0, 3.0, 10.0, 30.0, 100.0)),
    **dict.fromkeys(
        MAPS_INTO, (("linear", "linear + gaussian"), (0.001, 0.01, 0.1, 1.0, 10.0))
    ),
}
# Used where too little is known to choose; few judgements need a large ridge.
DEFAULT_RIDGE, DEFAULT_HUBS = 10.0, 0.5
N_FOLDS = 5  # or fewer, if they hold out enough
MIN_PAIRS = 4  # with fewer held-out pairs nothing is chosen
# Held-out pairs of all folds, and candidates of each view in each fold.
MAX_HELD_OUT, N_CANDIDATES = 400, 500
# Judged pairs, or must-links alone, that a fold is fitted to; the final fit uses all.
MAX_KNOWN = {"pairs": 3000, "must-links": 600}
# Neighbours whose mean score is the hub correction, as in [Conneau2018].
N_HUB_NEIGHBORS, COLUMNS = 10, 256  # and columns of scores per block
HUB_STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)

_PRIOR = Setting("prior")


@dataclass(frozen=True)
class Choice:
    """The chosen terms of two views, and their held-out accuracy."""

    terms: tuple[Setting, ...]
    hubs: float  # strength of the hub correction
    n_held_out: int  # judgements it was chosen by; 0 if there were too few
    # Mean reciprocal rank of held-out partners: "model", "chance", "prior" if any.
    quality: Mapping[str, float]


@dataclass
class _Fold:
    """One fold: what it is fitted to, and its held-out items and candidates."""

    known: Fitting
    left: Rows
    right: Rows
    n_held: int
    n_new: tuple[int, int]  # without known items, which are the last
    terms: dict[Setting, Term] = field(default_factory=dict)

    def fit(self, setting: Setting) -> Term:
        """Return a term fitted without the held-out items; computed once."""
        key = replace(setting, weight=1.0)
        if key not in self.terms:
            self.terms[key] = fit_term(setting, self.known)
        return self.terms[key]


@dataclass
class _Scores:
    """Scores of the held-out items of a fold with its candidates, both directions."""

    there: Array
    back: Array
    all: Any = None  # between all candidates


def choose(sides: Sides, evidence: Evidence, *, seed: int = 0) -> Choice:
    """Choose the terms, their weights and the hub correction by held-out pairs."""
    kinds = _kinds(sides, evidence)
    if kinds == ["labels"]:
        return Choice((Setting("labels"),), 0.0, 0, {})
    # Hundreds of small products are faster in one thread.
    with hold_blas(1):
        folds = list(_make_folds(sides, evidence, seed))
        if sum(fold.n_held for fold in folds) < MIN_PAIRS:
            return _default(sides, evidence)
        if sides.prior is None:
            return _choose(kinds, False, folds)
        # Equal numbers of columns need not be a shared space: then known partners are
        # as likely by the cosine as by chance, and likelier by terms without it.
        if len(kinds) > 1 and not _is_better((_PRIOR,), None, 2.0, folds):
            without = [kind for kind in kinds if kind != "displacement"]
            choice = _choose(without, False, folds)
            if _is_better(choice.terms, None, 2.0, folds):
                return choice
        # A displacement is a map already.
        return _choose([own for own in kinds if own not in MAPS_INTO], True, folds)


def _choose(kinds: Sequence[str], has_prior: bool, folds: Sequence[_Fold]) -> Choice:
    """Choose a setting of each kind, then how much each counts.

    The default is the displacement in a shared space (the cosine if its ridge is
    infinite), or the regression on judged pairs. A sum of terms must be likelier, by
    two standard errors than the cosine, because it is chosen on the same partners.
    """
    found = {kind: _choose_setting(kind, folds) for kind in kinds}
    first, start = "", tuple[Setting, ...]()
    if has_prior:
        first, own = "displacement", found["displacement"].setting
        # Of wrong links nothing is learnt, whatever ridge fits them best.
        is_learnt = np.isfinite(own.ridge) and _is_better((own,), None, 2.0, folds)
        start = (own if is_learnt else _PRIOR,)
    elif "pairs" in found and "labels" not in found:
        first, start = "pairs", (found["pairs"].setting,)
    # Weights are regularised towards the default, or else towards equal ones.
    aim = np.array([float(first in ("", kind)) for kind in found])
    weights = _fit_weights([own.scores for own in found.values()], aim / aim.sum())
    terms = tuple(
        replace(own.setting, weight=float(weight * own.setting.weight))
        for own, weight in zip(found.values(), weights, strict=True)
        if weight > 0
    )
    others = ((_PRIOR,) if has_prior else start, 2.0), (start, 0.0)
    if start and not (terms and all(_is_better(terms, *own, folds) for own in others)):
        terms = start
    together = _combined(terms, folds)
    # Hubs hide single partners, but not members of a class.
    are_partners = has_prior or terms[0].kind == "grid"
    hubs = _choose_hubs(together, are_partners)
    quality = {
        "model": _reciprocal_rank([_without_hubs(s, hubs) for s in together]),
        "chance": _chance(together),
    }
    if has_prior:
        quality["prior"] = _reciprocal_rank(_setting_scores(_PRIOR, folds))
    return Choice(terms, hubs, sum(fold.n_held for fold in folds), quality)


def _is_better(
    terms: Sequence[Setting],
    others: Sequence[Setting] | None,
    errors: float,
    folds: Sequence[_Fold],
) -> bool:
    """Return whether terms make partners likelier than other terms, or chance.

    Among unknown items: known ones would be recognised, whatever their links say.
    """
    scores = _combined(terms, folds, only_new=True)
    theirs = _log_likelihoods(scores, 0.0)
    if others is not None:
        theirs = _best_likelihoods(_combined(others, folds, only_new=True))
    return _is_significant(_best_likelihoods(scores), theirs, errors=errors)


def _is_significant(ours: Array, theirs: Array, *, errors: float) -> bool:
    """Return whether likelihoods are larger by a number of standard errors."""
    gain = ours - theirs
    # The spread of few pairs is uncertain: a correction as in Student's t.
    spread = gain.std(ddof=1) * (1 + 2 / len(gain))
    return bool(gain.sum() > errors * spread * np.sqrt(len(gain)))


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
    """Return the choice for too few judgements."""
    if sides.prior is not None:
        return Choice((_PRIOR,), DEFAULT_HUBS, 0, {})
    terms = [Setting("labels")] if evidence.labels is not None else []
    if evidence.n_pairs:
        is_grid = len(evidence.must[0]) > 1 and not len(evidence.cannot[0])
        kind = "grid" if is_grid else "pairs"
        terms.append(Setting(kind, "linear + gaussian", DEFAULT_RIDGE))
    if not terms:
        raise LinkError(
            "views without a shared space must be joined by links, got only pairs that "
            "are must and cannot with equal weights. Judge another pair."
        )
    hubs = DEFAULT_HUBS if terms[-1].kind == "grid" else 0.0
    return Choice(tuple(terms), hubs, 0, {})


def _make_folds(sides: Sides, evidence: Evidence, seed: int) -> Iterator[_Fold]:
    """Yield folds of items, fitted without links of their held-out items."""
    rng = np.random.default_rng(seed)
    sizes = [m.n_items for m in sides.maps]
    partners = evidence.must[:2]
    if evidence.labels is not None and len(partners[0]) < MIN_PAIRS:
        partners = _same_class(evidence.labels, rng)
    n_folds = min(N_FOLDS, len(partners[0]))
    if n_folds < 2:
        return
    fold_of = _fold_items(partners, sizes, n_folds, rng)
    n_most = MAX_KNOWN["pairs" if len(evidence.cannot[0]) else "must-links"]
    n_held = 0
    for k in range(n_folds):
        held, known = evidence.split(*(own == k for own in fold_of))
        inside = [own[items] == k for own, items in zip(fold_of, partners, strict=True)]
        chosen = rng.permutation(np.flatnonzero(inside[0] & inside[1]))
        i, j = (own[chosen[: MAX_HELD_OUT - n_held]] for own in partners)
        if not len(i) or (len(known.must[0]) < 2 and known.labels is None):
            continue
        n_held += len(i)
        asked, n_new, judged = [], [], known.judged_items()
        for side, own in enumerate((i, j)):
            # As in a search; items of cannot-links are the most similar.
            drawn = [*rng.permutation(sizes[side])[:N_CANDIDATES], *held.cannot[side]]
            others = np.setdiff1d(drawn, own).astype(np.intp)
            is_known = np.isin(others, judged[side])
            is_known &= np.sum(~is_known) >= N_CANDIDATES // 5
            places = np.concatenate([own, others[np.argsort(is_known, kind="stable")]])
            asked.append(sides.rows(side, places))
            n_new.append(len(own) + int(np.sum(~is_known)))
        fitting = Fitting(sides, known.sample(n_most, rng), rough=True)
        yield _Fold(fitting, asked[0], asked[1], len(i), (n_new[0], n_new[1]))


def _same_class(labels: tuple[Any, Any], rng: np.random.Generator) -> Any:
    """Return random pairs of labelled items of one class, each item at most once."""
    left, right = [], []
    for c in range(labels[0].shape[1]):
        one, other = (rng.permutation(own[:, [c]].nonzero()[0]) for own in labels)
        n = min(len(one), len(other))
        left.append(one[:n])
        right.append(other[:n])
    i, first = np.unique(np.concatenate(left), return_index=True)
    return i, np.concatenate(right)[first]


def _fold_items(
    partners: Any, sizes: Sequence[int], n_folds: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return the fold of each item; partners share a fold where possible."""
    left, right = (rng.integers(n_folds, size=size) for size in sizes)
    order = rng.permutation(len(partners[0]))
    i, j = (own[order] for own in partners)
    _, first = np.unique(i, return_index=True)
    # Pairs are assigned in turn, for folds of equal size.
    left[i[first]] = np.arange(len(first)) % n_folds
    right[j] = left[i]
    return left, right


@dataclass(frozen=True)
class _Tried:
    """A setting with its scores and likelihoods in every fold."""

    setting: Setting
    scores: list[_Scores]
    likelihoods: Array

    @classmethod
    def of(cls, setting: Setting, folds: Sequence[_Fold]) -> "_Tried":
        scores = _setting_scores(setting, folds)
        scale = _best_scale(scores)
        likelihoods = _log_likelihoods(scores, scale)
        return cls(replace(setting, weight=scale), scores, likelihoods)


def _choose_setting(kind: str, folds: Sequence[_Fold]) -> _Tried:
    """Return the setting of a kind whose held-out likelihood is largest."""
    term = "grid" if kind == "classes of partners" else kind
    mixtures, ridges = CANDIDATES[kind]
    settings = [Setting(term, m, r) for m in mixtures for r in ridges]
    tried = [_Tried.of(setting, folds) for setting in settings]
    best = max(tried, key=lambda entry: entry.likelihoods.sum())
    ridge = best.setting.ridge
    if np.isfinite(ridge) and kind in ("grid", "displacement"):
        # A finer grid around the best.
        for own in (ridge * 10**-0.5, ridge * 10**0.5):
            tried.append(_Tried.of(replace(best.setting, ridge=own), folds))
        best = max(tried, key=lambda entry: entry.likelihoods.sum())
    if kind == "pairs":
        usual = _Tried.of(Setting(kind, ridge=DEFAULT_RIDGE), folds)
        if not _is_significant(best.likelihoods, usual.likelihoods, errors=1.0):
            return usual
    return best


def _setting_scores(setting: Setting, folds: Sequence[_Fold]) -> list[_Scores]:
    """Return the held-out scores of a setting in every fold."""
    found = []
    for fold in folds:
        term, n = fold.fit(setting), fold.n_held
        there = term_scores(term, 0, fold.left[:n], fold.right)
        found.append(_Scores(there, term_scores(term, 1, fold.right[:n], fold.left)))
    return found


def _combined(
    terms: Sequence[Setting], folds: Sequence[_Fold], *, only_new: bool = False
) -> list[_Scores]:
    """Return the weighted sum of all terms in every fold, between all candidates."""
    found = []
    for fold in folds:
        S: Any = 0.0
        for own in terms:
            part = term_scores(fold.fit(own), 0, fold.left, fold.right)
            S = S + own.weight * part
        if only_new:
            S = S[: fold.n_new[0], : fold.n_new[1]]
        found.append(_Scores(S[: fold.n_held], S[:, : fold.n_held].T, S))
    return found


def term_scores(term: Term, side: int, queries: Rows, targets: Rows) -> Array:
    """Return the scores of queries of one side with targets of the other."""
    other = 1 - side
    if isinstance(term, LabelTerm):
        targets = replace(targets, classes=term.classes(other, targets))
    scale = term.scale(other, targets)
    total: Any = 0.0
    for piece in term.pieces(side, queries):
        T = getattr(targets, piece.space)
        if piece.space == "values":
            T = T[:, piece.columns]
        S = dense(piece.coefficients @ T.T)
        if not np.isscalar(piece.constant):
            S = S + np.asarray(piece.constant)[:, None]
        total = total + (S * scale if piece.scaled and scale is not None else S)
    return np.asarray(total)


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


def _best_likelihoods(scores: Sequence[_Scores]) -> Array:
    """Return the log-likelihoods at the best scale."""
    return _log_likelihoods(scores, _best_scale(scores))


def _both_ways(scores: Sequence[_Scores]) -> list[Array]:
    """Return the scores of all folds, both directions."""
    return [S for fold in scores for S in (fold.there, fold.back)]


def _best_scale(scores: Sequence[_Scores]) -> float:
    """Return the scale with the largest likelihood, by Newton steps."""
    spread = float(np.mean([fold.there.std() for fold in scores])) or 1.0
    scale = 1 / spread
    for _ in range(12):
        slope = curvature = 0.0
        for S in _both_ways(scores):
            p = softmax(scale * S, axis=1)
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


def _fit_weights(terms: Sequence[Sequence[_Scores]], aim: Array) -> Array:
    """Fit weights of terms, in units of their scales, regularised towards `aim`."""
    if len(terms) == 1:
        return aim
    scales = np.array([_best_scale(own) for own in terms])
    parts = [
        np.stack([scale * S for scale, S in zip(scales, own, strict=True)])
        for own in zip(*map(_both_ways, terms), strict=True)
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

    bounds = [(0, None)] * len(terms)
    found = minimize(loss, aim, jac=True, bounds=bounds, options={"maxiter": 50})
    return np.where(found.x > 1e-3, found.x, 0.0)


def hub_strengths(scores: Array, n_items: int) -> Array:
    """Return the mean of the largest scores of each column, from a sample of rows."""
    n_rows = scores.shape[0]
    k = max(1, min(n_rows, round(N_HUB_NEIGHBORS * n_rows / max(n_items, n_rows))))
    means = np.empty(scores.shape[1], dtype=scores.dtype)
    with small_loops(scores.size):
        largest_means(scores, k, COLUMNS, means)
    return means


def _without_hubs(scores: _Scores, strength: float) -> _Scores:
    """Return scores minus a share of the hub strengths of the candidates."""
    if strength == 0:
        return scores
    S, n = scores.all, len(scores.there)
    rows = strength * hub_strengths(S.T, S.shape[1])
    cols = strength * hub_strengths(S, S.shape[0])
    return _Scores(S[:n] - cols, S[:, :n].T - rows, S)


def _choose_hubs(scores: Sequence[_Scores], are_partners: bool) -> float:
    """Return the usual strength of the hub correction, or a better one.

    Members of a class are near to each other, which the correction reverses: there it
    must be better by more standard errors.
    """
    usual, errors = (DEFAULT_HUBS, 2.0) if are_partners else (0.0, 3.0)
    likelihoods = {
        strength: _best_likelihoods([_without_hubs(own, strength) for own in scores])
        for strength in HUB_STRENGTHS
    }
    best = max(HUB_STRENGTHS, key=lambda strength: likelihoods[strength].sum())
    is_better = _is_significant(likelihoods[best], likelihoods[usual], errors=errors)
    return best if is_better else usual


def _chance(scores: Sequence[_Scores]) -> float:
    """Return the mean reciprocal rank of a random order of the candidates."""
    sizes = [S.shape[1] for S in _both_ways(scores)]
    return float(np.mean([np.mean(1 / np.arange(1, size + 1)) for size in sizes]))


def _reciprocal_rank(scores: Sequence[_Scores]) -> float:
    """Return the mean reciprocal rank of held-out partners, both directions."""
    values = []
    for S in _both_ways(scores):
        own = np.diagonal(S)[:, None]
        before = (S > own).sum(axis=1) + ((S == own).sum(axis=1) - 1) / 2
        values.append(1 / (1 + before))
    return float(np.mean(np.concatenate(values)))
