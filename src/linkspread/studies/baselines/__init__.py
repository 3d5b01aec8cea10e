"""Baselines: other ways to search between views, from the same views and links.

Each is fitted and searched like `LinkSpreading`, so that a comparison differs in the
method only:

>>> import linkspread as ls
>>> from linkspread.studies.baselines import SemanticMatching
>>> data = ls.datasets.make_views(60, n_classes=3, random_state=0)
>>> model = SemanticMatching().fit(data.views(), data.labels)
>>> model.scores("text", "image").shape
(60, 60)
"""

from linkspread.studies.baselines.bilinear import BilinearRidge
from linkspread.studies.baselines.correlation import (
    CanonicalSimilarity,
    CorrelationMatching,
)
from linkspread.studies.baselines.kernel_smoother import KernelSmoother
from linkspread.studies.baselines.ridge_maps import (
    AnchorSimilarity,
    CosineMatching,
    RidgeMap,
    RidgeToIdentity,
)
from linkspread.studies.baselines.semantic_matching import (
    CorrelationSemantics,
    SemanticMatching,
)
from linkspread.studies.baselines.spreading import (
    LabelSpreadingMatching,
    RowThenColumn,
    SpectralMatching,
)

__all__ = [
    "AnchorSimilarity",
    "BilinearRidge",
    "CanonicalSimilarity",
    "CorrelationMatching",
    "CorrelationSemantics",
    "CosineMatching",
    "KernelSmoother",
    "LabelSpreadingMatching",
    "RidgeMap",
    "RidgeToIdentity",
    "RowThenColumn",
    "SemanticMatching",
    "SpectralMatching",
]
