"""The ridge of a system too large for leave-one-out, against a plain loop."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from linkspread.fitting import ridge_by_products as ridge_fitting
from linkspread.fitting.ridge_by_products import SHARE_OUT, solve_most

N = 400
RIDGES = (0.3, 30.0, 0.003)  # in no order


def make_problem(noise, seed=1):
    """Return a kernel, values of a smooth function under noise, and weights."""
    rng = np.random.default_rng(seed)
    # The solver has seed 0, with which it would leave out one end of x.
    x = rng.uniform(0, 6, N)
    K = 2 * np.exp(-((x[:, None] - x) ** 2))
    targets = np.sin(2 * x) + noise * rng.standard_normal(N)
    return K, targets[:, None], rng.uniform(0.5, 2, N)


def solve(K, targets, weights, ridge):
    """Return the coefficients by a dense solve."""
    system = K + np.diag(ridge * np.mean(np.diag(K)) / weights)
    return np.linalg.solve(system, targets)


def plain_errors(K, targets, weights, is_out):
    """Return for each ridge how a fit to the others errs on what is left out."""
    kept, errors = np.flatnonzero(~is_out), []
    out = np.flatnonzero(is_out)
    for ridge in RIDGES:
        among = K[np.ix_(kept, kept)]
        fit = solve(among, targets[kept], weights[kept], ridge)
        missed = K[np.ix_(out, kept)] @ fit - targets[out]
        size = weights[out] @ targets[out] ** 2
        errors.append(float((weights[out] @ missed**2 / size)[0]))
    return np.array(errors)


def fit(K, targets, weights, tol=1e-9):
    """Return the fit by products, and what it left out to choose."""
    found = solve_most(lambda B: K @ B, np.diag(K), targets, weights, RIDGES, tol=tol)
    return found, ~np.isnan(found.held_out[:, 0])


@pytest.mark.parametrize("rough", [None, 1e-9])
@pytest.mark.parametrize(("noise", "ridge"), [(0.0, 0.003), (0.7, 0.3), (12.0, 30.0)])
def test_the_ridge_that_errs_least_on_what_is_left_out_is_chosen(
    noise, ridge, rough, monkeypatch
):
    # Rough solves, as they are without a change, are enough to choose.
    monkeypatch.setattr(ridge_fitting, "ROUGH_TOL", rough or ridge_fitting.ROUGH_TOL)
    K, targets, weights = make_problem(noise)
    found, is_out = fit(K, targets, weights)
    assert abs(is_out.mean() - SHARE_OUT) < 0.05
    errors = plain_errors(K, targets, weights, is_out)
    assert RIDGES[int(np.argmin(errors))] == ridge == found.ridge
    if rough:
        assert found.error == pytest.approx(errors.min(), rel=1e-6)


def test_what_is_left_out_is_said_by_the_others(monkeypatch):
    monkeypatch.setattr(ridge_fitting, "ROUGH_TOL", 1e-9)
    K, targets, weights = make_problem(0.7)
    found, is_out = fit(K, targets, weights)
    kept = np.flatnonzero(~is_out)
    rest = solve(K[np.ix_(kept, kept)], targets[kept], weights[kept], found.ridge)
    assert_allclose(found.held_out[is_out], (K[:, kept] @ rest)[is_out], atol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_in_the_end_everything_is_fitted(noise):
    K, targets, weights = make_problem(noise)
    found, _ = fit(K, targets, weights)
    expected = solve(K, targets, weights, found.ridge)
    assert_allclose(K @ found.coefficients, K @ expected, atol=1e-6)
    assert found.residual <= 1e-9
