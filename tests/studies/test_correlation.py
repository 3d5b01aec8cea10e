"""Correlation analysis: closed forms, scikit-learn, models of paired rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.linalg import eigh
from sklearn.cross_decomposition import CCA, PLSCanonical

from linkspread import Links
from linkspread.ground.errors import FewLinksError
from linkspread.links import as_link_matrix
from linkspread.studies.baselines import CorrelationMatching
from linkspread.studies.baselines.correlation import (
    PROJECTIONS,
    canonical_projections,
    covariances,
    factor_projections,
    least_squares_projections,
)


def paired_views(rng, n=80, p=5, q=4):
    """Return two centred views that share three hidden columns."""
    hidden = rng.standard_normal((n, 3))
    X = hidden @ rng.standard_normal((3, p)) + rng.standard_normal((n, p))
    Y = hidden @ rng.standard_normal((3, q)) + rng.standard_normal((n, q))
    return X - X.mean(axis=0), Y - Y.mean(axis=0)


def matched(X, Y):
    return covariances(X, as_link_matrix(np.eye(len(X))), Y)


def test_canonical_correlations_are_those_of_scikit_learn(rng):
    X, Y = paired_views(rng)
    left, right, strengths = canonical_projections(matched(X, Y), 4, reg=0.0)
    model = CCA(4, scale=False, max_iter=100_000, tol=1e-20).fit(X, Y)
    expected = [np.corrcoef(a, b)[0, 1] for a, b in
                zip(*(s.T for s in model.transform(X, Y)), strict=True)]  # fmt: skip
    assert_allclose(strengths, expected, atol=1e-8)
    own = [np.corrcoef(a, b)[0, 1] for a, b in
           zip((X @ left).T, (Y @ right).T, strict=True)]  # fmt: skip
    assert_allclose(own, strengths, atol=1e-10)


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_ridge_cca_solves_the_generalised_eigenproblem(seed, reg):
    rng = np.random.default_rng(seed)
    X, Y = paired_views(rng, n=40)
    cov = matched(X, Y)
    ridge_x = cov.xx + reg * np.trace(cov.xx) / 5 * np.eye(5)
    ridge_y = cov.yy + reg * np.trace(cov.yy) / 4 * np.eye(4)
    target = cov.xy @ np.linalg.solve(ridge_y, cov.xy.T)
    squares = eigh(target, ridge_x, eigvals_only=True)[::-1][:4]
    left, right, strengths = canonical_projections(cov, 4, reg=reg)
    assert_allclose(strengths**2, squares, atol=1e-8)
    assert_allclose(left.T @ ridge_x @ left, np.eye(4), atol=1e-8)
    assert_allclose(left.T @ cov.xy @ right, np.diag(strengths), atol=1e-8)


def test_factor_analysis_brings_orthonormal_projections_nearest(rng):
    X, Y = paired_views(rng)
    left, right, _ = factor_projections(matched(X, Y), 3, reg=0.0)
    assert_allclose(left.T @ left, np.eye(3), atol=1e-12)
    U, _, Vt = np.linalg.svd(X.T @ Y)
    distance = np.linalg.norm(X @ U[:, :3] - Y @ Vt[:3].T)
    assert_allclose(np.linalg.norm(X @ left - Y @ right), distance, rtol=1e-10)
    # No rotation of the columns of one side brings the views nearer.
    for _ in range(20):
        turn = np.linalg.qr(np.eye(3) + 0.1 * rng.standard_normal((3, 3)))[0]
        product = np.trace((X @ left @ turn).T @ (Y @ right))
        assert product <= np.trace((X @ left).T @ (Y @ right)) + 1e-9


def test_partial_least_squares_are_those_of_scikit_learn(rng):
    X, Y = paired_views(rng)
    left, right, _ = least_squares_projections(matched(X, Y), 3, reg=0.0)
    model = PLSCanonical(3, scale=False, algorithm="svd").fit(X, Y)
    signs = np.sign(np.sum(left * model.x_rotations_, axis=0))
    assert_allclose(left * signs, model.x_rotations_, atol=1e-8)
    assert_allclose(right * signs, model.y_rotations_, atol=1e-8)


@pytest.mark.parametrize("method", PROJECTIONS)
def test_a_weight_of_two_is_the_pair_twice(method, rng):
    X, Y = paired_views(rng)
    twice = np.r_[np.arange(80), np.arange(10)]
    weights = np.r_[np.full(10, 2.0), np.ones(70)]
    weighted = covariances(X, as_link_matrix(np.diag(weights)), Y)
    repeated = matched(X[twice], Y[twice])
    for one, other in zip(
        PROJECTIONS[method](weighted, 2, reg=0.1),
        PROJECTIONS[method](repeated, 2, reg=0.1),
        strict=True,
    ):
        assert_allclose(np.abs(one), np.abs(other), atol=1e-8)


@pytest.mark.parametrize("method", PROJECTIONS)
def test_dependent_columns_give_fewer_components(method, rng):
    X, Y = paired_views(rng)
    X[:, 4] = X[:, 0] - X[:, 1]
    X[:, 3] = X[:, 2]
    left, right, strengths = PROJECTIONS[method](matched(X, Y), 50, reg=0.0)
    assert left.shape[1] == right.shape[1] == len(strengths) == 3
    assert np.isfinite(left).all()


@pytest.mark.parametrize("method", PROJECTIONS)
def test_scores_are_cosines_of_the_projections(method, rng):
    X, Y = paired_views(rng)
    links = Links.from_matched(("text", "image"), 80)
    model = CorrelationMatching(method=method, n_components=3, scaling="none")
    model.fit({"text": X, "image": Y}, links)
    left, right, _ = PROJECTIONS[method](matched(X, Y), 3, reg=0.1)
    a, b = X @ left, Y @ right
    expected = a @ b.T / np.outer(*(np.linalg.norm(v, axis=1) for v in (a, b)))
    assert_allclose(model.scores("text", "image"), expected, atol=1e-8)


def test_power_weighs_components_by_their_correlation(rng):
    X, Y = paired_views(rng)
    links = Links.from_matched(("text", "image"), 80)
    model = CorrelationMatching(power=4.0, reg=0.0).fit({"text": X, "image": Y}, links)
    scaled = [view / view.std(axis=0) for view in (X, Y)]
    left, right, r = canonical_projections(matched(*scaled), 50, reg=0.0)
    a, b = (
        view @ side * r**2 for view, side in zip(scaled, (left, right), strict=True)
    )
    expected = a @ b.T / np.outer(*(np.linalg.norm(v, axis=1) for v in (a, b)))
    assert_allclose(model.scores("text", "image"), expected, atol=1e-8)


def test_one_pair_says_nothing_about_what_varies_together(rng):
    X, Y = paired_views(rng)
    links = Links.from_pairs([(0, 0)], between=("text", "image"))
    with pytest.raises(FewLinksError, match="'text' and 'image' must vary together"):
        CorrelationMatching().fit({"text": X, "image": Y}, links)
