"""Must-links alone, against dense formulas and fits that really leave items out."""

import numpy as np
import pytest
from scipy import sparse

from linkspread.fitting import matches
from linkspread.fitting.matches import (
    LinkedSide,
    MatchCoefficients,
    ask_links,
    fit_matches,
    partner_targets,
)
from linkspread.fitting.view_kernels import DenseKernel, FeatureKernel

N, M = 14, 11


def kernel(rng, n, n_features=20):
    features = rng.standard_normal((n, n_features))
    return DenseKernel(features @ features.T / n_features, compare=None)


def some_links(rng, n_links=9):
    places = rng.permutation(N * M)[:n_links]
    Z = np.zeros(N * M)
    Z[places] = rng.uniform(0.5, 2, n_links)
    return sparse.csr_array(Z.reshape(N, M))


def matrix(K):
    return K @ np.eye(K.n_items)


def dense_scores(K_x, K_y, B, ridge, rows, columns):
    """Return the scores of linked items by the formula, row- and column-wise ridge."""
    K_x, K_y = K_x[np.ix_(rows, rows)], K_y[np.ix_(columns, columns)]
    B = B[np.ix_(rows, columns)]
    H = B - np.outer(B.sum(1), B.sum(0)) / B.sum()
    G_x = np.linalg.inv(K_x + ridge * np.eye(len(rows)))
    G_y = np.linalg.inv(K_y + ridge * np.eye(len(columns)))
    return G_x, H, G_y


def test_scores_are_those_of_the_closed_form(rng):
    K_x, K_y, links = kernel(rng, N), kernel(rng, M), some_links(rng)
    fit = fit_matches((K_x, K_y), links, ridges=[0.7])
    i, j = links.tocoo().coords
    rows, columns = np.unique(i), np.unique(j)
    G_x, H, G_y = dense_scores(matrix(K_x), matrix(K_y), links.toarray(), 0.7, rows,
                               columns)  # fmt: skip
    expected = matrix(K_x)[:, rows] @ G_x @ H @ G_y @ matrix(K_y)[columns]
    scores = K_x @ (fit.coefficients @ matrix(K_y))
    assert np.allclose(scores, expected, atol=1e-10)


def test_items_left_out_are_as_if_their_links_were_unknown(rng):
    K_x, K_y, links = kernel(rng, N), kernel(rng, M), some_links(rng)
    fit = fit_matches((K_x, K_y), links, ridges=[0.7])
    i, j = links.tocoo().coords
    rows, columns = np.unique(i), np.unique(j)
    X, Y = matrix(K_x), matrix(K_y)
    B = links.toarray()[np.ix_(rows, columns)]
    H = B - np.outer(B.sum(1), B.sum(0)) / B.sum()
    expected = np.empty((len(i), len(i)))
    for a, p in enumerate(i):
        for b, q in enumerate(j):
            other_rows, other_columns = rows[rows != p], columns[columns != q]
            G_x = np.linalg.inv(
                X[np.ix_(other_rows, other_rows)] + 0.7 * np.eye(len(other_rows))
            )
            G_y = np.linalg.inv(
                Y[np.ix_(other_columns, other_columns)]
                + 0.7 * np.eye(len(other_columns))
            )
            without = H[np.ix_(rows != p, columns != q)]
            own = X[p, other_rows] @ G_x, Y[q, other_columns] @ G_y
            expected[a, b] = own[0] @ without @ own[1]
    assert np.allclose(fit.held_out * fit.scale, expected, atol=1e-10)


def test_features_and_directions_give_the_same_as_the_whole_kernel(rng, monkeypatch):
    features = [rng.standard_normal((size, 6)) for size in (N, M)]
    links = some_links(rng)
    dense = tuple(DenseKernel(F @ F.T, compare=None) for F in features)
    expected = fit_matches(dense, links, ridges=[0.3])
    thin = tuple(FeatureKernel(F, embed=None) for F in features)
    fits = [fit_matches(thin, links, ridges=[0.3])]
    monkeypatch.setattr(matches, "WHOLE_MATCHES", 3)
    fits.append(fit_matches(dense, links, ridges=[0.3]))
    monkeypatch.setattr(matches, "DENSE_MATCHES", 3)
    fits.append(fit_matches(dense, links, ridges=[0.3]))
    whole = dense[0] @ (expected.coefficients @ matrix(dense[1]))
    for fit in fits:
        scores = dense[0] @ (fit.coefficients @ matrix(dense[1]))
        assert np.allclose(scores, whole, atol=1e-6)
        assert np.allclose(fit.held_out, expected.held_out, atol=1e-6)


@pytest.mark.parametrize("size", ["WHOLE_MATCHES", "DENSE_MATCHES"])
def test_unrelated_views_do_not_find_partners_by_what_is_random(rng, monkeypatch, size):
    """Directions drawn alike in both views made matched rows known to each other."""
    for limit in ("WHOLE_MATCHES", size):
        monkeypatch.setattr(matches, limit, 3)
    monkeypatch.setattr(matches, "N_DIRECTIONS", 30)
    monkeypatch.setattr("linkspread.fitting.nystrom.N_DIRECTIONS", 30)
    kernels = kernel(rng, 150, 400), kernel(rng, 150, 400)
    links = sparse.csr_array(sparse.eye_array(150))
    fit = fit_matches(kernels, links, ridges=[0.01])
    own = np.diag(fit.held_out)
    assert abs(own.mean()) < 4 / np.sqrt(len(own))


def test_the_ridge_suits_how_much_can_be_learnt(rng):
    """Views that agree but for a little noise want a small ridge; noise a large one."""
    shared = rng.standard_normal((60, 5))
    links = sparse.csr_array(sparse.eye_array(60))

    def chosen(noise):
        tables = [shared + noise * rng.standard_normal((60, 5)) for _ in range(2)]
        kernels = tuple(FeatureKernel(X, embed=None) for X in tables)
        return fit_matches(kernels, links, ridges=[0.1, 1000.0]).coefficients.ridge

    assert chosen(0.05) == 0.1
    assert chosen(30.0) == 1000.0


def test_partners_of_links_asked_about(rng):
    links = some_links(rng, n_links=20)
    links.data[0] = -1.0
    i, j = links.tocoo().coords
    asked, targets = ask_links(links), partner_targets(links)
    assert len(asked) == 19
    assert 0 not in asked
    for a, p in enumerate(i[asked]):
        for b, q in enumerate(j[asked]):
            assert targets[a, b] == max(links[p, q], 0)


def test_many_links_are_asked_about_in_part(monkeypatch):
    monkeypatch.setattr(matches, "N_ASKED", 7)
    links = sparse.csr_array(sparse.eye_array(30))
    assert partner_targets(links).shape == (7, 7)


def test_coefficients_behave_as_the_matrix_they_stand_for(rng):
    x = LinkedSide(np.array([1, 4]), np.eye(2), np.array([2.0, 3.0]))
    y = LinkedSide(np.array([0, 2, 3]), np.eye(3)[:, :2], np.array([1.0, 5.0]))
    H, ridge = rng.random((2, 2)), 0.5
    C = MatchCoefficients(x, y, H, ridge, (5, 4))
    whole = np.zeros((5, 4))
    inner = H / (x.values + ridge)[:, None] / (y.values + ridge)
    whole[np.ix_(x.items, y.items)] = x.vectors @ inner @ y.vectors.T
    block = rng.random((4, 3))
    assert np.allclose(C @ block, whole @ block)
    assert np.allclose((2.0 * C).T @ np.eye(5), 2 * whole.T)
    assert C.T.shape == (4, 5)
    row = rng.random(5)
    assert np.allclose(x.reached(row, ridge), row[x.items] / (x.values + ridge))


def test_a_cannot_link_lowers_the_score_of_its_pair(rng):
    K_x, K_y = kernel(rng, N), kernel(rng, M)
    links = sparse.csr_array(sparse.eye_array(N, M)).tolil()
    without = fit_matches((K_x, K_y), sparse.csr_array(links), ridges=[1.0])
    links[0, 1] = -1.0
    fit = fit_matches((K_x, K_y), sparse.csr_array(links), ridges=[1.0])
    before = K_x @ (without.coefficients @ matrix(K_y))
    after = K_x @ (fit.coefficients @ matrix(K_y))
    assert after[0, 1] < before[0, 1] - 1e-3


@pytest.mark.parametrize("ridges", [[0.1, 1.0], [1.0, 0.1]])
def test_the_order_of_ridges_does_not_matter(rng, ridges):
    K_x, K_y, links = kernel(rng, N), kernel(rng, M), some_links(rng)
    fits = [fit_matches((K_x, K_y), links, ridges=own) for own in (ridges, [0.1, 1.0])]
    assert fits[0].coefficients.ridge == fits[1].coefficients.ridge
