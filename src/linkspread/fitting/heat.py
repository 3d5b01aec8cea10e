"""Similarity as heat that flows over a graph, for one time or for several at once.

Two pairs of items are alike if heat flows between their first items and between their
second ones *in the same time*: the sum over times of products of heat kernels. That is
what links spread by in the paper, but for the ends of each path. A product of two
kernels that each sum over times by themselves also joins items that are near in one
view and far in the other.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.fitting.centred_kernel import CentredKernel
from linkspread.fitting.extensions import HeatExtension
from linkspread.fitting.view_kernels import (
    COLUMN_TILE,
    DENSE_ITEMS,
    N_PROBES,
    StoredKernel,
)
from linkspread.propagation.chebyshev import filtered_sums
from linkspread.propagation.diffusion import arrival_polynomials, diffuse

__all__ = ["Diffusion", "HeatKernel", "TIMES", "TIME_WEIGHTS"]

Array = np.ndarray

TIMES = (1.0, 2.0, 4.0, 8.0, 16.0)
# An exponential distribution of times, of mean 6, at points that double.
TIME_WEIGHTS = tuple(t * np.exp(-t / 6) / 6 for t in TIMES)


class HeatKernel(StoredKernel):
    """How much heat flows between items in some time, ``exp(-time (I - S))``.

    Parameters
    ----------
    S : csr_array of shape (n, n)
        Normalised affinity.
    time : float
    similar : callable, default=None
        Returns the normalised similarities of new rows to all items, sparse.
    tol : float, default=1e-8
        Error of products.
    """

    def __init__(
        self,
        S: sparse.csr_array,
        time: float,
        *,
        similar: Callable[[Any], Any] | None = None,
        tol: float = 1e-8,
    ) -> None:
        self.S, self.time, self.similar, self.tol = S, time, similar, tol
        self.n_items = S.shape[0]

    def __matmul__(self, block: Array) -> Array:
        return diffuse(self.S, block, (self.time,), tol=self.tol)[:, 0]

    def diagonal(self) -> Array:
        """Return what stays or comes back, estimated on a large graph."""
        # Half of the time from each side: what is estimated is never below 0.
        half = HeatKernel(self.S, self.time / 2, tol=self.tol)
        if self.n_items <= DENSE_ITEMS:
            tiles = np.array_split(np.arange(self.n_items), self.n_items // 256 + 1)
            parts = [(half @ _units(self.n_items, own)) ** 2 for own in tiles]
            return np.concatenate([part.sum(axis=0) for part in parts])
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (self.n_items, N_PROBES))
        return np.mean((half @ signs) ** 2, axis=1)

    def arriving(self, coefficients: Array) -> Array:
        """Return what of each item's neighbours arrives there, on the last step.

        ``K @ c = exp(-time) c + S @ arriving(c)``, and for an item beside the graph
        the second term with its own similarities.

        Parameters
        ----------
        coefficients : ndarray of shape (n_items, c)

        Returns
        -------
        reached : ndarray of shape (n_items, c)
        """
        polynomials = arrival_polynomials((self.time,), tol=self.tol)
        return filtered_sums(self.S, coefficients, polynomials)[:, 0]

    def extension(self, coefficients: Array, fitted: Array) -> HeatExtension:
        """Return what makes values of new rows, as of every kernel."""
        return HeatExtension(self.similar, self.arriving(coefficients))


class Diffusion:
    """The heat kernels of one graph at several times, centred.

    Parameters
    ----------
    S : csr_array of shape (n, n)
        Normalised affinity.
    similar : callable, default=None
        Returns the normalised similarities of new rows to all items, sparse.
    tol : float, default=1e-8
        Error of products.

    Attributes
    ----------
    kernels : tuple of CentredKernel
        One for each of `TIMES`.
    """

    def __init__(
        self,
        S: sparse.csr_array,
        *,
        similar: Callable[[Any], Any] | None = None,
        tol: float = 1e-8,
    ) -> None:
        self.S, self.tol = S, tol
        self.n_items = S.shape[0]
        self.kernels = tuple(
            CentredKernel(HeatKernel(S, time, similar=similar, tol=tol))
            for time in TIMES
        )

    def among(self, items: Array) -> Array:
        """Return the entries of all kernels among some items.

        Parameters
        ----------
        items : ndarray of int of shape (n_used,)

        Returns
        -------
        entries : ndarray of float32 of shape (n_times, n_used, n_used)
        """
        entries = np.empty((len(TIMES), len(items), len(items)), dtype=np.float32)
        for start in range(0, len(items), COLUMN_TILE):
            chosen = items[start : start + COLUMN_TILE]
            units = _units(self.n_items, chosen)
            heat = diffuse(self.S, units, TIMES, tol=self.tol, rows=items)
            entries[:, :, start : start + COLUMN_TILE] = heat.transpose(1, 0, 2)
        for own, kernel in zip(entries, self.kernels, strict=True):
            means = kernel.means[items]
            own -= means[:, None] + (means - kernel.means.mean())
        return entries


def _units(n_items: int, chosen: Array) -> Array:
    """Return columns that are 1 for one item each."""
    units = np.zeros((n_items, len(chosen)))
    units[chosen, np.arange(len(chosen))] = 1
    return units
