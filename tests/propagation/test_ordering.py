"""Renumbered nodes: callers must not be able to tell, and neighbours move nearer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from linkspread.graphs import normalize
from linkspread.links import Links, as_link_matrix
from linkspread.propagation import chebyshev, exact, propagate
from linkspread.propagation.chebyshev import renumber
from linkspread.propagation.rows import SpreadRows
from neighbor_graphs import make_neighbor_graph
from reference import random_graph

N, M = 90, 70


@pytest.fixture
def forced(monkeypatch):
    """Renumber every graph, however small and however little it gains."""
    force_renumbering(monkeypatch)


def force_renumbering(monkeypatch):
    """Renumber every graph from here on."""
    monkeypatch.setattr(chebyshev, "CACHE_BYTES", 0)
    monkeypatch.setattr(chebyshev, "MIN_STEPS", 0)
    monkeypatch.setattr(chebyshev, "MIN_GAIN", -2)


def graph_of(kind, rng, size):
    """Return a normalised graph of one kind."""
    if kind == "classes":
        labels = rng.integers(0, 3, size)
        return normalize(make_neighbor_graph(labels, shuffled=True, dtype=float))
    if kind == "disconnected":
        halves = [random_graph(rng, size // 2), random_graph(rng, size - size // 2)]
        return normalize(sparse.block_diag(halves, format="csr"))
    isolated = {"isolated": 5, "empty": size}.get(kind, 0)
    return normalize(random_graph(rng, size, isolated=isolated))


def links_of(kind, rng):
    """Return links between N and M items."""
    labels = {"x": rng.integers(-1, 4, N), "y": rng.integers(-1, 4, M)}
    if kind == "labels":
        return Links.from_labels(labels).between("x", "y")
    if kind == "few pairs":
        pairs = [(3, 4, 1.0), (0, 6, -2.5), (89, 69, 1.0)]
        return sparse.coo_array(
            ([w for *_, w in pairs], np.array([p[:2] for p in pairs]).T), shape=(N, M)
        ).tocsr()
    return sparse.random_array((N, M), density=0.2, rng=rng, format="csr")


def rows_of(S_x, Z, S_y):
    """Return some single rows of scores."""
    how = {"alpha": (0.4, 0.4), "beta": 0.95, "tol": 1e-6}
    return SpreadRows.of(S_x, Z, S_y, **how).rows([0, 5, 88])


KINDS = ["classes", "random", "disconnected", "isolated", "empty"]


@pytest.mark.parametrize("links", ["labels", "few pairs", "many pairs"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_renumbering_does_not_change_propagation(rng, monkeypatch, kind, links):
    S_x, S_y = graph_of(kind, rng, N), graph_of(kind, rng, M)
    Z = links_of(links, rng)
    plain = propagate(S_x, Z, S_y, alpha=0.4)
    rows = rows_of(S_x, Z, S_y)
    force_renumbering(monkeypatch)
    renumbered = propagate(S_x, Z, S_y, alpha=0.4)
    assert_allclose(renumbered.toarray(), plain.toarray(), atol=1e-10)
    assert renumbered.rank == plain.rank
    assert_allclose(rows_of(S_x, Z, S_y), rows, atol=1e-12)


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("kind", KINDS)
def test_the_renumbered_graph_is_the_permuted_graph(rng, kind):
    S = graph_of(kind, rng, N)
    numbering = renumber(S, width=4, n_steps=20)
    order = numbering.order
    assert_array_equal(np.sort(order), np.arange(N))
    assert_array_equal(numbering.S.toarray(), S.toarray()[np.ix_(order, order)])
    block = rng.standard_normal((N, 2, 3))
    assert_array_equal(numbering.outwards(numbering.inwards(block)), block)
    thin = sparse.csr_array(block[:, 0])
    assert_array_equal(numbering.inwards(thin).toarray(), block[order, 0])


@pytest.mark.usefixtures("forced")
def test_a_single_node_is_its_own_order():
    S = sparse.csr_array((1, 1))
    assert_array_equal(renumber(S, width=4, n_steps=20).order, [0])
    Z = np.array([[2.0]])
    F = propagate(S, Z, S, alpha=0.5, beta=0.5)
    assert F.toarray().shape == (1, 1) and np.isfinite(F.toarray()).all()
    scores = SpreadRows.of(S, Z, S, alpha=(0.5, 0.5), beta=0.5, tol=1e-6)
    assert_allclose(scores.rows([0]), F.toarray())


def near_share(S, places, reach):
    """Return the share of all edges whose ends are within reach."""
    rows, columns = S.tocoo().coords
    return np.mean(np.abs(places[rows].astype(int) - places[columns]) <= reach)


def test_neighbors_move_nearer_although_some_edges_lead_far_away(monkeypatch):
    labels = np.repeat(np.arange(8), 2500)
    S = normalize(make_neighbor_graph(labels, shuffled=True))  # one edge in ten is far
    monkeypatch.setattr(chebyshev, "CACHE_BYTES", 0)
    numbering = renumber(S, width=1024, n_steps=20)  # 64 such rows are near
    assert near_share(S, np.arange(len(labels)), 64) < 0.1
    assert near_share(numbering.S, np.arange(len(labels)), 64) > 0.8


def test_graphs_that_would_not_gain_stay_as_they_are(monkeypatch, rng):
    small = graph_of("classes", rng, N)
    assert renumber(small, width=32, n_steps=20).S is small
    monkeypatch.setattr(chebyshev, "CACHE_BYTES", 0)
    monkeypatch.setattr(chebyshev, "NEAR_BYTES", (2**11,))  # 16 rows
    chain = normalize(sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(N, N)))
    assert renumber(chain, width=16, n_steps=20).S is chain
    dense = normalize(np.ones((N, N)) - np.eye(N))
    assert renumber(dense, width=16, n_steps=20).order is None
    few = graph_of("classes", rng, N)
    assert renumber(few, width=16, n_steps=2).S is few


@pytest.mark.usefixtures("forced")
def test_the_operator_is_seen_in_the_old_numbers(rng):
    S_x, S_y = graph_of("classes", rng, N), graph_of("classes", rng, M)
    Z = as_link_matrix(links_of("many pairs", rng))
    response = exact.fitted_response((0.3, 0.3), 0.9)
    separable = exact.separate((response,), tol=1e-9)
    operator = exact.FilterOperator.of(S_x, Z, S_y, separable, width=8)
    whole = operator.apply(np.eye(M))[0]
    assert_allclose(operator.T.apply(np.eye(N))[0], whole.T, atol=1e-12)
    assert_allclose(operator.T.T.apply(np.eye(M))[0], whole, atol=1e-12)
    assert operator.T.shape == (M, N)
