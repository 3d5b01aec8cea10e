"""Edges weighed by whether their ends are likely to be of one class.

>>> import numpy as np
>>> from linkspread.graphs.memberships import weigh_by_memberships
>>> W = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
>>> P = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
>>> weigh_by_memberships(W, P).toarray()[0].tolist()
[0.0, 1.0, 0.0]
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from linkspread.exceptions import GraphError
from linkspread.graphs.normalize import check_graph

__all__ = ["weigh_by_memberships"]


def weigh_by_memberships(W: Any, memberships: Any) -> sp.csr_array:
    """Multiply each weight by the Hellinger affinity of its ends' memberships.

    Parameters
    ----------
    W : array-like or sparse of shape (n_items, n_items)
        Symmetric affinities.
    memberships : array-like of shape (n_items, n_classes)
        Probabilities, such as of `soften_labels`; a row of zeros is unknown and counts
        as the mean of all known ones.

    Returns
    -------
    W : csr_array of shape (n_items, n_items)
    """
    graph = sp.csr_array(check_graph(W, name="W"))
    P = np.asarray(memberships, dtype=np.float64)
    if P.ndim != 2 or len(P) != graph.shape[0] or not np.all(P >= 0):
        raise GraphError(
            f"memberships must be at least 0, with a row for each of the "
            f"{graph.shape[0]:,} items, got shape {P.shape}. Use `soften_labels`."
        )
    sums = P.sum(axis=1, keepdims=True)
    known = sums[:, 0] > 0
    shares = np.divide(P, sums, out=np.zeros_like(P), where=sums > 0)
    if known.any():
        shares[~known] = shares[known].mean(axis=0)
    roots = np.sqrt(shares)
    rows, columns = graph.tocoo().coords
    weights = graph.data * np.einsum("ec,ec->e", roots[rows], roots[columns])
    weighed = sp.csr_array((weights, (rows, columns)), shape=graph.shape)
    weighed.eliminate_zeros()
    return weighed
