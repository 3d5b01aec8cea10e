"""Judgements that are probably wrong: held-out scores that contradict them.

A judgement is doubtful if the model that is fitted to the others says the opposite:
its doubt is the probability, by :mod:`calibration`, that the verdict is wrong.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from linkspread.judging.calibration import HeldOut, fit_curve, hold_out
from linkspread.judging.explanation import Contribution
from linkspread.learning import Choice, ScoreFactors
from linkspread.links.evidence import Evidence

Array = np.ndarray


@dataclass(frozen=True)
class Doubt:
    """A judgement that is probably wrong.

    Attributes
    ----------
    source_item, target_item : id
    verdict : {"must", "cannot"}
        What was judged.
    probability : float
        Probability that the verdict is wrong, by the other judgements.
    score : float
        Score of the pair without this judgement.
    contradictions : tuple of Contribution
        The judgements that speak against it, those that add most to the score first.
    """

    source_item: Any
    target_item: Any
    verdict: str
    probability: float
    score: float
    contradictions: tuple[Contribution, ...]

    def __str__(self) -> str:
        return (
            f"{self.source_item} {self.verdict} {self.target_item}: wrong with a "
            f"probability of {self.probability:.2f}"
        )


def doubtful(
    factors: ScoreFactors, evidence: Evidence, choice: Choice, *, seed: int = 0
) -> tuple[HeldOut, Array, Array]:
    """Return held-out judgements, the most doubtful first, and each one's doubt.

    Doubts are probabilities that verdicts are wrong. Within a view each pair is
    returned once.
    """
    held = hold_out(factors, evidence, choice, seed=seed)
    curve = fit_curve(held.scores, held.is_must)
    logits = curve.logits(held.scores)
    doubts = expit(np.where(held.is_must, -logits, logits))
    order = np.argsort(-doubts, kind="stable")
    if factors.is_within:
        order = order[held.i[order] <= held.j[order]]
    return held, order, doubts
