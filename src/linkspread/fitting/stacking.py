"""Weights with which several fits are added, from what each says of items left out.

Choosing one of several fits by a few judgements is choosing noise. Weights of at least
0 that are drawn towards equal ones use all fits while little is known, and the better
ones as more becomes known.
"""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.special import log_softmax, softmax

__all__ = ["class_weights", "pair_weights"]

Array = np.ndarray

# The sum of the weights of all fits before anything is known: how sharply a fitted
# membership of 1 against 0 separates two classes.
SHARPNESS = 10.0
# How many judged pairs the weights that are expected are worth: fits differ by little,
# and judgements are mostly of pairs that have nothing to do with each other.
PRIOR_PAIRS = 3000.0
# A fit may know nothing but the items it has met: what it says of others is rounding.
SILENT = 1e-9


def class_weights(
    held_out: Sequence[Array], memberships: Array, weights: Array
) -> Array:
    """Return weights whose sum of fits has the most likely softmax.

    Parameters
    ----------
    held_out : sequence of ndarray of shape (n_labelled, n_classes)
        Of each fit, the memberships of items that were left out.
    memberships : ndarray of shape (n_labelled, n_classes)
        The true ones; rows sum to 1.
    weights : ndarray of shape (n_labelled,)

    Returns
    -------
    weights : ndarray of shape (n_fits,)
        Not all 0.
    """
    fits = np.stack(held_out)
    equal = SHARPNESS / len(fits)

    def loss(w: Array) -> tuple[float, Array]:
        logits = np.tensordot(w, fits, 1)
        surprise = -np.sum(weights[:, None] * memberships * log_softmax(logits, axis=1))
        missed = weights[:, None] * (softmax(logits, axis=1) - memberships)
        away = w / equal - 1
        gradient = np.tensordot(fits, missed, ((1, 2), (0, 1))) + 2 * away / equal
        return float(surprise + away @ away), gradient

    start = np.full(len(fits), equal)
    bounds = [(0, None)] * len(fits)
    found = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x
    return _never_nothing(found)


def pair_weights(
    held_out: Sequence[Array],
    targets: Array,
    weights: Array,
    *,
    prior: Sequence[float] | None = None,
) -> Array:
    """Return weights whose sum of fits is nearest to the targets.

    Parameters
    ----------
    held_out : sequence of ndarray of shape (n_pairs,)
        Of each fit, the values of pairs that were left out; NaN for others.
    targets : ndarray of shape (n_pairs,)
    weights : ndarray of shape (n_pairs,)
    prior : sequence of float of shape (n_fits,), default=None
        How much each fit counts before anything is known; None for all alike. The
        less a fit is trusted, the more pairs it takes to make it count.

    Returns
    -------
    weights : ndarray of shape (n_fits,)
        Not all 0.
    """
    trust = np.ones(len(held_out)) if prior is None else np.asarray(prior, dtype=float)
    trust = trust / trust.sum()
    fits = np.column_stack(held_out)
    known = ~np.isnan(fits).any(axis=1)
    fits, targets, weights = fits[known], targets[known], weights[known]
    size = np.sqrt(np.sum(weights * targets**2))
    scales = np.sqrt(np.sum(weights[:, None] * fits**2, axis=0))
    speaks = scales > SILENT * size
    if not speaks.any():
        return trust
    found = np.zeros(len(trust))
    fits = fits[:, speaks] / scales[speaks]
    found[speaks] = _nearest_weights(fits, targets, weights, trust[speaks])
    return _never_nothing(found / np.where(speaks, scales, 1.0))


def _nearest_weights(
    fits: Array, targets: Array, weights: Array, trust: Array
) -> Array:
    """Return weights of fits of unit size, drawn towards what trust makes expected."""
    n = float(np.sum(weights))
    mean = fits @ trust
    slope = float((weights * mean) @ targets) / (float((weights * mean) @ mean) or 1.0)
    # A fit that says the contrary of what is so is still better than nothing: fits of
    # few pairs err that way by chance.
    size = float(np.sqrt(np.sum(weights * targets**2)))
    expected = max(slope, 0.1 * size) * trust
    roots = np.sqrt(PRIOR_PAIRS * np.mean(weights) / n / (len(trust) * trust))
    rows = np.vstack([np.sqrt(weights)[:, None] * fits, np.diag(roots)])
    aims = np.concatenate([np.sqrt(weights) * targets, roots * expected])
    return nnls(rows, aims)[0]


def _never_nothing(weights: Array) -> Array:
    """Return weights, of which the first is 1 where no fit says anything of use."""
    if not weights.any():
        weights[0] = 1.0
    return weights
