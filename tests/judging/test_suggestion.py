"""Suggestions: open pairs, representatives, blocks of both, and expected gains."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linkspread as ls
from linkspread.graphs import knn_graph, normalize
from linkspread.ground.errors import UnknownItemError
from linkspread.judging import suggestion
from linkspread.judging.suggestion import (
    OpenPairs,
    choose_representatives,
    diffusion_features,
    explained_shares,
    suggest,
)
from neighbor_graphs import make_neighbor_graph

SIZES = st.integers(1, 7)

NOTHING = np.empty(0, dtype=np.int64)


@st.composite
def open_pairs(draw):
    """Return open pairs of few items, with any of them closed."""
    n, within = draw(SIZES), draw(st.booleans())
    m = n if within else draw(SIZES)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    rows = np.sort(rng.choice(n, rng.integers(0, n + 1), replace=False))
    columns = np.sort(rng.choice(m, rng.integers(0, m + 1), replace=False))
    share = draw(st.sampled_from([0.0, 0.3, 1.0]))
    known = rng.random(n) < share
    n_judged = rng.integers(0, n * m + 1)
    judged = rng.integers(n, size=n_judged), rng.integers(m, size=n_judged)
    others = known if within else rng.random(m) < share
    return OpenPairs(rows, columns, (known, others), judged, within)


def listed(pairs):
    """Return all open pairs by a plain loop, as a set of keys."""
    closed = set(zip(*(side.tolist() for side in pairs.judged), strict=True))
    found = set()
    for i in pairs.rows.tolist():
        for j in pairs.columns.tolist():
            is_closed = (i, j) in closed or (pairs.known[0][i] and pairs.known[1][j])
            if pairs.within:
                is_closed = is_closed or i == j or (j, i) in closed
            if not is_closed:
                found.add((min(i, j), max(i, j)) if pairs.within else (i, j))
    return found


def as_set(pairs, i, j):
    """Return pairs as a set, each once whichever item stands first within a view."""
    ordered = (sorted(p) if pairs.within else p for p in zip(i.tolist(), j.tolist(),
                                                             strict=True))  # fmt: skip
    return {tuple(p) for p in ordered}


@given(open_pairs())
def test_open_pairs_are_counted_as_a_plain_loop_counts_them(pairs):
    assert pairs.count() == len(listed(pairs))


@given(open_pairs(), st.integers(0, 60), st.integers(0, 3))
def test_a_draw_has_open_pairs_only_and_each_once(pairs, n, seed):
    expected = listed(pairs)
    n = min(n, len(expected))
    i, j = pairs.draw(n, np.random.default_rng(seed), taken=NOTHING)
    found = as_set(pairs, i, j)
    assert len(i) == len(j) == len(found) == n
    assert found <= expected
    assert set(i) <= set(pairs.rows) and set(j) <= set(pairs.columns)


def test_a_draw_among_very_many_pairs_takes_none_twice_and_no_taken_one(rng):
    nobody = np.zeros(300, dtype=bool)
    everyone = np.arange(300)
    judged = np.repeat(everyone, 10), np.tile(np.arange(10), 300)
    pairs = OpenPairs(everyone, everyone, (nobody, nobody), judged)
    taken = pairs.keys(np.zeros(100, dtype=int), np.arange(10, 110))
    i, j = pairs.draw(4000, rng, taken=taken)
    keys = pairs.keys(i, j)
    assert len(np.unique(keys)) == 4000
    assert not np.isin(keys, taken).any() and not (j < 10).any()
    # Blind: all columns about equally often, where the first row has fewer left.
    assert np.bincount(j, minlength=300)[10:].min() > 0


def uniform_score(i, j):
    """Return the same score for every pair."""
    return np.zeros((len(i), len(j)))


@given(open_pairs(), st.integers(1, 60), st.integers(0, 2))
def test_suggestions_are_open_distinct_and_as_many_as_there_are(pairs, n, seed):
    rng = np.random.default_rng(seed)
    features = tuple(rng.standard_normal((len(known), 3)) for known in pairs.known)
    first = suggest(pairs, n, features=features, score=uniform_score, seed=seed)
    expected = listed(pairs)
    found = as_set(pairs, *first)
    assert len(first[0]) == len(found) == min(n, len(expected))
    assert found <= expected
    again = suggest(pairs, n, features=features, score=uniform_score, seed=seed)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


def whole(n, m):
    """Return all pairs of so many items, nothing known of them."""
    known = np.zeros(n, dtype=bool), np.zeros(m, dtype=bool)
    return OpenPairs(np.arange(n), np.arange(m), known, (NOTHING, NOTHING))


def test_suggestions_are_complete_blocks_of_representatives(rng):
    features = rng.standard_normal((40, 5)), rng.standard_normal((30, 5))
    i, j = suggest(whole(40, 30), 25, features=features, score=uniform_score)
    for side in (4, 5):
        rows = choose_representatives(features[0], np.arange(40), side)
        columns = choose_representatives(features[1], np.arange(30), side)
        block = {(a, b) for a in rows for b in columns}
        assert set(zip(i[: side**2], j[: side**2], strict=True)) == block


def test_within_a_layer_likely_must_links_come_first(rng):
    features = rng.standard_normal((40, 5)), rng.standard_normal((30, 5))
    scores = rng.standard_normal((40, 30))
    i, j = suggest(
        whole(40, 30), 25, features=features, score=lambda a, b: scores[np.ix_(a, b)]
    )
    layer = scores[i[16:25], j[16:25]]
    assert np.array_equal(layer, np.sort(layer)[::-1])


def test_few_queries_are_paired_with_more_columns(rng):
    features = rng.standard_normal((40, 5)), rng.standard_normal((30, 5))
    known = np.zeros(40, dtype=bool), np.zeros(30, dtype=bool)
    one = OpenPairs(np.array([7]), np.arange(30), known, (NOTHING, NOTHING))
    i, j = suggest(one, 12, features=features, score=uniform_score)
    assert set(i) == {7}
    assert set(j) == set(choose_representatives(features[1], np.arange(30), 12))


def test_beyond_the_largest_block_pairs_are_drawn(rng, monkeypatch):
    monkeypatch.setattr(suggestion, "MAX_REPRESENTATIVES", 3)
    features = rng.standard_normal((40, 5)), rng.standard_normal((30, 5))
    pairs = whole(40, 30)
    i, j = suggest(pairs, 50, features=features, score=uniform_score)
    rows = choose_representatives(features[0], np.arange(40), 3)
    assert set(i[:9]) == set(rows)
    assert len(as_set(pairs, i, j)) == 50


def explained(features, chosen, noise):
    """Return the variance of all items that noisy values of some explain."""
    K = features @ features.T
    own = K[np.ix_(chosen, chosen)] + noise * np.eye(len(chosen))
    return np.trace(K[:, chosen] @ np.linalg.solve(own, K[chosen]))


def noise_of(features):
    """Return the noise that the choice of representatives reckons with."""
    return suggestion.NOISE * np.mean(np.sum(features**2, axis=1))


@pytest.mark.parametrize("known", [[], [3, 8]])
def test_each_representative_explains_most_of_what_is_left(rng, known):
    features = rng.standard_normal((25, 6)) * np.arange(1, 7)
    allowed = np.arange(0, 25, 2)
    chosen = choose_representatives(features, allowed, 5, known=np.array(known, int))
    for n in range(5):
        before = known + chosen[:n].tolist()
        left = sorted(set(allowed.tolist()) - set(chosen[:n].tolist()))
        noise = noise_of(features)
        values = [explained(features, [*before, i], noise) for i in left]
        assert chosen[n] == left[int(np.argmax(values))]


def test_a_longer_list_of_representatives_begins_with_the_shorter(rng):
    features = rng.standard_normal((50, 6))
    longer = choose_representatives(features, np.arange(50), 100)
    assert sorted(longer) == list(range(50))
    shorter = choose_representatives(features, np.arange(50), 7)
    assert np.array_equal(longer[:7], shorter)


def test_of_very_many_items_a_sample_is_compared(rng, monkeypatch):
    monkeypatch.setattr(suggestion, "N_CANDIDATES", 20)
    features = rng.standard_normal((500, 4))
    first, again, other = (
        choose_representatives(features, np.arange(500), 10, seed=s) for s in (0, 0, 1)
    )
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert len(np.unique(first)) == 10


def test_representatives_lie_in_all_clusters(rng):
    centres = 50 * rng.standard_normal((6, 4))
    cluster = np.repeat(np.arange(6), 30)
    X = centres[cluster] + rng.standard_normal((180, 4))
    W = knn_graph(X, n_neighbors=5)
    chosen = choose_representatives(diffusion_features(W, seed=0), np.arange(180), 6)
    assert set(cluster[chosen]) == set(range(6))


def test_features_are_those_of_a_diffusion(rng):
    W = knn_graph(rng.standard_normal((50, 2)), n_neighbors=6)
    step = (np.eye(50) + normalize(W).toarray()) / 2
    K = np.linalg.matrix_power(step, suggestion.N_STEPS)
    features = diffusion_features(W, seed=0)
    assert np.allclose(features @ features.T, K, atol=1e-8)


def test_memory_is_far_below_all_pairs():
    n = 20_000
    W = make_neighbor_graph(np.arange(n) % 10, random_state=0)
    tracemalloc.start()
    features = diffusion_features(W, seed=0)
    i, _ = suggest(whole(n, n), 200, features=(features, features), score=uniform_score)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(i) == 200
    # A byte for each pair would be 400 MB.
    assert peak < 120e6


def dense_shares(features, pairs, judged):
    """Return gains by a dense Gaussian process over all pairs."""
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
    monkeypatch.setattr(suggestion, "MAX_JUDGED", 4)
    features = rng.standard_normal((7, 3)), rng.standard_normal((6, 4))
    pairs, judged = rng.integers(0, 6, (2, 5)), rng.integers(0, 6, (2, 30))
    some = explained_shares(features, tuple(pairs), judged=tuple(judged))
    none = explained_shares(features, tuple(pairs), judged=tuple(judged[:, :0]))
    assert np.all(some >= dense_shares(features, pairs, judged) - 1e-12)
    assert np.all(some <= none + 1e-12)


def test_a_graph_without_edges_explains_nothing():
    features = np.zeros((3, 2)), np.zeros((4, 2))
    pairs = np.array([0, 1]), np.array([2, 3])
    judged = np.array([0]), np.array([0])
    assert explained_shares(features, pairs, judged=judged).tolist() == [0.0, 0.0]


def test_a_judged_pair_explains_less_than_before():
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
