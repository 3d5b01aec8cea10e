"""How sharp memberships are, and how far they spread."""

import numpy as np
import pytest
from scipy import sparse

from linkspread import LinkSpreading
from linkspread.datasets import make_views
from linkspread.estimators.auto_objective import (
    SMOOTHING_OF_SINGLES,
    SMOOTHINGS,
    _choose_smoothing,
    _equal_weights,
)
from linkspread.graphs import knn_graph, normalize

N, N_CLASSES = 60, 3


def plain_surprises(S, blind, known):
    """Return how unlikely each choice makes the labels, by dense inverses."""
    surprises = []
    for alpha in SMOOTHINGS:
        inverse = np.linalg.inv(np.eye(len(blind)) - alpha * S.toarray())
        spread = (1 - alpha) * inverse @ blind
        shares = spread / spread.sum(axis=1, keepdims=True)
        surprises.append(-np.sum(known * np.log(shares)))
    return surprises


def guesses(labels, sharpness, rng):
    """Return probabilities that lean towards the labels, or away from them."""
    noise = rng.dirichlet(np.ones(N_CLASSES), len(labels))
    leaning = np.exp(sharpness * np.eye(N_CLASSES)[labels]) * noise
    return leaning / leaning.sum(axis=1, keepdims=True)


def make_problem(seed):
    """Return a graph whose classes overlap, guesses, and labels of some weight."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(N_CLASSES, size=N)
    apart = rng.uniform(0, 2)
    X = rng.standard_normal((N, 2)) + apart * np.eye(N_CLASSES)[labels][:, :2]
    blind = guesses(labels, rng.uniform(0, 3), rng)
    weights = rng.lognormal(0, 1.5, N) * (rng.random(N) < 0.4)
    known = weights[:, None] * np.eye(N_CLASSES)[labels]
    # Some items have many strong neighbours, so that rows of S have unlike sums.
    popular = sparse.diags_array(rng.lognormal(0, 1.5, N))
    W = sparse.csr_array(popular @ knn_graph(X, n_neighbors=5) @ popular)
    return normalize(W), blind, known


def test_the_likeliest_smoothing_is_chosen():
    chosen = set()
    for seed in range(50):
        S, blind, known = make_problem(seed)
        surprises = plain_surprises(S, blind, known)
        best = SMOOTHINGS[int(np.argmin(surprises))]
        assert _choose_smoothing(S, blind, sparse.csr_array(known)) == best
        chosen.add(best)
    assert chosen == set(SMOOTHINGS)  # no choice is right by chance


@pytest.mark.parametrize("neighbors", ["of its own class", "of other classes"])
def test_memberships_spread_where_neighbors_are_of_one_class(neighbors, rng):
    labels = np.arange(N) % N_CLASSES
    same = (labels[:, None] == labels) & ~np.eye(N, dtype=bool)
    W = same if neighbors == "of its own class" else ~same & ~np.eye(N, dtype=bool)
    S = normalize(sparse.csr_array(W.astype(float)))
    known = sparse.csr_array(np.eye(N_CLASSES)[labels])
    # Guesses that are right more often than not, and far from sure.
    blind = guesses(labels, 1.0, rng)
    expected = SMOOTHINGS[-1] if neighbors == "of its own class" else 0.0
    assert _choose_smoothing(S, blind, known) == expected


def test_a_class_that_was_ruled_out_is_no_end_of_the_world():
    # A probability of 0 would be an infinite surprise, whatever is chosen.
    S, blind, known = make_problem(0)
    row = int(np.flatnonzero(known.sum(axis=1))[0])
    wrong = np.zeros((N, N_CLASSES))
    wrong[row] = known[row]
    blind[:, int(known[row].argmax())] = 0
    assert _choose_smoothing(S, blind, sparse.csr_array(wrong)) in SMOOTHINGS


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_equal_weights_make_logits_that_differ_by_1(scale, rng):
    values = [scale * rng.random((40, 5)) for _ in range(3)]
    weights = _equal_weights(values)
    logits = sum(w * own for w, own in zip(weights, values, strict=True))
    assert np.std(logits - logits.mean(axis=1, keepdims=True)) == pytest.approx(1)
    assert len(set(weights)) == 1
    assert np.isfinite(_equal_weights([np.ones((4, 1))])).all()


def test_fits_count_alike_and_spread_far_with_one_label_a_class():
    data = make_views(60, n_classes=N_CLASSES, random_state=0)
    known = {view: np.full(60, -1) for view in data.views()}
    for view, labels in known.items():
        for c in range(N_CLASSES):
            labels[np.flatnonzero(data.labels[view] == c)[0]] = c
    model = LinkSpreading(objective="auto").fit(data.views(), known)
    embed = model._objective._memberships["text"].embed
    assert len(set(embed.logits.weights)) == 1
    assert embed.alpha == SMOOTHING_OF_SINGLES
