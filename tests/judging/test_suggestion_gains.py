"""Expected gains, against a dense Gaussian process over all pairs."""

import numpy as np
import pytest

import linkspread as ls
from linkspread.ground.errors import UnknownItemError
from linkspread.judging import suggestion_gains
from linkspread.judging.suggestion_gains import explained_shares


def dense_shares(features, pairs, judged):
    """Condition all pairs on the judged ones, then on each pair."""
    K, L = (own @ own.T for own in features)
    prior = np.kron(K, L)
    noise = 0.1 * np.trace(prior) / len(prior)
    known = judged[0] * len(L) + judged[1]
    G = prior[np.ix_(known, known)] + noise * np.eye(len(known))
    after = prior - prior[:, known] @ np.linalg.solve(G, prior[known])
    chosen = pairs[0] * len(L) + pairs[1]
    explained = [np.sum(after[:, c] ** 2) / (after[c, c] + noise) for c in chosen]
    return np.array(explained) / np.trace(prior)


@pytest.mark.parametrize("n_judged", [0, 1, 9])
def test_shares_are_those_of_a_dense_gaussian_process(rng, n_judged):
    features = rng.standard_normal((7, 3)), rng.standard_normal((6, 4))
    pairs = rng.integers(0, 6, (2, 5))
    judged = rng.integers(0, 6, (2, n_judged))
    shares = explained_shares(features, tuple(pairs), judged=tuple(judged))
    np.testing.assert_allclose(shares, dense_shares(features, pairs, judged))
    assert np.all((shares > 0) & (shares < 1))


def test_of_very_many_judged_pairs_a_sample_counts(rng, monkeypatch):
    monkeypatch.setattr(suggestion_gains, "MAX_JUDGED", 4)
    features = rng.standard_normal((7, 3)), rng.standard_normal((6, 4))
    pairs, judged = rng.integers(0, 6, (2, 5)), rng.integers(0, 6, (2, 30))
    some = explained_shares(features, tuple(pairs), judged=tuple(judged))
    none = explained_shares(features, tuple(pairs), judged=tuple(judged[:, :0]))
    assert np.all(some >= dense_shares(features, pairs, judged) - 1e-12)
    assert np.all(some <= none + 1e-12)


def test_a_graph_without_edges_tells_nothing():
    features = np.zeros((3, 2)), np.zeros((4, 2))
    pairs = np.array([0, 1]), np.array([2, 3])
    judged = np.array([0]), np.array([0])
    assert explained_shares(features, pairs, judged=judged).tolist() == [0.0, 0.0]


def test_a_judged_pair_has_less_to_tell_than_before():
    data = ls.datasets.make_views(60, n_classes=3, random_state=0)
    links = ls.Links.from_pairs([(0, 0), (1, 2)], between=("text", "image"))
    model = ls.LinkSpreading(n_neighbors=9).fit(data.views(), links)
    ask = {"source": "text", "target": "image"}
    texts, images = model.suggest_pairs(3, **ask)
    before = model.expected_gains(texts, images, **ask)
    answer = [(texts[0].item(), images[0].item(), 1.0)]
    model.add_links(ls.Links.from_pairs(answer, between=("text", "image")))
    after = model.expected_gains(texts, images, **ask)
    assert after[0] < before[0] / 2
    assert np.all(after <= before)


def test_gains_need_items_of_the_views():
    data = ls.datasets.make_views(30, n_classes=3, random_state=0)
    model = ls.LinkSpreading(n_neighbors=9).fit(data.views(), data.labels)
    with pytest.raises(UnknownItemError, match="`target_ids` must name items"):
        model.expected_gains([1], [99], source="text", target="image")
