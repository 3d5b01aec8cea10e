"""Items that tell most about a view: well connected, and far from each other.

Links are carried by a view's graph, so that a judged item tells something of its
neighbourhood. In the kernel of a short diffusion over the graph the next representative
is the item that explains most of what those before it leave unexplained: the greedy
choice of Nystrom landmarks, which is influence and diversity in one number.
"""

from typing import Any

import numpy as np

from linkspread.graphs.normalize import normalize

Array = np.ndarray

# Steps of the diffusion, and directions kept of it.
N_STEPS = 8
N_DIRECTIONS = 64
# What a judged item leaves unexplained of itself, as a share of the mean variance.
NOISE = 0.1
# Items that are compared as representatives; a sample of more is as good.
N_CANDIDATES = 4096


class _Diffusion:
    """The kernel ``((I + S) / 2) ** N_STEPS`` of a graph, which is never formed."""

    def __init__(self, W: Any) -> None:
        self.S = normalize(W)

    def __matmul__(self, block: Array) -> Array:
        for _ in range(N_STEPS):
            block = (block + self.S @ block) / 2
        return block


def diffusion_features(W: Any, *, seed: int) -> Array:
    """Return features whose inner products are nearly a diffusion over a graph."""
    K, n_items = _Diffusion(W), W.shape[0]
    rng = np.random.default_rng(seed)
    rank = min(N_DIRECTIONS, n_items)
    probes = np.linalg.qr(rng.standard_normal((n_items, rank)))[0]
    probes = np.linalg.qr(K @ probes)[0]
    image = K @ probes
    values, vectors = np.linalg.eigh(probes.T @ image)
    kept = values > 1e-9 * values[-1]
    return image @ (vectors[:, kept] / np.sqrt(values[kept]))


def choose_representatives(
    features: Array,
    allowed: Array,
    n_chosen: int,
    *,
    known: Array | None = None,
    seed: int = 0,
) -> Array:
    """Choose items that explain most of a view, the most telling first."""
    candidates = _sample(allowed, n_chosen, seed)
    rows = features[candidates]
    noise = NOISE * float(np.mean(np.sum(features**2, axis=1)))
    spread = features.T @ features
    unexplained = _unexplained(features, known, noise)
    is_left, chosen = np.ones(len(candidates), dtype=bool), []
    for _ in range(min(n_chosen, len(candidates))):
        gains = _gains(rows, unexplained, spread, noise)
        best = int(np.argmax(np.where(is_left, gains, -np.inf)))
        is_left[best] = False
        chosen.append(candidates[best])
        told = unexplained @ rows[best]
        unexplained = unexplained - np.outer(told, told) / (rows[best] @ told + noise)
    return np.array(chosen, dtype=np.int64)


def _sample(allowed: Array, n_chosen: int, seed: int) -> Array:
    """Return the items to compare, all of them where there are not too many."""
    # Whole multiples, so that a slightly larger wish has the same sample.
    n_compared = N_CANDIDATES * -(-n_chosen // N_CANDIDATES)
    if len(allowed) <= n_compared:
        return allowed
    drawn = np.random.default_rng(seed).choice(len(allowed), n_compared, replace=False)
    return allowed[np.sort(drawn)]


def _unexplained(features: Array, known: Array | None, noise: float) -> Array:
    """Return the covariance of the directions, given what is known."""
    identity = np.eye(features.shape[1])
    if known is None or len(known) == 0 or noise == 0:
        return identity
    told = features[known].T @ features[known]
    return np.linalg.inv(identity + told / noise)


def _gains(rows: Array, unexplained: Array, spread: Array, noise: float) -> Array:
    """Return how much of all items' variance each candidate would explain."""
    explained = unexplained @ spread @ unexplained
    own = np.einsum("ij,ij->i", rows @ unexplained, rows)
    total = np.einsum("ij,ij->i", rows @ explained, rows)
    return total / np.maximum(own + noise, np.finfo(float).tiny)
