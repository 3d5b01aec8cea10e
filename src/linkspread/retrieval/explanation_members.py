"""What probabilities of classes contribute to one score.

The score is the inner product of the probabilities of two items, less chance. They are
a softmax of fitted labels, spread over the graph of the view and scaled to sum 1:
``m_i = ((1 - alpha) softmax(logits_i) + alpha sum_n S_in spread_n) / sum``. Classes and
neighbours are parts of the score; labelled items have an influence on the logits.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from linkspread.retrieval.explanation_kernels import Asked, Steps
from linkspread.retrieval.explanation_labels import influence_shares
from linkspread.retrieval.explanation_logits import LabelledRows, logit_parts
from linkspread.retrieval.explanation_shares import Parts, class_shares, single_share

__all__ = ["MemberSide", "explain_members"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class MemberSide:
    """An item and the probabilities of all items of its view.

    Attributes
    ----------
    item : Asked
    near : ndarray of shape (n_items,)
        Normalised similarities to the neighbours.
    alpha : float
        How far probabilities have spread.
    spread : ndarray of shape (n_items, n_classes)
    logits : Added
        Makes the logits of new rows.
    labelled : LabelledRows
    """

    item: Asked
    near: Array
    alpha: float
    spread: Array
    logits: Any
    labelled: LabelledRows

    def vector(self) -> Array:
        """Return the probabilities of the item, of shape (n_classes,)."""
        mixed = self._mixed()
        return mixed / (float(mixed.sum()) or 1.0)

    def steps(self, other: Array) -> Steps:
        """Split the inner product with another vector by the neighbours."""
        mixed = self._mixed()
        scale = 1 / (float(mixed.sum()) or 1.0)
        shares = scale * self.alpha * self.near * (self.spread @ other)
        own = scale * float(mixed @ other) - float(shares.sum())
        return Steps(shares, self.near, own, 0.0)

    def influences(self) -> Array:
        """Return what each labelled item adds to the logits."""
        return logit_parts(self.logits, self.item, self.labelled)

    def _mixed(self) -> Array:
        """Return the probabilities before they are scaled."""
        if self.item.position is not None:
            return self.spread[self.item.position].astype(np.float64)
        own = softmax(self.logits(self.item.rows), axis=1)[0]
        return (1 - self.alpha) * own + self.alpha * (self.near @ self.spread)


def explain_members(left: MemberSide, right: MemberSide, *, chance: float) -> Parts:
    """Return the parts of one score that probabilities of classes give.

    Parameters
    ----------
    left, right : MemberSide
        Of the source and of the target.
    chance : float
        What is subtracted.

    Returns
    -------
    parts : dict from str to list of Shares
    """
    u, v = left.vector(), right.vector()
    less = single_share("chance", -chance)
    classes = class_shares(np.diag(u * v), np.eye(len(u)))
    best = int(np.argmax(u * v))
    parts: Parts = {"links": [classes, less]}
    both = ((0, left, v, "source"), (1, right, u, "target"))
    for side, own, other, name in both:
        steps = own.steps(other).shares(of_source=side == 0)
        parts[f"{name}_neighbors"] = [*steps, less]
        known = own.labelled
        parts[f"{name}_influences"] = [
            influence_shares(
                own.influences(), known.rows, known.targets, best, side=side
            )
        ]
    return parts
