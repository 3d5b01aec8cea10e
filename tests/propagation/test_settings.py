"""A grid of settings from one propagation, against one propagation each."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkspread import Links
from linkspread.graphs import normalize
from linkspread.links import as_dense
from linkspread.propagation import spread_links
from linkspread.propagation.filter import (
    fitted_response,
    share_filter,
    unseen_response,
)
from linkspread.propagation.settings import (
    settings_bytes,
    spread_settings,
)
from reference import dense_filter, random_graph, relative_error

N, M = 40, 30
GRID = [
    ((a_x, a_y), beta)
    for a_x, a_y, beta in product([0.0, 0.05, 0.6, 0.95], [0.1, 0.9], [0.0, 0.5, 0.99])
]


def graphs():
    rng = np.random.default_rng(1)
    return normalize(random_graph(rng, N)), normalize(random_graph(rng, M))


def label_links(seed=0):
    rng = np.random.default_rng(seed)
    labels = {"text": rng.integers(-1, 3, N), "image": rng.integers(-1, 3, M)}
    return Links.from_labels(labels).between("text", "image")


def pair_links(seed=0):
    rng = np.random.default_rng(seed)
    Z = np.zeros((N, M))
    Z[rng.integers(0, N, 9), rng.integers(0, M, 9)] = rng.standard_normal(9)
    return Z


@pytest.mark.parametrize("Z", [label_links(), pair_links()], ids=["labels", "pairs"])
def test_every_setting_equals_its_dense_closed_form(Z):
    S_x, S_y = graphs()
    spread = spread_settings(S_x, [Z], S_y, GRID, tol=1e-9)[0]
    for k, (alpha, beta) in enumerate(GRID):
        expected = dense_filter(S_x, as_dense(Z), S_y, alpha, beta)
        scores = spread.queries(spread.left, k) @ spread.right.T
        assert relative_error(scores, expected) < 1e-8


def test_new_items_score_as_in_their_own_propagation():
    (S_x, S_y), Z = graphs(), label_links()
    similar = np.random.default_rng(3).random((4, N)) / N
    grid = list(product([(0.05, 0.6), (0.6, 0.2)], [0.0, 0.9]))
    spread = spread_settings(S_x, [Z], S_y, grid, tol=1e-9, unseen=True)[0]
    for k, (alpha, beta) in enumerate(grid):
        single = spread_links(S_x, Z, S_y, alpha=alpha, beta=beta, tol=1e-9)
        expected = single.unseen_queries(similar) @ single.right.T
        scores = spread.queries(similar @ spread.left, k) @ spread.right.T
        assert relative_error(scores, expected) < 1e-8


@settings(max_examples=25, deadline=None)
@given(
    alphas=st.lists(
        st.tuples(st.floats(0, 0.97), st.floats(0, 0.97)), min_size=1, max_size=4
    ),
    betas=st.lists(st.floats(0, 0.99), min_size=1, max_size=3),
    unseen=st.booleans(),
)
def test_the_shared_filter_keeps_its_promise(alphas, betas, unseen):
    grid = tuple(product(alphas, betas))
    separable = share_filter(grid, tol=1e-6, unseen=unseen)
    make = unseen_response if unseen else fitted_response
    l = np.linspace(-1, 1, 301)
    phi = np.polynomial.chebyshev.chebval(l, separable.left.T)
    psi = np.polynomial.chebyshev.chebval(l, separable.right.T)
    for core, (pair, beta) in zip(separable.cores, grid, strict=True):
        values = make(pair, beta)(l[:, None], l[None, :])
        error = np.abs(phi.T @ core @ psi - values).max()
        assert error <= 2e-6 * (np.abs(values).min() or 1)


def test_links_spread_together_are_those_spread_alone():
    S_x, S_y = graphs()
    sets = [label_links(0), pair_links(1), label_links(2)]
    together = spread_settings(S_x, sets, S_y, GRID)
    for Z, spread in zip(sets, together, strict=True):
        alone = spread_settings(S_x, [Z], S_y, GRID)[0]
        assert np.allclose(spread.left, alone.left)
        assert np.allclose(spread.right, alone.right)
        assert np.array_equal(spread.classes, alone.classes)


@pytest.mark.parametrize("n_sets", [1, 30], ids=["few blocks", "many blocks"])
def test_the_vectors_of_some_items_are_those_of_all(n_sets):
    S_x, S_y = graphs()
    sets = [label_links(seed) for seed in range(n_sets)] + [pair_links(1)]
    rows, cols = np.array([0, 7, 31]), np.array([2, 3, 29])
    whole = spread_settings(S_x, sets, S_y, GRID, tol=1e-9)
    some = spread_settings(S_x, sets, S_y, GRID, tol=1e-9, rows=rows, cols=cols)
    for one, other in zip(some, whole, strict=True):
        assert one.left.shape[0] == len(rows)
        asked = np.array([31, 0])
        assert np.allclose(one.left_of(asked), other.left_of(asked), atol=1e-12)
        assert np.allclose(one.right_of(cols[:2]), other.right[cols[:2]], atol=1e-12)


def test_memory_grows_with_functions_classes_and_items():
    assert settings_bytes(label_links(), 7) == pytest.approx(8 * 26 * 3 * 7)
