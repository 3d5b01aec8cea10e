"""Semantic matching: a classifier for each view, posteriors as common language."""

from typing import Any, ClassVar

from linkspread.baselines.classes import labelled_rows
from linkspread.baselines.gaussian_kernel import choose_kernel
from linkspread.baselines.matching import ViewMatching
from linkspread.baselines.posteriors import (
    KernelSupportVectors,
    Posteriors,
    fit_posteriors,
    logistic,
)
from linkspread.baselines.preparation import prepare
from linkspread.baselines.side import SCORES, Side
from linkspread.baselines.steps import Steps
from linkspread.exceptions import LinkspreadError
from linkspread.links import Links
from linkspread.parameter_checks import check_count, check_name, check_positive, naming

__all__ = ["SemanticMatching"]

# Kernels of histograms, which scaling would spoil.
HISTOGRAM_KERNELS = ("chi2", "hellinger")


class SemanticMatching(ViewMatching):
    """Match by class posteriors: SA alone, or SM, in [Rasiwasia2010].

    A classifier per view is trained on the labelled items; every item, labelled ones
    too, is then described by its posteriors, which all views share. With support
    vector machines these are calibrated by sigmoids across folds [Platt1999].

    Parameters
    ----------
    classifier : str, classifier or dict by view, default="logistic"
        "logistic" is multinomial logistic regression; "svm" one support vector machine
        for each class; or any classifier of scikit-learn. One without `predict_proba`
        is calibrated like "svm".
    C : float or dict by view, default=1.0
        Of "logistic" and "svm": larger fits the labels closer.
    kernel : str or dict by view, default="rbf"
        Of "svm": "linear", or a Gaussian of the Euclidean ("rbf"), "hellinger" or
        "chi2" distance. The last two compare histograms as they are, unscaled.
    width : float or dict by view, default=0.5
        Of the Gaussian, in mean distances between items.
    scaling : {"standard", "sqrt", "none"} or dict by view, default="standard"
        "sqrt" suits histograms.
    score : {"correlation", "dot"}, default="correlation"
        Normalised correlation of two posteriors, or their inner product: the
        probability that both items are of the same class.
    cv : int, default=5
        Folds of the calibration, fewer where a class has fewer labels. Where a class
        has only one, posteriors are the softmax of uncalibrated decisions.

    Attributes
    ----------
    view_names_ : tuple of str
    items_ : dict from str to Items
    links_ : Links
    sides_ : dict from str to Side

    Examples
    --------
    >>> import linkspread as ls
    >>> from linkspread.baselines import SemanticMatching
    >>> data = ls.datasets.make_views(60, n_classes=3, random_state=0)
    >>> model = SemanticMatching(score="dot").fit(data.views(), data.labels)
    >>> posteriors = model.transform(data.views()["text"][:5], "text")
    >>> posteriors.sum(axis=1).round(6)
    array([1., 1., 1., 1., 1.])
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
