"""``objective="auto"``: several fits, weighed by what each says of items left out.

Labels make calibrated memberships of all items of a view, which then spread gently
over its graph: soft links. Pairs are fitted by several kernels whose scores are added.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import softmax

from linkspread.estimators.candidates import Material, label_candidates, pair_candidates
from linkspread.estimators.link_choice import largest_rank
from linkspread.estimators.objective import FittingObjective, HeldOut
from linkspread.estimators.similar_items import SimilarItems
from linkspread.fitting.diffused_pairs import DiffusedFit, fit_diffused
from linkspread.fitting.embeddings import Added, WithColumn, add_column
from linkspread.fitting.fitted_pair import FittedPair, add_pair_fits, divide_by_lengths
from linkspread.fitting.heat import Diffusion
from linkspread.fitting.labels import LabelFit, fit_labels
from linkspread.fitting.mass import share_rows
from linkspread.fitting.matches import MatchFit, fit_matches, partner_targets
from linkspread.fitting.pairs import DENSE_PAIRS, PairFit, fit_pairs, pair_targets
from linkspread.fitting.ridge import RIDGES
from linkspread.fitting.stacking import class_weights, pair_weights
from linkspread.propagation.smoothing import smooth_over_graph

__all__ = ["AutoObjective", "MemberEmbedding", "Memberships"]

Array = np.ndarray

# How far memberships may spread at the end.
SMOOTHINGS = (0.0, 0.2, 0.4)
# Where no label can be left out, because it is the only one of its class: the graph has
# more to say then.
RIDGE_OF_SINGLES = 0.3
SMOOTHING_OF_SINGLES = 0.8
PAIR_RIDGES = (0.1, 1.0, 10.0)
MATCH_RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
# How much fits of pairs count before anything is known, where not 1.
PRIOR_SHARES = {"8 components": 0.5}
# Share of cannot-links below which must-links are all there is to learn from.
FEW_CANNOT = 0.05
# Whole lengths would forget how much is known of an item, plain scores say it loudest.
JUDGED_MASS = "root length"

# Items of each view of which all pairs are scored that were held out.
MAX_ASKED = 150

# Two of one kind under each name.
Kernels = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, eq=False)
class MemberEmbedding:
    """Probabilities of the classes for new rows: their own, and their neighbours'.

    Attributes
    ----------
    logits : embedding
        Whose softmax are the rows' own.
    near : SimilarItems
    alpha : float
        How much the neighbours count.
    spread : ndarray of shape (n_items, n_classes)
        Probabilities of the fitted items, after spreading.
    """

    logits: Added
    near: SimilarItems
    alpha: float
    spread: Array

    @property
    def width(self) -> int:
        """Number of classes."""
        return self.spread.shape[1]

    def __call__(self, rows: Any) -> Array:
        """Return the probabilities of shape (q, n_classes)."""
        own = softmax(self.logits(rows), axis=1)
        near = self.near(rows) @ self.spread
        return share_rows((1 - self.alpha) * own + self.alpha * near)


@dataclass(frozen=True, eq=False)
class Memberships:
    """Probabilities of the classes, for all items of a view and for new ones.

    Attributes
    ----------
    values : ndarray of shape (n_items, n_classes)
    embed : MemberEmbedding
        Makes those of new rows.
    shares : ndarray of shape (n_classes,)
        How frequent classes are among the labels.
    """

    values: Array
    embed: MemberEmbedding
    shares: Array


@dataclass(kw_only=True)
class AutoObjective(FittingObjective):
    """Fit by many kernels and weigh the fits.

    Attributes
    ----------
    tables : mapping from str to ndarray or csr_array
    graphs : mapping from str to object with `affinity_` and `extend`
    normalized : mapping from str to csr_array
        The graphs, normalised.
    metrics : mapping from str to str or callable
    story : dict from str to str
        A sentence about each choice, by what was fitted.
    """

    tables: Mapping[str, Any]
    graphs: Mapping[str, Any]
    normalized: Mapping[str, sparse.csr_array]
    metrics: Mapping[str, Any]
    story: dict[str, str] = field(default_factory=dict)
    _memberships: dict[str, Memberships] = field(default_factory=dict)
    _kernels: dict[tuple[str, bool, bool], dict[str, Any]] = field(default_factory=dict)
    # What was said of judgements that were held out, known after a fit only.
    _held_out: dict[Any, Any] = field(default_factory=dict, repr=False)

    def told(self) -> dict[str, Any]:
        """Return what was chosen, in sentences."""
        return {"choice_": " ".join(self.story.values())}

    def held_out(self, source: str, target: str, *, by_labels: bool) -> HeldOut | None:
        """Return what the added fits said of judgements that were held out.

        Before scores are divided by lengths or memberships spread over a graph; not of
        must-links alone, whose held-out partners score too high.
        """
        if by_labels:
            left, right = (
                self._held_out.get(self.known(*way)[0])
                for way in ((source, target), (target, source))
            )
            return _held_out_labels(left, right) if left and right else None
        if (target, source) in self._held_out:
            return self._held_out[target, source].T
        return self._held_out.get((source, target))

    def label_scores(self, source: str, target: str) -> FittedPair:
        """Return how much likelier than by chance two items are of one class."""
        left, right = self._members(source, target), self._members(target, source)
        chance = float(left.shares @ right.shares)
        return FittedPair(
            left=add_column(left.values, value=1.0),
            right=add_column(right.values, value=-chance),
            core=np.eye(left.values.shape[1] + 1),
            embed_left=WithColumn(left.embed, 1.0),
            embed_right=WithColumn(right.embed, -chance),
        )

    def _members(self, view: str, other: str) -> Memberships:
        """Return the memberships of a view, learnt now if not before."""
        name, known = self.known(view, other)
        if name not in self._memberships:
            members = self._learn_members(view, sparse.csr_array(known), name)
            self._memberships[name] = members
        return self._memberships[name]

    def _learn_members(
        self, view: str, known: sparse.csr_array, place: str
    ) -> Memberships:
        """Fit the labels of a view by all candidates, and add the fits."""
        # What is left out must have others of its class to be found by.
        n_labels = (known > 0).sum(axis=0)
        can_miss = np.asarray((known > 0) @ (n_labels > 1)).ravel() > 0
        ridges = RIDGES if can_miss.any() else (RIDGE_OF_SINGLES,)
        names, fits = [], []
        for name, kernel in label_candidates(self._material(view)):
            names.append(name)
            fits.append(fit_labels(kernel, known, ridges=ridges))
            kernel.release()
        first = fits[0]
        if can_miss.any():
            held_out = [fit.fit.held_out for fit in fits]
            known_weights = first.weights * can_miss[first.rows]
            weights = class_weights(held_out, first.targets, known_weights)
            likely = softmax(np.tensordot(weights, held_out, 1), axis=1)
            missed = can_miss[first.rows]
            self._held_out[place] = _HeldOutLabels(
                first.rows[missed], likely[missed], first.targets.argmax(axis=1)[missed]
            )
        else:
            weights = _equal_weights([fit.values for fit in fits])
        what = f"labels of {view!r}"
        self.story[what] = _tell(what, names, weights, len(first.rows))
        return self._spread_members(view, fits, weights, known, can_miss)

    def _spread_members(
        self,
        view: str,
        fits: list[LabelFit],
        weights: Array,
        known: sparse.csr_array,
        can_miss: Array,
    ) -> Memberships:
        """Turn fits into probabilities, and spread these over the graph."""
        used = [(w, fit) for w, fit in zip(weights, fits, strict=True) if w > 0]
        soft = softmax(sum(w * fit.values for w, fit in used), axis=1)
        S, alpha = self.normalized[view], SMOOTHING_OF_SINGLES
        if can_miss.any():
            blind = soft.copy()
            held_out = sum(w * fit.fit.held_out for w, fit in used)
            blind[fits[0].rows] = softmax(held_out, axis=1)
            alpha = _choose_smoothing(S, blind, known * can_miss[:, None])
        spread = smooth_over_graph(S, soft, alpha=alpha, tol=1e-6)
        logits = Added(
            tuple(fit.extension() for _, fit in used), tuple(float(w) for w, _ in used)
        )
        near = SimilarItems(self.graphs[view], view)
        embed = MemberEmbedding(logits, near, alpha, spread)
        return Memberships(share_rows(spread), embed, fits[0].shares)

    def pair_scores(self, source: str, target: str, pairs: Any) -> FittedPair:
        """Fit judged pairs by all candidates, and add the fits."""
        is_judged = _is_judged(pairs)
        diffusing = is_judged and pairs.nnz <= DENSE_PAIRS
        left, right = (
            self._candidates(view, is_judged, diffusing) for view in (source, target)
        )
        kernels = {name: (left[name], right[name]) for name in left if name in right}
        weigh = _weigh_judged if is_judged else _weigh_matches
        fits, shares, told = weigh(kernels, pairs, self.balance)
        if is_judged:
            self._held_out[source, target] = _held_out_pairs(pairs, fits, shares)
        what = f"pairs of {source!r} and {target!r}"
        self.story[what] = _tell(what, list(kernels), told, pairs.nnz)
        rank = largest_rank(pairs, self.rank)
        scores = add_pair_fits(fits, shares.tolist(), rank=rank, tol=self.tol)
        return divide_by_lengths(scores, self.pair_mass(pairs))

    def pair_mass(self, pairs: Any) -> str:
        """Return by what scores of pairs are divided."""
        return JUDGED_MASS if _is_judged(pairs) else "none"

    def _candidates(self, view: str, centred: bool, diffusing: bool) -> dict[str, Any]:
        """Return the kernels of a view for pairs, made now if not before."""
        key = view, centred, diffusing
        if key not in self._kernels:
            self._kernels[key] = dict(
                pair_candidates(
                    self._material(view), centred=centred, diffusing=diffusing
                )
            )
        return self._kernels[key]

    def _material(self, view: str) -> Material:
        """Return what kernels of a view are made of."""
        return Material(
            view=view,
            X=self.tables[view],
            graph=self.graphs[view],
            S=self.normalized[view],
            metric=self.metrics[view],
        )


def _is_judged(pairs: Any) -> bool:
    """Tell whether there are cannot-links enough to learn from."""
    cannot = -pairs.data[pairs.data < 0].sum() / np.abs(pairs.data).sum()
    return bool(cannot >= FEW_CANNOT)


def _weigh_judged(
    kernels: Kernels, pairs: sparse.csr_array, balance: Any
) -> tuple[list[PairFit | DiffusedFit], Array, Array]:
    """Fit must- and cannot-links by each kernel; return weights and shares too."""
    targets, weights = pair_targets(pairs, balance)
    fits: list[PairFit | DiffusedFit] = []
    for both in kernels.values():
        fit = fit_diffused if isinstance(both[0], Diffusion) else fit_pairs
        fits.append(
            fit(both, pairs, targets, weights, ridges=PAIR_RIDGES, by_items=True)
        )
    held_out = [fit.fit.held_out[:, 0] for fit in fits]
    prior = [PRIOR_SHARES.get(name, 1.0) for name in kernels]
    shares = pair_weights(held_out, targets, weights, prior=prior)
    sizes = [float(np.sqrt(np.nanmean(own**2))) for own in held_out]
    return fits, shares, shares * sizes


def _weigh_matches(
    kernels: Kernels, pairs: sparse.csr_array, balance: Any
) -> tuple[list[MatchFit], Array, Array]:
    """Fit must-links alone, by what makes partners that are left out likeliest."""
    fits = [fit_matches(both, pairs, ridges=MATCH_RIDGES) for both in kernels.values()]
    partners = partner_targets(pairs)
    both_ways = share_rows(np.vstack([partners, partners.T]))
    held_out = [np.vstack([fit.held_out, fit.held_out.T]) for fit in fits]
    shares = class_weights(held_out, both_ways, np.ones(len(both_ways)))
    return fits, shares / [fit.scale for fit in fits], shares


def _held_out_pairs(pairs: sparse.csr_array, fits: list[Any], shares: Array) -> HeldOut:
    """Return the scores of judged pairs that were held out with all of their items."""
    scores = shares @ np.stack([fit.fit.held_out[:, 0] for fit in fits])
    entries, asked = pairs.tocoo(), ~np.isnan(scores)
    return HeldOut(
        entries.row[asked],
        entries.col[asked],
        entries.data[asked] > 0,
        scores[asked],
        n_judged=int(asked.sum()),
    )


class _HeldOutLabels(NamedTuple):
    """Items of a view, their classes' probabilities without their label, and it."""

    rows: Array
    likely: Array
    classes: Array


def _held_out_labels(one: _HeldOutLabels, other: _HeldOutLabels) -> HeldOut:
    """Return the scores of all pairs of some items whose labels were held out."""
    rng = np.random.default_rng(0)
    p, q = (
        np.sort(rng.permutation(len(side.rows))[:MAX_ASKED]) for side in (one, other)
    )
    i, j = (own.ravel() for own in np.meshgrid(p, q, indexing="ij"))
    apart = one.rows[i] != other.rows[j] if one is other else i >= 0
    i, j = i[apart], j[apart]
    scores = np.einsum("ij,ij->i", one.likely[i], other.likely[j])
    same = one.classes[i] == other.classes[j]
    n_judged = len(p) if one is other else len(p) + len(q)
    return HeldOut(one.rows[i], other.rows[j], same, scores, n_judged)


def _equal_weights(values: list[Array]) -> Array:
    """Return the weights of fits whose sum is neither flat nor sharp, equal ones.

    How much fitted memberships differ depends on the number of classes; as logits they
    should differ by about 1.
    """
    total = np.sum(values, axis=0)
    deviation = float(np.std(total - total.mean(axis=1, keepdims=True)))
    return np.full(len(values), 1 / (deviation or 1.0))


def _choose_smoothing(
    S: sparse.csr_array, blind: Array, known: sparse.csr_array
) -> float:
    """Return how far memberships should spread, by how likely they make the labels.

    `blind` has for each labelled item what is said of it when it is left out.
    """

    def surprise(alpha: float) -> float:
        spread = share_rows(smooth_over_graph(S, blind, alpha=alpha, tol=1e-6))
        labels = known.tocoo()
        likely = np.maximum(spread[labels.row, labels.col], 1e-12)
        return -float(labels.data @ np.log(likely))

    return min(SMOOTHINGS, key=surprise)


def _tell(what: str, names: list[str], weights: Array, n_known: int) -> str:
    """Return a sentence about the weights of the fits."""
    total = float(np.sum(weights)) or 1.0
    order = np.argsort(-weights)
    shares = [f"{names[k]} {100 * weights[k] / total:.0f} %" for k in order]
    kept = [share for share, k in zip(shares, order, strict=True) if weights[k] > 0]
    return f"The {n_known:,} {what} are fitted by {', '.join(kept)}."
