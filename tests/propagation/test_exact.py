"""The factored propagation against dense answers and the paper's own loop."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from linkspread.graphs import normalize
from linkspread.ground.errors import LinkspreadError
from linkspread.links import Links
from linkspread.propagation import alternate, propagate, spread_links
from linkspread.propagation.rows import SpreadRows
from reference import (
    dense_filter,
    extended_scores,
    fixed_point,
    random_graph,
    relative_error,
)

N, M = 26, 19
ALPHAS = [0.0, 0.025, 0.3, 0.6, 0.95]
BETAS = [0.0, 0.5, 0.95]


@pytest.fixture
def graphs(rng):
    return (
        normalize(random_graph(rng, N, isolated=2)),
        normalize(random_graph(rng, M, isolated=1)),
    )


@pytest.fixture(params=["labels", "soft", "few pairs", "many pairs", "both"])
def Z(request, rng):
    sizes = {"x": N, "y": M}
    labels = Links.from_labels(
        {"x": rng.integers(-1, 2, N), "y": rng.integers(-1, 2, M)}
    )
    soft = Links.from_labels({"x": rng.random((N, 3)), "y": rng.random((M, 3))})
    few = Links.from_pairs([(3, 4, 1.0), (0, 6, -2.5)], between=("x", "y"))
    rows, columns = rng.integers(0, N, 90), rng.integers(0, M, 90)
    weights = rng.choice([-1.0, 0.5, 1.0], 90)
    # Summed beforehand, so that no pair is both a must- and a cannot-link.
    cells = sparse.coo_array((weights, (rows, columns)), shape=(N, M)).tocsr().tocoo()
    nonzero = cells.data != 0
    many = Links.from_pairs(
        list(
            zip(
                cells.row[nonzero], cells.col[nonzero], cells.data[nonzero], strict=True
            )
        ),
        between=("x", "y"),
    )
    chosen = {
        "labels": labels,
        "soft": soft,
        "few pairs": few,
        "many pairs": many,
        "both": labels + many,
    }[request.param]
    return chosen.resolve(sizes).between("x", "y")


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_propagation_solves_the_two_equations(graphs, Z, alpha, beta):
    S_x, S_y = graphs
    both = (alpha, 0.3)
    wanted = fixed_point(S_x, Z.toarray(), S_y, both, beta)
    F = propagate(S_x, Z, S_y, alpha=both, beta=beta, tol=1e-9)
    assert relative_error(F.toarray(), wanted) <= 1e-9
    assert F.error <= 2e-9


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_same_alpha_in_both_views(graphs, Z, alpha, beta):
    S_x, S_y = graphs
    wanted = dense_filter(S_x, Z.toarray(), S_y, (alpha, alpha), beta)
    F = propagate(S_x, Z, S_y, alpha=alpha, beta=beta, tol=1e-8)
    assert relative_error(F.toarray(), wanted) <= 1e-8


@pytest.mark.parametrize("alpha, beta", [(0.025, 0.5), (0.3, 0.95), (0.6, 0.5)])
@pytest.mark.slow
def test_propagation_is_where_the_papers_loop_converges(graphs, Z, alpha, beta):
    S_x, S_y = graphs
    wanted = alternate(S_x, Z, S_y, alpha=alpha, beta=beta, n_outer=220, n_inner=40)
    F = propagate(S_x, Z, S_y, alpha=alpha, beta=beta, tol=1e-9)
    assert relative_error(F.toarray(), wanted) <= 1e-8


@pytest.mark.parametrize("n_outer, n_inner", [(1, 1), (1, 30), (5, 2), (10, 30)])
def test_early_stopping_equals_the_papers_loop_at_every_round(
    graphs, Z, n_outer, n_inner
):
    S_x, S_y = graphs
    rounds = {"n_outer": n_outer, "n_inner": n_inner, "alpha": (0.3, 0.1), "beta": 0.9}
    wanted = alternate(S_x, Z, S_y, **rounds)
    F = propagate(S_x, Z, S_y, tol=1e-9, **rounds)
    assert relative_error(F.toarray(), wanted) <= 1e-8


def test_early_stopping_of_the_outer_loop_alone(graphs, Z):
    S_x, S_y = graphs
    wanted = alternate(S_x, Z, S_y, alpha=0.2, beta=0.9, n_outer=7, n_inner=80)
    F = propagate(S_x, Z, S_y, alpha=0.2, beta=0.9, n_outer=7, tol=1e-10)
    assert relative_error(F.toarray(), wanted) <= 1e-8


@pytest.mark.parametrize("beta", [0.0, 0.95])
@pytest.mark.parametrize("alpha", [(0.025, 0.6), (0.3, 0.0)])
def test_unseen_item_scores_as_in_the_extended_graph(rng, graphs, Z, alpha, beta):
    S_x, S_y = graphs
    s = np.zeros(N)
    s[rng.choice(N, 5, replace=False)] = rng.random(5) * 0.4
    wanted = extended_scores(S_x, s, Z.toarray(), S_y, alpha, beta)
    spread = spread_links(S_x, Z, S_y, alpha=alpha, beta=beta, tol=1e-9)
    got = spread.unseen_queries(s[None]) @ spread.right.T
    assert relative_error(got[0], wanted) <= 1e-8


def test_unseen_item_of_the_second_view(rng, graphs, Z):
    S_x, S_y = graphs
    s = np.zeros(M)
    s[rng.choice(M, 4, replace=False)] = rng.random(4) * 0.4
    wanted = extended_scores(S_y, s, Z.toarray().T, S_x, (0.2, 0.5), 0.9)
    spread = spread_links(S_x, Z, S_y, alpha=(0.5, 0.2), beta=0.9, tol=1e-9).T
    got = spread.unseen_queries(s[None]) @ spread.right.T
    assert relative_error(got[0], wanted) <= 1e-8


def test_single_rows_are_exact(graphs, Z):
    S_x, S_y = graphs
    wanted = fixed_point(S_x, Z.toarray(), S_y, (0.3, 0.6), 0.9)
    scores = SpreadRows.of(S_x, Z, S_y, alpha=(0.3, 0.6), beta=0.9, tol=1e-10)
    got = scores.rows([5, 0, 20])
    np.testing.assert_allclose(
        got, wanted[[5, 0, 20]], atol=1e-10 * np.abs(wanted).max()
    )


def test_alpha_zero_returns_the_links(graphs, Z):
    S_x, S_y = graphs
    F = propagate(S_x, Z, S_y, alpha=0, beta=0.7, tol=1e-9)
    np.testing.assert_allclose(F.toarray(), Z.toarray(), atol=1e-9)


def test_linear_in_the_links(rng, graphs):
    S_x, S_y = graphs
    A, B = rng.standard_normal((N, M)), rng.standard_normal((N, M))
    F = [propagate(S_x, Z, S_y, tol=1e-10).toarray() for Z in (A, B, 2 * A - B)]
    np.testing.assert_allclose(F[2], 2 * F[0] - F[1], atol=1e-8)


def test_swapping_the_views_transposes(graphs, Z):
    S_x, S_y = graphs
    F = propagate(S_x, Z, S_y, alpha=(0.2, 0.4), tol=1e-10).toarray()
    swapped = propagate(S_y, Z.T, S_x, alpha=(0.4, 0.2), tol=1e-10).toarray()
    np.testing.assert_allclose(swapped.T, F, atol=1e-9)


def test_symmetric_links_within_a_view_stay_symmetric(rng, graphs):
    S_x, _ = graphs
    Z = rng.standard_normal((N, N))
    F = propagate(S_x, Z + Z.T, S_x, alpha=0.4, tol=1e-10).toarray()
    np.testing.assert_allclose(F, F.T, atol=1e-8)


def test_renumbering_the_items_commutes(rng, graphs, Z):
    S_x, S_y = graphs
    order = rng.permutation(N)
    F = propagate(S_x, Z.toarray(), S_y, tol=1e-10).toarray()
    shuffled = propagate(S_x[order][:, order], Z.toarray()[order], S_y, tol=1e-10)
    np.testing.assert_allclose(shuffled.toarray(), F[order], atol=1e-8)


def test_isolated_items_keep_their_own_links_and_nothing_else(graphs):
    S_x, S_y = graphs
    Z = np.zeros((N, M))
    Z[0, 5] = 1.0  # item 0 is isolated in the first view
    F = propagate(S_x, Z, S_y, alpha=0.5, tol=1e-9).toarray()
    assert F[0, 5] > 0
    assert np.all(np.isfinite(F))
    np.testing.assert_allclose(np.delete(F, 0, axis=0), 0, atol=1e-12)


def test_no_links_give_zeros(graphs):
    S_x, S_y = graphs
    F = propagate(S_x, sparse.csr_array((N, M)), S_y)
    assert F.shape == (N, M)
    assert not F.toarray().any()


@pytest.mark.slow
def test_float32_graphs_give_float32_factors(graphs, Z):
    S_x, S_y = graphs
    wanted = propagate(S_x, Z, S_y, alpha=0.3).toarray()
    single = S_x.astype(np.float32), S_y.astype(np.float32)
    F = propagate(single[0], Z, single[1], alpha=0.3)
    assert F.left.dtype == F.right.dtype == np.float32
    assert relative_error(F.toarray(), wanted) <= 1e-4


def test_dense_and_sparse_inputs_agree_and_are_not_modified(graphs, Z):
    S_x, S_y = graphs
    copies = S_x.copy(), S_y.copy(), Z.toarray()
    sparse_inputs = propagate(S_x, Z, S_y).toarray()
    dense_inputs = propagate(S_x.toarray(), Z.toarray(), S_y.toarray()).toarray()
    np.testing.assert_allclose(sparse_inputs, dense_inputs, atol=1e-6)
    for before, after in zip(copies, (S_x, S_y, Z), strict=True):
        difference = before - after.toarray()
        assert not np.any(difference)


def test_same_call_same_bits(graphs, Z):
    S_x, S_y = graphs
    one, other = (propagate(S_x, Z, S_y, rank=5) for _ in range(2))
    np.testing.assert_array_equal(one.left, other.left)


@pytest.mark.parametrize("rank", [1, 4, 12])
def test_a_given_rank_is_nearly_the_best_of_that_rank(rng, rank):
    S_x, S_y = (normalize(random_graph(rng, n)) for n in (60, 50))
    Z = rng.standard_normal((60, 50))
    full = dense_filter(S_x, Z, S_y, (0.6, 0.6), 0.95)
    singular = np.linalg.svd(full, compute_uv=False)
    best = np.linalg.norm(singular[rank:]) / np.linalg.norm(singular)
    F = propagate(S_x, Z, S_y, alpha=0.6, beta=0.95, rank=rank)
    error = relative_error(F.toarray(), full)
    assert F.rank == rank
    assert 0.999 * best <= error <= 1.02 * best
    assert F.error == pytest.approx(error, rel=0.4)


def test_rank_truncates_label_links_to_the_best_factors(rng, graphs):
    S_x, S_y = graphs
    labels = {"x": rng.integers(0, 3, N), "y": rng.integers(0, 3, M)}
    Z = Links.from_labels(labels).between("x", "y")
    full = dense_filter(S_x, Z.toarray(), S_y, (0.1, 0.1), 0.9)
    U, singular, Vt = np.linalg.svd(full)
    best = U[:, :2] * singular[:2] @ Vt[:2]
    F = propagate(S_x, Z, S_y, alpha=0.1, beta=0.9, rank=2, tol=1e-9)
    np.testing.assert_allclose(F.toarray(), best, atol=1e-7)


def test_a_sketch_short_of_memory_warns_with_its_error(monkeypatch, rng, graphs):
    monkeypatch.setattr("linkspread.propagation.spread.BASIS_BYTES", 0)
    monkeypatch.setattr("linkspread.propagation.spread.BLOCK", 8)
    S_x, S_y = graphs
    Z = rng.standard_normal((N, M))
    with pytest.warns(ConvergenceWarning, match="relative error.*Give a `rank`"):
        F = propagate(S_x, Z, S_y)
    error = relative_error(F.toarray(), dense_filter(S_x, Z, S_y, (0.1, 0.1), 0.95))
    assert F.error == pytest.approx(error, rel=0.4)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"alpha": 1.0}, r"`alpha` must be a number in \[0, 1\), got 1.0"),
        ({"alpha": -0.1}, r"`alpha` must be a number in \[0, 1\), got -0.1"),
        ({"alpha": (0.1, 0.2, 0.3)}, "`alpha` must be one number or a pair, got 3"),
        ({"alpha": "much"}, r"`alpha` must be a number in \[0, 1\), got 'much'"),
        ({"beta": 1}, r"`beta` must be a number in \[0, 1\), got 1"),
        ({"beta": float("nan")}, r"`beta` must be a number in \[0, 1\), got nan"),
        ({"tol": 0}, "`tol` must be between 0 and 1, got 0"),
        ({"rank": 0}, "`rank` must be a positive integer, got 0"),
        ({"rank": 2.5}, "`rank` must be a positive integer, got 2.5"),
    ],
)
def test_wrong_parameters_are_one_sentence(graphs, parameters, message):
    with pytest.raises(LinkspreadError, match=message):
        propagate(graphs[0], np.ones((N, M)), graphs[1], **parameters)


def test_wrong_shapes_are_one_sentence(graphs):
    S_x, S_y = graphs
    with pytest.raises(LinkspreadError, match=r"`Z` must have one row.*\(19, 26\)"):
        propagate(S_x, np.ones((M, N)), S_y)
    with pytest.raises(LinkspreadError, match="`S_y` must be square, got shape"):
        propagate(S_x, np.ones((N, M)), np.ones((M, 2)))


def test_a_graph_that_was_not_normalised_is_refused(rng, graphs):
    with pytest.raises(LinkspreadError, match="`S_x` must be normalised.*`normalize"):
        propagate(random_graph(rng, N), np.ones((N, M)), graphs[1])
