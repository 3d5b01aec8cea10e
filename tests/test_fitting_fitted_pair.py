"""Scores of fitted pairs, divided by the lengths of both items' rows of scores."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from linkspread.fitting.fitted_pair import add_pair_fits, divide_by_lengths
from linkspread.fitting.kernel_choice import affinity_kernel
from linkspread.fitting.pairs import fit_pairs

N, M = 40, 50


def fitted_scores(rng, tol=1e-10):
    """Return scores that random pairs give, and the tables of both views."""
    tables = rng.random((N, 4)), rng.random((M, 3))
    places = rng.choice(N * M, 30, replace=False)
    targets = rng.choice([-1.0, 1.0], len(places))
    pairs = sparse.csr_array((targets, (places // M, places % M)), shape=(N, M))
    kernels = tuple(affinity_kernel(X, metric="euclidean", width=0.5) for X in tables)
    fit = fit_pairs(
        kernels, pairs, pairs.tocoo().data, np.ones(len(places)), ridges=(0.1,)
    )
    return add_pair_fits([fit], [1.0], rank=None, tol=tol), tables


def whole(scores):
    """Return all scores."""
    return scores.left @ scores.core @ scores.right.T


@pytest.mark.parametrize("mass, power", [("length", 1.0), ("root length", 0.5)])
def test_scores_are_divided_by_the_lengths_of_both_rows(rng, mass, power):
    plain, _ = fitted_scores(rng)
    F = whole(plain)
    rows = np.linalg.norm(F, axis=1, keepdims=True)
    columns = np.linalg.norm(F, axis=0, keepdims=True)
    assert rows.max() > 1.5 * rows.min()
    wanted = F / (rows * columns) ** power
    assert_allclose(whole(divide_by_lengths(plain, mass)), wanted, atol=1e-9)


@pytest.mark.parametrize("mass", ["length", "root length"])
def test_new_rows_that_repeat_items_have_their_divided_scores(rng, mass):
    plain, tables = fitted_scores(rng)
    scores = divide_by_lengths(plain, mass)
    F = whole(scores)
    new = scores.embed_left(tables[0][:7]) @ scores.right.T
    assert_allclose(new, F[:7], atol=1e-7)
    new = scores.embed_right(tables[1][:7]) @ scores.left.T
    assert_allclose(new, F[:, :7].T, atol=1e-7)


def test_roots_keep_scores_within_1_whatever_the_size_of_the_fit(rng):
    plain, _ = fitted_scores(rng)
    once = whole(divide_by_lengths(plain, "root length"))
    assert np.abs(once).max() <= 1
    larger = replace(plain, core=1000 * plain.core)
    assert_allclose(whole(divide_by_lengths(larger, "root length")), once, atol=1e-9)


def test_items_without_scores_keep_them(rng):
    plain, _ = fitted_scores(rng)
    plain.left[3] = 0.0
    assert_allclose(whole(divide_by_lengths(plain, "root length"))[3], 0.0)
