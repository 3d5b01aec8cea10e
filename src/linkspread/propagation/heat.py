"""Heat on a graph from some of its items, ``sum_f c_f exp(-t_f (I - S))``."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from linkspread.propagation.chebyshev import filtered_sums
from linkspread.propagation.ordering import renumber

Array = np.ndarray

# How long heat flows, and how much of it: near and far. Classes of few items want the
# first, of many the second. The polynomial of this degree is exact to 1e-5, as
# directions are kept.
FLOWS, DEGREE = ((6.0, 1.0), (24.0, 3.0)), 24
# Heat is computed in single precision: smaller shares of the largest are rounding.
ROUNDING = 1e-5
# Items from which heat flows at once.
WIDTH = 64


def heat(S: sparse.csr_array, landmarks: Array) -> tuple[Array, Array]:
    """Return the heat of all items from landmarks, and what whitens it."""
    K = np.empty((S.shape[0], len(landmarks)), dtype=np.float32)
    n_blocks = -(-len(landmarks) // WIDTH)
    near = renumber(S, width=WIDTH, n_steps=DEGREE * n_blocks)
    places = near.places[landmarks]
    for start in range(0, len(landmarks), WIDTH):
        some = places[start : start + WIDTH]
        units = np.zeros((S.shape[0], len(some)), dtype=np.float32)
        units[some, np.arange(len(some))] = 1
        found = filtered_sums(near.S, units, heat_coefficients()[None])
        K[:, start : start + WIDTH] = near.outwards(found[:, 0])
    return K, inverse_root(K[landmarks])


def heat_on_device(
    device: Any, W: sparse.csr_array, landmarks: Array
) -> tuple[Any, Any]:
    """Do as `heat` for a graph that is not normalised; return tensors on a device."""
    from linkspread.compiled.gpu import features

    places = device.put(landmarks)
    K = features.heat_kernel(device, W, places, heat_coefficients())
    return K, device.put(inverse_root(K[places].cpu().numpy()))


def inverse_root(K: Array) -> Array:
    """Return what whitens the heat of landmarks, in the directions above rounding."""
    values, own = eigh(K.astype(np.float64))
    kept = values > ROUNDING * values[-1]
    half = own[:, kept] / values[kept] ** 0.25
    # Symmetric: signs and turns of the directions, which are arbitrary, do not count.
    return (half @ half.T).astype(np.float32)


def heat_coefficients() -> Array:
    """Return the Chebyshev coefficients of ``sum_f c_f exp(-t_f (1 - s))``."""
    k = np.arange(DEGREE + 1)
    angles = np.pi * (k + 0.5) / (DEGREE + 1)
    values = sum(c * np.exp(-t * (1 - np.cos(angles))) for t, c in FLOWS)
    coefficients = 2 / (DEGREE + 1) * np.cos(np.outer(k, angles)) @ values
    coefficients[0] /= 2
    return coefficients
