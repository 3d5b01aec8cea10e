"""``objective="ridge"``: only judged items and pairs count, fitted by kernels."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkspread.estimators.link_choice import largest_rank
from linkspread.estimators.objective import FittingObjective
from linkspread.fitting.embeddings import Changed
from linkspread.fitting.fitted_pair import FittedPair, add_pair_fits, divide_by_lengths
from linkspread.fitting.labels import LabelFit, fit_labels
from linkspread.fitting.mass import MassChange
from linkspread.fitting.pairs import PairFit, fit_pairs, pair_targets
from linkspread.fitting.ridge import check_ridge
from linkspread.fitting.stacking import class_weights
from linkspread.fitting.view_kernels import ViewKernel
from linkspread.links import as_link_matrix

__all__ = ["RidgeObjective"]


@dataclass(kw_only=True)
class RidgeObjective(FittingObjective):
    """Fit the labels of each view once, and the pairs of each two views.

    Attributes
    ----------
    kernels : mapping from str to ViewKernel
    ridge : float or "loo"
    mass : {"none", "length", "sum", "posterior"}
    labels : dict from str to LabelFit
    pairs : dict from pairs of str to PairFit
    """

    kernels: Mapping[str, ViewKernel]
    ridge: Any
    mass: str
    labels: dict[str, LabelFit] = field(default_factory=dict)
    pairs: dict[tuple[str, str], PairFit] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ridges = check_ridge(self.ridge)

    def told(self) -> dict[str, Any]:
        """Return the errors of what was left out."""
        fits: dict[Any, Any] = {**self.labels, **self.pairs}
        return {"loo_error_": {of: fit.fit.error for of, fit in fits.items()}}

    def pair_scores(self, source: str, target: str, pairs: Any) -> FittedPair:
        """Return the scores that judged pairs give."""
        targets, weights = pair_targets(pairs, self.balance)
        kernels = self.kernels[source], self.kernels[target]
        fit = fit_pairs(kernels, pairs, targets, weights, ridges=self.ridges)
        self.pairs[source, target] = fit
        rank = largest_rank(pairs, self.rank)
        scores = add_pair_fits([fit], [1.0], rank=rank, tol=self.tol)
        return divide_by_lengths(scores, self.pair_mass(pairs))

    def pair_mass(self, pairs: Any) -> str:
        """Return by what scores of pairs are divided; other masses are of labels."""
        return self.mass if self.mass == "length" else "none"

    def label_scores(self, source: str, target: str) -> FittedPair:
        """Return the scores that the labels of both views give."""
        left, change_left = self._memberships(source, target)
        right, change_right = self._memberships(target, source)
        core = np.eye(left.values.shape[1])
        if self.balance != "auto" and self.mass != "posterior":
            core = as_link_matrix(
                self.links.between(source, target, balance=self.balance)
            ).core
        return FittedPair(
            left=change_left(left.values),
            right=change_right(right.values),
            core=core,
            embed_left=Changed(left.extension(), change_left, core),
            embed_right=Changed(right.extension(), change_right, core.T),
        )

    def _memberships(self, view: str, other: str) -> tuple[LabelFit, MassChange]:
        """Return the fitted labels of a view, and what makes vectors of them."""
        name, known = self.known(view, other)
        if name not in self.labels:
            fit = fit_labels(self.kernels[view], known, ridges=self.ridges)
            self.labels[name] = fit
        fit = self.labels[name]
        if self.mass == "posterior":
            sharpness = class_weights([fit.fit.held_out], fit.targets, fit.weights)[0]
            return fit, MassChange("posterior", sharpness=float(sharpness))
        is_centred = self.balance == "auto" and self.mass != "sum"
        return fit, MassChange(self.mass, shares=fit.shares if is_centred else None)
