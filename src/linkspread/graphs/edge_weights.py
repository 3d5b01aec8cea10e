"""The weights of edges between items and their neighbours, as a sparse matrix."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from linkspread.graphs.distances import Pairwise, resolve_metric
from linkspread.graphs.edges import neighbor_matrix
from linkspread.graphs.weights import (
    WEIGHTS,
    exponents,
    lift_exponents,
    local_bandwidths,
)


def weigh_new(
    ids: np.ndarray,
    distances: np.ndarray,
    fitted: np.ndarray | float,
    *,
    local: bool,
    weights: str,
    metric: str | Pairwise,
    dtype: Any,
    n_items: int,
) -> sp.csr_array:
    """Return the affinities of new items to their nearest fitted items."""
    widths = fitted
    if local:
        widths = local_bandwidths(distances, smallest=float(np.min(fitted)))
    exponent = exponents(distances, *widths_of_ends(widths, fitted, ids))
    exponent = lift_exponents(exponent, np.dtype(dtype))
    values = WEIGHTS[weights](distances, exponent, resolve_metric(metric))
    return neighbor_matrix(ids, values, dtype, n_items)


def widths_of_ends(
    left: np.ndarray | float, right: np.ndarray | float, ids: np.ndarray
) -> tuple[np.ndarray | float, np.ndarray | float]:
    """Return the widths of both ends of every edge, in shapes that broadcast."""
    if np.ndim(right) == 0:
        return left, right
    return np.asarray(left)[:, None], np.asarray(right)[ids]
