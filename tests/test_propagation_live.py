"""Links that change, against links that are spread from the start."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from linkspread.graphs import normalize
from linkspread.propagation import live as live_module
from linkspread.propagation import spread_links
from linkspread.propagation.live import LiveSpread
from reference import dense_filter, random_graph, relative_error

N, M = 40, 30
HOW = {"alpha": (0.3, 0.6), "beta": 0.9}


def graphs(dtype=np.float64):
    rng = np.random.default_rng(1)
    sizes = N, M
    return [normalize(random_graph(rng, size)).astype(dtype) for size in sizes]


def random_links(rng, n_links):
    Z = np.zeros((N, M))
    Z[rng.integers(0, N, n_links), rng.integers(0, M, n_links)] = rng.uniform(
        0.5, 2, n_links
    )
    return sparse.csr_array(Z)


def make_live(parts, weights, tol=1e-9, rank=None, dtype=np.float64):
    return LiveSpread(*graphs(dtype), parts, weights, tol=tol, rank=rank, **HOW)


def scores(spread):
    return spread.left @ spread.core @ spread.right.T


def expected(Z):
    S_x, S_y = graphs()
    return dense_filter(S_x, Z, S_y, HOW["alpha"], HOW["beta"])


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    slack=st.sampled_from([1, 8, 64]),
    start=st.booleans(),
)
def test_changes_in_any_order_equal_the_dense_closed_form(seed, slack, start):
    rng = np.random.default_rng(seed)
    parts = [random_links(rng, 5), random_links(rng, 5)]
    totals = [Z.toarray() if start else np.zeros((N, M)) for Z in parts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_module, "SLACK", slack)
        live = make_live(parts if start else [None, None], (1.0, -0.5))
        for _ in range(6):
            k, change = int(rng.integers(2)), random_links(rng, 3)
            change = change if rng.random() < 0.6 else -change
            totals[k] += change.toarray()
            live.add(k, change)
            weights = (1.0, -float(rng.uniform(0.1, 3)))
            live.weigh(weights)
            Z = weights[0] * totals[0] + weights[1] * totals[1]
            assert relative_error(scores(live.spread()), expected(Z)) < 1e-7


def test_links_taken_away_leave_what_was_there(rng):
    base, more = random_links(rng, 6), random_links(rng, 9)
    live = make_live([base], (1.0,))
    before = scores(live.spread())
    live.add(0, more)
    live.add(0, -more)
    assert relative_error(scores(live.spread()), before) < 1e-8


def test_new_items_score_as_after_spreading_all_links_together(rng):
    base, more = random_links(rng, 6), random_links(rng, 4)
    S_x, S_y = graphs()
    live = make_live([base], (1.0,))
    live.add(0, more)
    spread = spread_links(S_x, base + more, S_y, tol=1e-9, **HOW)
    near_x, near_y = rng.random((3, N)) / N, rng.random((3, M)) / M
    one, other = live.spread(), spread
    assert (
        relative_error(
            one.unseen_queries(near_x) @ one.right.T,
            other.unseen_queries(near_x) @ other.right.T,
        )
        < 1e-7
    )
    assert relative_error(
        one.T.unseen_queries(near_y) @ one.left.T,
        other.T.unseen_queries(near_y) @ other.left.T,
    ) < 1e-7  # fmt: skip


def test_a_rank_is_kept_and_its_error_told(rng):
    base = random_links(rng, 30)
    live = make_live([base], (1.0,), rank=8)
    Z = base.toarray()
    for _ in range(30):
        change = random_links(rng, 1)
        Z += change.toarray()
        live.add(0, change)
    spread = live.spread()
    assert max(spread.core.shape) <= 8 + live_module.SLACK
    live._cut()
    spread = live.spread()
    assert max(spread.core.shape) <= 8
    error = relative_error(scores(spread), expected(Z))
    assert 0.5 * error < live.error < 2 * error
    assert error > 0.1


def test_what_cuts_have_cost_is_told_before_it_is_too_much(rng):
    base = random_links(rng, 12)
    live = make_live([base], (1.0,), rank=8)
    assert not live.is_stale
    exact = make_live([base], (1.0,))
    for _ in range(30):
        more = 3 * random_links(rng, 12)
        for spread in (live, exact):
            spread.add(0, more)
            spread._cut()
            spread.add(0, -more)
            spread._cut()
    assert live.is_stale
    assert not exact.is_stale


def test_what_the_rank_costs_in_any_case_is_no_reason_to_start_anew(rng, monkeypatch):
    monkeypatch.setattr(live_module, "SLACK", 8)
    few = sparse.csr_array(np.outer(rng.random(N), rng.random(M)))
    change = 100 * random_links(rng, 4)
    live = make_live([few], (1.0,), rank=6)
    fresh = live.error
    live.add(0, change)
    truth = expected((few + change).toarray())
    singular = np.linalg.svd(truth, compute_uv=False)
    best = np.linalg.norm(singular[6:]) / np.linalg.norm(singular)
    assert best > 10 * fresh  # the rank does not hold both
    assert relative_error(scores(live.spread()), truth) < 1.2 * best
    assert not live.is_stale


def test_vectors_handed_out_do_not_change_later(rng):
    live = make_live([random_links(rng, 5)], (1.0,))
    spread = live.spread()
    before = spread.left.copy(), spread.right.copy(), spread.core.copy()
    for _ in range(20):
        live.add(0, random_links(rng, 4))
    assert np.array_equal(spread.left, before[0])
    assert np.array_equal(spread.right, before[1])
    assert np.array_equal(spread.core, before[2])


def test_single_precision_stays_single_and_near(rng):
    base, more = random_links(rng, 5), random_links(rng, 5)
    live = make_live([base], (1.0,), tol=1e-6, dtype=np.float32)
    live.add(0, more)
    spread = live.spread()
    assert {spread.left.dtype, spread.core.dtype} == {np.dtype(np.float32)}
    assert relative_error(scores(spread), expected((base + more).toarray())) < 1e-5


def test_bases_stay_orthonormal_over_many_changes(rng):
    live = make_live([random_links(rng, 5)], (1.0,), rank=20)
    for _ in range(60):
        live.add(0, random_links(rng, 2))
    spread = live.spread()
    for basis in (spread.left, spread.right):
        assert np.allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-10)


def test_nothing_to_add_changes_nothing(rng):
    live = make_live([random_links(rng, 5)], (1.0,))
    before = scores(live.spread())
    live.add(0, sparse.csr_array((N, M)))
    assert np.array_equal(scores(live.spread()), before)
