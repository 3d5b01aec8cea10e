"""What fitted labels contribute to one score.

The score is ``u' core v``, and each side is linear in the labelled items of its view,
``u = T' sum_a K_ia A_a``, unless memberships are probabilities: then the score is split
by classes, and labelled items only by what they add to the logits.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkspread.fitting.labels import LabelFit
from linkspread.fitting.mass import MassChange
from linkspread.retrieval.explanation_kernels import Asked, kernel_row, take_steps
from linkspread.retrieval.explanation_shares import (
    Parts,
    Shares,
    class_shares,
    item_shares,
    label_shares,
    single_share,
)

__all__ = ["LabelSide", "explain_labels", "influence_shares"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class LabelSide:
    """An item and the fitted labels of its view.

    Attributes
    ----------
    fit : LabelFit
    change : MassChange
        What is done to fitted vectors.
    item : Asked
    """

    fit: LabelFit
    change: MassChange
    item: Asked

    @property
    def is_linear(self) -> bool:
        """Whether vectors are sums over labelled items."""
        return self.change.mass != "posterior"

    @cached_property
    def parts(self) -> Array:
        """What each labelled item adds, of shape (n_labelled, n_classes)."""
        rows = self.fit.rows
        near = kernel_row(self.fit.kernel, self.item)[rows]
        return near[:, None] * self.fit.coefficients[rows]

    def vector(self) -> Array:
        """Return the changed vector of the item, of shape (n_classes,)."""
        return self.change(self.parts.sum(axis=0)[None])[0]

    def turn(self) -> Array:
        """Return the matrix T that changes the vector of this very item.

        What the change leaves out and divides by depends on the item alone.
        """
        plain = self.parts.sum(axis=0)
        T = np.eye(len(plain))
        if self.change.shares is not None:
            T = T - self.change.shares[None, :]
        T, centred = self.change.sharpness * T, self.change.sharpness * (plain @ T)
        if self.change.mass == "sum":
            T, centred = T * (centred > 0), np.maximum(centred, 0.0)
            return T / (float(centred.sum()) or 1.0)
        if self.change.mass == "length":
            return T / (float(np.linalg.norm(centred)) or 1.0)
        return T


def explain_labels(left: LabelSide, core: Array, right: LabelSide) -> Parts:
    """Return the parts of one score that fitted labels give.

    Parameters
    ----------
    left, right : LabelSide
        Of the source and of the target.
    core : ndarray of shape (c, c)

    Returns
    -------
    parts : dict from str to list of Shares
    """
    u, v = left.vector(), right.vector()
    classes = class_shares(u[:, None] * core * v, core)
    # Probabilities are split by class where labelled items are no parts of them.
    parts: Parts = {"classes" if left.is_linear else "links": [classes]}
    for side, own, name in ((0, left, "source"), (1, right, "target")):
        aim = core @ v if side == 0 else core.T @ u
        if own.is_linear:
            direction = own.turn() @ aim
            labels = _labelled(own, own.parts @ direction, side)
            parts["links" if side == 0 else "target_labels"] = [labels]
            coefficients = own.fit.coefficients @ direction
            steps = take_steps(own.fit.kernel, own.item, coefficients)
            parts[f"{name}_neighbors"] = steps.shares(of_source=side == 0)
        else:
            best = int(np.argmax(np.diagonal(core) * u * v))
            logits = own.change.sharpness * own.parts
            parts[f"{name}_influences"] = [
                influence_shares(logits, own.fit.rows, own.fit.targets, best, side=side)
            ]
            parts[f"{name}_neighbors"] = [single_share("direct", float(u @ core @ v))]
    return parts


def influence_shares(
    logits: Array, rows: Array, memberships: Array, best: int, *, side: int
) -> Shares:
    """Return what labelled items add to the logit of a class, less the mean.

    Parameters
    ----------
    logits : ndarray of shape (n_labelled, n_classes)
        What each adds to all logits.
    rows : ndarray of int of shape (n_labelled,)
    memberships : ndarray of shape (n_labelled, n_classes)
    best : int
        The class.
    side : int
        0 for the source, 1 for the target.

    Returns
    -------
    shares : Shares
        Of the kind "influence"; the second class of each is the one it is about.
    """
    amounts = logits[:, best] - logits.mean(axis=1)
    classes = np.stack([memberships.argmax(axis=1), np.full(len(rows), best)], axis=1)
    masses = memberships.sum(axis=1)
    return item_shares("influence", amounts, masses, rows, side=side, classes=classes)


def _labelled(own: LabelSide, amounts: Array, side: int) -> Shares:
    """Return what labelled items add to the score."""
    fit = own.fit
    return label_shares("label", amounts, fit.weights, fit.rows, fit.targets, side=side)
