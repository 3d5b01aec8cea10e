"""Candidates, assignments and probabilities of matches."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from linkspread.search import matching
from linkspread.search.matching import (
    Candidates,
    Judged,
    Matching,
    assign,
    find_candidates,
    fit_calibration,
)

BOTH = (True, True)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def best_of_both(S, n):
    """Return the pairs among the n best of their row or column."""
    rows = np.argsort(np.argsort(-S, axis=1), axis=1) < n
    columns = np.argsort(np.argsort(-S, axis=0), axis=0) < n
    return np.nonzero(rows | columns)


@pytest.mark.parametrize("shape", [(30, 40), (200, 130), (3, 100), (1, 1)])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_candidates_are_the_best_of_rows_and_columns(rng, shape, make):
    S = rng.random(shape).astype(np.float32)
    bias = rng.random(shape[0]), rng.random(shape[1])
    found, scores = find_candidates(
        lambda rows: make(S[rows]), shape, n_candidates=2, step=7, bias=bias
    )
    total = S + bias[0][:, None] + bias[1]
    i, j = best_of_both(total, 2)
    np.testing.assert_array_equal((found.left, found.right), (i, j))
    np.testing.assert_allclose(scores, total[i, j], atol=1e-5)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_an_empty_side_has_no_candidates(shape):
    found, scores = find_candidates(
        lambda rows: np.zeros((0, 0)), shape, n_candidates=2, step=7
    )
    assert len(found.left) == len(scores) == 0


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("small", [matching.SMALL, 0])
def test_the_assignment_is_that_of_scipy(monkeypatch, seed, small):
    # Also by the sparse solver alone.
    monkeypatch.setattr(matching, "SMALL", small)
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 40, 2))
    W = np.where(rng.random(shape) < 0.3, rng.random(shape) - 0.2, 0)
    if seed % 2:
        W = W.round(1)  # many equal weights
    i, j = np.nonzero(W)
    chosen = assign(i, j, W[i, j], shape)
    assert max(np.bincount(i[chosen]), default=0) <= 1
    assert max(np.bincount(j[chosen]), default=0) <= 1
    assert np.all(W[i, j][chosen] > 0)
    table = np.maximum(W, 0)
    best = table[linear_sum_assignment(table, maximize=True)].sum()
    assert W[i, j][chosen].sum() == pytest.approx(best)


def test_several_items_may_share_a_partner_if_they_may():
    left, right = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 1])
    weights = np.array([0.9, 0.8, 0.7, -0.1])
    found = {u: assign(left, right, weights, (3, 2), u).tolist()
             for u in matching.SHAPES.values()}  # fmt: skip
    assert found[True, True] == [True, False, True, False]
    # Each target has one source, each source one target.
    assert found[False, True] == [True, True, False, False]
    assert found[True, False] == [True, False, True, False]


def all_matchings(pairs, used=((), ())):
    """Yield all sets of pairs without common items."""
    if not pairs:
        yield ()
        return
    (i, j), rest = pairs[0], pairs[1:]
    yield from all_matchings(rest, used)
    if i not in used[0] and j not in used[1]:
        for own in all_matchings(rest, ((*used[0], i), (*used[1], j))):
            yield ((i, j), *own)


def test_marginals_on_a_tree_are_those_of_all_matchings(rng):
    pairs = [(0, 0), (0, 1), (1, 1), (1, 2), (2, 3)]
    f = rng.normal(size=len(pairs))
    by_pair = dict(zip(pairs, f, strict=True))
    weights = {
        own: np.exp(sum(by_pair[p] for p in own)) for own in all_matchings(pairs)
    }
    total = sum(weights.values())
    wanted = [sum(w for own, w in weights.items() if p in own) / total for p in pairs]
    left, right = np.array(pairs).T
    found = Matching(left, right, (3, 4), BOTH).marginals(f)[0]
    np.testing.assert_allclose(found, wanted, atol=1e-3)


@pytest.mark.parametrize("unique", [*matching.SHAPES.values()])
def test_the_gradient_is_that_of_differences(rng, monkeypatch, unique):
    monkeypatch.setattr(matching, "TOLERANCE", 1e-12)
    shape = (12, 15)
    left, right = best_of_both(rng.random(shape), 3)
    own = Matching(left, right, shape, unique)
    f = 2 * rng.normal(size=len(left))
    is_must, is_judged = rng.random((2, len(left))) < 0.4

    def likelihood(f):
        p = own.marginals(f)[0]
        return np.log(np.where(is_must, p, 1 - p))[is_judged].sum()

    found = own.gradient(f, np.where(is_judged, is_must - own.marginals(f)[0], 0))
    steps = 1e-5 * np.eye(len(f))
    wanted = [(likelihood(f + e) - likelihood(f - e)) / 2e-5 for e in steps]
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def drawn_matching(seed, n=400):
    """Return candidates with scores, which of them are partners, a fifth has none."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    Y = X + 0.45 * rng.normal(size=X.shape)
    Y[: n // 5] = rng.normal(size=(n // 5, 6))
    X, Y = (own / np.linalg.norm(own, axis=1, keepdims=True) for own in (X, Y))
    found, scores = find_candidates(
        lambda r: X[r] @ Y.T, (n, n), n_candidates=8, step=50
    )
    return found, scores, (found.left == found.right) & (found.left >= n // 5)


@pytest.mark.parametrize(("n_judged", "error"), [(40, 0.15), (300, 0.1)])
def test_probabilities_are_calibrated(n_judged, error):
    predicted, right = [], []
    for seed in range(8):
        found, scores, is_pair = drawn_matching(seed)
        rng = np.random.default_rng(seed)
        # Half of the judged candidates are the best of their row.
        best = np.zeros(len(scores), dtype=bool)
        order = np.lexsort((-scores, found.left))
        best[order[np.diff(found.left[order], prepend=-1) != 0]] = True
        half = n_judged // 2
        places = rng.choice(np.flatnonzero(best), half, replace=False)
        places = np.union1d(places, rng.choice(len(scores), half, replace=False))
        Z = scores[:, None]
        judged = [Judged(places, is_pair[places], Z)]
        calibration = fit_calibration(found, Z, judged, BOTH)
        assert calibration.is_calibrated
        p = Matching(*found, BOTH).marginals(calibration.log_weights(Z))[0]
        rest = np.setdiff1d(np.arange(len(p)), places)
        predicted.append(p[rest])
        right.append(is_pair[rest])
    p, y = np.concatenate(predicted), np.concatenate(right)
    assert p.sum() == pytest.approx(y.sum(), rel=error)
    for low, high in ((0.02, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.01)):
        own = (p >= low) & (p < high)
        assert own.sum() > 100
        assert p[own].mean() == pytest.approx(y[own].mean(), abs=error)


@pytest.mark.parametrize("n_must", [0, 1])
def test_few_judgements_give_no_calibration(n_must):
    found, scores, is_pair = drawn_matching(0)
    places = np.append(np.flatnonzero(~is_pair)[:30], np.flatnonzero(is_pair)[:n_must])
    judged = [Judged(places, is_pair[places], scores[:, None])]
    calibration = fit_calibration(found, scores[:, None], judged, BOTH)
    assert not calibration.is_calibrated
    assert calibration.n_judged == 30 + n_must


def test_an_unknown_similarity_says_nothing():
    found, scores, is_pair = drawn_matching(0)
    places = np.arange(0, len(scores), 7)
    results = []
    for other in (np.full(len(scores), np.nan), np.zeros(len(scores))):
        Z = np.column_stack([scores, other])
        judged = [Judged(places, is_pair[places], Z)]
        results.append(fit_calibration(found, Z, judged, BOTH).log_weights(Z))
    np.testing.assert_allclose(*results)


def test_places_of_pairs():
    own = Candidates(np.array([0, 0, 2]), np.array([1, 3, 0]), (3, 4))
    assert own.places(np.array([0, 2, 2]), np.array([3, 0, 1])).tolist() == [1, 2, -1]
    none = Candidates(*np.zeros((2, 0), np.int64), (3, 4))
    assert none.places(np.array([0]), np.array([3])).tolist() == [-1]
