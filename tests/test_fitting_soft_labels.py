"""Soft memberships for unlabelled items, edges weighed by them, and stacking."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

from linkspread import Links, LinkSpreading
from linkspread.datasets import make_views
from linkspread.exceptions import GraphError, LinkError, LinkspreadError
from linkspread.fitting.soft_labels import soften_labels
from linkspread.fitting.stacking import class_weights, pair_weights
from linkspread.graphs import knn_graph, weigh_by_memberships
from linkspread.metrics import mean_average_precision

N, KNOWN = 150, 45


@pytest.fixture(scope="module")
def data():
    """Return views whose classes overlap a little."""
    return make_views(N, n_classes=3, noise=1.2, random_state=2)


@pytest.fixture(scope="module")
def known(data):
    """Return the labels of the first items."""
    return {v: np.where(np.arange(N) < KNOWN, y, -1) for v, y in data.labels.items()}


@pytest.mark.parametrize(
    "classifier", [None, RandomForestClassifier(30, random_state=0), SVC()]
)
def test_unlabelled_items_get_the_class_they_are_likely_of(data, known, classifier):
    soft = soften_labels(data.views(), known, classifier, floor=0.6)
    for view, own in soft.items():
        y = data.labels[view]
        assert_allclose(own[:KNOWN], np.eye(3)[y[:KNOWN]])
        sums = own[KNOWN:].sum(axis=1)
        assert set(np.round(sums, 6)) <= {0.0, 1.0}
        sure = np.flatnonzero(sums) + KNOWN
        assert own[sure].max(axis=1).min() >= 0.6
        assert np.mean(own[sure].argmax(axis=1) == y[sure]) > 0.8


def test_soft_links_find_more_than_hard_ones(data, known):
    def found(labels):
        model = LinkSpreading(n_neighbors=10, alpha=0.1)
        block = model.fit(data.views(), Links.from_labels(labels))
        block = block.scores("text", "image")[KNOWN:, KNOWN:]
        y = data.labels
        return mean_average_precision(block, y["text"][KNOWN:], y["image"][KNOWN:])

    assert found(soften_labels(data.views(), known)) > found(known)


def test_mistakes_are_one_sentence(data, known):
    views = data.views()
    for floor in (2, -0.1, np.nan, "high", None):
        sentence = f"`floor` must be a probability from 0 to 1, got {floor!r}.*is 0.5"
        with pytest.raises(LinkspreadError, match=sentence):
            soften_labels(views, known, floor=floor)
    for wrong in ("svm", 3):
        sentence = f"`classifier` must be a classifier of.*got {wrong!r}.*logistic"
        with pytest.raises(LinkspreadError, match=sentence):
            soften_labels(views, known, wrong)
    with pytest.raises(LinkError, match="of the views .*got 'sound'"):
        soften_labels(views, {"sound": known["text"]})
    with pytest.raises(LinkError, match="view 'text' must be 150 integers from -1"):
        soften_labels(views, {"text": known["text"][:3]})
    with pytest.raises(LinkError, match="view 'text': labels must be of at least 2"):
        soften_labels(views, {"text": np.zeros(N, dtype=int)})


def test_edges_between_classes_lose_weight(data):
    X, y = data.views()["text"], data.labels["text"]
    W = knn_graph(X, n_neighbors=10)
    weighed = weigh_by_memberships(W, np.eye(3)[y])
    dense, before = weighed.toarray(), W.toarray()
    same = y[:, None] == y
    assert_allclose(dense[same], before[same])
    assert not dense[~same].any()
    blank = np.zeros((N, 3))
    blank[0, 1] = 1.0  # all that is known is one item
    assert_allclose(weigh_by_memberships(W, blank).toarray(), before)
    with pytest.raises(GraphError, match="a row for each of the 150 items"):
        weigh_by_memberships(W, blank[:5])
    for value in (np.nan, -0.5):
        blank[3, 2] = value
        with pytest.raises(GraphError, match="memberships must be at least 0, with a"):
            weigh_by_memberships(W, blank)


def test_the_better_fit_weighs_more_as_more_is_known(rng):
    def weights(n):
        truth = np.eye(3)[rng.integers(3, size=n)]
        good = truth + 0.3 * rng.standard_normal((n, 3))
        return class_weights([good, rng.standard_normal((n, 3))], truth, np.ones(n))

    few, many = weights(3), weights(3000)
    assert few[0] > 2 and few[1] > 1  # hardly away from equal ones
    assert many[0] > 5 and many[1] < 0.1


def test_pairs_weigh_fits_by_what_they_say_of_pairs_left_out(rng):
    n = 200_000
    targets = rng.choice([0.9, -0.1], n, p=[0.1, 0.9])
    good, bad = targets + 0.2 * rng.standard_normal(n), rng.standard_normal(n)
    weights = pair_weights([good, 100 * bad], targets, np.ones(n))
    assert weights[0] * good.std() > 10 * weights[1] * 100 * bad.std()
    unknown = np.where(np.arange(n) < n // 2, good, np.nan)
    again = pair_weights([unknown, bad], targets, np.ones(n))
    assert again[0] == pytest.approx(weights[0], rel=0.05)
    alike = pair_weights([good, good], targets, np.ones(n))
    assert alike[0] == pytest.approx(alike[1])


def test_fits_that_say_nothing_of_use_leave_the_first(rng):
    truth = np.eye(3)[rng.integers(0, 3, 300)]
    contrary = [-5 * truth, -3 * truth]
    assert class_weights(contrary, truth, np.ones(300)).tolist() == [1.0, 0.0]
    targets = rng.choice([-1.0, 1.0], 2000)
    weights = pair_weights([-targets, -2 * targets], targets, np.ones(2000))
    assert weights.tolist() == [1.0, 0.0]


def test_a_prior_counts_until_pairs_tell_otherwise(rng):
    n = 200_000
    targets = rng.choice([-1.0, 1.0], n)
    fits = [targets + rng.standard_normal(n) for _ in range(2)]
    some = slice(0, 100)
    ones = np.ones(100)
    few = pair_weights([f[some] for f in fits], targets[some], ones, prior=[9, 1])
    sizes = [np.sqrt(np.mean(f[some] ** 2)) for f in fits]
    assert few[0] * sizes[0] > 5 * few[1] * sizes[1]
    many = pair_weights(fits, targets, np.ones(n), prior=[9, 1])
    assert 0.5 < many[1] / many[0] < 1.5
    alike = pair_weights(fits, targets, np.ones(n))
    same = pair_weights(fits, targets, np.ones(n), prior=[3, 3])
    np.testing.assert_array_equal(alike, same)
