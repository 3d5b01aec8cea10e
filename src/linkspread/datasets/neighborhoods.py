"""Random neighbour graphs of any size, for measuring propagation by itself.

>>> import numpy as np
>>> from linkspread.datasets import make_neighbor_graph
>>> W = make_neighbor_graph(np.repeat([0, 1], 500), n_neighbors=20)
>>> W.shape, round(W.nnz / 1000)
((1000, 1000), 20)
"""

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.sparse import csr_array

from linkspread.ground.errors import GraphError

# Partners of one item within its class are drawn from steps of this width, one per
# step: random, yet never the same partner twice.
_STEP = 2


def make_neighbor_graph(
    labels: ArrayLike,
    *,
    n_neighbors: int = 20,
    purity: float = 0.9,
    shuffled: bool = False,
    random_state: int = 0,
    dtype: DTypeLike = np.float32,
) -> csr_array:
    """Make a symmetric graph that looks like a k-NN graph, in linear time.

    No features are involved: an item's neighbours are drawn from those that stand
    close to it in its class, and a few from other classes.

    Parameters
    ----------
    labels : array-like of int of shape (n_samples,)
        Class of each item.
    n_neighbors : int, default=20
        Mean number of neighbours of an item.
    purity : float, default=0.9
        Expected fraction of edges that stay within a class.
    shuffled : bool, default=False
        Where False, items of a class stand in the order of their positions, so with
        sorted labels most neighbours are near in memory. Where True, they stand in
        random order, so neighbours are far apart, as they are in raw data.
    random_state : int, default=0
        Seed; the same seed gives the same bits.
    dtype : dtype, default=numpy.float32
        Type of the weights.

    Returns
    -------
    W : csr_array of shape (n_samples, n_samples)
        Symmetric, weights above 0 and up to 1, zero diagonal, sorted indices.

    Examples
    --------
    >>> from linkspread.datasets import make_neighbor_graph
    >>> W = make_neighbor_graph([0, 0, 0, 1, 1, 1], n_neighbors=2, purity=1.0)
    >>> bool((W != W.T).nnz == 0), float(W[:3, 3:].sum())
    (True, 0.0)
    """
    labels = _check_labels(labels)
    _check_parameters(n_neighbors, purity)
    rng = np.random.default_rng(random_state)
    order, start, size = _class_order(labels, shuffled, rng)
    left, right = _draw_edges(start, size, n_neighbors, purity, rng)
    weights = rng.uniform(0.5, 1.0, len(left)).astype(dtype)
    half = csr_array((weights, (order[left], order[right])), shape=2 * labels.shape)
    del left, right, weights  # As large as the graph; not needed for the sum.
    W = csr_array(half + half.T)
    W.sort_indices()
    # A pair drawn from both of its ends has two weights, whose sum may exceed 1.
    np.minimum(W.data, 1, out=W.data)
    return W


def _class_order(
    labels: np.ndarray, shuffled: bool, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Line the items up by class; give each place its class's start and size."""
    n_samples = len(labels)
    items = rng.permutation(n_samples) if shuffled else np.arange(n_samples)
    order = items[np.argsort(labels[items], kind="stable")].astype(np.int32)
    sizes = np.unique(labels, return_counts=True)[1]
    starts = np.cumsum(sizes) - sizes
    return order, np.repeat(starts, sizes), np.repeat(sizes, sizes)


def _draw_edges(
    start: np.ndarray,
    size: np.ndarray,
    n_neighbors: int,
    purity: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw ``n_samples * n_neighbors / 2`` pairs of places, without loops."""
    n_samples = len(start)
    places = np.arange(n_samples, dtype=np.int32)
    n_edges = n_samples * n_neighbors // 2
    left, right = np.empty((2, n_edges), dtype=np.int32)
    for slot, first in enumerate(range(0, n_edges, n_samples)):
        p = places[: n_edges - first]
        partner = _partners(p, start[p], size[p], n_samples, slot, purity, rng)
        left[first : first + len(p)] = p
        right[first : first + len(p)] = partner
    kept = left != right
    return left[kept], right[kept]


def _partners(
    place: np.ndarray,
    start: np.ndarray,
    size: np.ndarray,
    n_samples: int,
    slot: int,
    purity: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw one partner for each place, within its class or outside it."""
    step = slot * _STEP + rng.integers(1, _STEP + 1, size=len(place))
    # Classes close into rings: the last item's next neighbour is the first.
    within = start + (place - start + step) % size
    n_others = n_samples - size
    drawn = (rng.random(len(place)) * n_others).astype(np.int64)
    outside = (start + size + drawn) % n_samples
    stays = (rng.random(len(place)) < purity) | (n_others == 0)
    return np.where(stays, within, outside)


def _check_labels(labels: ArrayLike) -> np.ndarray:
    """Return the labels as an array of one dimension with at least two items."""
    labels = np.asarray(labels)
    if labels.ndim != 1 or len(labels) < 2:
        raise GraphError(
            "`labels` must be one-dimensional with at least two items, got shape "
            f"{labels.shape}. Give one class per item."
        )
    return labels


def _check_parameters(n_neighbors: int, purity: float) -> None:
    """Raise unless the parameters of the graph are in their ranges."""
    if not isinstance(n_neighbors, (int, np.integer)) or n_neighbors < 1:
        raise GraphError(
            "`n_neighbors` must be a whole number of at least 1, got "
            f"{n_neighbors!r}. Use 10 to 50 for a graph like those of real data."
        )
    if not 0 <= purity <= 1:
        raise GraphError(
            f"`purity` must lie between 0 and 1, got {purity!r}. Use 0.9 for a graph "
            "like those of good features."
        )
