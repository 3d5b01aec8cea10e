"""Posteriors and their comparison against scikit-learn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import chi2_kernel, rbf_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from linkspread import Links
from linkspread.graphs.distances import mean_distance
from linkspread.studies.baselines import (
    CorrelationMatching,
    CorrelationSemantics,
    SemanticMatching,
)
from linkspread.studies.baselines.semantic_matching import KernelSupportVectors

WAY = {"source": "text", "target": "image"}
BACK = {"source": "image", "target": "text"}

N_CLASSES = 3


@pytest.fixture
def problem(rng):
    """Return histograms of unequal views, and labels of some of the items."""
    views, labels = {}, {}
    for view, n, p in (("text", 60, 6), ("image", 45, 8)):
        y = rng.integers(0, N_CLASSES, n)
        X = rng.random((n, p)) + 2 * rng.random((N_CLASSES, p))[y]
        views[view], labels[view] = X, np.where(rng.random(n) < 0.8, y, -1)
    return views, labels


def dense_correlations(a, b):
    """Return Pearson's correlation of each row of a with each row of b."""
    return np.corrcoef(a, b)[: len(a), len(a) :]


def expected_posteriors(classifier, X, y, features=lambda X: X):
    known = y >= 0
    return classifier.fit(features(X)[known], y[known]).predict_proba(features(X))


def standardise(X):
    return StandardScaler().fit_transform(X)


def test_scores_are_correlations_of_logistic_posteriors(problem):
    views, labels = problem
    model = SemanticMatching(C=2.0).fit(views, labels)
    a, b = (
        expected_posteriors(
            LogisticRegression(C=2.0, max_iter=2000), views[v], labels[v], standardise
        )
        for v in ("text", "image")
    )
    assert_allclose(model.scores("text", "image"), dense_correlations(a, b), atol=1e-8)
    dot = SemanticMatching(C=2.0, score="dot").fit(views, labels)
    assert_allclose(dot.scores("text", "image"), a @ b.T, atol=1e-8)


def test_svm_posteriors_are_calibrated_across_folds(problem):
    views, labels = problem
    model = SemanticMatching(classifier="svm", C=3.0, width=0.7, cv=3, score="dot")
    model.fit(views, labels)
    X = standardise(views["text"])
    gamma = (0.7 * mean_distance(X)) ** -2
    svm = OneVsRestClassifier(SVC(C=3.0, gamma=gamma))
    calibrated = CalibratedClassifierCV(svm, ensemble=False, cv=3)
    expected = expected_posteriors(calibrated, X, labels["text"])
    # Platt's sigmoids and the machines stop at tolerances of their own.
    assert_allclose(model.embed(views["text"], **WAY), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("kernel", "dense"),
    [
        ("linear", lambda X, A: standardise(X) @ standardise(X)[: len(A)].T),
        # Ours is exp(-d^2) of d^2 = sum (x - y)^2 / (x + y) / 2.
        ("chi2", lambda X, A: chi2_kernel(X, A, gamma=scale(X, "chi2") / 2)),
        (
            "hellinger",
            lambda X, A: rbf_kernel(
                *(np.sqrt(Q / Q.sum(axis=1, keepdims=True) / 2) for Q in (X, A)),
                gamma=scale(X, "hellinger"),
            ),
        ),
    ],
)
def test_kernels_are_those_of_scikit_learn(kernel, dense, problem):
    views, labels = problem
    labels["text"][:40] = np.arange(40) % 3
    labels["text"][40:] = -1
    model = SemanticMatching(classifier="svm", kernel=kernel, score="dot", cv=3)
    model.fit(views, labels)
    X, y = views["text"], labels["text"]
    K = dense(X, X[:40])
    svm = OneVsRestClassifier(SVC(kernel="precomputed"))
    calibrated = CalibratedClassifierCV(svm, ensemble=False, cv=3)
    expected = calibrated.fit(K[:40], y[:40]).predict_proba(K)
    assert_allclose(model.embed(X, **WAY), expected, atol=1e-3)


def scale(X, metric):
    return (0.5 * mean_distance(X, metric=metric)) ** -2


def test_one_label_a_class_falls_back_to_the_softmax_of_decisions(problem):
    views, _ = problem
    labels = {view: np.full(len(X), -1) for view, X in views.items()}
    for y in labels.values():
        y[:N_CLASSES] = np.arange(N_CLASSES)
    model = SemanticMatching(classifier="svm", score="dot").fit(views, labels)
    X = standardise(views["text"])
    svm = OneVsRestClassifier(SVC(gamma=(0.5 * mean_distance(X)) ** -2))
    decisions = svm.fit(X[:N_CLASSES], np.arange(N_CLASSES)).decision_function(X)
    posteriors = model.embed(views["text"], **WAY)
    assert_allclose(posteriors, softmax(decisions, axis=1), atol=1e-6)


def test_two_classes_with_one_label_each_have_posteriors_too(problem):
    views, _ = problem
    labels = {view: np.r_[0, 1, np.full(len(X) - 2, -1)] for view, X in views.items()}
    model = SemanticMatching(classifier="svm", score="dot").fit(views, labels)
    posteriors = model.embed(views["text"], **WAY)
    assert_allclose(posteriors.sum(axis=1), 1)
    assert posteriors[0, 0] > 0.5 > posteriors[1, 0]


def test_any_classifier_serves_each_view_with_its_own(problem):
    views, labels = problem
    forest = RandomForestClassifier(10, random_state=0)
    model = SemanticMatching(
        classifier={"text": forest, "image": "logistic"}, scaling="none", score="dot"
    ).fit(views, labels)
    expected = expected_posteriors(forest, views["text"], labels["text"])
    assert_allclose(model.embed(views["text"], **WAY), expected)


def test_a_classifier_without_posteriors_is_calibrated(problem):
    views, labels = problem
    model = SemanticMatching(classifier=SVC(), scaling="none", score="dot", cv=3)
    model.fit(views, labels)
    calibrated = CalibratedClassifierCV(SVC(), ensemble=False, cv=3)
    expected = expected_posteriors(calibrated, views["text"], labels["text"])
    assert_allclose(model.embed(views["text"], **WAY), expected)


def test_a_class_that_one_view_lacks_has_posterior_zero_there(problem):
    views, labels = problem
    labels["image"][labels["image"] == 1] = -1
    model = SemanticMatching(score="dot").fit(views, labels)
    posteriors = model.embed(views["image"], **BACK)
    assert posteriors.shape == (45, 3)
    assert np.all(posteriors[:, 1] == 0)
    assert_allclose(posteriors.sum(axis=1), 1)


def test_sqrt_scaling_is_the_hellinger_map(problem):
    views, labels = problem
    model = SemanticMatching(scaling="sqrt", score="dot").fit(views, labels)
    shares = {v: X / X.sum(axis=1, keepdims=True) for v, X in views.items()}
    by_hand = SemanticMatching(scaling="none", score="dot")
    by_hand.fit({v: np.sqrt(X) for v, X in shares.items()}, labels)
    expected = by_hand.scores("text", "image")
    assert_allclose(model.scores("text", "image"), expected, atol=1e-12)


@pytest.mark.parametrize("method", ["cca", "cfa", "pls"])
def test_correlation_semantics_classifies_the_projections(method, problem):
    views, labels = problem
    links = Links.from_labels(labels) + Links.from_matched(("text", "image"), 40)
    model = CorrelationSemantics(method=method, n_components=4).fit(views, links)
    posteriors = []
    projections = CorrelationMatching(method=method, n_components=4).fit(views, links)
    for view, other in (("text", "image"), ("image", "text")):
        projection = projections.sides_[view, other].embed.__self__
        components = projection.project(views[view])
        classifier = LogisticRegression(max_iter=2000)
        posteriors.append(
            expected_posteriors(classifier, components, labels[view], standardise)
        )
    expected = dense_correlations(*posteriors)
    assert_allclose(model.scores("text", "image"), expected, atol=1e-8)


def test_labels_alone_serve_correlation_semantics_class_by_class(problem):
    views, labels = problem
    model = CorrelationSemantics().fit(views, labels)
    scores = model.scores("text", "image")
    same = (labels["text"][:, None] == labels["image"]) & (labels["text"][:, None] >= 0)
    judged = (labels["text"][:, None] >= 0) & (labels["image"] >= 0)
    assert scores[same].mean() > scores[judged & ~same].mean() + 0.5


def test_soft_memberships_count_by_their_largest(problem):
    views, labels = problem
    soft = {}
    for view, y in labels.items():
        soft[view] = 0.6 * np.eye(N_CLASSES)[y] + 0.1
        soft[view][y < 0] = 0
    expected = SemanticMatching().fit(views, labels).scores("text", "image")
    model = SemanticMatching().fit(views, Links.from_labels(soft))
    assert_allclose(model.scores("text", "image"), expected)


def test_the_correlation_of_two_classes_is_their_agreement(problem):
    views, labels = problem
    labels = {view: np.minimum(y, 1) for view, y in labels.items()}
    scores = SemanticMatching().fit(views, labels).scores("text", "image")
    assert_allclose(np.abs(scores), 1)


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
