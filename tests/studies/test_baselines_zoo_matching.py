"""Models of paired rows behind the face of a rival, with and without cca-zoo."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator
from sklearn.cross_decomposition import CCA

from linkspread import Links
from linkspread.ground.errors import MissingDependencyError
from linkspread.studies.baselines import CorrelationMatching, ZooMatching


class PairedCCA(BaseEstimator):
    """scikit-learn's CCA, in the manner of packages that take a list of views."""

    def __init__(self, n_components=2):
        self.n_components = n_components

    def fit(self, views):
        self.model_ = CCA(self.n_components, max_iter=10_000, tol=1e-16).fit(*views)
        self.sizes_ = [np.std(s, axis=0) for s in self.model_.transform(*views)]
        return self

    def transform(self, views):
        scores = self.model_.transform(*views)
        return [s / size for s, size in zip(scores, self.sizes_, strict=True)]


@pytest.fixture
def views(rng):
    hidden = rng.standard_normal((60, 2))
    X = hidden @ rng.standard_normal((2, 4)) + 0.3 * rng.standard_normal((60, 4))
    Y = hidden @ rng.standard_normal((2, 3)) + 0.3 * rng.standard_normal((60, 3))
    return {"text": X, "image": Y[:50]}


def test_a_model_of_paired_rows_matches_our_own(views):
    links = Links.from_matched(("text", "image"), 50)
    model = ZooMatching(model=PairedCCA()).fit(views, links)
    own = CorrelationMatching(n_components=2, reg=0.0).fit(views, links)
    scores = model.scores("text", "image")
    # Both whiten, up to a common sign of each component.
    assert_allclose(scores, own.scores("text", "image"), atol=1e-6)
    rows = views["image"][:4]
    assert_allclose(model.scores("image", "text", rows=rows), scores.T[:4], atol=1e-12)


def test_the_given_model_is_not_fitted_itself(views):
    given = PairedCCA()
    ZooMatching(model=given).fit(views, Links.from_matched(("text", "image"), 50))
    assert not hasattr(given, "model_")


def test_pairs_beyond_the_cap_are_drawn(views):
    sizes = []

    class Counting(PairedCCA):
        def fit(self, views):
            sizes.append(len(views[0]))
            return super().fit(views)

    links = Links.from_labels({"text": np.arange(60) % 2, "image": np.arange(50) % 2})
    ZooMatching(model=Counting(), max_pairs=100).fit(views, links)
    assert sizes == [100]


def test_a_missing_package_is_named(views, monkeypatch):
    monkeypatch.setitem(sys.modules, "cca_zoo", None)
    links = Links.from_matched(("text", "image"), 50)
    with pytest.raises(MissingDependencyError, match="ZooMatching needs the package"):
        ZooMatching().fit(views, links)
