"""The learner's parts: terms against dense formulas, folds without leaks, maps."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from linkspread.graphs import knn_graph, normalize
from linkspread.learning import Evidence, Sides, choose, fit_factors, make_map
from linkspread.learning.choice import (
    HUB_STRENGTHS,
    Chosen,
    _make_folds,
    fit_term,
    hub_strengths,
)
from linkspread.learning.cores import (
    decompose,
    fit_displacement,
    fit_grid,
    fit_pairs,
)
from linkspread.learning.maps import unit_rows


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def evidence_of(must, cannot=()):
    parts = []
    for pairs in (must, cannot):
        table = np.array(pairs, dtype=np.intp).reshape(-1, 2)
        parts.append((table[:, 0], table[:, 1], np.ones(len(table))))
    return Evidence(*parts)


def shared_views(rng, n=120, d=6, noise=0.5):
    X = rng.normal(size=(n, d))
    return X, X + noise * rng.normal(size=X.shape)


@pytest.mark.parametrize(("n", "d"), [(5, 9), (9, 5)])
def test_descriptions_are_ridge_regressions(rng, n, d):
    A, B = rng.normal(size=(n, d)), rng.normal(size=(n, d + 1))
    P, Q = rng.normal(size=(7, d)), rng.normal(size=(8, d + 1))
    term = fit_grid(decompose(A), decompose(B), 0.7)
    found = term.left(P, None) @ term.right(Q, None).T

    def described(A, P):
        H = A - A.mean(axis=0)
        K = H @ H.T + 0.7 * np.eye(len(A))
        return unit_rows((P - A.mean(axis=0)) @ H.T @ np.linalg.inv(K))

    assert_allclose(found, described(A, P) @ described(B, Q).T, atol=1e-8)


def test_judged_pairs_are_a_kronecker_ridge(rng):
    A, B = rng.normal(size=(12, 3)), rng.normal(size=(12, 4))
    z, weights, ridge = rng.normal(size=12), rng.uniform(0.5, 2, 12), 0.3
    term = fit_pairs(A, B, z, weights, ridge)
    products = np.einsum("pi,pj->pij", A, B).reshape(12, -1)
    normal = products.T @ (weights[:, None] * products) + ridge * np.eye(12)
    core = np.linalg.solve(normal, products.T @ (weights * z)).reshape(3, 4)
    P, Q = rng.normal(size=(5, 3)), rng.normal(size=(6, 4))
    assert_allclose(
        term.left(P, None) @ term.right(Q, None).T, P @ core @ Q.T, atol=1e-8
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_displacement_is_a_regression_of_differences(rng, sparse):
    A, B = rng.normal(size=(6, 4)), rng.normal(size=(6, 4))
    X, Y = unit_rows(rng.normal(size=(6, 5))), unit_rows(rng.normal(size=(6, 5)))
    new, rows = rng.normal(size=(3, 4)), unit_rows(rng.normal(size=(3, 5)))
    wrap = sp.csr_array if sparse else np.asarray
    term = fit_displacement(decompose(A), decompose(B), (wrap(X), wrap(Y)), 0.5)
    found = term.left(new, wrap(rows)) @ term.right(B, wrap(Y)).T

    def moved(A, features, own, difference):
        H, D = A - A.mean(axis=0), difference - difference.mean(axis=0)
        W = np.linalg.solve(H.T @ H + 0.5 * np.eye(4), H.T @ D)
        expected = difference.mean(axis=0) + (features - A.mean(axis=0)) @ W
        return unit_rows(own + expected)

    there = moved(A, new, rows, Y - X) @ Y.T
    back = rows @ moved(B, B, Y, X - Y).T
    assert_allclose(found, (there + back) / 2, atol=1e-8)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "hellinger"])
@pytest.mark.parametrize("mixture", ["linear", "linear + gaussian"])
def test_new_items_have_the_features_of_fitted_ones(rng, metric, mixture):
    X = np.abs(rng.normal(size=(60, 5)))
    view = make_map(X, metric=metric)
    features = view.features(mixture)
    assert_allclose(view.transform(X[:7].copy(), mixture), features[:7], atol=1e-8)
    assert_allclose(features.mean(axis=0), 0, atol=1e-10)
    assert np.mean(np.sum(features**2, axis=1)) == pytest.approx(1)


def test_sparse_rows_have_the_map_of_dense_ones(rng):
    X = rng.normal(size=(50, 6)) * (rng.random((50, 6)) < 0.9)
    for mixture in ("linear + gaussian", "graph"):
        dense = make_map(X, metric="cosine").features(mixture)
        sparse = make_map(sp.csr_array(X), metric="cosine").features(mixture)
        assert_allclose(sparse @ sparse.T, dense @ dense.T, atol=1e-8)


def test_a_gaussian_map_is_exact_between_landmarks(rng):
    X = rng.normal(size=(40, 3))
    made = make_map(X)  # all 40 are landmarks
    K = made.features("gaussian")
    D = np.sum((X[:, None] - X) ** 2, axis=2)
    G = np.exp(-D / D.mean())
    H = np.eye(40) - 1 / 40
    centred = H @ G @ H
    assert_allclose(K @ K.T, centred / np.trace(centred) * 40, atol=1e-4)


def test_a_graph_map_has_the_filters_of_the_graph(rng):
    X = rng.normal(size=(40, 3))
    features = make_map(X).features("graph")  # all 40 are landmarks
    S = normalize(knn_graph(X, n_neighbors=30)).toarray()
    values, vectors = np.linalg.eigh(S)
    total = np.zeros_like(S)
    for response in (0.1 / (1 - 0.9 * values), np.exp(-6 * (1 - values))):
        K = vectors * response @ vectors.T
        lengths = np.sqrt(np.diag(K))
        total += K / np.outer(lengths, lengths)
    H = np.eye(40) - 1 / 40
    centred = H @ total @ H
    wanted = centred / np.trace(centred) * 40
    assert_allclose(features @ features.T, wanted, atol=5e-3)


def test_no_judgement_in_a_fold_touches_what_it_holds_out(rng):
    X, Y = shared_views(rng, n=40)
    must = [(k, k) for k in range(20)] + [(0, 25), (3, 25)]
    evidence = evidence_of(must, [(i, i + 1) for i in range(15)])
    folds = list(_make_folds(Sides((make_map(X), make_map(Y))), evidence, seed=0))
    assert len(folds) == 5
    for fold in folds:
        held = fold.left[: fold.n_held], fold.right[: fold.n_held]
        for i, j, _ in (fold.known.must, fold.known.cannot):
            assert not np.intersect1d(i, held[0]).size
            assert not np.intersect1d(j, held[1]).size


def test_a_planted_leak_does_not_look_like_quality(rng, monkeypatch):
    """Every partner has a twin that is linked to the same item.

    The views are unrelated, so held-out partners can be found through their twins only.
    """
    X, Y = rng.normal(size=(80, 5)), rng.normal(size=(80, 5))
    sides = Sides((make_map(X), make_map(np.vstack([Y, Y]))))
    must = [(k, k) for k in range(30)] + [(k, 80 + k) for k in range(30)]
    assert choose(sides, evidence_of(must)).quality["model"] < 0.3

    def leaky(self, left, right):
        held, _ = split(self, left, right)
        i, j, weights = self.must
        kept = ~(left[i] & right[j]) | (j >= 80)
        return held, Evidence((i[kept], j[kept], weights[kept]), self.cannot)

    split = Evidence.split
    monkeypatch.setattr(Evidence, "split", leaky)
    assert choose(sides, evidence_of(must)).quality["model"] > 0.5


def test_the_same_seed_gives_the_same_choice(rng):
    X, Y = shared_views(rng, n=60)
    evidence = evidence_of([(k, k) for k in range(30)])

    def sides():
        return Sides((make_map(X), make_map(Y)), (unit_rows(X), unit_rows(Y)))

    assert choose(sides(), evidence) == choose(sides(), evidence)


@pytest.mark.parametrize("sign", [1, -1])
def test_pairs_of_one_kind_teach_something(sign):
    pairs = ([(0, 1)], []) if sign > 0 else ([], [(0, 1)])
    _, _, verdicts, _ = evidence_of(*pairs).judged()
    assert verdicts.tolist() == [sign]


def test_random_judgements_do_not_cost_what_the_views_share(rng):
    X, Y = shared_views(rng, n=200, noise=0.3)
    prior = unit_rows(X), unit_rows(Y)
    sides = Sides((make_map(X), make_map(Y)), prior)
    wrong = np.column_stack([rng.permutation(200)[:40], rng.permutation(200)[:40]])
    evidence = evidence_of(wrong)
    factors = fit_factors(sides, evidence, choose(sides, evidence))
    recall = np.mean(
        np.argmax(factors.left @ factors.right.T, axis=1) == np.arange(200)
    )
    before = np.mean(np.argmax(prior[0] @ prior[1].T, axis=1) == np.arange(200))
    assert recall > before - 0.05


def test_known_pairs_are_learnt_where_nothing_is_shared(rng):
    X = rng.normal(size=(300, 8))
    Y = X @ rng.normal(size=(8, 5)) + 0.05 * rng.normal(size=(300, 5))
    sides = Sides((make_map(X), make_map(Y)))
    evidence = evidence_of([(k, k) for k in range(60)])
    choice = choose(sides, evidence)
    factors = fit_factors(sides, evidence, choice)
    found = np.argmax(factors.left @ factors.right.T, axis=1)
    assert np.mean(found[60:] == np.arange(60, 300)) > 0.5
    assert choice.n_held_out == 60
    assert choice.hubs in HUB_STRENGTHS


def test_hub_strength_is_the_mean_of_the_largest():
    scores = np.arange(40.0).reshape(20, 2)
    assert_allclose(hub_strengths(scores, 20), [29.0, 30.0])
    # Of a sample a tenth as large, only the largest.
    assert_allclose(hub_strengths(scores, 200), [38.0, 39.0])


def test_an_infinite_ridge_is_the_cosine(rng):
    X, Y = shared_views(rng, n=10)
    prior = unit_rows(X), unit_rows(Y)
    sides = Sides((make_map(X), make_map(Y)), prior)
    still = Chosen("displacement", "linear", np.inf, 1.0)
    term = fit_term(still, sides, evidence_of([(0, 0), (1, 1)]))
    assert_allclose(term.left(None, prior[0]) @ term.right(None, prior[1]).T,
                    prior[0] @ prior[1].T)  # fmt: skip
