"""Class posteriors of one view, from any classifier, or from support vectors."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from linkspread.compiled.threads import small_algebra

Array = np.ndarray

# Rows whose posteriors are computed at a time: kernels compare them with all anchors.
ROW_TILE = 4096


class Posteriors:
    """Give rows of one view their posterior for each class of all views.

    A classifier without `predict_proba` gives the softmax of its decisions; classes
    that it did not meet get 0.
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

    Folds are fewer where a class has fewer labels, and there is no calibration where a
    class has only one, which no fold can do without.
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
    """Return multinomial logistic regression."""
    return LogisticRegression(C=C, max_iter=2000)


class KernelSupportVectors(ClassifierMixin, BaseEstimator):
    """One support vector machine for each class against all others.

    The decisions are those of scikit-learn's `OneVsRestClassifier` around an `SVC`; all
    classes together are one product with the kernel, which for many classes is what
    takes the time there.
    """

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def fit(self, K: Any, classes: Any) -> Self:
        """Fit all machines."""
        self.classes_ = np.unique(classes)
        # Of two classes the second says all.
        found = self.classes_ if len(self.classes_) > 2 else self.classes_[1:]
        self.coefficients_ = np.zeros((len(K), len(found)))
        self.intercepts_ = np.zeros(len(found))
        # Checks of the same kernel would take longer than a small machine.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            for k, own in enumerate(found):
                machine = SVC(kernel="precomputed", C=self.C).fit(K, classes == own)
                self.coefficients_[machine.support_, k] = machine.dual_coef_[0]
                self.intercepts_[k] = machine.intercept_[0]
        return self

    def decision_function(self, K: Any) -> Array:
        """Return decisions by row and class, or by row alone for two classes."""
        decisions = K @ self.coefficients_ + self.intercepts_
        return decisions if len(self.classes_) > 2 else decisions[:, 0]

    def predict(self, K: Any) -> Array:
        """Return the class of each row."""
        decisions = self.decision_function(K)
        if decisions.ndim == 1:
            return self.classes_[(decisions > 0).astype(np.intp)]
        return self.classes_[decisions.argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Rows that are left out are left out of the columns as well.
        tags.input_tags.pairwise = True
        return tags
