"""Checked graphs and their symmetric normalisation, ``S = D^{-1/2} W D^{-1/2}``."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from linkspread.ground.checks import check_sparse
from linkspread.ground.errors import GraphError

# Asymmetry of this many units in the last place of the largest weight is rounding.
ROUNDING_UNITS = 100


def check_graph(W: Any) -> sp.csr_array:
    """Return a copy of a user's graph as a symmetric csr_array, checked.

    Duplicates are summed, zeros dropped, and asymmetry by rounding is averaged.
    """
    graph = _copy_csr(W, "graph")
    if graph.shape[0] != graph.shape[1]:
        raise GraphError(
            f"`graph` must be square, got shape {graph.shape}. Build one with "
            "`knn_graph(X)`."
        )
    _check_weights(graph.data, "graph")
    transposed = sp.csr_array(graph.T)
    difference = abs(graph - transposed).data.max(initial=0)
    if difference == 0:
        return graph
    if difference > ROUNDING_UNITS * np.finfo(graph.dtype).eps * graph.data.max():
        raise GraphError(
            f"`graph` must be symmetric, got weights that differ by {difference:.3g} "
            "from their mirror images. Use (W + W.T) / 2."
        )
    return (graph + transposed) * graph.dtype.type(0.5)


def _copy_csr(W: Any, name: str) -> sp.csr_array:
    """Return a canonical copy in float32 or float64."""
    try:
        W = check_sparse(W, name=f"`{name}`") if sp.issparse(W) else np.asarray(W)
        if np.iscomplexobj(W) or W.ndim != 2:
            raise TypeError(f"{W.ndim} dimensions of {W.dtype}")
        dtype = np.float32 if W.dtype == np.float32 else np.float64
        graph = sp.csr_array(W, dtype=dtype, copy=True)
    except (TypeError, ValueError) as error:
        raise GraphError(
            f"`{name}` must be a square matrix of real numbers, got "
            f"{type(W).__name__} ({error}). Build one with `knn_graph(X)`."
        ) from error
    graph.sum_duplicates()
    graph.eliminate_zeros()
    return graph


def _check_weights(weights: np.ndarray, name: str) -> None:
    """Refuse weights that are negative, NaN or infinite."""
    smallest, largest = weights.min(initial=0), weights.max(initial=0)
    if not (smallest >= 0 and largest < np.inf):
        raise GraphError(
            f"`{name}` must have no negative weights, NaN or infinity, got "
            f"{smallest:.3g} to {largest:.3g}. Set them to 0 to remove these edges."
        )


def normalize(W: Any) -> sp.csr_array:
    """Return the symmetrically normalised graph.

    ``S = D^{-1/2} W D^{-1/2}``, D the diagonal matrix of the row sums of W. The rows
    of isolated items stay zero.

    Parameters
    ----------
    W : array-like or sparse of shape (n_items, n_items)
        Symmetric and non-negative; a diagonal is allowed. It is not modified.

    Returns
    -------
    S : csr_array of shape (n_items, n_items)
        Symmetric, with eigenvalues between -1 and 1.

    Examples
    --------
    >>> from linkspread.graphs import normalize
    >>> normalize([[0, 4], [4, 0]]).toarray().tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    S = check_graph(W)
    # S does not depend on the scale of W; sums of weights up to 1 cannot overflow.
    S.data = S.data / S.data.max(initial=np.finfo(S.dtype).tiny)
    return scale_edges(S, row_sums(S))


def scale_edges(
    W: sp.csr_array, degrees: np.ndarray, *, start: int = 0
) -> sp.csr_array:
    """Normalise the edges of some rows symmetrically, from row `start` on."""
    roots = _inverse_roots(degrees)
    own = np.repeat(roots[start : start + W.shape[0]], np.diff(W.indptr))
    data = (own * roots[W.indices] * W.data).astype(W.dtype)
    return sp.csr_array((data, W.indices, W.indptr), shape=W.shape)


def normalize_rows(rows: Any, degrees: Any) -> sp.csr_array:
    """Normalise the affinities of new items as `normalize` does fitted ones.

    ``s_qj = w_qj / sqrt(d_q D_j)``, d_q the row sum of the new item; the degrees of the
    fitted items do not change. Where a degree is 0, so is the result.

    Parameters
    ----------
    rows : array-like or sparse of shape (n_queries, n_items)
        Affinities to the fitted items, as from `NeighborGraph.extend`.
    degrees : array-like of shape (n_items,)
        Row sums of the fitted graph, ``W.sum(axis=1)``.

    Returns
    -------
    S : csr_array of shape (n_queries, n_items)

    Examples
    --------
    >>> from linkspread.graphs import normalize_rows
    >>> normalize_rows([[1.0, 3.0]], [4.0, 1.0]).toarray().tolist()
    [[0.25, 1.5]]
    """
    S = _copy_csr(rows, "rows")
    _check_weights(S.data, "rows")
    degrees = np.asarray(degrees, dtype=np.float64)
    if degrees.shape != (S.shape[1],):
        raise GraphError(
            f"`degrees` must have one entry per column of `rows`, {S.shape[1]} here, "
            f"got shape {degrees.shape}. Use `W.sum(axis=1)` of the fitted graph."
        )
    _check_weights(degrees, "degrees")
    own = np.repeat(_inverse_roots(row_sums(S)), np.diff(S.indptr))
    S.data = (own * S.data * _inverse_roots(degrees)[S.indices]).astype(S.dtype)
    return S


def row_sums(W: sp.csr_array) -> np.ndarray:
    """Return the row sums in float64."""
    return np.asarray(W.sum(axis=1, dtype=np.float64)).ravel()


def _inverse_roots(values: np.ndarray) -> np.ndarray:
    """Return ``1 / sqrt(values)``, where 1 / 0 = 0."""
    return np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
