"""What tests of baselines share."""

import numpy as np

from linkspread.studies.baselines import (
    BilinearRidge,
    CanonicalSimilarity,
    CorrelationMatching,
    CorrelationSemantics,
    KernelSmoother,
    LabelSpreadingMatching,
    RowThenColumn,
    SemanticMatching,
    SpectralMatching,
)

SIZES = {"text": 70, "image": 50}


BY_LABELS = {
    "logistic": SemanticMatching(),
    "svm": SemanticMatching(classifier="svm", cv=2),
    "ca": CorrelationMatching(n_components=2),
    "ca+sa": CorrelationSemantics(),
    "csa": CanonicalSimilarity(),
    "spectral": SpectralMatching(n_components=4, n_neighbors=5),
    "spreading": LabelSpreadingMatching(n_neighbors=5),
    "row then column": RowThenColumn(n_neighbors=5),
    "bilinear": BilinearRidge(n_components=6),
    "smoother": KernelSmoother(),
}


def some_labels(data, share=0.6):
    rng = np.random.default_rng(1)
    labels = {view: y.copy() for view, y in data.labels.items()}
    for y in labels.values():
        y[rng.random(len(y)) > share] = -1
    return labels
