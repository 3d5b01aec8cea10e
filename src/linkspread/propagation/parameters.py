"""Checks of what every propagation takes: shapes, alpha, beta, tolerance."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.ground.errors import LinkspreadError

# Products that suffice to tell a graph that was not normalised.
POWER_STEPS = 10


def check_alpha_pair(alpha: Any) -> tuple[float, float]:
    """Return the smoothing of both views, from one number or a pair."""
    is_pair = isinstance(alpha, Sequence) and not isinstance(alpha, str)
    pair = tuple(alpha) if is_pair else (alpha, alpha)
    if len(pair) != 2:
        raise LinkspreadError(
            f"`alpha` must be one number or a pair, got {len(pair)} values. "
            "Give one for each of the two views."
        )
    return _fraction(pair[0], "alpha"), _fraction(pair[1], "alpha")


def check_beta(beta: Any) -> float:
    """Return beta if it is in [0, 1)."""
    return _fraction(beta, "beta")


def check_tol(tol: Any) -> float:
    """Return the tolerance if it is a number between 0 and 1."""
    if not isinstance(tol, Real) or not 0 < float(tol) < 1:
        raise LinkspreadError(
            f"`tol` must be between 0 and 1, got {tol!r}. The default is 1e-6."
        )
    return float(tol)


def check_shapes(S_x: Any, Z: Any, S_y: Any) -> None:
    """Refuse graphs and links whose sizes do not fit together."""
    for name, S in (("S_x", S_x), ("S_y", S_y)):
        if len(S.shape) != 2 or S.shape[0] != S.shape[1]:
            raise LinkspreadError(
                f"`{name}` must be square, got shape {tuple(S.shape)}. "
                "Build it with `normalize(knn_graph(X))`."
            )
    expected = (S_x.shape[0], S_y.shape[0])
    if tuple(Z.shape) != expected:
        raise LinkspreadError(
            f"`Z` must have one row per item of S_x and one column per item of S_y, "
            f"{expected}, got {tuple(Z.shape)}. Transpose it, or check which view is "
            "which."
        )


def check_normalized(S: Any, *, name: str) -> None:
    """Refuse a graph with eigenvalues beyond 1, on which the filter would diverge."""
    # In the graph's own precision, or every product would convert the whole graph.
    vector = np.ones(S.shape[0], dtype=np.result_type(S.dtype, np.float32))
    for _ in range(POWER_STEPS):
        image = S @ vector
        size = float(np.linalg.norm(image))
        # For a symmetric matrix this ratio never exceeds the largest eigenvalue.
        largest = size / (float(np.linalg.norm(vector)) or 1.0)
        refuse_stretching(largest, name=name)
        if size == 0:
            return
        vector = image / size


def refuse_stretching(largest: float, *, name: str) -> None:
    """Refuse a graph that has an eigenvalue of at least so much, if that is above 1."""
    if largest > 1 + 1e-4:
        raise LinkspreadError(
            f"`{name}` must be normalised, with eigenvalues between -1 and 1, and "
            f"it has one of at least {largest:.3g}. Use `normalize(W)`."
        )


def working_graphs(
    S_x: Any, Z: Any, S_y: Any
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return both graphs, checked, as CSR in the same precision."""
    check_shapes(S_x, Z, S_y)
    check_normalized(S_x, name="S_x")
    check_normalized(S_y, name="S_y")
    return same_precision(sparse.csr_array(S_x), sparse.csr_array(S_y))


def same_precision(
    S_x: sparse.csr_array, S_y: sparse.csr_array
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return both graphs in float32 if both are, else in float64."""
    single = S_x.dtype == np.float32 and S_y.dtype == np.float32
    dtype = np.float32 if single else np.float64
    return S_x.astype(dtype, copy=False), S_y.astype(dtype, copy=False)


def _fraction(value: Any, name: str) -> float:
    """Return a number in [0, 1)."""
    if not isinstance(value, Real) or not 0 <= float(value) < 1:
        raise LinkspreadError(
            f"`{name}` must be a number in [0, 1), got {value!r}. "
            "0 spreads nothing, 0.95 spreads far."
        )
    return float(value)
