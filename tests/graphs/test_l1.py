"""Graphs of sparse codes against linear programming, and their invariances."""

import numpy as np
import pytest
from scipy.optimize import linprog

from linkspread.graphs import L1Graph, l1_graph, nearest_neighbors
from linkspread.graphs.distances import pairwise_distances
from linkspread.graphs.l1 import LinkedNeighborhoods
from linkspread.ground.errors import GraphError, LinkError
from linkspread.links import Links

N, K = 60, 12
# Narrower kernels have near-ties that HiGHS does not resolve to 1e-6; the duality gap
# certifies those in the tests of the solver.
WIDTHS = [2.0, 1.0, 0.5]


def brute_code(C, x):
    """Solve ``min |a| + |x - C a|`` with a+, a-, e+, e- as a linear programme."""
    m, k = C.shape
    equal = np.hstack([C, -C, np.eye(m), -np.eye(m)])
    done = linprog(np.ones(2 * k + 2 * m), A_eq=equal, b_eq=x, method="highs")
    return done.x[:k] - done.x[k : 2 * k]


def brute_laplacian(Z, ids):
    """Return the normalised Laplacian of ``1 + Z`` among some items."""
    affinities = 1 + np.clip(Z[np.ix_(ids, ids)], -1, 1)
    degrees = affinities.sum(axis=1)
    return np.eye(len(ids)) - affinities / np.sqrt(np.outer(degrees, degrees))


def brute_root(Z, ids):
    """Return the symmetric root of the neighbourhood's Laplacian."""
    values, vectors = np.linalg.eigh(brute_laplacian(Z, ids))
    return vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T


def brute_rows(X, ids, distances, width, Z=None):
    """Return the absolute codes of rows over given neighbours."""
    rows = np.zeros((len(ids), len(X)))
    for i, neighbors in enumerate(ids):
        own = pairwise_distances(X[neighbors], X[neighbors], metric="euclidean")
        C, x = np.exp(-((own / width) ** 2)), np.exp(-((distances[i] / width) ** 2))
        if Z is not None:
            C = np.vstack([C, brute_root(Z, neighbors)])
            x = np.concatenate([x, np.zeros(len(neighbors))])
        rows[i, neighbors] = np.abs(brute_code(C, x))
    return rows


@pytest.fixture
def X(rng):
    return rng.standard_normal((N, 3))


@pytest.fixture
def labels(rng):
    return Links.from_labels({"text": rng.integers(-1, 3, N)})


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("constrained", [False, True])
def test_codes_are_those_of_linear_programming(X, labels, width, constrained):
    links = labels if constrained else None
    Z = labels.within(balance="literal").toarray() if constrained else None
    W = l1_graph(X, n_neighbors=K, bandwidth=width, links=links)
    A = brute_rows(X, *nearest_neighbors(X, n_neighbors=K), width, Z)
    np.testing.assert_allclose(W.toarray(), (A + A.T) / 2, atol=1e-6)


@pytest.mark.parametrize("constrained", [False, True])
def test_new_items_are_coded_by_fitted_ones(rng, X, labels, constrained):
    links = labels if constrained else None
    Z = labels.within(balance="literal").toarray() if constrained else None
    graph = L1Graph(n_neighbors=K, bandwidth=1.0).fit(X, links)
    Q = rng.standard_normal((5, 3))
    wanted = brute_rows(X, *nearest_neighbors(X, Q, n_neighbors=K), 1.0, Z)
    np.testing.assert_allclose(graph.extend(Q).toarray(), wanted, atol=1e-6)


def test_pairs_constrain_too(X):
    pairs = [(0, i, (-1.0) ** i) for i in range(1, 30)]
    links = Links.from_pairs(pairs, between=("a", "a")).resolve({"a": N})
    Z = links.within(balance="literal").toarray()
    W = l1_graph(X, n_neighbors=K, bandwidth=1.0, links=links)
    A = brute_rows(X, *nearest_neighbors(X, n_neighbors=K), 1.0, Z)
    np.testing.assert_allclose(W.toarray(), (A + A.T) / 2, atol=1e-6)
    assert abs(W - l1_graph(X, n_neighbors=K, bandwidth=1.0)).max() > 1e-3


@pytest.mark.parametrize("constrained", [False, True])
def test_order_and_noise_do_not_matter(rng, X, labels, constrained):
    links = labels if constrained else None
    W = l1_graph(X, n_neighbors=K, links=links).toarray()
    order = rng.permutation(N)
    if constrained:
        links = labels.within(balance="literal").toarray()[np.ix_(order, order)]
    shuffled = l1_graph(X[order], n_neighbors=K, links=links).toarray()
    np.testing.assert_allclose(shuffled, W[np.ix_(order, order)], atol=1e-6)
    noisy = X + 1e-15 * rng.standard_normal(X.shape)
    again = l1_graph(noisy, n_neighbors=K, links=labels if constrained else None)
    np.testing.assert_allclose(again.toarray(), W, atol=1e-6)


def test_order_of_the_neighbours_does_not_matter(rng, X, labels):
    graph = L1Graph(n_neighbors=K, bandwidth=1.0).fit(X, labels)
    ids, distances = nearest_neighbors(X, n_neighbors=K)
    order = rng.permutation(K)
    codes, _ = graph.encode(ids, distances, 1.0)
    shuffled, _ = graph.encode(ids[:, order], distances[:, order], 1.0)
    np.testing.assert_allclose(shuffled.toarray(), codes.toarray(), atol=1e-6)


def test_literal_root_warns_of_its_arbitrariness(X, labels):
    with pytest.warns(UserWarning, match="arbitrary choice.*Use root='symmetric'"):
        literal = l1_graph(X, n_neighbors=K, links=labels, root="literal")
    assert abs(literal - l1_graph(X, n_neighbors=K, links=labels)).max() > 1e-3


def test_graph_properties_and_report(X):
    graph = L1Graph(n_neighbors=K).fit(X)
    W = graph.affinity_
    assert (W != W.T).nnz == 0
    assert W.data.min() > 0
    assert not W.diagonal().any()
    assert graph.report_.solver.n_rows == N
    assert graph.report_.solver.largest_gap <= 1e-7
    assert 1 <= graph.report_.mean_length <= K


def test_duplicates_zero_rows_and_narrow_kernels_survive(rng, X):
    X[10:14] = X[0]
    X[20:23] = 0
    W = L1Graph(n_neighbors=K, bandwidth=1.0).fit(X)
    assert W.report_.n_duplicated == 8
    assert np.isfinite(W.affinity_.data).all()
    narrow = L1Graph(n_neighbors=K, bandwidth=1e-3).fit(X)
    assert narrow.report_.n_empty == N - 8  # only duplicates are near enough
    assert np.isfinite(narrow.affinity_.data).all()


@pytest.mark.parametrize("metric", ["cosine", "hellinger", "chi2"])
@pytest.mark.parametrize("kernel", ["gaussian", "similarity"])
def test_every_affinity_can_be_coded(rng, metric, kernel):
    X = rng.random((40, 6))
    X[3] = 0
    W = l1_graph(X, n_neighbors=8, metric=metric, kernel=kernel)
    assert np.isfinite(W.data).all()
    assert W.nnz


def test_a_callable_metric_equals_its_name(X):
    def distances(Q, X):
        return np.sqrt(((Q[:, None] - X[None]) ** 2).sum(axis=2))

    named = l1_graph(X, n_neighbors=K).toarray()
    called = l1_graph(X, n_neighbors=K, metric=distances).toarray()
    np.testing.assert_allclose(called, named, atol=1e-6)


def test_errors(X, labels):
    with pytest.raises(GraphError, match="`kernel` must be one of 'gaussian', 'sim"):
        l1_graph(X, n_neighbors=K, kernel="binary")
    with pytest.raises(
        GraphError, match="`root` must be one of 'literal', 'symmetric'"
    ):
        l1_graph(X, n_neighbors=K, root="cubic")
    with pytest.raises(LinkError, match="`links` must be Links or a matrix, got list"):
        l1_graph(X, n_neighbors=K, links=[(0, 1, 1.0)])
    with pytest.raises(GraphError, match=r"`metric` must be one of.*got \['cosine'\]"):
        l1_graph(X, n_neighbors=K, metric=["cosine"])
    with pytest.raises(LinkError, match=r"among the 60 items.*got shape \(3, 3\)"):
        l1_graph(X, n_neighbors=K, links=np.eye(3))
    with pytest.raises(GraphError, match="n_neighbors"):
        l1_graph(X, n_neighbors=N)
    with pytest.raises(LinkError, match="links within one view"):
        l1_graph(X, links=labels, view="image", n_neighbors=K)
    with pytest.raises(ValueError, match="is not fitted"):
        L1Graph().extend(X)


def links_of(kind, rng, n=50):
    if kind == "labels":
        return Links.from_labels({"a": rng.integers(-1, 4, n)})
    if kind == "soft":
        return Links.from_labels({"a": rng.dirichlet([0.3] * 3, n)})
    pairs = [(i, i + 1, (-1.0) ** i) for i in range(n - 1)]
    pairs = Links.from_pairs(pairs, between=("a", "a")).resolve({"a": n})
    return pairs if kind == "pairs" else pairs + links_of("labels", rng, n)


@pytest.mark.parametrize("kind", ["labels", "soft", "pairs", "both"])
def test_roots_square_to_the_laplacian(rng, kind):
    Z = links_of(kind, rng).within("a", balance="literal")
    ids = np.array([rng.choice(50, 12, replace=False) for _ in range(9)])
    wanted = [brute_laplacian(Z.toarray(), row) for row in ids]
    symmetric = LinkedNeighborhoods(Z).roots(ids)
    literal = LinkedNeighborhoods(Z, root="literal").roots(ids)
    for L, root, other in zip(wanted, symmetric, literal, strict=True):
        np.testing.assert_allclose(root, root.T, atol=1e-12)
        assert np.linalg.eigvalsh(root).min() > -1e-10
        np.testing.assert_allclose(root @ root, L, atol=1e-12)
        np.testing.assert_allclose(other.T @ other, L, atol=1e-12)


def test_groups_and_eigenvectors_give_the_same_root(rng):
    Z = links_of("labels", rng).within("a", balance="literal")
    ids = np.array([rng.choice(50, 12, replace=False) for _ in range(9)])
    fast = LinkedNeighborhoods(Z)
    slow = LinkedNeighborhoods(Z)
    slow._groups = None
    np.testing.assert_allclose(fast.roots(ids), slow.roots(ids), atol=1e-7)


@pytest.mark.parametrize("labels", [[-1] * 5 + [0], [0] * 6, [0, 1, 2, 3, 4, 5]])
def test_neighbourhoods_of_one_kind(labels):
    Z = Links.from_labels({"a": labels}).within("a", balance="literal")
    ids = np.arange(5)[None, :]
    (root,) = LinkedNeighborhoods(Z).roots(ids)
    np.testing.assert_allclose(
        root @ root, brute_laplacian(Z.toarray(), ids[0]), atol=1e-12
    )


def test_symmetric_root_follows_the_order_of_the_neighbours(rng):
    Z = links_of("labels", rng).within("a", balance="literal")
    ids, order = rng.choice(50, 12, replace=False)[None, :], rng.permutation(12)
    neighborhoods = LinkedNeighborhoods(Z)
    root = neighborhoods.roots(ids)[0]
    shuffled = neighborhoods.roots(ids[:, order])[0]
    np.testing.assert_allclose(shuffled, root[np.ix_(order, order)], atol=1e-10)


def test_neighbours_that_are_like_nobody_stand_alone():
    # Too much of every class: such an item contradicts even itself.
    soft = np.vstack([np.full((3, 3), 2.0), np.eye(3)])
    Z = Links.from_labels({"a": soft}).within("a", balance="literal")
    (root,) = LinkedNeighborhoods(Z).roots(np.arange(6)[None, :])
    np.testing.assert_allclose(root[:3], np.eye(6)[:3], atol=1e-12)
    assert np.isfinite(root).all()
