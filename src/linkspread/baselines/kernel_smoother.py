"""Kernel smoothing: a pair is scored by the links of similar pairs."""

from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from linkspread.baselines.correspondences import balanced_links
from linkspread.baselines.matching import Chosen, PairMatching, Side
from linkspread.fitting.gaussian_kernel import GaussianKernel
from linkspread.links import LinkMatrix, Links
from linkspread.parameter_checks import naming

__all__ = ["KernelSmoother", "SmoothedLinks"]

Array = np.ndarray


class SmoothedLinks:
    """Average what is linked to the anchors of a view, by similarity.

    Parameters
    ----------
    kernel : GaussianKernel
    linked : ndarray or csr_array of shape (n_anchors, n_dimensions)
    mass : ndarray of shape (n_anchors,) or None
        Weight of all links of each anchor; None for sums in place of averages.
    """

    def __init__(self, kernel: GaussianKernel, linked: Any, mass: Array | None) -> None:
        self.kernel = kernel
        self.linked = sparse.csr_array(linked)
        self.mass = mass

    def __call__(self, rows: Any) -> Array:
        """Return vectors of shape (n_rows, n_dimensions)."""
        if self.mass is None:
            return self.kernel.smooth(rows, self.linked)
        # Both in one pass over the kernel.
        block = sparse.hstack([self.linked, sparse.csr_array(self.mass[:, None])])
        smoothed = self.kernel.smooth(rows, block.tocsr())
        mass = smoothed[:, -1:]
        # A class that the other view lacks has members but no links.
        return smoothed[:, :-1] / np.where(mass > 0, mass, 1.0)


class KernelSmoother(PairMatching):
    """Match by the links of similar pairs, weighed by a Gaussian kernel.

    ``score(x, y) = sum_ij z_ij K(x, x_i) K(y, y_j)`` over the links: the estimate of
    [Nadaraya1964] and [Watson1964], for pairs. No graph, no unlabelled item takes part.

    Parameters
    ----------
    width : float or dict by view, default=0.5
        Of the kernel, in mean distances between items.
    metric : str, callable or dict by view, default="euclidean"
        "euclidean", "cosine", "hellinger", "chi2", or a function of two blocks.
    normalize : bool, default=True
        Divide by the weight of all links near x, and by that near y, so that a part of
        a view with many links does not score higher for that alone.
    balance : {"auto", "literal"} or float, default="auto"
        Weight of cannot-links against must-links.

    Attributes
    ----------
    view_names_ : tuple of str
    items_ : dict from str to Items
    links_ : Links
    sides_ : dict from pairs of str to pairs of Side

    Examples
    --------
    >>> import linkspread as ls
    >>> from linkspread.baselines import KernelSmoother
    >>> data = ls.datasets.make_views(60, n_classes=3, random_state=0)
    >>> links = ls.Links.from_pairs(
    ...     [(0, 0, 1.0), (0, 1, -1.0), (2, 2, 1.0)], between=("text", "image"))
    >>> model = KernelSmoother().fit(data.views(), links)
    >>> model.scores("text", "image").shape
    (60, 60)
    """

    PER_VIEW: ClassVar[tuple[str, ...]] = ("width", "metric")

    def __init__(
        self,
        *,
        width: Any = 0.5,
        metric: Any = "euclidean",
        normalize: bool = True,
        balance: str | float = "auto",
    ) -> None:
        self.width = width
        self.metric = metric
        self.normalize = normalize
        self.balance = balance

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> tuple[Side, Side]:
        Z = balanced_links(links, a, b, balance=self.balance)
        U, G, V = Z.thin()
        left, right = _link_masses(Z) if self.normalize else (None, None)
        return (
            _smooth(tables[a], a, U, G, left, **chosen[a]),
            _smooth(tables[b], b, V, np.eye(V.shape[1]), right, **chosen[b]),
        )


def _link_masses(Z: LinkMatrix) -> tuple[Array, Array]:
    """Return the total weight of each item's links, must and cannot alike."""
    sizes = LinkMatrix(Z.left, abs(Z.core), Z.right, abs(Z.pairs))
    return sizes @ np.ones(Z.shape[1]), sizes.T @ np.ones(Z.shape[0])


def _smooth(
    X: Any, view: str, U: Any, core: Array, mass: Array | None, **parameters: Any
) -> Side:
    """Return the side of a view, whose anchors are the items with links."""
    memberships = sparse.csr_array(U)
    anchors = np.flatnonzero(np.diff(memberships.indptr))
    with naming(view):
        kernel = GaussianKernel(X, anchors, **parameters)
    linked = memberships[anchors] @ core
    return Side.of(
        X, SmoothedLinks(kernel, linked, None if mass is None else mass[anchors])
    )
