"""Bilinear ridge regression against dense least squares."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from linkspread import Links
from linkspread.ground.errors import LinkspreadError
from linkspread.links import as_link_matrix
from linkspread.studies.baselines import BilinearRidge, bilinear
from linkspread.studies.baselines.bilinear import fit_bilinear

WAY = {"source": "text", "target": "image"}

SIZES = {"text": 25, "image": 20}


def make_links(kind, seed=1):
    rng = np.random.default_rng(seed)
    labels = Links.from_labels(
        {"text": rng.integers(-1, 3, 25), "image": rng.integers(-1, 3, 20)}
    )
    i, j = np.divmod(rng.choice(500, 60, replace=False), 20)
    weights = rng.choice([-1.0, 1.0], 60)
    pairs = Links.from_pairs(
        np.column_stack([i, j, weights]), between=("text", "image")
    )
    links = {"labels": labels, "pairs": pairs, "mixture": labels + pairs}[kind]
    return links.resolve(SIZES)


def dense_ridge(X, Z, Y, ridge):
    """Solve the least squares of all judged pairs, written out one by one."""
    labelled = [np.flatnonzero(np.asarray(m.sum(axis=1)).ravel() > 0)
                for m in (Z.left, Z.right)]  # fmt: skip
    thin = np.asarray(sparse.csr_array(Z.left) @ Z.core @ Z.right.T)
    judged = [(i, j, thin[i, j]) for i in labelled[0] for j in labelled[1]]
    pairs = Z.pairs.tocoo()
    judged += list(zip(pairs.row, pairs.col, pairs.data, strict=True))
    rows = [np.kron(X[i], Y[j]) for i, j, _ in judged]
    penalty = np.sqrt(ridge * len(judged)) * np.eye(X.shape[1] * Y.shape[1])
    targets = np.r_[[z for *_, z in judged], np.zeros(len(penalty))]
    solution = np.linalg.lstsq(np.vstack([*rows, penalty]), targets, rcond=None)[0]
    return solution.reshape(X.shape[1], Y.shape[1])


@given(
    st.sampled_from(["labels", "pairs", "mixture"]),
    st.integers(0, 1000),
    st.floats(1e-4, 10),
)
def test_the_fit_is_dense_least_squares(kind, seed, ridge):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((25, 4)), rng.standard_normal((20, 3))
    Z = as_link_matrix(make_links(kind, seed).between("text", "image"))
    found = fit_bilinear(X, Z, Y, ridge=ridge)
    assert_allclose(found, dense_ridge(X, Z, Y, ridge), atol=1e-8)


def test_too_many_products_of_features_are_refused(rng, monkeypatch):
    Z = as_link_matrix(make_links("pairs").between("text", "image"))
    monkeypatch.setattr(bilinear, "MAX_PRODUCTS", 10)
    with pytest.raises(LinkspreadError, match="`n_components`.* got 12"):
        fit_bilinear(np.ones((25, 4)), Z, np.ones((20, 3)), ridge=0.01)


@pytest.mark.parametrize("kind", ["labels", "pairs", "mixture"])
def test_scores_are_bilinear_in_scaled_components(kind, rng):
    views = {
        "text": rng.standard_normal((25, 6)),
        "image": rng.standard_normal((20, 3)),
    }
    links = make_links(kind)
    model = BilinearRidge(n_components=4, ridge=0.1).fit(views, links)
    features = []
    for X in views.values():
        X = StandardScaler().fit_transform(X)
        X = PCA(4).fit_transform(X) if X.shape[1] > 4 else X
        X = X / np.sqrt(np.mean(np.sum(X**2, axis=1)))
        features.append(np.column_stack([np.ones(len(X)), X]))
    Z = as_link_matrix(links.between("text", "image"))
    B = dense_ridge(features[0], Z, features[1], 0.1)
    expected = features[0] @ B @ features[1].T
    assert_allclose(model.scores("text", "image"), expected, atol=1e-8)


def test_components_of_wide_sparse_views_need_no_dense_table(rng):
    views = {
        view: sparse.random_array((n, 3000), density=0.01, rng=rng, format="csr")
        for view, n in SIZES.items()
    }
    model = BilinearRidge(n_components=5).fit(views, make_links("pairs"))
    assert model.embed(views["text"][:2], **WAY).shape == (2, 6)
