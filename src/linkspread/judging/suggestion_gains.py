"""How much a judgement would tell: the variance of all pairs that it explains.

Pairs are related as the product of two kernels: ``cov(f_ij, f_ab) = K_ia L_jb``, each a
short diffusion over the graph of a view. A judgement is a value of f with noise. Given
those there are, one more of pair c explains

``sum_ij cov(f_ij, f_c)^2 / (var(f_c) + noise)``

of the variance of all pairs. Both kernels have few features, so that nothing of the
size of all pairs is made.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from linkspread.judging.suggestion_representatives import NOISE

Array = np.ndarray

# Judged pairs that count; of more a sample does, and gains come out a little higher.
MAX_JUDGED = 2000


def explained_shares(
    features: tuple[Array, Array],
    pairs: tuple[Array, Array],
    *,
    judged: tuple[Array, Array],
    seed: int = 0,
) -> Array:
    """Return the share of the variance of all pairs that each pair would explain."""
    left, right = (own.astype(np.float64) for own in features)
    variance = np.sum(left**2) * np.sum(right**2)
    noise = NOISE * variance / max(len(left) * len(right), 1)
    if variance == 0:
        return np.zeros(len(pairs[0]))
    i, j = _sample(judged, seed)
    known = left[i], right[j]
    related = (known[0] @ known[0].T) * (known[1] @ known[1].T)
    factor = cho_factor(related + noise * np.eye(len(i))) if len(i) else None
    spread = left.T @ left, right.T @ right
    shares = [
        _explained(left[a], right[b], known, factor, spread, noise) / variance
        for a, b in zip(*pairs, strict=True)
    ]
    return np.array(shares)


def _explained(
    x: Array,
    y: Array,
    known: tuple[Array, Array],
    factor: tuple[Array, bool] | None,
    spread: tuple[Array, Array],
    noise: float,
) -> float:
    """Return the variance that one pair explains, given its features."""
    # What is left of x yᵀ when the judged pairs are known.
    rest = np.outer(x, y)
    if factor is not None:
        weights = cho_solve(factor, (known[0] @ x) * (known[1] @ y))
        rest -= (known[0].T * weights) @ known[1]
    own = max(x @ rest @ y, 0.0)
    return float(np.sum((spread[0] @ rest @ spread[1]) * rest) / (own + noise))


def _sample(judged: tuple[Array, Array], seed: int) -> tuple[Array, Array]:
    """Return judged pairs, not too many of them."""
    i, j = judged
    if len(i) <= MAX_JUDGED:
        return i, j
    drawn = np.random.default_rng(seed).choice(len(i), MAX_JUDGED, replace=False)
    return i[drawn], j[drawn]
