"""Graphs of neighbours of any size, with known classes."""

import numpy as np
from scipy.sparse import csr_array

# Neighbours of an item within its class are drawn from steps of this width, one each.
_STEP = 2


def make_neighbor_graph(
    labels,
    *,
    n_neighbors=20,
    purity=0.9,
    shuffled=False,
    random_state=0,
    dtype=np.float32,
):
    """Make a symmetric graph like a k-NN graph, without features, in linear time.

    Most neighbours of an item are drawn from nearby items of its class, a share of
    ``1 - purity`` from other classes. Items of a class come in the order of their
    positions, so that with sorted labels neighbours are near in memory, or in random
    order if `shuffled`.
    """
    labels = np.asarray(labels)
    rng = np.random.default_rng(random_state)
    n_samples = len(labels)
    items = rng.permutation(n_samples) if shuffled else np.arange(n_samples)
    # Items by class, and for each place the start and the size of its class.
    order = items[np.argsort(labels[items], kind="stable")]
    sizes = np.unique(labels, return_counts=True)[1]
    start, size = np.repeat([np.cumsum(sizes) - sizes, sizes], sizes, axis=1)
    left = np.arange(n_samples * n_neighbors // 2) % n_samples
    # Classes are rings: the first item follows the last. Every further neighbour of an
    # item is drawn from further steps, so that neighbours differ.
    steps = np.arange(len(left)) // n_samples * _STEP
    steps += rng.integers(1, _STEP + 1, size=len(left))
    start, size = start[left], size[left]
    within = start + (left - start + steps) % size
    outside = start + size + (rng.random(len(left)) * (n_samples - size)).astype(int)
    stays = (rng.random(len(left)) < purity) | (size == n_samples)
    right = np.where(stays, within, outside % n_samples)
    left, right = left[left != right], right[left != right]
    weights = rng.uniform(0.5, 1.0, len(left)).astype(dtype)
    half = csr_array((weights, (order[left], order[right])), shape=2 * labels.shape)
    W = csr_array(half + half.T)
    W.sort_indices()
    # A pair drawn from both of its ends has two weights, whose sum may exceed 1.
    np.minimum(W.data, 1, out=W.data)
    return W
