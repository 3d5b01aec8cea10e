"""Semantic matching: a classifier for each view, with posteriors as vectors."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import softmax
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from linkspread.compiled.backends import small_algebra
from linkspread.ground.checks import check_count, check_name, check_positive, naming
from linkspread.ground.errors import LinkspreadError
from linkspread.links import Links
from linkspread.studies.baselines.correlation import Projection, ProjectionMatching
from linkspread.studies.baselines.inputs import labelled_rows, prepare
from linkspread.studies.baselines.kernel_smoother import choose_kernel
from linkspread.studies.baselines.matching import Side, Steps, ViewMatching, unit_rows

Array = np.ndarray

# Kernels of histograms, which must not be scaled.
HISTOGRAM_KERNELS = ("chi2", "hellinger")


def centred_units(vectors: Array) -> Array:
    """Subtract each row's mean, then scale rows to unit norm."""
    return unit_rows(vectors - vectors.mean(axis=1, keepdims=True))


def unchanged(vectors: Array) -> Array:
    """Return vectors unchanged."""
    return vectors


SCORES: dict[str, Callable[[Array], Array]] = {
    "correlation": centred_units,
    "dot": unchanged,
}


@dataclass(kw_only=True, eq=False, repr=False)
class SemanticMatching(ViewMatching):
    """Match by class posteriors: SA alone, or SM, in [Rasiwasia2010].

    A classifier per view is trained on the labelled items; every item, labelled ones
    too, is then described by its posteriors, which all views share. With support
    vector machines these are calibrated by sigmoids across folds [Platt1999].
    """

    PER_VIEW: ClassVar[tuple[str, ...]] = tuple(
        "classifier C kernel width scaling".split()
    )

    classifier: Any = "logistic"
    C: Any = 1.0
    kernel: Any = "rbf"
    width: Any = 0.5
    scaling: Any = "standard"
    score: str = "correlation"
    cv: int = 5

    def _learn_view(self, X: Any, links: Links, view: str, **chosen: Any) -> Side:
        compare = SCORES[check_name(self.score, SCORES, name="score")]
        rows, classes, n_classes = labelled_rows(links, view)
        with naming(view):
            classifier, steps = self._choose_classifier(X, rows, **chosen)
            cv = check_count(self.cv, name="cv", remedy="The default is 5.")
            fitted = fit_posteriors(classifier, steps(X[rows]), classes, cv=cv)
        return Side(Steps(steps, partial(posteriors, fitted, n_classes), compare), X)

    def _choose_classifier(
        self,
        X: Any,
        rows: Any,
        *,
        classifier: Any,
        C: float,
        kernel: str,
        width: float,
        scaling: str,
    ) -> tuple[Any, Steps]:
        """Return the classifier of a view, and the transform of its features."""
        C = check_positive(C, name="C", remedy="The default is 1.")
        kind = classifier if isinstance(classifier, str) else None
        if kind == "svm" and kernel in HISTOGRAM_KERNELS:
            scaling = "none"
        prepared = prepare(X, scaling=scaling)
        if kind == "svm":
            compare = choose_kernel(kernel, prepared.transform(X), rows, width=width)
            return KernelSupportVectors(C), Steps(prepared.transform, compare)
        if kind == "logistic":
            return _logistic(C), Steps(prepared.transform)
        if not (hasattr(classifier, "fit") and hasattr(classifier, "predict")):
            raise LinkspreadError(
                "`classifier` must be 'logistic', 'svm' or a classifier of "
                f"scikit-learn, got {classifier!r:.60}. Use 'logistic' if in doubt."
            )
        return classifier, Steps(prepared.transform)


@dataclass(kw_only=True, eq=False, repr=False)
class CorrelationSemantics(ProjectionMatching):
    """Match by posteriors on correlated components: CA+SA in [Rasiwasia2010].

    The views are projected as in `CorrelationMatching`; on the components, each
    scaled to variance 1, multinomial logistic regression gives every item its class
    posteriors, which are compared by normalised correlation. This is the baseline of
    [Lu2015]. Needs labels in both views.
    """

    method: str = "cca"
    C: float = 1.0

    def _embedding(
        self, X: Any, projection: Projection, links: Links, view: str
    ) -> Any:
        rows, classes, n_classes = labelled_rows(links, view)
        C = check_positive(self.C, name="C", remedy="The default is 1.")
        scaled = prepare(projection.project(X), scaling="standard")
        steps = Steps(projection.project, scaled.transform)
        fitted = fit_posteriors(_logistic(C), steps(X[rows]), classes, cv=2)
        return Steps(steps, partial(posteriors, fitted, n_classes), centred_units)


def posteriors(classifier: Any, n_classes: int, features: Any) -> Array:
    """Return posteriors of shape (n_rows, n_classes).

    A classifier without `predict_proba` gives the softmax of its decisions; classes
    that it was not trained on get 0.
    """
    if hasattr(classifier, "predict_proba"):
        known = classifier.predict_proba(features)
    else:
        decisions = classifier.decision_function(features)
        if decisions.ndim == 1:  # of two classes
            decisions = np.column_stack([-decisions, decisions]) / 2
        known = softmax(decisions, axis=1)
    found = np.zeros((len(known), n_classes))
    found[:, classifier.classes_] = known
    return found


def fit_posteriors(classifier: Any, features: Any, classes: Array, *, cv: int) -> Any:
    """Fit a classifier, calibrated across folds if it gives no posteriors itself.

    Folds are fewer where a class has fewer labels, and there is no calibration where a
    class has only one.
    """
    n_folds = min(cv, np.unique(classes, return_counts=True)[1].min())
    fitting = clone(classifier)
    if not hasattr(classifier, "predict_proba") and n_folds >= 2:
        fitting = CalibratedClassifierCV(
            fitting, method="sigmoid", cv=int(n_folds), ensemble=False
        )
    # Small steps are faster in one thread.
    with small_algebra(int(np.prod(features.shape))):
        return fitting.fit(features, classes)


def _logistic(C: float) -> LogisticRegression:
    """Return multinomial logistic regression."""
    return LogisticRegression(C=C, max_iter=2000)


class KernelSupportVectors(ClassifierMixin, BaseEstimator):
    """One support vector machine for each class against all others.

    The decisions are those of scikit-learn's `OneVsRestClassifier` around an `SVC`, of
    all classes in one product with the kernel, which takes the time for many classes.
    """

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def fit(self, K: Any, classes: Any) -> Self:
        """Fit all machines."""
        self.classes_ = np.unique(classes)
        # For two classes, the machine of the second decides.
        found = self.classes_ if len(self.classes_) > 2 else self.classes_[1:]
        self.coefficients_ = np.zeros((len(K), len(found)))
        self.intercepts_ = np.zeros(len(found))
        # Checking the same kernel again would take longer than a small machine.
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
        # Cross-validation must hold out rows and columns.
        tags.input_tags.pairwise = True
        return tags
