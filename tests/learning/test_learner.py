"""The learner's parts: terms against dense formulas, folds without leaks, maps."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from linkspread.graphs import knn_graph, normalize
from linkspread.learning import Choice, Sides, choose, fit_factors, make_map
from linkspread.learning import pairs as pairs_room
from linkspread.learning.choice import (
    HUB_STRENGTHS,
    _make_folds,
    hub_strengths,
    term_scores,
)
from linkspread.learning.cores import KnownItems, _ridge_fit, decompose, fit_labels
from linkspread.learning.maps import unit_rows
from linkspread.learning.pairs import LivePairs, PairRegression, PairRows, Product
from linkspread.learning.rows import Rows, Setting
from linkspread.learning.terms import (
    DisplacementTerm,
    Fitting,
    GridTerm,
    MapTerm,
    fit_term,
)
from linkspread.links.evidence import Evidence


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


def known_items(A, ridge, whole):
    return (KnownItems.of(A, ridge) if whole
            else KnownItems.in_basis(decompose(A), ridge))  # fmt: skip


EVERYTHING = slice(None)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("n", "d"), [(5, 9), (9, 5)])
def test_items_go_to_the_other_view_and_back(rng, n, d, whole):
    """Of whitened features with correlations T: ``x'TT'Ty / (|x'TT'| |T'Ty|)``."""
    A, B = rng.normal(size=(n, d)), rng.normal(size=(n, d + 1))
    P, Q = rng.normal(size=(7, d)), rng.normal(size=(8, d + 1))
    left, right = known_items(A, 0.7, whole), known_items(B, 0.7, whole)
    left = left.fit_targets(A, right.centred(B))
    term = GridTerm((left, right), (EVERYTHING, EVERYTHING))
    found = term_scores(term, 0, Rows(P), Rows(Q))
    assert_allclose(found, term_scores(term, 1, Rows(Q), Rows(P)).T, atol=1e-8)

    def whitened(A, P):
        H = A - A.mean(axis=0)
        values, V = np.linalg.eigh(H.T @ H + 0.7 * np.eye(A.shape[1]))
        return (H @ V) / np.sqrt(values), ((P - A.mean(axis=0)) @ V) / np.sqrt(values)

    (H, x), (K, y) = whitened(A, P), whitened(B, Q)
    T = H.T @ K
    lengths = np.linalg.norm(x @ T @ T.T, axis=1), np.linalg.norm(y @ T.T @ T, axis=1)
    wanted = x @ T @ T.T @ T @ y.T / np.outer(*lengths)
    assert_allclose(found, wanted, atol=1e-8)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("into", [0, 1])
def test_maps_are_ridge_regressions_of_one_view_on_the_other(rng, into, whole):
    known = rng.normal(size=(9, 4)), rng.normal(size=(9, 5))
    asked = rng.normal(size=(7, 4)), rng.normal(size=(8, 5))
    A, B = known[1 - into], known[into]
    mean, own = B.mean(axis=0), known_items(A, 0.7, whole)
    term = MapTerm(into, own.fit_targets(A, B - mean, mean), EVERYTHING, EVERYTHING)
    found = term_scores(term, 1 - into, Rows(asked[1 - into]), Rows(asked[into]))
    back = term_scores(term, into, Rows(asked[into]), Rows(asked[1 - into]))
    assert_allclose(found, back.T, atol=1e-8)
    H = A - A.mean(axis=0)
    W = np.linalg.solve(H.T @ H + 0.7 * np.eye(A.shape[1]), H.T @ (B - mean))
    predicted = unit_rows((asked[1 - into] - A.mean(axis=0)) @ W)
    assert_allclose(found, predicted @ unit_rows(asked[into] - mean).T, atol=1e-8)


def judged_pairs(rng, n, n_left=15, n_right=16):
    """Features of two kernels in two views, and judged pairs of their items."""
    values = rng.normal(size=(n_left, 5)), rng.normal(size=(n_right, 7))
    columns = [
        Product(slice(0, 3), slice(0, 4), 0.3),
        Product(slice(3, 5), slice(4, 7), 0.7),
    ]
    cells = rng.permutation(n_left * n_right)[:n]
    signed = rng.uniform(0.5, 2, n) * np.where(rng.random(n) < 0.4, 1, -1)
    return values, columns, (cells // n_right, cells % n_right, signed)


def kronecker_ridge(values, columns, pairs, ridge):
    """Return the cores of a dense ridge regression on all products."""
    i, j, signed = pairs
    weights, z = np.abs(signed), (signed > 0).astype(float)
    z -= weights @ z / weights.sum()
    products = np.hstack(
        [
            np.einsum(
                "pa,pb->pab", np.sqrt(share) * values[0][i, a], values[1][j, b]
            ).reshape(len(i), -1)
            for a, b, share in columns
        ]
    )
    normal = products.T @ (weights[:, None] * products)
    normal += ridge * np.eye(products.shape[1])
    dense = np.linalg.solve(normal, products.T @ (weights * z))
    parts = dense[:12].reshape(3, 4), dense[12:].reshape(2, 3)
    return [np.sqrt(own.share) * M for own, M in zip(columns, parts, strict=True)]


@pytest.mark.parametrize("n", [12, 40])
@pytest.mark.parametrize("landmarks", [False, True])
def test_judged_pairs_are_a_kronecker_ridge(rng, n, landmarks):
    """Several kernels have a block of the core each; all pairs may be landmarks."""
    values, columns, pairs = judged_pairs(rng, n)
    rows = PairRows.of(values, columns, *pairs[:2])
    given = (rows, rows.factor()) if landmarks else None
    regression = PairRegression(values, columns, pairs, landmarks=given)
    live = LivePairs(regression, 0.3)
    for c in (regression.solve(0.3), live.coefficients()):
        for core, wanted in zip(
            regression.rows.cores(c),
            kronecker_ridge(values, columns, pairs, 0.3),
            strict=True,
        ):
            assert_allclose(core, wanted, atol=1e-8)


@pytest.mark.parametrize("landmarks", [False, True])
def test_changed_pairs_are_those_of_a_fresh_regression(rng, landmarks, monkeypatch):
    monkeypatch.setattr(pairs_room, "FEW", 1)
    values, columns, pairs = judged_pairs(rng, 60)
    rows = PairRows.of(values, columns, *judged_pairs(rng, 30)[2][:2])
    given = (rows, rows.factor()) if landmarks else None
    live = LivePairs(PairRegression(values, columns, pairs, landmarks=given), 0.3)
    known = {(int(i), int(j)): w for i, j, w in zip(*pairs, strict=True)}
    for _ in range(300):
        cell = int(rng.integers(15)), int(rng.integers(16))
        after = rng.choice([0.0, 1.0, -1.0, 0.7, -2.0])
        if known.get(cell, 0.0) != after:
            assert live.change(values, *cell, known.get(cell, 0.0), after)
        known[cell] = after
    left = [(i, j, w) for (i, j), w in known.items() if w]
    now = tuple(np.array(own) for own in zip(*left, strict=True))
    fresh = PairRegression(values, columns, now, landmarks=given)
    wanted = fresh.rows.cores(fresh.solve(0.3))
    for core, own in zip(live.rows.cores(live.coefficients()), wanted, strict=True):
        assert_allclose(core, own, atol=1e-9)


def test_landmarks_are_of_both_kinds(rng):
    values, columns, (i, j, signed) = judged_pairs(rng, 60)
    signed = np.where(np.arange(60) < 10, 1.0, -1.0)
    regression = PairRegression(values, columns, (i, j, signed), most=30)
    assert len(regression.rows.left) == 30
    among = (regression.rows.left[:, None] == values[0][i[:10]]).all(axis=2)
    assert among.any(axis=0).all()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_displacement_is_a_regression_of_differences(rng, sparse, whole):
    A, B = rng.normal(size=(6, 4)), rng.normal(size=(6, 4))
    X, Y = unit_rows(rng.normal(size=(6, 5))), unit_rows(rng.normal(size=(6, 5)))
    new, rows = rng.normal(size=(3, 4)), unit_rows(rng.normal(size=(3, 5)))
    wrap = sp.csr_array if sparse else np.asarray
    mean = (Y - X).mean(axis=0)
    both = [
        known_items(own, 0.5, whole).fit_targets(own, Y - X, mean) for own in (A, B)
    ]
    term = DisplacementTerm(tuple(both), (EVERYTHING, EVERYTHING))
    asked, known = Rows(new, wrap(rows)), Rows(B, wrap(Y))
    found = term_scores(term, 0, asked, known)
    assert_allclose(found, term_scores(term, 1, known, asked).T, atol=1e-8)

    def moved(A, features, own, difference):
        H, D = A - A.mean(axis=0), difference - difference.mean(axis=0)
        W = np.linalg.solve(H.T @ H + 0.5 * np.eye(4), H.T @ D)
        expected = difference.mean(axis=0) + (features - A.mean(axis=0)) @ W
        return unit_rows(own + expected)

    there = moved(A, new, rows, Y - X) @ Y.T
    back = rows @ moved(B, B, Y, X - Y).T
    assert_allclose(found, (there + back) / 2, atol=1e-8)


@pytest.mark.parametrize(
    "kind",
    ["prior", "displacement", "grid", "into left", "into right", "pairs", "labels"],
)
@pytest.mark.parametrize("side", [0, 1])
def test_contributions_sum_to_the_score(rng, kind, side):
    X, Y = shared_views(rng, n=40)
    sides = Sides((make_map(X), make_map(Y)), (unit_rows(X), unit_rows(Y)))
    evidence = evidence_of([(k, k) for k in range(12)], [(k, k + 3) for k in range(9)])
    labels = sp.csr_array(np.eye(3)[np.arange(40) % 3] * (np.arange(40) < 20)[:, None])
    fitting = Fitting(sides, replace(evidence, labels=(labels, labels)))
    term = fit_term(Setting(kind, "linear + gaussian", 2.0), fitting)
    query, target = sides.rows(side, [17]), sides.rows(1 - side, [25])
    scale = term.scale(1 - side, target)
    size = 1.0 if scale is None else scale[0]
    parts, rest = term.contributions(side, query, target, size, fitting)
    score = term_scores(term, side, query, target)[0, 0]
    assert parts.sum() + rest == pytest.approx(score, abs=1e-6)


def test_labels_left_out_are_those_of_refits(rng):
    """The closed form of leaving one out is a fit without it."""
    X = rng.normal(size=(30, 4))
    made = make_map(X, blocks=("linear",))
    Y = np.eye(3)[np.arange(30) % 3]
    model = fit_labels(made, sp.csr_array(Y))
    assert model.probabilities(made.values).sum(axis=1) == pytest.approx(1)
    for ridge in (0.1, 3.0):
        fit = _ridge_fit(made.values, Y, ridge)
        for k in (0, 7):
            kept = np.arange(30) != k
            A, mean = made.values[kept].astype(float), Y[kept].mean(axis=0)
            H = A - A.mean(axis=0)
            W = np.linalg.solve(H.T @ H + ridge * np.eye(4), H.T @ (Y[kept] - mean))
            wanted = (made.values[k] - A.mean(axis=0)) @ W + mean
            assert_allclose(fit.held_out[k], wanted, atol=1e-5)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "hellinger"])
@pytest.mark.parametrize("mixture", ["linear", "linear + gaussian"])
def test_new_items_have_the_features_of_fitted_ones(rng, metric, mixture):
    X = np.abs(rng.normal(size=(60, 5)))
    view = make_map(X, metric=metric)
    columns = view.columns(mixture)
    features = view.values[:, columns]
    new = view.transform(X[:7].copy())[:, columns]
    assert_allclose(new, features[:7], atol=1e-5)
    assert_allclose(features.mean(axis=0), 0, atol=1e-5)
    n_kernels = len(mixture.split(" + "))
    assert np.mean(np.sum(features**2, axis=1)) == pytest.approx(n_kernels)


def test_sparse_rows_have_the_map_of_dense_ones(rng):
    X = rng.normal(size=(50, 6)) * (rng.random((50, 6)) < 0.9)
    for name in ("linear", "gaussian", "graph"):
        dense, sparse = (
            make_map(own, metric="cosine", blocks=(name,)).values
            for own in (X, sp.csr_array(X))
        )
        assert_allclose(sparse @ sparse.T, dense @ dense.T, atol=1e-3)


def test_a_gaussian_map_is_exact_between_landmarks(rng):
    X = rng.normal(size=(40, 3))
    K = make_map(X, blocks=("gaussian",)).values  # all 40 are landmarks
    D = np.sum((X[:, None] - X) ** 2, axis=2)
    G = np.exp(-D / D.mean())
    H = np.eye(40) - 1 / 40
    centred = H @ G @ H
    assert_allclose(K @ K.T, centred / np.trace(centred) * 40, atol=1e-4)


def test_a_graph_map_has_the_heat_of_the_graph(rng):
    X = rng.normal(size=(40, 3))
    features = make_map(X, blocks=("graph",)).values  # all 40 are landmarks
    S = normalize(knn_graph(X, n_neighbors=30)).toarray()
    values, vectors = np.linalg.eigh(S)
    heat = np.exp(-6 * (1 - values)) + 3 * np.exp(-24 * (1 - values))
    K = vectors * heat @ vectors.T
    lengths = np.sqrt(np.diag(K))
    K = K / np.outer(lengths, lengths)
    H = np.eye(40) - 1 / 40
    centred = H @ K @ H
    wanted = centred / np.trace(centred) * 40
    assert_allclose(features @ features.T, wanted, atol=5e-3)


def test_no_judgement_in_a_fold_touches_what_it_holds_out(rng):
    X, Y = shared_views(rng, n=40)
    must = [(k, k) for k in range(20)] + [(0, 25), (3, 25)]
    evidence = evidence_of(must, [(i, i + 1) for i in range(15)])
    maps = make_map(X), make_map(Y)
    folds = list(_make_folds(Sides(maps), evidence, seed=0))
    assert len(folds) == 5
    for fold in folds:
        known = fold.known.evidence
        for own, rows, side in ((maps[0], fold.left, 0), (maps[1], fold.right, 1)):
            held = [np.flatnonzero((own.values == row).all(axis=1))[0]
                    for row in rows.values[: fold.n_held]]  # fmt: skip
            for judged in (known.must, known.cannot):
                assert not np.intersect1d(judged[side], held).size


def test_no_label_in_a_fold_is_of_an_item_it_holds_out(rng):
    X, Y = shared_views(rng, n=40)
    labels = sp.csr_array(np.eye(4)[np.arange(40) % 4])
    evidence = replace(evidence_of([]), labels=(labels, labels))
    maps = make_map(X), make_map(Y)
    folds = list(_make_folds(Sides(maps), evidence, seed=0))
    assert folds
    for fold in folds:
        for own, rows, known in (
            (maps[0], fold.left, fold.known.evidence.labels[0]),
            (maps[1], fold.right, fold.known.evidence.labels[1]),
        ):
            held = [np.flatnonzero((own.values == row).all(axis=1))[0]
                    for row in rows.values[: fold.n_held]]  # fmt: skip
            assert known[held].nnz == 0


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
    _, _, verdicts, _ = evidence_of(*pairs).targets()
    assert verdicts.tolist() == [sign]


def test_random_judgements_do_not_cost_what_the_views_share(rng):
    X, Y = shared_views(rng, n=200, noise=0.3)
    prior = unit_rows(X), unit_rows(Y)
    sides = Sides((make_map(X), make_map(Y)), prior)
    wrong = np.column_stack([rng.permutation(200)[:40], rng.permutation(200)[:40]])
    evidence = evidence_of(wrong)
    factors = fit_factors(sides, evidence, choose(sides, evidence))
    scores = factors.scores(0, factors.fitted(0, slice(None)))
    recall = np.mean(np.argmax(scores, axis=1) == np.arange(200))
    before = np.mean(np.argmax(prior[0] @ prior[1].T, axis=1) == np.arange(200))
    assert recall > before - 0.05


def test_known_pairs_are_learnt_where_nothing_is_shared(rng):
    X = rng.normal(size=(300, 8))
    Y = X @ rng.normal(size=(8, 5)) + 0.05 * rng.normal(size=(300, 5))
    sides = Sides((make_map(X), make_map(Y)))
    evidence = evidence_of([(k, k) for k in range(60)])
    choice = choose(sides, evidence)
    factors = fit_factors(sides, evidence, choice)
    found = np.argmax(factors.scores(0, factors.fitted(0, slice(None))), axis=1)
    assert np.mean(found[60:] == np.arange(60, 300)) > 0.5
    assert choice.n_held_out == 60
    assert choice.hubs in HUB_STRENGTHS


def test_hub_strength_is_the_mean_of_the_largest():
    scores = np.arange(40.0).reshape(20, 2)
    assert_allclose(hub_strengths(scores, 20), [29.0, 30.0])
    # Of a sample a tenth as large, only the largest.
    assert_allclose(hub_strengths(scores, 200), [38.0, 39.0])


@pytest.mark.parametrize("n_links", [6, 250])
def test_few_judgements_make_thin_queries_with_the_same_scores(rng, n_links):
    X, Y = rng.normal(size=(2, 300, 40))
    sides = Sides(tuple(make_map(X, blocks=("linear", "gaussian")) for X in (X, Y)))
    evidence = evidence_of([(k, k) for k in range(n_links)])
    grid = Choice((Setting("grid", "linear + gaussian", 1.0),), 0.0, 0, {})
    factors = fit_factors(sides, evidence, grid)
    queries = factors.prepare(0, factors.fitted(0, slice(None)))
    thin = queries.thin()
    assert [isinstance(own[2], tuple) for own in thin.parts] == [n_links == 6]
    assert_allclose(thin.scores(), queries.scores(), atol=1e-4)


def test_an_infinite_ridge_is_the_cosine(rng):
    X, Y = shared_views(rng, n=10)
    prior = unit_rows(X), unit_rows(Y)
    sides = Sides((make_map(X), make_map(Y)), prior)
    fitting = Fitting(sides, evidence_of([(0, 0), (1, 1)]))
    term = fit_term(Setting("displacement"), fitting)
    found = term_scores(term, 0, Rows(X, prior[0]), Rows(Y, prior[1]))
    assert_allclose(found, prior[0] @ prior[1].T)
