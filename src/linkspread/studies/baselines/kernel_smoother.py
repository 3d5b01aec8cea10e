"""Kernel smoothing: a pair is scored by the links of similar pairs."""

from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from linkspread.ground.checks import naming
from linkspread.links import LinkMatrix, Links
from linkspread.studies.baselines.correspondences import balanced_links
from linkspread.studies.baselines.gaussian_kernel import GaussianKernel
from linkspread.studies.baselines.matching import Chosen, PairMatching
from linkspread.studies.baselines.side import Side
from linkspread.studies.baselines.smoothed_links import (
    AnchorLinks,
    SharedAverages,
    SharedSide,
    SmoothedLinks,
)


class KernelSmoother(PairMatching):
    """Match by the links of similar pairs, weighed by a Gaussian kernel.

    ``score(x, y) = sum_ij z_ij K(x, x_i) K(y, y_j)`` over the links: the estimate of
    [Nadaraya1964] and [Watson1964], for pairs. No graph, no unlabelled item takes part.
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
