"""Kernel smoothing: a pair is scored by the links of similar pairs."""

from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from linkspread.baselines.correspondences import balanced_links
from linkspread.baselines.gaussian_kernel import GaussianKernel
from linkspread.baselines.matching import Chosen, PairMatching
from linkspread.baselines.side import Side
from linkspread.baselines.smoothed_links import (
    AnchorLinks,
    SharedAverages,
    SharedSide,
    SmoothedLinks,
)
from linkspread.links import LinkMatrix, Links
from linkspread.parameter_checks import naming

__all__ = ["KernelSmoother"]


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
    hubs : int, default=None
        Subtract from each score the means of the so many largest scores of both
        items, against hubs; None subtracts nothing.

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
        hubs: int | None = None,
    ) -> None:
        self.width = width
        self.metric = metric
        self.normalize = normalize
        self.balance = balance
        self.hubs = hubs

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> tuple[Side, Side]:
        links_of = self._once(
            ("links", a, b, repr(self.balance)),
            lambda: _anchor_links(balanced_links(links, a, b, balance=self.balance)),
        )
        return (
            self._smooth(tables[a], (a, b), links_of[0], **chosen[a]),
            self._smooth(tables[b], (b, a), links_of[1], **chosen[b]),
        )

    def _smooth(
        self,
        X: Any,
        way: tuple[str, str],
        links: AnchorLinks,
        *,
        metric: Any,
        width: Any,
    ) -> Side:
        """Return the side of a view, whose anchors are the items with links."""
        # Anchors depend on the other view, and on whether cannot-links count.
        key = way, repr((self.balance, metric))
        with naming(way[0]):
            unit = self._once(
                ("kernel", *key),
                lambda: GaussianKernel(X, links.anchors, metric=metric, width=1.0),
            )
            kernel = unit.widened(width)
        smoothed = SmoothedLinks(kernel, links, normalize=self.normalize)
        if self._memory is None:
            return Side.of(X, smoothed)
        averages = SharedAverages(self._memory, key, X, links, unit, kernel)
        return SharedSide(averages, smoothed)


def _anchor_links(Z: LinkMatrix) -> tuple[AnchorLinks, AnchorLinks]:
    """Return the links of two views, as seen from each."""
    U, G, V = Z.thin()
    sizes = LinkMatrix(Z.left, abs(Z.core), Z.right, abs(Z.pairs))
    left, right = sizes @ np.ones(Z.shape[1]), sizes.T @ np.ones(Z.shape[0])
    identity = sparse.eye_array(V.shape[1], format="csr")
    return AnchorLinks.of(U, G, left), AnchorLinks.of(V, identity, right)
