"""Estimates of quality: intervals, weights, errors by item, and simulated sessions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest

import linkspread as ls
from linkspread.judging.held_out_quality import (
    ENOUGH,
    _balanced,
    _bounded,
    _Held,
    _variances,
)

PAIR = ("text", "image")
BETWEEN = {"source": "text", "target": "image"}


def judged_session(seed, n_items=200, n_judged=200):
    """Return a model of randomly judged pairs of classes, and its true precision."""
    data = ls.datasets.make_views(n_items, n_classes=4, random_state=seed)
    left, right = data.labels["text"], data.labels["image"]
    cells = np.random.default_rng(seed).permutation(n_items**2)[:n_judged]
    i, j = np.divmod(cells, n_items)
    table = np.column_stack([i, j, np.where(left[i] == right[j], 1.0, -1.0)])
    links = ls.Links.from_pairs(table, between=PAIR)
    search = ls.CrossViewSearch(n_jobs=1).fit(data.views(), links)
    best = np.argsort(-search.scores(*PAIR), axis=1)[:, :10]
    unjudged = np.setdiff1d(np.arange(n_items), i)
    is_right = left[:, None] == right[best]
    return search, {"precision at 10": is_right[unjudged].mean()}


def partner_session(seed, n_items=200, n_known=80):
    """Return a model of some matched items, and its true quality for the others."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n_items, 4))
    views = {
        view: np.tanh(hidden @ rng.normal(size=(4, 8)) / 2)
        + 0.2 * rng.normal(size=(n_items, 8))
        for view in PAIR
    }
    known = rng.permutation(n_items)[:n_known]
    links = ls.Links.from_pairs([(k, k, 1.0) for k in known.tolist()], between=PAIR)
    search = ls.CrossViewSearch(n_jobs=1, prior=None).fit(views, links)
    scores = search.scores(*PAIR)
    ranks = (scores >= np.diagonal(scores)[:, None]).sum(axis=1)
    ranks = np.delete(ranks, known)
    return search, {
        "recall at 1": np.mean(ranks <= 1),
        "recall at 10": np.mean(ranks <= 10),
        "mean reciprocal rank": np.mean(1 / ranks),
    }


@pytest.mark.parametrize("session", [judged_session, partner_session])
def test_intervals_contain_the_truth_of_most_sessions(session):
    covered = []
    for seed in range(4):
        search, truth = session(seed)
        found = search.progress(**BETWEEN)
        assert found.measures.keys() == truth.keys()
        for name, own in found.measures.items():
            assert 0 <= own.low <= own.value <= own.high <= 1
            assert own.high - own.low < 0.8
            covered.append(own.low <= truth[name] <= own.high)
        assert found.stop == (found.gain.high < ENOUGH)
        assert found.gain.low <= found.gain.value <= found.gain.high
        assert len(found.curve) == 3
    assert np.mean(covered) >= 0.6


@pytest.mark.slow
@pytest.mark.parametrize("session", [judged_session, partner_session])
def test_intervals_contain_the_truth_of_nine_in_ten_sessions(session):
    covered, errors = {}, {}
    for seed in range(100):
        search, truth = session(seed)
        for name, own in search.progress(**BETWEEN).measures.items():
            covered.setdefault(name, []).append(own.low <= truth[name] <= own.high)
            away = own.value - truth[name], own.high - own.low
            errors.setdefault(name, []).append(away)
    for name, own in covered.items():
        bias, width = np.mean(errors[name], axis=0)
        print(f"{name}: {sum(own)} of 100, bias {bias:+.3f}, width {width:.3f}")
    assert all(82 <= sum(own) <= 98 for own in covered.values())


def test_an_interval_of_a_share_is_that_of_wilson():
    share, n = 0.3, 5000
    own = _bounded(share, np.sqrt(share * (1 - share) / n), 10**9, np.inf)
    expected = binomtest(1500, n).proportion_ci(0.9, method="wilson")
    assert_allclose((own.low, own.high), (expected.low, expected.high), rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_perfect_share_is_not_certain(value):
    own = _bounded(value, 0.0, 19, 20)
    assert 0.05 < own.high - own.low < 0.25


def test_repeated_judgements_of_an_item_are_no_more_evidence():
    rng = np.random.default_rng(0)
    influence = rng.normal(size=(400, 2)) / 400
    i = np.arange(400)
    once = _variances(_Held(np.zeros(2), influence, i, i, np.ones(2)), influence)
    half = np.repeat(influence, 3, axis=0) / 3
    j = np.arange(1200)
    thrice = _variances(_Held(np.zeros(2), half, np.repeat(i, 3), j, np.ones(2)), half)
    assert_allclose(thrice, once, rtol=0.01)
    assert_allclose(once, (influence**2).sum(axis=0), rtol=0.01)


def test_easy_items_chosen_too_often_count_less():
    rng = np.random.default_rng(0)
    others = rng.normal(size=4000)
    # Those with high scores were judged twice as often.
    drawn = rng.normal(size=4000)
    held = drawn[rng.random(4000) < np.where(drawn > 0, 1.0, 0.5)]
    weights = _balanced(held, others)
    assert weights.sum() == pytest.approx(1)
    assert (held > 0).mean() > 0.63
    assert weights[held > 0].sum() == pytest.approx(0.5, abs=0.05)


def test_too_few_judgements_are_said_to_be_too_few():
    search, _ = judged_session(0, n_judged=12)
    found = search.progress(**BETWEEN)
    assert not found.measures and found.gain is None and not found.stop
    assert any("Too little" in note for note in found.notes)


def test_progress_is_that_of_two_views_and_changes_nothing():
    search, _ = judged_session(1)
    before = search.scores(*PAIR)
    assert search.progress(**BETWEEN) == search.progress(**BETWEEN)
    back = search.progress(source="image", target="text")
    assert "precision at 10" in str(back)
    assert np.array_equal(search.scores(*PAIR), before)
    with pytest.raises(ls.errors.ViewError, match="`source`"):
        search.progress(source="text", target="text")


def test_one_judged_item_is_too_little():
    data = ls.datasets.make_views(60, n_classes=2, random_state=0)
    is_same = data.labels["text"][0] == data.labels["image"]
    table = np.column_stack([np.zeros(60), np.arange(60), np.where(is_same, 1, -1)])
    links = ls.Links.from_pairs(table, between=PAIR)
    search = ls.CrossViewSearch(prior=None).fit(data.views(), links)
    assert not search.progress(**BETWEEN).measures


def test_a_search_by_the_cosine_alone_does_not_say_stop():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(100, 6))
    views = {view: hidden + 0.3 * rng.normal(size=(100, 6)) for view in PAIR}
    known = [(k, k, 1.0) for k in range(40)]
    search = ls.CrossViewSearch().fit(views, ls.Links.from_pairs(known, between=PAIR))
    assert np.isinf(search.choices_[PAIR].terms[0].ridge)
    found = search.progress(**BETWEEN)
    assert found.measures and found.gain is None and not found.stop


def test_gains_leave_quality_at_most_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    known = [(k, k, 1.0) for k in range(20)]
    links = ls.Links.from_pairs(known, between=PAIR)
    search = ls.CrossViewSearch(prior=None).fit({"text": X, "image": 2 * X}, links)
    found = search.progress(**BETWEEN)
    value = found.measures["mean reciprocal rank"].value
    assert max(found.gain) <= 1 - value + 1e-9
