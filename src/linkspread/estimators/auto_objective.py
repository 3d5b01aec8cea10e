"""``objective="auto"``: several fits, weighed by what each says of items left out.

Labels make calibrated memberships of all items of a view, which then spread gently
over its graph: soft links. Pairs are fitted by several kernels whose scores are added.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import softmax

from linkspread.estimators.candidates import Material, label_candidates, pair_candidates
from linkspread.estimators.graph_choice import similarities
from linkspread.estimators.link_choice import largest_rank
from linkspread.estimators.objective import FittingObjective
from linkspread.fitting.fitted_pair import FittedPair, add_pair_fits
from linkspread.fitting.labels import LabelFit, fit_labels
from linkspread.fitting.mass import share_rows
from linkspread.fitting.pairs import fit_pairs, pair_targets
from linkspread.fitting.ridge import RIDGES
from linkspread.fitting.stacking import SHARPNESS, class_weights, pair_weights
from linkspread.fitting.view_kernels import ViewKernel
from linkspread.propagation.smoothing import smooth_over_graph

__all__ = ["AutoObjective", "Memberships"]

Array = np.ndarray

# How far memberships may spread at the end; the last where nothing can be left out.
SMOOTHINGS = (0.0, 0.2, 0.4)
# Where no label can be left out, because it is the only one of its class.
RIDGE_OF_SINGLES = 0.3
PAIR_RIDGES = (0.1, 1.0, 10.0)


@dataclass(frozen=True, eq=False)
class Memberships:
    """Probabilities of the classes, for all items of a view and for new ones.

    Attributes
    ----------
    values : ndarray of shape (n_items, n_classes)
    embed : callable
        Makes those of new rows.
    shares : ndarray of shape (n_classes,)
        How frequent classes are among the labels.
    """

    values: Array
    embed: Callable[[Any], Array]
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
    story : list of str
        A sentence about each choice.
    """

    tables: Mapping[str, Any]
    graphs: Mapping[str, Any]
    normalized: Mapping[str, sparse.csr_array]
    metrics: Mapping[str, Any]
    story: list[str] = field(default_factory=list)
    _memberships: dict[str, Memberships] = field(default_factory=dict)
    _kernels: dict[str, dict[str, ViewKernel]] = field(default_factory=dict)

    def told(self) -> dict[str, Any]:
        """Return what was chosen, in sentences."""
        return {"choice_": " ".join(self.story)}

    def label_scores(self, source: str, target: str) -> FittedPair:
        """Return how much likelier than by chance two items are of one class."""
        left, right = self._members(source, target), self._members(target, source)
        chance = float(left.shares @ right.shares)
        add = partial(_add_column, value=1.0)
        subtract = partial(_add_column, value=-chance)
        return FittedPair(
            left=add(left.values),
            right=subtract(right.values),
            core=np.eye(left.values.shape[1] + 1),
            embed_left=lambda rows: add(left.embed(rows)),
            embed_right=lambda rows: subtract(right.embed(rows)),
        )

    def _members(self, view: str, other: str) -> Memberships:
        """Return the memberships of a view, learnt now if not before."""
        name, known = self.known(view, other)
        if name not in self._memberships:
            members = self._learn_members(view, sparse.csr_array(known))
            self._memberships[name] = members
        return self._memberships[name]

    def _learn_members(self, view: str, known: sparse.csr_array) -> Memberships:
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
        weights = np.full(len(fits), SHARPNESS / len(fits))
        if can_miss.any():
            held_out = [fit.fit.held_out for fit in fits]
            known_weights = first.weights * can_miss[first.rows]
            weights = class_weights(held_out, first.targets, known_weights)
        self.story.append(_tell(f"labels of {view!r}", names, weights, len(first.rows)))
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
        S, alpha = self.normalized[view], SMOOTHINGS[-1]
        if can_miss.any():
            blind = soft.copy()
            held_out = sum(w * fit.fit.held_out for w, fit in used)
            blind[fits[0].rows] = softmax(held_out, axis=1)
            alpha = _choose_smoothing(S, blind, known * can_miss[:, None])
        spread = smooth_over_graph(S, soft, alpha=alpha, tol=1e-6)

        def embed(rows: Any) -> Array:
            own = softmax(sum(w * fit.embed(rows) for w, fit in used), axis=1)
            near = similarities(self.graphs[view], rows, view=view)
            return share_rows((1 - alpha) * own + alpha * (near @ spread))

        return Memberships(share_rows(spread), embed, fits[0].shares)

    def pair_scores(self, source: str, target: str, pairs: Any) -> FittedPair:
        """Fit judged pairs by all candidates, and add the fits."""
        targets, weights = pair_targets(pairs, self.balance)
        left, right = self._candidates(source), self._candidates(target)
        names = [name for name in left if name in right]
        fits = [
            fit_pairs(
                (left[name], right[name]), pairs, targets, weights, ridges=PAIR_RIDGES
            )
            for name in names
        ]
        held_out = [fit.fit.held_out[:, 0] for fit in fits]
        shares = pair_weights(held_out, targets, weights)
        what = f"pairs of {source!r} and {target!r}"
        sizes = [float(np.sqrt(np.nanmean(own**2))) for own in held_out]
        self.story.append(_tell(what, names, shares * sizes, pairs.nnz))
        rank = largest_rank(pairs, self.rank)
        return add_pair_fits(fits, shares.tolist(), rank=rank, tol=self.tol)

    def _candidates(self, view: str) -> dict[str, ViewKernel]:
        """Return the kernels of a view for pairs, made now if not before."""
        if view not in self._kernels:
            self._kernels[view] = dict(pair_candidates(self._material(view)))
        return self._kernels[view]

    def _material(self, view: str) -> Material:
        """Return what kernels of a view are made of."""
        return Material(
            view=view,
            X=self.tables[view],
            graph=self.graphs[view],
            S=self.normalized[view],
            metric=self.metrics[view],
        )


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


def _add_column(vectors: Array, *, value: float) -> Array:
    """Return vectors with one more column."""
    return np.hstack([vectors, np.full((len(vectors), 1), value)])


def _tell(what: str, names: list[str], weights: Array, n_known: int) -> str:
    """Return a sentence about the weights of the fits."""
    total = float(np.sum(weights)) or 1.0
    order = np.argsort(-weights)
    shares = [f"{names[k]} {100 * weights[k] / total:.0f} %" for k in order]
    kept = [share for share, k in zip(shares, order, strict=True) if weights[k] > 0]
    return f"The {n_known:,} {what} are fitted by {', '.join(kept) or 'nothing'}."
