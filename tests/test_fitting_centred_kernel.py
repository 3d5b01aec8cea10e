"""Centred kernels against the matrices that they stand for, and what they are for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from linkspread.estimators.graph_choice import similarities
from linkspread.fitting.centred_kernel import CentredKernel
from linkspread.fitting.fitted_pair import add_pair_fits
from linkspread.fitting.heat import HeatKernel
from linkspread.fitting.kernel_choice import affinity_kernel, linear_kernel
from linkspread.fitting.nystrom import kernel_directions
from linkspread.fitting.pairs import fit_pairs
from linkspread.fitting.view_kernels import FeatureKernel, GraphKernel
from linkspread.graphs import NeighborGraph, normalize

N = 60


def centre(K):
    """Return H K H."""
    return K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()


def graph_parts(X):
    graph = NeighborGraph(n_neighbors=6).fit(X)
    similar = lambda rows: similarities(graph, rows, view="text")  # noqa: E731
    return normalize(graph.affinity_).astype(np.float64), similar


def graph_kernel(X):
    S, similar = graph_parts(X)
    return GraphKernel(S, 0.9, similar=similar)


def heat_kernel(X):
    S, similar = graph_parts(X)
    return HeatKernel(S, 3.0, similar=similar, tol=1e-12)


def gauss_kernel(X):
    return affinity_kernel(X, metric="euclidean", width=0.5)


KERNELS = [graph_kernel, heat_kernel, gauss_kernel, linear_kernel]


@pytest.mark.parametrize("make", KERNELS)
def test_a_centred_kernel_is_the_matrix_less_its_means(make, rng):
    plain = make(rng.random((N, 5)))
    whole = centre(np.asarray(plain @ np.eye(N)))
    kernel = CentredKernel(plain)
    block = rng.standard_normal((N, 3))
    assert_allclose(kernel @ block, whole @ block, atol=1e-7)
    assert_allclose(kernel.diagonal(), np.diagonal(whole), atol=1e-7)
    rows, columns = np.array([3, 50, 8]), np.array([0, 59])
    found = kernel.block(rows, columns)
    assert_allclose(found, whole[np.ix_(rows, columns)], atol=1e-7)


@pytest.mark.parametrize("make", [gauss_kernel, linear_kernel])
def test_new_rows_that_repeat_items_get_the_values_of_these(make, rng):
    X = rng.random((N, 5))
    kernel, c = CentredKernel(make(X)), rng.standard_normal((N, 3))
    assert_allclose(kernel.extend(X[:7], c, kernel @ c), (kernel @ c)[:7], atol=1e-8)


@pytest.mark.parametrize("make", KERNELS)
def test_new_rows_are_centred_by_the_means_of_the_items(make, rng):
    plain, new = make(rng.random((N, 5))), rng.random((4, 5))
    units = np.eye(N)
    raw = plain.extend(new, units, np.asarray(plain @ units))
    means = np.asarray(plain @ units).mean(axis=0)
    away = raw - means
    wanted = away - away.mean(axis=1)[:, None]
    kernel, c = CentredKernel(plain), rng.standard_normal((N, 2))
    assert_allclose(kernel.extend(new, c, kernel @ c), wanted @ c, atol=1e-7)
    assert_allclose(kernel.centre_row(raw[0]), wanted[0], atol=1e-7)


@settings(max_examples=30, deadline=None)
@given(shift=st.floats(-100, 100), seed=st.integers(0, 99))
def test_what_is_added_to_all_features_does_not_matter(shift, seed):
    features = np.random.default_rng(seed).standard_normal((12, 3))
    one, other = (
        CentredKernel(FeatureKernel(own, embed=lambda rows: rows))
        for own in (features, features + shift)
    )
    assert_allclose(one @ np.eye(12), other @ np.eye(12), atol=1e-7)
    assert_allclose(one.diagonal(), other.diagonal(), atol=1e-7)


def test_directions_stand_for_the_centred_kernel(rng):
    plain = FeatureKernel(rng.random((N, 5)), embed=lambda rows: rows)
    features = kernel_directions(CentredKernel(plain), seed=0)
    whole = centre(plain @ np.eye(N))
    assert_allclose(features @ features.T, whole, atol=1e-9)


def judged_fit(rng, n_pairs=30):
    """Return a fit of random pairs by centred kernels, and the pairs."""
    tables = rng.random((N, 4)), rng.random((50, 4))
    kernels = tuple(CentredKernel(gauss_kernel(X)) for X in tables)
    places = rng.choice(N * 50, n_pairs, replace=False)
    targets = rng.choice([-1.0, 1.0], n_pairs)
    pairs = sparse.csr_array((targets, (places // 50, places % 50)), shape=(N, 50))
    targets = pairs.tocoo().data
    fit = fit_pairs(kernels, pairs, targets, np.ones(n_pairs), ridges=(0.1,))
    return fit, pairs, tables


def test_scores_are_0_on_average_for_every_item(rng):
    fit, _, tables = judged_fit(rng)
    scores = add_pair_fits([fit], [1.0], rank=None, tol=1e-10)
    whole = scores.left @ scores.core @ scores.right.T
    assert np.abs(whole).max() > 0.1
    assert_allclose(whole.mean(axis=0), 0, atol=1e-9)
    assert_allclose(whole.mean(axis=1), 0, atol=1e-9)
    # New rows that repeat items have the scores of these.
    new = scores.embed_left(tables[0][:7]) @ scores.right.T
    assert_allclose(new, whole[:7], atol=1e-7)
    new = scores.embed_right(tables[1][:7]) @ scores.left.T
    assert_allclose(new, whole[:, :7].T, atol=1e-7)
