"""From distances to the weights of edges.

>>> from linkspread.graphs import knn_graph, mean_distance
>>> X = [[0.0], [1.0], [2.0], [4.0]]
>>> width = 0.5 * mean_distance(X)
>>> knn_graph(X, n_neighbors=1, bandwidth=width).toarray()[0].round(3).tolist()
[0.0, 0.427, 0.0, 0.0]
"""

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from linkspread.graphs.distances import (
    Metric,
    Pairwise,
    ProductDistances,
    pairwise_distances,
)
from linkspread.graphs.rows import check_rows
from linkspread.ground.cores import is_integer
from linkspread.ground.errors import GraphError, ViewError

Widths = np.ndarray | float

# The neighbour whose distance is an item's own width; the choice of the authors of
# self-tuning spectral clustering, who found the seventh to serve in every dimension.
LOCAL_NEIGHBOR = 7
# Mean distance, against the longest row, from which products tell distances to eight
# digits.
ALIKE = 1e-4


def _gaussian(
    distances: np.ndarray, exponent: np.ndarray, metric: Metric
) -> np.ndarray:
    """Return ``exp(-d^2 / (sigma_i sigma_j))``."""
    return np.exp(-exponent)


def _binary(distances: np.ndarray, exponent: np.ndarray, metric: Metric) -> np.ndarray:
    """Return 1 for every neighbour."""
    return np.ones_like(distances)


def _similarity(
    distances: np.ndarray, exponent: np.ndarray, metric: Metric
) -> np.ndarray:
    """Return the similarity that belongs to the metric."""
    return metric.similarity(distances)


WEIGHTS: dict[str, Callable[[np.ndarray, np.ndarray, Metric], np.ndarray]] = {
    "binary": _binary,
    "gaussian": _gaussian,
    "similarity": _similarity,
}


def check_weights(weights: Any) -> None:
    """Refuse a name of weights that is not known."""
    if not isinstance(weights, str) or weights not in WEIGHTS:
        raise GraphError(
            f"`weights` must be one of {', '.join(WEIGHTS)}, got {weights!r}. "
            "Choose one of these names."
        )


def check_bandwidth(bandwidth: Any) -> None:
    """Refuse a bandwidth that is neither "local" nor a width."""
    if isinstance(bandwidth, str) and bandwidth == "local":
        return
    width = _multiple(bandwidth) if isinstance(bandwidth, str) else bandwidth
    is_width = isinstance(width, Real) and not isinstance(width, bool)
    if not (is_width and 0 < width < np.inf):
        raise GraphError(
            "`bandwidth` must be 'local', a positive number, or a multiple of the mean "
            f"distance such as '0.5 mean', got {bandwidth!r}. Use 'local' if in doubt."
        )


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


def local_bandwidths(distances: np.ndarray, *, smallest: float = 0.0) -> np.ndarray:
    """Return every item's own width: the distance of its seventh neighbour."""
    widths = distances[:, min(LOCAL_NEIGHBOR, distances.shape[1]) - 1].copy()
    if not smallest:
        smallest = widths.min(where=widths > 0, initial=np.inf)
    widths[widths == 0] = smallest if np.isfinite(smallest) else 1.0
    return widths


def exponents(distances: np.ndarray, left: Widths, right: Widths) -> np.ndarray:
    """Return ``d^2 / (sigma_i sigma_j)``, in an order that does not overflow early."""
    with np.errstate(over="ignore"):  # an infinite exponent is a weight of 0
        return (distances / left) * (distances / right)


def lift_exponents(exponent: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Shift the exponents of rows whose weights would all underflow."""
    # A query far from every item has weights that round to 0, and then nothing to say
    # about which items are nearest. A common factor on its row changes no ranking, so
    # its largest weight is raised to the root of the smallest normal number: so small
    # that the query still counts as far, and with half of the range left for the rest.
    highest = -0.5 * np.log(float(np.finfo(dtype).tiny))
    exponent = np.minimum(exponent, np.finfo(np.float64).max)
    smallest = exponent.min(axis=1, keepdims=True)
    if smallest.max(initial=0.0) <= highest:
        return exponent
    return np.where(smallest > highest, exponent - smallest + highest, exponent)


def mean_distance(
    X: Any,
    *,
    metric: str | Pairwise = "euclidean",
    n_samples: int = 1000,
    random_state: int | np.random.Generator = 0,
) -> float:
    """Return the mean distance between two different items, from a sample.

    Parameters
    ----------
    X : array-like or sparse of shape (n_items, n_features)
    metric : {"euclidean", "cosine", "hellinger", "chi2"} or callable, \
default="euclidean"
    n_samples : int, default=1000
        Items drawn, all pairs of which are compared; all items when there are fewer.
    random_state : int or Generator, default=0

    Returns
    -------
    distance : float

    Examples
    --------
    >>> from linkspread.graphs import mean_distance
    >>> mean_distance([[0.0], [1.0], [3.0]])
    2.0
    """
    rows = check_rows(X)
    if not is_integer(n_samples) or n_samples < 2:
        raise GraphError(
            f"`n_samples` must be a whole number of at least 2, got {n_samples!r}. "
            "Use for instance n_samples=1000."
        )
    if rows.shape[0] < 2:
        raise ViewError(
            "`X` must have at least 2 items to have a mean distance, got 1. Add items."
        )
    if rows.shape[0] > n_samples:
        rng = np.random.default_rng(random_state)
        rows = rows[np.sort(rng.choice(rows.shape[0], n_samples, replace=False))]
    measure = ProductDistances(rows, metric=metric)
    mean = _mean_of_pairs(measure(rows))
    # Of items that are nearly alike, products leave nothing but rounding.
    if measure.is_exact or mean > ALIKE * np.sqrt(measure.squares.max()):
        return mean
    return _mean_of_pairs(pairwise_distances(rows, rows, metric=metric))


def _mean_of_pairs(distances: np.ndarray) -> float:
    """Return the mean distance between two different items."""
    return float(distances[np.triu_indices_from(distances, k=1)].mean())
