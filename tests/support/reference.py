"""Brute-force answers: a few dense lines each, to be believed by reading them."""

import numpy as np
from scipy import sparse


def random_graph(rng, n, *, density=0.2, isolated=0, dtype=np.float64):
    """Return a symmetric random affinity matrix; its first items are isolated."""
    W = rng.random((n, n)) * (rng.random((n, n)) < density)
    W = W + W.T
    np.fill_diagonal(W, 0)
    W[:isolated] = 0
    W[:, :isolated] = 0
    return sparse.csr_array(W.astype(dtype))


def smoother(S, alpha):
    """Return P = (1 - alpha) (I - alpha S)^-1."""
    S = S.toarray() if sparse.issparse(S) else S
    return (1 - alpha) * np.linalg.inv(np.eye(len(S)) - alpha * S)


def fixed_point(S_x, Z, S_y, alpha, beta):
    """Solve the two equations that the alternation converges to, as one system.

    F_x = P_x ((1 - b) Z + b F_y) and F_y = ((1 - b) Z + b F_x) P_y, so that
    F_x - b^2 P_x F_x P_y = (1 - b) P_x (Z + b Z P_y).
    """
    P_x, P_y = smoother(S_x, alpha[0]), smoother(S_y, alpha[1])
    n, m = Z.shape
    system = np.eye(n * m) - beta**2 * np.kron(P_x, P_y.T)
    right_side = (1 - beta) * P_x @ (Z + beta * Z @ P_y)
    F_x = np.linalg.solve(system, right_side.ravel()).reshape(n, m)
    F_y = ((1 - beta) * Z + beta * F_x) @ P_y
    return (F_x + F_y) / 2


def dense_filter(S_x, Z, S_y, alpha, beta):
    """Return the same through eigenvectors, for sizes too large for one system."""
    l, U = np.linalg.eigh(S_x.toarray())
    m, V = np.linalg.eigh(S_y.toarray())
    p = ((1 - alpha[0]) / (1 - alpha[0] * l))[:, None]
    q = ((1 - alpha[1]) / (1 - alpha[1] * m))[None, :]
    h = (1 - beta) / 2 * (p + q + 2 * beta * p * q) / (1 - beta**2 * p * q)
    return U @ (h * (U.T @ Z @ V)) @ V.T


def extended_scores(S_x, s, Z, S_y, alpha, beta, n_rounds=3000):
    """Return the scores of a new item of the first view in the extended graph.

    The new item listens to the fitted items through its row s and is not heard by
    them. The paper's alternation is run to convergence with exact inner steps.
    """
    n = S_x.shape[0]
    extended = np.zeros((n + 1, n + 1))
    extended[:n, :n] = S_x.toarray()
    extended[n, :n] = s
    P_x, P_y = smoother(extended, alpha[0]), smoother(S_y, alpha[1])
    Z = np.vstack([Z, np.zeros(Z.shape[1])])
    F_y = np.zeros_like(Z)
    for _ in range(n_rounds):
        F_x = P_x @ ((1 - beta) * Z + beta * F_y)
        F_y = ((1 - beta) * Z + beta * F_x) @ P_y
    return ((F_x + F_y) / 2)[n]


def relative_error(got, wanted):
    """Return the difference in Frobenius norm, relative to the wanted result."""
    return np.linalg.norm(got - wanted) / np.linalg.norm(wanted)


def exact_scores(model, source="text", target="image"):
    """Return all scores of spread links, whatever rank the model was cut to."""
    rows = model._spreading.rows(source, target)
    return rows.rows(np.arange(rows.shape[0]))


def filtered_links(model, source="text", target="image"):
    """Return F* of a model of spread links, by dense eigenvectors."""
    of = model._spreading
    S_x, S_y = of.normalized[source], of.normalized[target]
    Z = of.links.between(source, target, balance=of.balance).toarray()
    return dense_filter(S_x, Z, S_y, (of.alphas[source], of.alphas[target]), of.beta)


def recall_at_one(partners):
    """Return how often the largest cosine is the partner's, in both directions.

    Among equal cosines the first row counts.
    """
    left, right = (
        X.toarray() if sparse.issparse(X) else X for X in partners.views.values()
    )
    cosines = left @ right.T
    rows, columns = partners.pairs.T
    forth = cosines[rows].argmax(axis=1) == columns
    back = cosines[:, columns].argmax(axis=0) == rows
    return forth.mean(), back.mean()
