"""Pairs left out with all pairs of their items, against plain fits without them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from linkspread.fitting import ridge_by_products as ridge_fitting
from linkspread.fitting.item_folds import ItemFolds
from linkspread.fitting.ridge import solve_dense
from linkspread.fitting.ridge_by_products import solve_most

N_PAIRS = 80


def make_problem(rng):
    """Return the items of pairs, a kernel among the pairs, targets and weights."""
    places = np.sort(rng.choice(20 * 15, N_PAIRS, replace=False))
    i, j = places // 15, places % 15
    x, y = rng.standard_normal((20, 4)), rng.standard_normal((15, 4))
    K = (x @ x.T)[np.ix_(i, i)] * (y @ y.T)[np.ix_(j, j)]
    targets = rng.choice([-0.3, 0.7], (N_PAIRS, 1))
    return i, j, K, targets, rng.uniform(0.5, 2, N_PAIRS)


def plain(K, targets, weights, ridge, out, asked):
    """Return what a fit to the other pairs says of those asked for."""
    rest = np.setdiff1d(np.arange(len(K)), out)
    added = np.diag(ridge * np.mean(np.diag(K)) / weights[rest])
    fit = np.linalg.solve(K[np.ix_(rest, rest)] + added, targets[rest])
    return K[np.ix_(asked, rest)] @ fit


@settings(max_examples=40, deadline=None)
@given(n_folds=st.integers(1, 30), seed=st.integers(0, 999))
def test_every_pair_is_asked_once_and_nothing_is_known_of_its_items(n_folds, seed):
    rng = np.random.default_rng(seed)
    i, j = rng.integers(0, 9, size=(2, 25))
    asked_of = []
    for out, asked in ItemFolds.draw(i, j, n_folds).cells():
        rest = np.setdiff1d(np.arange(25), out)
        assert not np.isin(i[out[asked]], i[rest]).any()
        assert not np.isin(j[out[asked]], j[rest]).any()
        asked_of.extend(out[asked])
    assert sorted(asked_of) == list(range(25))


def test_folds_have_equally_many_items():
    i, j = np.arange(60), np.repeat(np.arange(6), 10)
    folds = ItemFolds.draw(i, j, 3)
    assert np.bincount(folds.rows).tolist() == [20, 20, 20]
    assert np.bincount(folds.columns).tolist() == [20, 20, 20]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_left_out_is_said_by_a_fit_without_it(dtype, rng):
    i, j, K, targets, weights = make_problem(rng)
    folds = ItemFolds.draw(i, j, 6)
    (fit,) = solve_dense(K.astype(dtype), targets, weights, (0.3,), folds=folds)
    tol = 1e-8 if dtype == np.float64 else 1e-3
    for out, asked in folds.cells():
        wanted = plain(K, targets, weights, 0.3, out, out[asked])
        assert_allclose(fit.held_out[out[asked]], wanted, atol=tol)
    # All but what is left out is as it is without folds.
    (alone,) = solve_dense(K.astype(dtype), targets, weights, (0.3,))
    assert_allclose(fit.coefficients, alone.coefficients)
    assert not np.allclose(fit.held_out, alone.held_out, atol=1e-2)


def test_by_products_some_cells_are_left_out(rng, monkeypatch):
    monkeypatch.setattr(ridge_fitting, "ROUGH_TOL", 1e-9)
    i, j, K, targets, weights = make_problem(rng)
    folds = ItemFolds.draw(i, j, 3)
    apply, diagonal = lambda block: K @ block, np.diag(K)
    found = solve_most(
        apply, diagonal, targets, weights, (0.3, 3.0), tol=1e-9, folds=folds
    )
    said, errors = np.full((N_PAIRS, 2), np.nan), []
    for out, asked in folds.cells():
        own = out[asked]
        if folds.rows[own[0]] == folds.columns[own[0]]:
            for k, ridge in enumerate((0.3, 3.0)):
                said[own, k] = plain(K, targets, weights, ridge, out, own)[:, 0]
    known = ~np.isnan(said[:, 0])
    assert 0.2 < known.mean() < 0.5
    errors = weights[known] @ (said - targets)[known] ** 2
    best = int(np.argmin(errors))
    assert found.ridge == (0.3, 3.0)[best]
    assert_allclose(found.held_out[:, 0], said[:, best], atol=1e-6)
    (whole,) = solve_dense(K, targets, weights, (found.ridge,))
    assert_allclose(K @ found.coefficients, K @ whole.coefficients, atol=1e-6)


def test_one_item_that_all_pairs_share_leaves_nothing_to_say(rng):
    _, _, K, targets, weights = make_problem(rng)
    folds = ItemFolds.draw(np.zeros(N_PAIRS, int), np.arange(N_PAIRS), 20)
    (fit,) = solve_dense(K, targets, weights, (0.3,), folds=folds)
    assert_allclose(fit.held_out, 0, atol=1e-8)
