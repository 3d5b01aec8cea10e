"""What fits by kernels say of one item, by what it is alike and by its neighbours.

A graph kernel ``K = P / (len len')`` with ``P = (1 - alpha) (I - alpha S)^-1`` takes
steps: row i of P is ``(1 - alpha) e_i + alpha sum_n S_in P_n``, so that a fitted value
``f_i = K_i c`` is ``(1 - alpha) c_i / len_i^2 + sum_n alpha S_in (len_n / len_i) f_n``:
the item's own part and a share for each neighbour n.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.fitting.centred_kernel import CentredKernel
from linkspread.fitting.heat import HeatKernel
from linkspread.fitting.view_kernels import (
    DenseKernel,
    FeatureKernel,
    GraphKernel,
    MixedKernel,
    ViewKernel,
)
from linkspread.retrieval.explanation_shares import Shares, item_shares, single_share

__all__ = ["Asked", "Steps", "kernel_row", "take_steps"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Asked:
    """An item that a score is of: a fitted one by position, or a new one by its row.

    Attributes
    ----------
    position : int or None
    rows : table of shape (1, n_features) or None, default=None
    """

    position: int | None
    rows: Any = None


@dataclass(frozen=True, eq=False)
class Steps:
    """A value of an item by its neighbours.

    Attributes
    ----------
    neighbors : ndarray of shape (n_items,)
        What comes through each; 0 for others.
    weights : ndarray of shape (n_items,)
        How near each is, added over all graphs.
    own : float
        What the item has without its neighbours.
    direct : float
        What kernels give that have no neighbours.
    """

    neighbors: Array
    weights: Array
    own: float
    direct: float

    def __add__(self, other: "Steps") -> "Steps":
        return Steps(
            self.neighbors + other.neighbors,
            self.weights + other.weights,
            self.own + other.own,
            self.direct + other.direct,
        )

    def __rmul__(self, factor: float) -> "Steps":
        amounts = factor * self.neighbors, factor * self.own, factor * self.direct
        return Steps(amounts[0], self.weights, amounts[1], amounts[2])

    @property
    def total(self) -> float:
        """The value."""
        return float(self.neighbors.sum()) + self.own + self.direct

    def shares(self, *, of_source: bool) -> list[Shares]:
        """Return the parts of the value.

        Parameters
        ----------
        of_source : bool
            Whether the item is of the source, not of the target.

        Returns
        -------
        shares : list of Shares
        """
        used = np.flatnonzero(self.weights)
        amounts, weights = self.neighbors[used], self.weights[used]
        side = 0 if of_source else 1
        near = item_shares("neighbor", amounts, weights, used, side=side)
        own, direct = single_share("own", self.own), single_share("direct", self.direct)
        return [near, own, direct]


def kernel_row(kernel: ViewKernel, item: Asked) -> Array:
    """Return the similarities of an item to all fitted ones.

    Parameters
    ----------
    kernel : ViewKernel
    item : Asked

    Returns
    -------
    row : ndarray of shape (n_items,)
    """
    if item.position is not None:
        unit = np.zeros((kernel.n_items, 1))
        unit[item.position] = 1
        return np.asarray(kernel @ unit, dtype=np.float64)[:, 0]
    if isinstance(kernel, CentredKernel):
        return kernel.centre_row(kernel_row(kernel.kernel, item))
    if isinstance(kernel, MixedKernel):
        parts = zip(kernel.weights, kernel.kernels, strict=True)
        return np.sum([w * kernel_row(own, item) for w, own in parts], axis=0)
    if isinstance(kernel, GraphKernel):
        near, factor = _new_neighbors(kernel, item)
        return factor * (kernel @ (kernel.lengths * near)[:, None])[:, 0]
    if isinstance(kernel, HeatKernel):
        return kernel.arriving(_similarities(kernel, item)[:, None])[:, 0]
    if isinstance(kernel, FeatureKernel):
        return kernel.features @ np.asarray(kernel.embed(item.rows))[0]
    if isinstance(kernel, DenseKernel):
        return np.asarray(kernel.compare(item.rows), dtype=np.float64)[0]
    # A kernel of the user's own tells of new rows only what coefficients make of them.
    units = np.eye(kernel.n_items)
    return kernel.extend(item.rows, units, kernel @ units)[0]


def take_steps(kernel: ViewKernel, item: Asked, coefficients: Array) -> Steps:
    """Split ``f = k(item, all) @ coefficients`` by the first step on a graph.

    Parameters
    ----------
    kernel : ViewKernel
    item : Asked
    coefficients : ndarray of shape (n_items,)

    Returns
    -------
    steps : Steps
    """
    if isinstance(kernel, MixedKernel):
        several = zip(kernel.weights, kernel.kernels, strict=True)
        first, *others = (w * take_steps(own, item, coefficients) for w, own in several)
        return sum(others, first)
    if isinstance(kernel, CentredKernel):
        return _take_centred_steps(kernel, item, coefficients)
    if isinstance(kernel, HeatKernel):
        return _take_heat_steps(kernel, item, coefficients)
    if not isinstance(kernel, GraphKernel):
        zeros = np.zeros(kernel.n_items)
        return Steps(zeros, zeros, 0.0, float(kernel_row(kernel, item) @ coefficients))
    values = kernel.lengths * (kernel @ coefficients[:, None])[:, 0]
    if item.position is None:
        near, factor = _new_neighbors(kernel, item)
        return Steps(factor * near * values, near, 0.0, 0.0)
    i, near = item.position, _fitted_neighbors(kernel.S, item.position)
    own = (1 - kernel.alpha) * float(coefficients[i]) / kernel.lengths[i] ** 2
    shares = kernel.alpha * near * values / kernel.lengths[i]
    return Steps(shares, near, own, 0.0)


def _take_centred_steps(
    kernel: CentredKernel, item: Asked, coefficients: Array
) -> Steps:
    """Take the steps of the plain kernel; what all items get is no neighbour's."""
    centred = coefficients - coefficients.mean()
    steps = take_steps(kernel.kernel, item, centred)
    return replace(steps, direct=steps.direct - float(kernel.means @ centred))


def _take_heat_steps(kernel: HeatKernel, item: Asked, coefficients: Array) -> Steps:
    """Split what an item gets of heat by the neighbour that the last step is from."""
    reached = kernel.arriving(coefficients[:, None])[:, 0]
    if item.position is None:
        near = _similarities(kernel, item)
        return Steps(near * reached, near, 0.0, 0.0)
    near = _fitted_neighbors(kernel.S, item.position)
    own = np.exp(-kernel.time) * float(coefficients[item.position])
    return Steps(near * reached, near, own, 0.0)


def _fitted_neighbors(S: sparse.csr_array, position: int) -> Array:
    """Return the similarities of a fitted item to all."""
    near = np.zeros(S.shape[0])
    row = slice(S.indptr[position], S.indptr[position + 1])
    near[S.indices[row]] = S.data[row]
    return near


def _similarities(kernel: GraphKernel | HeatKernel, item: Asked) -> Array:
    """Return the similarities of a new item to all."""
    if kernel.similar is None:
        raise ValueError("this kernel was made without `similar`")
    return sparse.csr_array(kernel.similar(item.rows)).toarray()[0].astype(np.float64)


def _new_neighbors(kernel: GraphKernel, item: Asked) -> tuple[Array, float]:
    """Return the similarities of a new item, and what its values are multiplied by."""
    near = _similarities(kernel, item)
    # As `GraphExtension` has it: the diagonal that the item would have.
    own = (1 - kernel.alpha) + kernel.alpha**2 * float(near**2 @ kernel.plain_diagonal)
    return near, kernel.alpha / np.sqrt(own)
