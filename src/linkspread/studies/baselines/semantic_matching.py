"""Semantic matching: a classifier for each view, posteriors as common language."""

from typing import Any, ClassVar

from linkspread.ground.checks import check_count, check_name, check_positive, naming
from linkspread.ground.errors import LinkspreadError
from linkspread.links import Links
from linkspread.studies.baselines.classes import labelled_rows
from linkspread.studies.baselines.gaussian_kernel import choose_kernel
from linkspread.studies.baselines.matching import ViewMatching
from linkspread.studies.baselines.posteriors import (
    KernelSupportVectors,
    Posteriors,
    fit_posteriors,
    logistic,
)
from linkspread.studies.baselines.preparation import prepare
from linkspread.studies.baselines.side import SCORES, Side
from linkspread.studies.baselines.steps import Steps

# Kernels of histograms, which scaling would spoil.
HISTOGRAM_KERNELS = ("chi2", "hellinger")


class SemanticMatching(ViewMatching):
    """Match by class posteriors: SA alone, or SM, in [Rasiwasia2010].

    A classifier per view is trained on the labelled items; every item, labelled ones
    too, is then described by its posteriors, which all views share. With support
    vector machines these are calibrated by sigmoids across folds [Platt1999].
    """

    PER_VIEW: ClassVar[tuple[str, ...]] = (
        "classifier",
        "C",
        "kernel",
        "width",
        "scaling",
    )

    def __init__(
        self,
        *,
        classifier: Any = "logistic",
        C: Any = 1.0,
        kernel: Any = "rbf",
        width: Any = 0.5,
        scaling: Any = "standard",
        score: str = "correlation",
        cv: int = 5,
    ) -> None:
        self.classifier = classifier
        self.C = C
        self.kernel = kernel
        self.width = width
        self.scaling = scaling
        self.score = score
        self.cv = cv

    def _learn_view(self, X: Any, links: Links, view: str, **chosen: Any) -> Side:
        compare = SCORES[check_name(self.score, SCORES, name="score")]
        rows, classes, n_classes = labelled_rows(links, view)
        with naming(view):
            classifier, steps = self._choose_classifier(X, rows, **chosen)
            cv = check_count(self.cv, name="cv", remedy="The default is 5.")
            fitted = fit_posteriors(classifier, steps(X[rows]), classes, cv=cv)
        posteriors = Posteriors(fitted, steps, n_classes)
        return Side.of(X, Steps(posteriors, compare))

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
        """Return the classifier of a view, and what makes its features of rows."""
        C = check_positive(C, name="C", remedy="The default is 1.")
        if isinstance(classifier, str) and classifier == "svm":
            scaling = "none" if kernel in HISTOGRAM_KERNELS else scaling
            prepared = prepare(X, scaling=scaling)
            compare = choose_kernel(kernel, prepared.transform(X), rows, width=width)
            return KernelSupportVectors(C), Steps(prepared.transform, compare)
        prepared = prepare(X, scaling=scaling)
        if isinstance(classifier, str) and classifier == "logistic":
            return logistic(C), Steps(prepared.transform)
        if not (hasattr(classifier, "fit") and hasattr(classifier, "predict")):
            raise LinkspreadError(
                "`classifier` must be 'logistic', 'svm' or a classifier of "
                f"scikit-learn, got {classifier!r:.60}. Use 'logistic' if in doubt."
            )
        return classifier, Steps(prepared.transform)
