"""Bounds of scores hold for every target, and searches by them find the same."""

import gc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import linkspread as ls
from linkspread.learning.maps import unit_rows
from linkspread.models import search_pairs
from linkspread.search import bounds
from linkspread.search.bounds import TURN, CodedTable, bound_scores, coded
from linkspread.search.rank import MIN_SHARE, rank_bounded, rank_rows

N_TARGETS = 700
ASK = {"source": "text", "target": "image"}


def random_tables(rng, n_targets=N_TARGETS, *, whole=False):
    """Return tables of targets, parts of one query and a bias."""

    def draw(*shape):
        if whole:
            return rng.integers(-2, 3, shape).astype(np.float32)
        return rng.normal(size=shape).astype(np.float32)

    prior = sp.random_array((n_targets, 90), density=0.1, rng=rng, format="csr")
    shared = prior.sign() if whole else unit_rows(prior)
    tables = {"values": draw(n_targets, 150), "classes": draw(n_targets, 3),
              "prior": shared.astype(np.float32)}  # fmt: skip
    half = draw(1, 150)
    half[:, 70:] = 0
    scale = np.abs(draw(n_targets)) + 1
    parts = [("values", None, draw(1, 150), draw(1)), ("values", scale, half, None),
             ("values", -scale, np.zeros((1, 150), np.float32), draw(1)),
             ("classes", None, draw(1, 3), draw(1)),
             ("prior", scale, sp.csr_array(draw(1, 90)), draw(1))]  # fmt: skip
    return tables, parts, draw(n_targets)


def exact_scores(tables, parts, bias):
    """Return the scores in double precision."""
    total = bias.astype(np.float64)
    for space, scale, coefficients, constant in parts:
        T, a = (X.toarray() if sp.issparse(X) else X
                for X in (tables[space], coefficients))  # fmt: skip
        own = T.astype(np.float64) @ a[0].astype(np.float64)
        own = own + (0 if constant is None else constant[0])
        total = total + own * (1 if scale is None else scale)
    return total


class Query:
    """One query whose scores and bounds are computed from tables."""

    def __init__(self, tables, parts, bias):
        self.given = tables, parts, bias
        self.n_scored = 0

    def scores(self, targets=slice(None)):
        found = exact_scores(*self.given).astype(np.float32)[None, targets]
        self.n_scored = found.shape[1]
        return found

    def score_parts(self):
        return self.given


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.slow
def test_every_score_is_within_its_bounds(seed):
    tables, parts, bias = random_tables(np.random.default_rng(seed))
    tables["values"][3] = 0
    tables["values"][:, 5] *= 1e4
    tables["values"][:, 6] = 0
    scores = exact_scores(tables, parts, bias)
    lower, upper = bound_scores(tables, parts, bias)
    assert np.all(lower <= scores) and np.all(scores <= upper)


def test_threads_that_share_rows_find_the_same_bounds(monkeypatch, rng):
    given = random_tables(rng)
    alone = bound_scores(*given)
    monkeypatch.setattr(bounds, "ALONE", 0)
    monkeypatch.setattr(bounds, "TILE", 33)
    for own, other in zip(bound_scores(*given), alone, strict=True):
        assert np.array_equal(own, other)


def test_bounds_are_near_where_columns_are_of_one_size(rng):
    table = rng.normal(size=(N_TARGETS, 128)).astype(np.float32)
    a = rng.normal(size=(1, 128)).astype(np.float32)
    bias = np.zeros(N_TARGETS, np.float32)
    lower, upper = bound_scores({"values": table}, [("values", None, a, None)], bias)
    assert np.max(upper - lower) < 0.5 * np.std(table @ a[0])


def test_distances_of_rows_from_their_codes_are_needed(rng):
    table = rng.normal(size=(N_TARGETS, 128)).astype(np.float32)
    a = rng.normal(size=(1, 128)).astype(np.float32)
    own = CodedTable.of(table)
    scores = table.astype(np.float64) @ a[0]
    for slack, holds in ((own.slack, True), (0.0, False)):
        bounds = np.zeros((2, N_TARGETS), np.float32)
        part = a[0], np.float32(0), None
        CodedTable(own.codes, own.steps, slack).add_bounds([part], bounds)
        inside = (bounds[0] <= scores) & (scores <= bounds[1])
        assert inside.all() == holds


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.slow
def test_codes_are_within_half_a_step_of_turned_rows(rng, dtype):
    table = rng.normal(size=(60, 70)).astype(dtype)
    table[:, 1] = 0
    table[3] = 0
    table[4] *= 1e-36
    own = CodedTable.of(table)
    blocks = np.pad(table, ((0, 0), (0, 58))).reshape(60, 2, 64).astype(np.float64)
    codes = own.codes.reshape(60, 2, 64)
    gaps = blocks @ TURN - codes * own.steps[:, :, None]
    assert np.all(np.abs(gaps) <= 0.501 * own.steps[:, :, None])
    assert np.all(own.slack * own.steps >= np.linalg.norm(gaps, axis=2))
    assert not codes[3].any()


def test_products_stay_when_blocks_are_turned():
    np.testing.assert_allclose(TURN @ TURN.T, np.eye(len(TURN)), atol=1e-15)


def test_bounds_are_near_where_few_items_have_a_feature(rng):
    # One column of each row is large: steps of columns would be far too coarse.
    table = 0.01 * rng.normal(size=(N_TARGETS, 128)).astype(np.float32)
    table[np.arange(N_TARGETS), rng.integers(0, 128, N_TARGETS)] = 1
    a = rng.normal(size=(1, 128)).astype(np.float32)
    bias = np.zeros(N_TARGETS, np.float32)
    lower, upper = bound_scores({"values": table}, [("values", None, a, None)], bias)
    assert np.max(upper - lower) < 0.15 * np.std(table @ a[0])


def test_values_that_overflow_are_bounded_by_nothing(rng):
    table = rng.normal(size=(50, 10)).astype(np.float32)
    table[4, 2] = 1e30
    a = rng.normal(size=(1, 10)).astype(np.float32)
    parts = [("values", None, a, None)]
    query = Query({"values": table}, parts, np.zeros(50, np.float32))
    best, _ = rank_bounded(lambda row: query, (1, 50), np.float32, n_results=50)
    assert best[0].tolist() == np.argsort(-query.scores()[0], kind="stable").tolist()


@pytest.mark.slow
def test_codes_are_made_once_and_go_with_their_table(rng):
    table = rng.normal(size=(20, 5)).astype(np.float32)
    made, n_kept = coded(table), len(bounds._CODED)
    assert coded(table) is made
    del table
    gc.collect()
    assert len(bounds._CODED) == n_kept - 1


def filters(rng, n_targets):
    """Return limits of searches."""
    most = np.sort(rng.permutation(n_targets)[: n_targets // 2])
    few = np.sort(rng.permutation(n_targets)[:30])
    row = sp.random_array((1, n_targets), density=0.3, rng=rng, format="csr")
    none = sp.csr_array((1, n_targets))
    return [{}, {"only": most}, {"only": few}, {"barred": row}, {"barred": none},
            {"only": most, "barred": row}, {"only": few, "barred": row},
            {"only": np.zeros(0, np.int64)}]  # fmt: skip


@pytest.mark.parametrize("n_results", [0, 1, 10, 5000])
@pytest.mark.parametrize("whole", [True, False])
def test_ranking_by_bounds_is_that_of_all_scores(rng, n_results, whole):
    # Whole numbers have no rounding, and many ties and copies.
    n_targets = 3000
    tables, parts, bias = random_tables(rng, n_targets, whole=whole)
    copied = np.arange(n_targets)
    copied[200:300] = copied[500:600]
    tables = {space: T[copied] for space, T in tables.items()}
    parts = [(space, None if scale is None else scale[copied], *rest)
             for space, scale, *rest in parts]  # fmt: skip
    query = Query(tables, parts, bias[copied])
    for limits in filters(rng, n_targets):
        given = {"n_results": n_results, **limits}
        found = rank_bounded(lambda row: query, (1, n_targets), np.float32, **given)
        n_scored = query.n_scored
        plain = rank_rows(
            lambda rows: query.scores(), (1, n_targets), np.float32, step=1, **given
        )
        assert np.array_equal(found[0], plain[0])
        assert np.array_equal(found[1], plain[1])
        if not whole and 0 < n_results < 20 and len(limits.get("only", [0] * 1000)):
            assert n_scored <= n_targets / MIN_SHARE


def test_too_many_that_may_be_best_are_all_scored(rng):
    table = np.ones((500, 8), np.float32)
    query = Query({"values": table}, [("values", None, table[:1], None)],
                  np.zeros(500, np.float32))  # fmt: skip
    best, _ = rank_bounded(lambda row: query, (1, 500), np.float32, n_results=3)
    assert best.tolist() == [[0, 1, 2]] and query.n_scored == 500


def test_scores_that_round_otherwise_are_looked_at_again(rng):
    # Scored among the first few, items have more than ever after.
    tables, parts, bias = random_tables(rng, 3000)
    query = Query(tables, parts, bias)
    plain, asked = query.scores, []

    def scores(targets=slice(None)):
        asked.append(targets)
        return plain(targets) + np.float32(3 if len(asked) == 1 else 0)

    query.scores = scores
    found = rank_bounded(lambda row: query, (1, 3000), np.float32, n_results=10)
    best = np.argsort(-plain()[0], kind="stable")[:10]
    assert np.array_equal(found[0][0], best) and len(asked) == 3


@pytest.fixture
def model():
    data = ls.datasets.make_views(400, n_classes=4, n_features=12, random_state=0)
    views = {view: X.copy() for view, X in data.views().items()}
    views["image"][30:60] = views["image"][90:120]
    links = ls.Links.from_matched(("text", "image"), 40)
    return ls.CrossViewSearch().fit(views, links)


def assert_same(monkeypatch, model, queries, **limits):
    """Check that a search by bounds returns what a search by all scores does."""
    monkeypatch.setattr(search_pairs, "MANY_TARGETS", 10**9)
    ids, scores = model.search(queries, **{**ASK, **limits})
    monkeypatch.setattr(search_pairs, "MANY_TARGETS", 1)
    own_ids, own_scores = model.search(queries, **{**ASK, **limits})
    assert own_scores.shape == scores.shape and own_scores.dtype == scores.dtype
    np.testing.assert_allclose(own_scores, scores, rtol=1e-4, atol=1e-5)
    # Copies differ by rounding where a product treats the last rows in another way.
    clear = np.abs(np.diff(scores, axis=-1, append=-np.inf)) > 1e-5
    clear &= np.abs(np.diff(scores, axis=-1, prepend=np.inf)) > 1e-5
    assert clear.any() or scores.size == 0
    assert np.array_equal(own_ids[clear], ids[clear])


LIMITS = [{}, {"n_results": 500}, {"only": np.arange(0, 400, 3)}, {"only": [5, 9, 70]},
          {"exclude": np.arange(50)}, {"judged": False},
          {"judged": False, "exclude": [3, 7]},
          {"source": "image", "target": "image"}]  # fmt: skip


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.slow
def test_searches_by_bounds_find_the_same(monkeypatch, model, limits):
    assert_same(monkeypatch, model, 7, **limits)
    assert_same(monkeypatch, model, [3, 3, 200], **limits)


def test_new_items_are_searched_by_bounds_too(monkeypatch, model):
    rows = np.random.default_rng(1).normal(size=(2, 12))
    assert_same(monkeypatch, model, rows)
    assert_same(monkeypatch, model, rows[0])


def test_bounds_follow_changes_of_items_and_links(monkeypatch, model):
    rows = np.random.default_rng(1).normal(size=(5, 12))
    assert_same(monkeypatch, model, 7)
    model.add_items("image", rows * 9)
    assert_same(monkeypatch, model, 7)
    model.update_items("image", rows, ids=np.arange(5))
    assert_same(monkeypatch, model, 7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pairs = [(7, 300, 1), (8, 2, -1)]
        model.add_links(ls.Links.from_pairs(pairs, between=("text", "image")))
    assert_same(monkeypatch, model, 7)


@pytest.mark.parametrize("given", ["labels", "dense prior", "sparse prior"])
def test_every_space_is_searched_by_bounds(monkeypatch, given):
    data = ls.datasets.make_views(400, n_classes=4, n_features=12, random_state=0)
    links, prior = ls.Links.from_matched(("text", "image"), 40), "auto"
    if given == "labels":
        prior, known = None, np.where(np.arange(400) % 5, -1, data.labels["text"])
        links = ls.Links.from_labels({"text": known, "image": known})
    elif given == "sparse prior":
        one = sp.random_array((400, 50), density=0.2, rng=np.random.default_rng(0))
        prior = {"text": sp.csr_array(one), "image": sp.csr_array(one)}
    model = ls.CrossViewSearch(prior=prior).fit(data.views(), links)
    assert_same(monkeypatch, model, [7, 8])


def test_many_queries_and_small_views_are_scored_whole(monkeypatch, model):
    def fail(*given):
        raise AssertionError("bounds were computed")

    monkeypatch.setattr("linkspread.learning.factors.QueryBatch.score_parts", fail)
    model.search(7, **ASK)
    monkeypatch.setattr(search_pairs, "MANY_TARGETS", 1)
    model.search(np.arange(50), **ASK)
    with pytest.raises(AssertionError, match="bounds"):
        model.search(7, **ASK)
