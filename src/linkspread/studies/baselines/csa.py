"""Canonical similarity: cosines of canonical vectors, weighted by correlation."""

from typing import Any, ClassVar

import numpy as np

from linkspread.links import Links
from linkspread.studies.baselines.correlation_matching import (
    Projection,
    learn_projections,
)
from linkspread.studies.baselines.matching import Chosen, PairMatching
from linkspread.studies.baselines.side import Side

Array = np.ndarray


class CanonicalSimilarity(PairMatching):
    """Match by canonical similarity analysis: CSA of [Li2025].

    ``sum_i rho_i u_i v_i``, u and v the unit vectors of the leading canonical
    components and rho their correlations: components that agree little count little.
    `CorrelationMatching(power=1)` weighs first and takes unit vectors then. What goes
    together is said as there.
    """

    PER_VIEW: ClassVar[tuple[str, ...]] = ("scaling", "max_features")

    def __init__(
        self,
        *,
        n_components: int | None = None,
        reg: float = 0.1,
        scaling: Any = "none",
        max_features: Any = 256,
        random_state: int = 0,
        hubs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.reg = reg
        self.scaling = scaling
        self.max_features = max_features
        self.random_state = random_state
        self.hubs = hubs

    # Of the projections: plain canonical correlation analysis.
    method: ClassVar[str] = "cca"
    power: ClassVar[float] = 0.0

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> tuple[Side, Side]:
        left, right = learn_projections(self, tables, links, chosen, a, b)
        return (
            Side.of(tables[a], _Weighted(left)),
            Side.of(tables[b], _Weighted(right)),
        )


class _Weighted:
    """Scale unit vectors by the roots of the correlations."""

    def __init__(self, projection: Projection) -> None:
        self.projection = projection

    def __call__(self, rows: Any) -> Array:
        return self.projection.unit_vectors(rows) * np.sqrt(self.projection.strengths)
