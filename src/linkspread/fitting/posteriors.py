"""Class posteriors of one view, from any classifier."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression

from linkspread.kernels.threads import small_algebra

__all__ = ["Posteriors", "fit_posteriors", "logistic"]

Array = np.ndarray

# Rows whose posteriors are computed at a time: kernels compare them with all anchors.
ROW_TILE = 4096


class Posteriors:
    """Give rows of one view their posterior for each class of all views.

    Parameters
    ----------
    classifier : fitted classifier
        With `predict_proba`, or with `decision_function`, whose softmax then serves.
    features : callable
        Makes of a table of rows what the classifier takes.
    n_classes : int
        Classes that the classifier did not meet get 0.
    """

    def __init__(
        self, classifier: Any, features: Callable[[Any], Any], n_classes: int
    ) -> None:
        self.classifier = classifier
        self.features = features
        self.n_classes = n_classes

    def __call__(self, rows: Any) -> Array:
        """Return posteriors of shape (n_rows, n_classes)."""
        posteriors = np.zeros((rows.shape[0], self.n_classes))
        for start in range(0, rows.shape[0], ROW_TILE):
            tile = slice(start, start + ROW_TILE)
            known = self._posteriors(self.features(rows[tile]))
            posteriors[tile, self.classifier.classes_] = known
        return posteriors

    def _posteriors(self, features: Any) -> Array:
        """Return posteriors for the classes that the classifier met."""
        if hasattr(self.classifier, "predict_proba"):
            return self.classifier.predict_proba(features)
        decisions = self.classifier.decision_function(features)
        if decisions.ndim == 1:  # of two classes
            decisions = np.column_stack([-decisions, decisions]) / 2
        return softmax(decisions, axis=1)


def fit_posteriors(classifier: Any, features: Any, classes: Array, *, cv: int) -> Any:
    """Fit a classifier, calibrated across folds if it gives no posteriors itself.

    Parameters
    ----------
    classifier : scikit-learn classifier
        Cloned, not modified.
    features : ndarray or sparse of shape (n_labelled, n_features)
    classes : ndarray of shape (n_labelled,)
    cv : int
        Folds of the calibration; fewer where a class has fewer labels, and no
        calibration where a class has only one, which no fold can do without.

    Returns
    -------
    classifier : fitted classifier
    """
    n_folds = min(cv, np.unique(classes, return_counts=True)[1].min())
    fitting = clone(classifier)
    if not hasattr(classifier, "predict_proba") and n_folds >= 2:
        fitting = CalibratedClassifierCV(
            fitting, method="sigmoid", cv=int(n_folds), ensemble=False
        )
    # Solvers take many small steps, between which threads would wait for each other.
    with small_algebra(int(np.prod(features.shape))):
        return fitting.fit(features, classes)


def logistic(C: float) -> LogisticRegression:
    """Return multinomial logistic regression.

    Parameters
    ----------
    C : float
        Inverse of the ridge.

    Returns
    -------
    classifier : LogisticRegression
    """
    return LogisticRegression(C=C, max_iter=2000)
