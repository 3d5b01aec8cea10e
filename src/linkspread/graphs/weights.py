"""Edge weights from the distances of neighbours.

``W[i, j] = exp(-d_ij^2 / (sigma_i sigma_j))``, 1, or the similarity of the metric.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from linkspread.graphs.distances import Metric, Pairwise, mean_distance, resolve_metric
from linkspread.ground.checks import is_number
from linkspread.ground.errors import GraphError

Array = np.ndarray
Widths = Array | float
Found = tuple[Array, Array]  # ids and distances of neighbours

# The neighbour whose distance is an item's width; the choice of self-tuning spectral
# clustering, whose authors found it good in every dimension.
LOCAL_NEIGHBOR = 7

# Functions of distances, exponents and the metric.
WEIGHTS: dict[str, Callable[[Array, Array, Metric], Array]] = {
    "binary": lambda distances, exponent, metric: np.ones_like(distances),
    "gaussian": lambda distances, exponent, metric: np.exp(-exponent),
    "similarity": lambda distances, exponent, metric: metric.similarity(distances),
}


def check_bandwidth(bandwidth: Any) -> None:
    """Refuse a bandwidth that is neither "local" nor a width."""
    width = bandwidth
    if isinstance(bandwidth, str):
        width = 1.0 if bandwidth == "local" else _multiple(bandwidth)
    if not (is_number(width) and 0 < width < np.inf):
        raise GraphError(
            "`bandwidth` must be 'local', a positive number, or a multiple of the mean "
            f"distance such as '0.5 mean', got {bandwidth!r}. Use 'local' if in doubt."
        )


def choose_widths(
    bandwidth: str | float, distances: Array, X: Any, metric: str | Pairwise
) -> Widths:
    """Return the local widths of items, or the one width for all."""
    if bandwidth == "local":
        return local_bandwidths(distances)
    return fixed_bandwidth(bandwidth, X, metric=metric)


def fixed_bandwidth(bandwidth: Any, X: Any, *, metric: str | Pairwise) -> float:
    """Return the one width for all items."""
    if not isinstance(bandwidth, str):
        return float(bandwidth)
    return _multiple(bandwidth) * mean_distance(X, metric=metric)


def _multiple(bandwidth: str) -> float:
    """Return 0.5 of "0.5 mean", and 0 of anything else."""
    number, _, unit = bandwidth.partition(" ")
    try:
        return float(number) if unit == "mean" else 0.0
    except ValueError:
        return 0.0


def local_bandwidths(distances: Array, *, smallest: float = 0.0) -> Array:
    """Return the width of every item: the distance of its seventh neighbour."""
    widths = distances[:, min(LOCAL_NEIGHBOR, distances.shape[1]) - 1].copy()
    if not smallest:
        smallest = widths.min(where=widths > 0, initial=np.inf)
    widths[widths == 0] = smallest if np.isfinite(smallest) else 1.0
    return widths


def exponents(distances: Array, left: Widths, right: Widths) -> Array:
    """Return ``d^2 / (sigma_i sigma_j)``, in an order that does not overflow early."""
    with np.errstate(over="ignore"):  # an infinite exponent is a weight of 0
        return (distances / left) * (distances / right)


def weigh_edges(
    ids: Array,
    distances: Array,
    own: Widths,
    widths: Widths,
    *,
    weights: str,
    metric: str | Pairwise,
    lift: Any = None,
) -> Array:
    """Return the weights of edges from items, of own widths, to their neighbours.

    Given a dtype to `lift` to, not all weights of a row underflow in it.
    """
    if np.ndim(widths):
        own, widths = np.asarray(own)[:, None], np.asarray(widths)[ids]
    exponent = exponents(distances, own, widths)
    if lift is not None:
        exponent = lift_exponents(exponent, np.dtype(lift))
    return WEIGHTS[weights](distances, exponent, resolve_metric(metric))


def lift_exponents(exponent: Array, dtype: np.dtype) -> Array:
    """Shift the exponents of rows whose weights would all underflow."""
    # All weights of a query far from every item underflow to 0. A common factor does
    # not change the ranking, so the largest weight of such a row is set to the square
    # root of the smallest normal number, which leaves half of the range for the others.
    highest = -0.5 * np.log(float(np.finfo(dtype).tiny))
    exponent = np.minimum(exponent, np.finfo(np.float64).max)
    smallest = exponent.min(axis=1, keepdims=True)
    if smallest.max(initial=0.0) <= highest:
        return exponent
    return np.where(smallest > highest, exponent - smallest + highest, exponent)


def neighbor_matrix(
    ids: Array, weights: Array, dtype: np.dtype, n_items: int
) -> sp.csr_array:
    """Return the weights of neighbours as a matrix."""
    n_rows, n_neighbors = ids.shape
    small = ids.size <= np.iinfo(np.int32).max
    indptr = np.arange(n_rows + 1, dtype=np.int32 if small else np.int64) * n_neighbors
    # Copies, because sorting the indices would reorder the caller's arrays.
    arrays = (weights.astype(dtype).ravel(), ids.ravel().copy(), indptr)
    W = sp.csr_array(arrays, shape=(n_rows, n_items))
    W.sort_indices()
    W.eliminate_zeros()
    return W


def weigh_new(
    found: Found, graph: Any, widths: Widths, *, dtype: Any, n_items: int
) -> sp.csr_array:
    """Return the affinities of new items to their nearest items of a fitted graph."""
    (ids, distances), own = found, widths
    if np.ndim(widths):
        own = local_bandwidths(distances, smallest=float(np.min(widths)))
    how = {"weights": graph.weights, "metric": graph.metric, "lift": dtype}
    values = weigh_edges(ids, distances, own, widths, **how)
    return neighbor_matrix(ids, values, dtype, n_items)
