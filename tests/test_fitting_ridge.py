"""Fitted links against dense solutions, brute leave-one-out and spreading."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from linkspread.exceptions import LinkspreadError
from linkspread.fitting import labels as label_fitting
from linkspread.fitting import nystrom, view_kernels
from linkspread.fitting import pairs as pair_fitting
from linkspread.fitting.conjugate_gradients import solve_by_gradients
from linkspread.fitting.labels import fit_labels
from linkspread.fitting.pairs import fit_pairs, pair_targets
from linkspread.fitting.ridge import solve_dense
from linkspread.fitting.view_kernels import (
    DenseKernel,
    FeatureKernel,
    GraphKernel,
    MixedKernel,
)
from linkspread.graphs import NeighborGraph, knn_graph, normalize

N, M, ALPHA = 40, 30, 0.8


def graph(n, seed=0):
    """Return a normalised graph of random points."""
    X = np.random.default_rng(seed).standard_normal((n, 3))
    return normalize(knn_graph(X, n_neighbors=5))


def whole(S, alpha=ALPHA, unit=True):
    """Return the kernel of a graph by inverting a dense matrix."""
    P = (1 - alpha) * np.linalg.inv(np.eye(S.shape[0]) - alpha * S.toarray())
    d = np.sqrt(np.diag(P)) if unit else np.ones(len(P))
    return P / np.outer(d, d)


def kernels(n, seed=0):
    """Return a kernel of each kind, with all its entries."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, 4))
    points = rng.standard_normal((n, 2))
    gauss = np.exp(-np.sum((points[:, None] - points) ** 2, axis=2))
    S = graph(n, seed)
    made = {
        "graph": (GraphKernel(S, ALPHA), whole(S)),
        "plain graph": (
            GraphKernel(S, ALPHA, unit_diagonal=False),
            whole(S, unit=False),
        ),
        "features": (
            FeatureKernel(features, embed=lambda rows: rows),
            features @ features.T,
        ),
        "dense": (DenseKernel(gauss, compare=lambda rows: rows), gauss),
    }
    mixed = MixedKernel([made["graph"][0], made["dense"][0]], [0.5, 2.0])
    made["mixed"] = mixed, 0.5 * made["graph"][1] + 2 * gauss
    return made


@pytest.fixture(params=["small", "large"])
def size(request, monkeypatch):
    """Let kernels be kept whole, or only be multiplied with."""
    if request.param == "large":
        monkeypatch.setattr(view_kernels, "DENSE_ITEMS", 0)
        monkeypatch.setattr(view_kernels, "COLUMN_TILE", 7)
    return request.param


@pytest.mark.parametrize("kind", list(kernels(N)))
def test_kernels_are_what_they_would_be_whole(kind, rng):
    kernel, K = kernels(N)[kind]
    block = rng.standard_normal((N, 3))
    assert_allclose(kernel @ block, K @ block, atol=1e-8)
    assert_allclose(kernel.diagonal(), np.diag(K), atol=1e-8)
    rows, columns = np.array([3, 1, 20]), np.array([5, 0])
    assert_allclose(kernel.block(rows, columns), K[np.ix_(rows, columns)], atol=1e-8)


def test_a_large_graph_is_only_multiplied_with(monkeypatch, rng):
    S, block = graph(N), rng.standard_normal((N, 3))
    monkeypatch.setattr(view_kernels, "DENSE_ITEMS", 0)
    kernel = GraphKernel(S, ALPHA, unit_diagonal=False)
    assert_allclose(kernel @ block, whole(S, unit=False) @ block, atol=1e-7)
    scaled = GraphKernel(S, ALPHA)
    assert_allclose(scaled.diagonal(), 1)  # as far as it knows
    true = np.diag(whole(S, unit=False))
    assert_allclose(scaled.lengths**2, true, rtol=0.4)
    rows = np.array([2, 9])
    assert_allclose(scaled.block(rows, rows), (scaled @ np.eye(N))[np.ix_(rows, rows)])


def masked_problem(K, rows, targets, weights, ridge):
    """Return all values that minimise the masked objective."""
    penalty = ridge * np.linalg.inv(K)
    W = np.zeros(len(K))
    W[rows] = weights
    right = np.zeros((len(K), targets.shape[1]))
    right[rows] = weights[:, None] * targets
    return np.linalg.solve(np.diag(W) + penalty, right)


@pytest.mark.parametrize("solver", ["factorised", "by products"])
@pytest.mark.parametrize("soft", [False, True])
def test_labels_solve_the_masked_problem(solver, soft, size, rng, monkeypatch):
    if solver == "by products":
        monkeypatch.setattr(label_fitting, "DENSE_LABELS", 0)
    S = graph(N)
    kernel = GraphKernel(S, ALPHA, unit_diagonal=False)
    memberships = np.zeros((N, 3))
    rows = np.sort(rng.choice(N, 12, replace=False))
    memberships[rows] = (
        rng.random((12, 3)) if soft else np.eye(3)[rng.integers(3, size=12)]
    )
    fit = fit_labels(kernel, sparse.csr_array(memberships), ridges=(0.2,))
    weights = memberships[rows].sum(axis=1)
    K = whole(S, unit=False)
    # Ridges are in units of the diagonal, which a large graph only estimates.
    diagonal = kernel.diagonal() if solver == "by products" else np.diag(K)
    ridge = 0.2 * np.mean(diagonal[rows])
    targets = memberships[rows] / weights[:, None]
    expected = masked_problem(K, rows, targets, weights, ridge)
    assert_allclose(fit.values, expected, atol=1e-6)
    assert fit.fit.residual < 1e-6


def test_leaving_one_out_is_what_a_fit_without_it_says(rng):
    kernel, K = kernels(N)["dense"]
    rows = np.arange(0, N, 3)
    targets, weights = rng.random((len(rows), 2)), rng.uniform(0.5, 2, len(rows))
    block = K[np.ix_(rows, rows)]
    (fit,) = solve_dense(block, targets, weights, (0.3,))
    ridge = 0.3 * np.mean(np.diag(block))
    for left_out in range(len(rows)):
        rest = np.delete(np.arange(len(rows)), left_out)
        system = block[np.ix_(rest, rest)] + np.diag(ridge / weights[rest])
        said = block[left_out, rest] @ np.linalg.solve(system, targets[rest])
        assert_allclose(fit.held_out[left_out], said, atol=1e-9)
    squares = weights @ (fit.held_out - targets) ** 2
    assert fit.error == pytest.approx(squares.sum() / (weights @ targets**2).sum())


def judged(rng, n_pairs):
    """Return judged pairs of both kinds, with weights, as a sparse matrix."""
    i, j = np.divmod(rng.choice(N * M, n_pairs, replace=False), M)
    values = rng.choice([1.0, -1.0, 0.5, -2.0], n_pairs)
    values[:2] = 1.0, -1.0
    return sparse.csr_array((values, (i, j)), shape=(N, M))


@pytest.mark.parametrize("solver", ["factorised", "by products"])
def test_pairs_solve_the_masked_problem(solver, size, rng, monkeypatch):
    if solver == "by products":
        monkeypatch.setattr(pair_fitting, "DENSE_PAIRS", 0)
        monkeypatch.setattr(pair_fitting, "PAIR_TOL", 1e-9)
    S_x, S_y = graph(N), graph(M, seed=1)
    both = (
        GraphKernel(S_x, ALPHA, unit_diagonal=False),
        GraphKernel(S_y, 0.6, unit_diagonal=False),
    )
    pairs = judged(rng, 60)
    targets, weights = pair_targets(pairs, "auto")
    fit = fit_pairs(both, pairs, targets, weights, ridges=(0.5,))
    K_x, K_y = whole(S_x, unit=False), whole(S_y, 0.6, unit=False)
    H = np.kron(K_x, K_y)
    i, j = pairs.tocoo().coords
    places = i * M + j
    diagonals = [np.diag(K_x), np.diag(K_y)]
    if solver == "by products":
        diagonals = [kernel.diagonal() for kernel in both]
    unit = np.mean(np.outer(*diagonals).ravel()[places])
    system = H[np.ix_(places, places)] + 0.5 * unit * np.diag(1 / weights)
    expected = (H[:, places] @ np.linalg.solve(system, targets)).reshape(N, M)
    scores = K_x @ fit.coefficients.toarray() @ K_y
    # Products are in single precision.
    atol = 1e-6 if solver == "factorised" else 2e-6
    assert_allclose(scores, expected, atol=atol * np.abs(expected).max())


def test_features_stand_for_kernels_of_many_items(rng, monkeypatch):
    pairs = judged(rng, 60)
    targets, weights = pair_targets(pairs, "auto")
    X, Y = rng.standard_normal((N, 3)), rng.standard_normal((M, 2))
    both = FeatureKernel(X, embed=np.asarray), FeatureKernel(Y, embed=np.asarray)
    exact = fit_pairs(both, pairs, targets, weights, ridges=(0.5,))
    monkeypatch.setattr(pair_fitting, "DENSE_PAIRS", 0)
    monkeypatch.setattr(pair_fitting, "PAIR_TOL", 1e-8)
    for limit in (0, 35):  # features of both views, or of the first alone
        monkeypatch.setattr(pair_fitting, "DENSE_ITEMS", limit)
        fit = fit_pairs(both, pairs, targets, weights, ridges=(0.5,))
        assert_allclose(
            fit.coefficients.toarray(), exact.coefficients.toarray(), atol=1e-5
        )
    graphs = GraphKernel(graph(N), ALPHA), GraphKernel(graph(M, 1), ALPHA)
    monkeypatch.setattr(nystrom, "N_DIRECTIONS", 25)
    near = fit_pairs(graphs, pairs, targets, weights, ridges=(0.5,))
    assert near.fit.residual < 1e-6
    assert 0 < near.fit.error < 2


def test_links_that_nobody_judged_lie_between_must_and_cannot():
    pairs = sparse.csr_array(np.array([[1.0, -1.0, 0.0], [-2.0, 0.0, 0.0]]))
    targets, weights = pair_targets(pairs, "auto")
    assert targets @ weights == pytest.approx(0)
    assert targets.tolist() == [0.75, -0.25, -0.25]
    assert pair_targets(pairs, "literal")[0].tolist() == [1, -1, -1]
    assert pair_targets(pairs, 0.5)[0].tolist() == [1, -0.5, -0.5]
    only_must = sparse.csr_array(np.array([[1.0, 2.0]]))
    assert pair_targets(only_must, "auto")[0].tolist() == [1, 1]


def test_the_ridge_is_chosen_by_leave_one_out(rng):
    kernel, _ = kernels(N)["dense"]
    memberships = sparse.csr_array(np.eye(3)[rng.integers(3, size=N)])
    ridges = (0.01, 0.1, 1.0, 10.0)
    errors = [fit_labels(kernel, memberships, ridges=(r,)).fit.error for r in ridges]
    chosen = fit_labels(kernel, memberships, ridges=ridges)
    assert chosen.fit.ridge == ridges[int(np.argmin(errors))]
    assert chosen.fit.error == pytest.approx(min(errors))


def test_a_kernel_with_a_negative_eigenvalue_is_refused():
    with pytest.raises(LinkspreadError, match="no eigenvalue below 0"):
        solve_dense(-np.eye(3), np.ones((3, 1)), np.ones(3), (0.5,))


def test_gradients_go_on_from_a_guess(rng):
    A = rng.standard_normal((20, 20))
    A = A @ A.T + np.eye(20)
    targets = rng.standard_normal((20, 3))
    exact = np.linalg.solve(A, targets)
    solved, residual = solve_by_gradients(
        lambda X: A @ X, targets, diagonal=np.diag(A), tol=1e-10
    )
    assert_allclose(solved, exact, atol=1e-7)
    assert residual <= 1e-10
    calls = []
    solve_by_gradients(
        lambda X: calls.append(1) or A @ X, targets,
        diagonal=np.diag(A), tol=1e-8, start=solved,
    )  # fmt: skip
    assert len(calls) == 1


def test_new_items_of_a_graph_get_what_it_would_say_with_them_in_it(rng):
    X = rng.standard_normal((N, 3))
    fitted = NeighborGraph(n_neighbors=5).fit(X)
    S = normalize(fitted.affinity_)
    near = sparse.csr_array(rng.random((2, N)) * (rng.random((2, N)) < 0.1) / 5)
    kernel = GraphKernel(S, ALPHA, similar=lambda rows: near, unit_diagonal=False)
    coefficients = rng.standard_normal((N, 2))
    said = kernel.extend(None, coefficients, kernel @ coefficients)
    P = whole(S, unit=False)
    own = (1 - ALPHA) + ALPHA**2 * (near.toarray() ** 2 @ np.diag(P))
    assert_allclose(
        said * np.sqrt(own)[:, None], ALPHA * near @ P @ coefficients, atol=1e-10
    )
    with pytest.raises(ValueError, match="without `similar`"):
        GraphKernel(S, ALPHA).extend(None, coefficients, coefficients)


def test_mixed_kernels_extend_each_from_its_own_part(rng):
    X, rows = rng.standard_normal((N, 3)), rng.standard_normal((4, 3))
    parts = [FeatureKernel(X, np.asarray), FeatureKernel(2 * X, lambda r: 2 * r)]
    mixed = MixedKernel(parts, [1.0, 0.5])
    C = rng.standard_normal((N, 2))
    assert_allclose(mixed.extend(rows, C, mixed @ C), 3 * rows @ X.T @ C)
