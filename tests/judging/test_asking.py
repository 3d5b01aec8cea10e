"""Pairs that the learner asks about: open, likely where it knows, exploring else."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import linkspread as ls
from linkspread.judging import asking
from linkspread.judging.asking import Judged, ask, make_pool
from linkspread.judging.suggestion import OpenPairs
from linkspread.learning import make_map
from search_models import PAIR, judged_links, make_strangers, model

N = 120
NOTHING = np.zeros(0, dtype=np.int64)


@pytest.fixture(scope="module")
def search():
    return model("judged")


@pytest.fixture(scope="module")
def pools(search):
    return tuple(make_pool(search._maps[view]) for view in PAIR)


def open_pairs(rows=None, columns=None, judged=(NOTHING, NOTHING)):
    everything = np.arange(N)
    none = np.zeros(N, dtype=bool)
    rows = everything if rows is None else rows
    columns = everything if columns is None else columns
    return OpenPairs(rows, columns, (none, none), judged)


def asked(search, pools, n, *, judged=(), quality=0.0, seed=0, **sides):
    i, j, is_must = (
        np.array(judged or np.zeros((0, 3)), dtype=np.int64).reshape(-1, 3).T
    )
    return ask(
        open_pairs(judged=(i, j), **sides),
        n,
        factors=search._factors[PAIR],
        side=0,
        pools=pools,
        judged=Judged(i, j, is_must > 0),
        quality=quality,
        seed=seed,
    )


@pytest.mark.parametrize("quality", [0.0, 0.4, 1.0, None])
@pytest.mark.parametrize("n", [1, 30, 400])
def test_pairs_are_open_distinct_and_as_many_as_asked(search, pools, quality, n):
    rows, columns = np.arange(10, 60), np.arange(0, N, 3)
    judged = [(k, 3 * k, k % 2) for k in range(10, 30)]
    found = asked(
        search, pools, n, judged=judged, quality=quality, rows=rows, columns=columns
    )
    pairs = set(zip(*map(np.ndarray.tolist, found), strict=True))
    assert len(pairs) == len(found[0]) == n
    assert not pairs & {(i, j) for i, j, _ in judged}
    assert np.isin(found[0], rows).all() and np.isin(found[1], columns).all()


def test_no_more_pairs_than_there_are(search, pools):
    few = np.arange(3)
    i, j = asked(search, pools, 50, quality=0.5, rows=few, columns=few)
    assert len(set(zip(i.tolist(), j.tolist(), strict=True))) == 9


def test_a_good_model_asks_for_its_best_results_each_item_once(search, pools):
    i, j = asked(search, pools, 20, quality=1.0)
    assert len(set(i.tolist())) == len(set(j.tolist())) == 20
    # Partners have the same position in these views.
    assert np.mean(i == j) > 0.5
    drawn = asked(search, pools, 20, quality=0.0)
    assert np.mean(drawn[0] == drawn[1]) < 0.3


def test_an_item_is_asked_against_anchors_until_it_has_a_must_link(search, pools):
    i, j = asked(search, pools, 8)
    a = int(pools[1].rank < pools[0].rank)
    item = (j, i)[a][0]
    verdicts = [(*pair, 0) for pair in zip(i.tolist(), j.tolist(), strict=True)]
    again = asked(search, pools, 8, judged=verdicts, seed=1)
    assert item in (again[1], again[0])[a]
    verdicts = [(x, y, 1) for x, y, _ in verdicts]
    later = asked(search, pools, 8, judged=verdicts, seed=1)
    assert item not in (later[1], later[0])[a]


def test_duplicates_of_judged_items_come_last(search):
    views = make_strangers()
    views["text"][60:] = views["text"][:60]
    twins = ls.CrossViewSearch().fit(views, judged_links())
    rng = np.random.default_rng(0)
    own = twins._factors[PAIR]
    judged = np.arange(40)
    found = asking._unlike(own, 0, np.arange(N), judged, 10, rng)
    # Only items 40 to 59, or their copies, are no duplicates of judged items.
    assert len(set(found % 60)) == 10 and (found % 60 >= 40).all()


def test_judges_are_asked_about_different_pairs(search):
    def pairs(judge):
        i, j = search.suggest_pairs(10, source="text", target="image", judge=judge)
        return set(zip(i.tolist(), j.tolist(), strict=True))

    assert pairs("ann") == pairs("ann")
    assert len(pairs("ann") & pairs("bob")) < 10


def test_pools_follow_the_map_and_spread_over_it():
    rng = np.random.default_rng(0)
    centers = 50 * rng.normal(size=(6, 4))
    X = np.repeat(centers, 20, axis=0) + rng.normal(size=(120, 4))
    pool = make_pool(make_map(X, judged=np.arange(2)))
    for order in (pool.spread, pool.typical):
        assert len(np.unique(order)) == len(order)
        assert len(np.unique(order[:6] // 20)) >= 5
    assert_array_equal(pool.spread, make_pool(make_map(X, judged=np.arange(2))).spread)


def test_rare_must_links_ask_for_typical_items(search, pools):
    few = [(k, (k + 7) % N, 0) for k in range(40)]
    a = int(pools[1].rank < pools[0].rank)
    anchors = asked(search, pools, 30, judged=few)[a]
    n_anchors = round(70**0.5)
    assert np.isin(anchors, pools[a].typical[:n_anchors]).all()
    many = [(i, j, i % 2) for i, j, _ in few]
    anchors = asked(search, pools, 30, judged=many)[a]
    assert np.isin(anchors, pools[a].spread[:n_anchors]).all()
