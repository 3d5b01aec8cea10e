"""What goes together: single pairs first, else classes, never written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from linkspread import Links
from linkspread.ground.errors import LinkError
from linkspread.studies.baselines.correlation import covariances
from linkspread.studies.baselines.inputs import balanced_links, correspondences

LABELS = {"text": [0, 1, 1, -1, 2], "image": [1, 0, 1, -1]}
SIZES = {"text": 5, "image": 4}
PAIRS = [(0, 1, 2.0), (4, 3, 1.0), (1, 1, -3.0)]


def label_links():
    return Links.from_labels(LABELS).resolve(SIZES)


def mixed_links():
    pairs = Links.from_pairs(PAIRS, between=("text", "image"))
    return (Links.from_labels(LABELS) + pairs).resolve(SIZES)


def test_single_must_links_come_before_classes():
    expected = np.zeros((5, 4))
    expected[0, 1], expected[4, 3] = 2, 1
    found = correspondences(mixed_links(), "text", "image").toarray()
    assert_allclose(found, expected)


def test_without_single_pairs_items_of_a_class_go_together():
    y, z = np.array(LABELS["text"]), np.array(LABELS["image"])
    same = (y[:, None] == z) & (y[:, None] >= 0)
    found = correspondences(label_links(), "text", "image").toarray()
    assert_allclose(found, same)


@pytest.mark.parametrize("links", [label_links(), mixed_links()])
def test_covariances_are_those_of_the_pairs_written_out(links, rng):
    X, Y = rng.standard_normal((5, 3)), rng.standard_normal((4, 2))
    Z = correspondences(links, "text", "image")
    i, j = np.nonzero(Z.toarray())
    weights = Z.toarray()[i, j]
    expected = np.cov(np.hstack([X[i], Y[j]]).T, aweights=weights, ddof=0)
    cov = covariances(X, Z, Y)
    assert_allclose(cov.xx, expected[:3, :3], atol=1e-12)
    assert_allclose(cov.xy, expected[:3, 3:], atol=1e-12)
    assert_allclose(cov.yy, expected[3:, 3:], atol=1e-12)
    assert_allclose(cov.mean_x, weights @ X[i] / weights.sum())


def test_links_that_cancel_out_do_not_count():
    apart = Links.from_labels({"text": [0] * 5, "image": [1] * 4}).resolve(SIZES)
    with pytest.raises(LinkError, match="joined by a must-link or share a class"):
        correspondences(apart, "text", "image")
    with pytest.raises(LinkError, match="joined by a link of weight.*balance=0"):
        balanced_links(apart, "text", "image", balance=0.0)
