"""``objective="ridge"``: only judged items and pairs count, fitted by kernels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import softmax

from linkspread.estimators.link_choice import MAX_RANK
from linkspread.fitting.fitted_pair import FittedPair, join_scores, pair_scores
from linkspread.fitting.labels import LabelFit, fit_labels
from linkspread.fitting.mass import share_rows, unit_rows
from linkspread.fitting.pairs import PairFit, fit_pairs, pair_targets
from linkspread.fitting.ridge import check_ridge
from linkspread.fitting.stacking import class_weights
from linkspread.fitting.view_kernels import ViewKernel
from linkspread.links import Links, as_link_matrix
from linkspread.links.balance import Balance

__all__ = ["RidgeObjective", "memberships_in"]

Array = np.ndarray
Transform = Callable[[Array], Array]


@dataclass
class RidgeObjective:
    """Fit the labels of each view once, and the pairs of each two views.

    Parameters
    ----------
    kernels : mapping from str to ViewKernel
    links : Links
        Resolved.
    ridge : float or "loo"
    mass : {"none", "length", "sum", "posterior"}
    balance : {"auto", "literal"} or float
    rank : int or None
    tol : float
    """

    kernels: Mapping[str, ViewKernel]
    links: Links
    ridge: Any
    mass: str
    balance: Balance
    rank: int | None
    tol: float
    labels: dict[str, LabelFit] = field(default_factory=dict)
    pairs: dict[tuple[str, str], PairFit] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ridges = check_ridge(self.ridge)

    def scores(self, source: str, target: str) -> FittedPair:
        """Return the scores between two views.

        Parameters
        ----------
        source, target : str

        Returns
        -------
        scores : FittedPair
        """
        Z = as_link_matrix(self.links.between(source, target, balance="literal"))
        parts = []
        if memberships_in(self.links, source, target):
            parts.append(self._label_scores(source, target))
        if Z.pairs.nnz:
            targets, weights = pair_targets(Z.pairs, self.balance)
            kernels = self.kernels[source], self.kernels[target]
            fit = fit_pairs(kernels, Z.pairs, targets, weights, ridges=self.ridges)
            self.pairs[source, target] = fit
            rank = self.rank or min(MAX_RANK, *Z.shape)
            scores = pair_scores([fit], [1.0], rank=rank, tol=self.tol)
            parts.append(_shorten(scores) if self.mass == "length" else scores)
        return join_scores(parts)

    def _label_scores(self, source: str, target: str) -> FittedPair:
        """Return the scores that the labels of both views give."""
        (left, change_left), (right, change_right) = (
            self._memberships(view) for view in (source, target)
        )
        core = np.eye(left.values.shape[1])
        if self.balance != "auto" and self.mass != "posterior":
            core = as_link_matrix(
                self.links.between(source, target, balance=self.balance)
            ).core
        return FittedPair(
            left=change_left(left.values),
            right=change_right(right.values),
            core=core,
            embed_left=lambda rows: change_left(left.embed(rows)) @ core,
            embed_right=lambda rows: change_right(right.embed(rows)) @ core.T,
        )

    def _memberships(self, view: str) -> tuple[LabelFit, Transform]:
        """Return the fitted labels of a view, and what makes vectors of them."""
        known = self.links.memberships(view)
        if view not in self.labels:
            fit = fit_labels(self.kernels[view], known, ridges=self.ridges)
            self.labels[view] = fit
        fit = self.labels[view]
        shares = np.asarray(known.sum(axis=0)).ravel() / known.sum()
        if self.mass == "posterior":
            masses = np.asarray(known.sum(axis=1)).ravel()[fit.rows]
            targets = known[fit.rows]
            targets = targets.toarray() if hasattr(targets, "toarray") else targets
            sharpness = class_weights(
                [fit.fit.held_out], targets / masses[:, None], masses
            )[0]
            return fit, lambda values: softmax(sharpness * values, axis=1)
        if self.mass == "sum":
            return fit, lambda values: share_rows(np.maximum(values, 0.0))
        if self.balance != "auto":
            return fit, unit_rows if self.mass == "length" else lambda values: values

        def centre(values: Array) -> Array:
            # As if the memberships had been centred over the labelled items.
            return values - values.sum(axis=1, keepdims=True) * shares

        if self.mass == "length":
            return fit, lambda values: unit_rows(centre(values))
        return fit, centre


def memberships_in(links: Links, *views: str) -> bool:
    """Tell whether items of all these views have labels.

    Parameters
    ----------
    links : Links
    *views : str

    Returns
    -------
    labelled : bool
    """
    known = [links.memberships(view) for view in views]
    return all(own is not None and own.sum() > 0 for own in known)


def _shorten(scores: FittedPair) -> FittedPair:
    """Divide each item's vector by the length of its row of all scores."""
    left = unit_rows(scores.left @ scores.core)
    right = unit_rows(scores.right @ scores.core.T)
    turn = np.linalg.pinv(scores.core)
    return FittedPair(
        left=left,
        right=right,
        core=turn,
        embed_left=lambda rows: unit_rows(scores.embed_left(rows)) @ turn,
        embed_right=lambda rows: unit_rows(scores.embed_right(rows)) @ turn.T,
        error=scores.error,
    )
