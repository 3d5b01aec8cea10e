"""Heat kernels and fits by them, against dense exponentials and plain solutions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.chebyshev import chebval
from scipy import sparse
from scipy.linalg import expm

from linkspread.datasets import make_views
from linkspread.fitting.diffused_pairs import fit_diffused
from linkspread.fitting.extensions import HeatExtension, join_heat
from linkspread.fitting.fitted_pair import add_pair_fits
from linkspread.fitting.heat import TIME_WEIGHTS, TIMES, Diffusion, HeatKernel
from linkspread.fitting.pairs import fit_pairs
from linkspread.fitting.view_kernels import GraphKernel
from linkspread.graphs import knn_graph, normalize
from linkspread.metrics import mean_average_precision
from linkspread.propagation.diffusion import (
    arrival_polynomials,
    diffuse,
    diffusion_polynomials,
)

L = np.linspace(-1, 1, 401)


def make_graph(n, *, seed):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return normalize(knn_graph(X, n_neighbors=5)).astype(np.float64)


def dense_heat(S, time):
    return expm(-time * (np.eye(S.shape[0]) - S.toarray()))


def dense_arrival(S, time):
    """exp(-t) sum_k t^k / k! S^(k - 1), term by term."""
    total, power, factor = np.zeros(S.shape), np.eye(S.shape[0]), time
    for k in range(1, 120):
        total, power = total + factor * power, power @ S.toarray()
        factor *= time / (k + 1)
    return np.exp(-time) * total


@given(
    times=st.lists(st.floats(0, 40), min_size=1, max_size=3),
    tol=st.sampled_from([1e-3, 1e-6, 1e-10]),
)
@settings(max_examples=60, deadline=None)
def test_polynomials_are_as_close_as_asked(times, tol):
    heat = diffusion_polynomials(times, tol=tol)
    arriving = arrival_polynomials(times, tol=tol)
    for time, own, other in zip(times, heat, arriving, strict=True):
        np.testing.assert_allclose(chebval(L, own), np.exp(-time * (1 - L)), atol=tol)
        l = np.where(L == 0, 1e-12, L)
        wanted = np.exp(-time) * np.expm1(time * l) / l
        np.testing.assert_allclose(chebval(L, other), wanted, atol=tol + 1e-12)


def test_a_polynomial_is_no_longer_than_it_must_be():
    coefficients = diffusion_polynomials([16.0], tol=1e-6)[0]
    shorter = chebval(L, coefficients[:-2])
    assert np.abs(shorter - np.exp(-16 * (1 - L))).max() > 1e-7
    assert len(coefficients) < 45


def test_heat_is_the_exponential_of_the_graph():
    S = make_graph(40, seed=0)
    block = np.random.default_rng(1).normal(size=(40, 3))
    heat = diffuse(S, block, (0.5, 6.0), tol=1e-10)
    for k, time in enumerate((0.5, 6.0)):
        np.testing.assert_allclose(heat[:, k], dense_heat(S, time) @ block, atol=1e-8)
    some = diffuse(S, block, (0.5,), tol=1e-10, rows=np.array([3, 7]))
    np.testing.assert_allclose(some[:, 0], heat[[3, 7], 0], atol=1e-12)


@pytest.mark.parametrize("time", [1.0, 8.0])
def test_a_kernel_has_the_products_and_the_diagonal_of_the_exponential(time):
    S = make_graph(300, seed=2)
    kernel, K = HeatKernel(S, time, tol=1e-10), dense_heat(S, time)
    block = np.random.default_rng(3).normal(size=(300, 2))
    np.testing.assert_allclose(kernel @ block, K @ block, atol=1e-8)
    np.testing.assert_allclose(kernel.diagonal(), np.diagonal(K), atol=1e-8)
    some = np.array([5, 250, 17])
    np.testing.assert_allclose(
        kernel.block(some, some), K[np.ix_(some, some)], atol=1e-8
    )


def test_the_diagonal_of_a_large_kernel_is_estimated(monkeypatch):
    S = make_graph(300, seed=2)
    exact = np.diagonal(dense_heat(S, 2.0))
    monkeypatch.setattr("linkspread.fitting.heat.DENSE_ITEMS", 100)
    estimate = HeatKernel(S, 2.0).diagonal()
    assert np.all(estimate > 0)
    assert abs(np.mean(estimate / exact) - 1) < 0.05


def test_heat_is_split_into_what_stays_and_what_arrives():
    S = make_graph(50, seed=4)
    block = np.random.default_rng(5).normal(size=(50, 2))
    kernel = HeatKernel(S, 3.0, tol=1e-11)
    reached = kernel.arriving(block)
    np.testing.assert_allclose(reached, dense_arrival(S, 3.0) @ block, atol=1e-8)
    whole = np.exp(-3.0) * block + S @ reached
    np.testing.assert_allclose(kernel @ block, whole, atol=1e-8)


def test_new_rows_get_what_arrives_from_their_neighbours():
    S = make_graph(50, seed=6)
    near = sparse.random_array((4, 50), density=0.2, rng=7, format="csr")
    kernel = HeatKernel(S, 2.0, similar=lambda rows: near[rows], tol=1e-11)
    block = np.random.default_rng(8).normal(size=(50, 3))
    wanted = near.toarray() @ dense_arrival(S, 2.0) @ block
    extension = kernel.extension(block, kernel @ block)
    np.testing.assert_allclose(extension(np.arange(4)), wanted, atol=1e-8)
    assert extension.width == 3


def test_heat_of_one_graph_is_kept_once():
    def similar(rows):
        return sparse.csr_array(np.eye(3))

    other = HeatExtension(
        lambda rows: sparse.csr_array(np.eye(3)), np.full((3, 2), 5.0)
    )
    parts = [HeatExtension(similar, np.full((3, 2), k)) for k in (1.0, 2.0)]
    joined = join_heat([*parts, other])
    assert [own.reached[0, 0] for own in joined] == [3.0, 5.0]


def test_without_similarities_new_rows_are_refused():
    extension = HeatExtension(None, np.zeros((3, 2)))
    with pytest.raises(ValueError, match="made without `similar`"):
        extension(np.zeros((1, 3)))


def make_pairs(n, m, n_pairs, *, seed):
    rng = np.random.default_rng(seed)
    cells = rng.choice(n * m, n_pairs, replace=False)
    values = rng.choice([-1.0, 1.0], n_pairs)
    return sparse.csr_array((values, (cells // m, cells % m)), shape=(n, m))


def centred_heat(S, time):
    K = dense_heat(S, time)
    return K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()


def dense_pair_kernel(S_x, S_y, pairs):
    i, j = pairs.tocoo().coords
    return sum(
        w * centred_heat(S_x, t)[np.ix_(i, i)] * centred_heat(S_y, t)[np.ix_(j, j)]
        for w, t in zip(TIME_WEIGHTS, TIMES, strict=True)
    )


def test_a_fit_is_the_ridge_of_the_sum_of_products():
    S_x, S_y = make_graph(40, seed=9), make_graph(30, seed=10)
    pairs = make_pairs(40, 30, 25, seed=11)
    targets, weights = pairs.data.copy(), np.linspace(0.5, 2, 25)
    views = Diffusion(S_x, tol=1e-10), Diffusion(S_y, tol=1e-10)
    found = fit_diffused(views, pairs, targets, weights, ridges=(0.3,))
    K = dense_pair_kernel(S_x, S_y, pairs)
    penalty = np.diag(0.3 * np.mean(np.diagonal(K)) / weights)
    wanted = np.linalg.solve(K + penalty, targets)
    np.testing.assert_allclose(found.coefficients.tocoo().data, wanted, rtol=1e-3)
    for k in (0, 13):  # what is said of a pair that was left out
        kept = np.delete(np.arange(25), k)
        fit = np.linalg.solve((K + penalty)[np.ix_(kept, kept)], targets[kept])
        np.testing.assert_allclose(
            found.fit.held_out[k, 0], K[k, kept] @ fit, rtol=1e-3, atol=1e-5
        )


def test_scores_are_the_sum_over_times():
    S_x, S_y = make_graph(40, seed=12), make_graph(30, seed=13)
    pairs = make_pairs(40, 30, 10, seed=14)
    views = Diffusion(S_x, tol=1e-10), Diffusion(S_y, tol=1e-10)
    ones = np.ones(10)
    found = fit_diffused(views, pairs, pairs.data, ones, ridges=(0.3, 3.0))
    C = found.coefficients.toarray()
    wanted = sum(
        w * centred_heat(S_x, t) @ C @ centred_heat(S_y, t)
        for w, t in zip(TIME_WEIGHTS, TIMES, strict=True)
    )
    scores = add_pair_fits([found], [2.0], rank=None, tol=1e-9)
    np.testing.assert_allclose(
        scores.left @ scores.core @ scores.right.T, 2 * wanted, atol=1e-7
    )


def judged_pairs(labels, n_pairs, *, seed):
    """Return pairs of which every second one belongs together."""
    rng, (left, right) = np.random.default_rng(seed), labels.values()
    pairs = np.zeros((len(left), len(right)))
    for k, i in enumerate(rng.choice(len(left), n_pairs, replace=False)):
        belongs = (right == left[i]) == (k % 2 == 0)
        pairs[i, rng.choice(np.flatnonzero(belongs))] = 1 - 2 * (k % 2)
    return sparse.csr_array(pairs)


def test_few_pairs_tell_more_in_the_same_time_than_by_kernels_apart():
    gains = []
    for seed in range(3):
        data = make_views({"text": 300, "image": 200}, n_classes=5, random_state=seed)
        graphs = [normalize(knn_graph(X)) for X in data.views().values()]
        pairs, ones = judged_pairs(data.labels, 40, seed=seed), np.ones(40)
        together = fit_diffused(
            tuple(Diffusion(S) for S in graphs), pairs, pairs.data, ones, ridges=(1.0,)
        )
        apart = fit_pairs(
            tuple(GraphKernel(S, 0.9) for S in graphs),
            pairs, pairs.data, ones, ridges=(1.0,),
        )  # fmt: skip
        found = [
            mean_average_precision(
                scores.left @ scores.core @ scores.right.T, *data.labels.values()
            )
            for scores in (
                add_pair_fits([fit], [1.0], rank=None, tol=1e-6)
                for fit in (together, apart)
            )
        ]
        gains.append(found[0] - found[1])
    assert min(gains) > 0 and np.mean(gains) > 0.03
