"""Support vector machines on a kernel that is given, one for each class."""

from typing import Any, Self

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import SVC

__all__ = ["KernelSupportVectors"]

Array = np.ndarray


class KernelSupportVectors(ClassifierMixin, BaseEstimator):
    """One support vector machine for each class against all others.

    The decisions are those of scikit-learn's `OneVsRestClassifier` around an `SVC`; all
    classes together are one product with the kernel, which for many classes is what
    takes the time there.

    Parameters
    ----------
    C : float, default=1.0
        Weight of errors against the margin.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coefficients_ : ndarray of shape (n_fitted, n_machines)
        Of the kernel with each fitted row; one machine does for two classes.
    intercepts_ : ndarray of shape (n_machines,)

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.fitting.support_vectors import KernelSupportVectors
    >>> K, classes = np.eye(6), np.repeat([0, 1, 2], 2)
    >>> KernelSupportVectors().fit(K, classes).predict(K).tolist()
    [0, 0, 1, 1, 2, 2]
    """

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def fit(self, K: Any, classes: Any) -> Self:
        """Fit all machines.

        Parameters
        ----------
        K : ndarray of shape (n_fitted, n_fitted)
        classes : array-like of shape (n_fitted,)

        Returns
        -------
        self : KernelSupportVectors
        """
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
        """Return decisions of shape (n_rows, n_classes), or (n_rows,) for two classes.

        Parameters
        ----------
        K : ndarray of shape (n_rows, n_fitted)

        Returns
        -------
        decisions : ndarray
        """
        decisions = K @ self.coefficients_ + self.intercepts_
        return decisions if len(self.classes_) > 2 else decisions[:, 0]

    def predict(self, K: Any) -> Array:
        """Return the class of each row.

        Parameters
        ----------
        K : ndarray of shape (n_rows, n_fitted)

        Returns
        -------
        classes : ndarray of shape (n_rows,)
        """
        decisions = self.decision_function(K)
        if decisions.ndim == 1:
            return self.classes_[(decisions > 0).astype(np.intp)]
        return self.classes_[decisions.argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Rows that are left out are left out of the columns as well.
        tags.input_tags.pairwise = True
        return tags
