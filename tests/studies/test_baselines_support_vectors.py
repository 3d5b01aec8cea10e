"""Support vector machines: the decisions of scikit-learn, for two classes and more."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from linkspread.studies.baselines.posteriors import KernelSupportVectors


def _problem(rng, n_classes):
    classes = rng.permutation(np.repeat(np.arange(n_classes) * 3 + 1, 12))
    X = rng.standard_normal((len(classes), 4)) + classes[:, None] / 3
    Q = X[:20] + 0.3 * rng.standard_normal((20, 4))
    return rbf_kernel(X, gamma=0.2), rbf_kernel(Q, X, gamma=0.2), classes


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_decisions_are_those_of_one_machine_for_each_class(rng, n_classes):
    K, Q, classes = _problem(rng, n_classes)
    ours = KernelSupportVectors(C=3.0).fit(K, classes)
    theirs = OneVsRestClassifier(SVC(kernel="precomputed", C=3.0)).fit(K, classes)
    assert_allclose(ours.decision_function(Q), theirs.decision_function(Q), atol=1e-9)
    assert_array_equal(ours.predict(Q), theirs.predict(Q))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_calibration_leaves_rows_out_of_both_sides_of_the_kernel(rng, n_classes):
    K, Q, classes = _problem(rng, n_classes)
    found = [
        CalibratedClassifierCV(machine, cv=3, ensemble=False)
        .fit(K, classes)
        .predict_proba(Q)
        for machine in (
            KernelSupportVectors(),
            OneVsRestClassifier(SVC(kernel="precomputed")),
        )
    ]
    assert_allclose(found[0], found[1], atol=1e-6)
