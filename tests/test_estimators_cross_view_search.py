"""Searches and blocks of scores of a fitted model against its dense scores."""

import numpy as np
import pytest

from linkspread import Links, LinkSpreading
from linkspread.exceptions import BlockTooLargeError, LinkspreadError
from linkspread.graphs import knn_graph, normalize
from linkspread.links import as_dense
from reference import fixed_point, relative_error
from small_views import (
    PARAMETERS,
    SIZES,
    M,
    N,
    fitted,
    make_links,
    make_views,
    sorted_results,
)


@pytest.mark.parametrize("kind", ["labels", "few pairs"])
@pytest.mark.parametrize("n_results", [1, 5, M, M + 7])
@pytest.mark.parametrize("source, target", [("text", "image"), ("image", "text")])
def test_search_sorts_the_scores(kind, n_results, source, target):
    model = fitted(kind)
    queries = np.array([7, 0, 7, 29])
    ids, scores = model.search(
        queries, source=source, target=target, n_results=n_results
    )
    block = model.scores(source, target)[queries]
    # The scores that were ranked, bit for bit: the same product of the same vectors.
    spread = model.spreads_["text", "image"]
    spread = spread if source == "text" else spread.T
    ranked = spread.queries(queries) @ spread.right.T
    np.testing.assert_allclose(ranked, block, atol=1e-12)
    wanted_ids, wanted_scores = sorted_results(ranked, n_results)
    np.testing.assert_array_equal(ids, wanted_ids)
    np.testing.assert_array_equal(scores, wanted_scores)


def test_equal_scores_come_in_the_order_of_the_items():
    # Without spreading the scores are the links: 1, -1 and many zeros.
    links = Links.from_pairs(
        [(0, 9, 1.0), (0, 4, 1.0), (0, 2, -1.0)], between=("text", "image")
    )
    model = LinkSpreading(n_neighbors=4, alpha=0, balance="literal")
    model.fit(make_views(), links)
    ids, scores = model.search(0, source="text", target="image", n_results=M)
    zeros = [i for i in range(M) if i not in (2, 4, 9)]
    assert ids.tolist() == [4, 9, *zeros, 2]
    np.testing.assert_allclose(scores[[0, 1, -1]], [1, 1, -1], atol=1e-6)


def test_one_query_gives_one_row_and_many_give_a_table():
    model = fitted("labels")
    ask = {"source": "text", "target": "image", "n_results": 6}
    ids, scores = model.search(5, **ask)
    assert ids.shape == scores.shape == (6,)
    table_ids, table_scores = model.search([5], **ask)
    assert table_ids.shape == table_scores.shape == (1, 6)
    np.testing.assert_array_equal(table_ids[0], ids)
    none_ids, none_scores = model.search([], **ask)
    assert none_ids.shape == none_scores.shape == (0, 6)


@pytest.mark.parametrize("n_results", [3, N - 1, N, N + 5])
def test_search_within_a_view_leaves_out_the_query(n_results):
    model = fitted("labels")
    ids, scores = model.search(
        range(N), source="text", target="text", n_results=n_results
    )
    block = model.scores("text", "text")
    np.fill_diagonal(block, -np.inf)
    np.testing.assert_array_equal(ids, sorted_results(block, min(n_results, N - 1))[0])
    np.testing.assert_allclose(scores, np.take_along_axis(block, ids, axis=1))


def test_a_query_that_is_not_its_own_best_match_loses_nothing_better():
    # Cannot-links repel: an item need not find itself among its own best.
    pairs = [(i, (i + 1) % N, 1.0) for i in range(0, N, 2)]
    pairs += [(i, (i + 2) % N, -1.0) for i in range(0, N, 4)]
    links = Links.from_pairs(pairs, between=("text", "text"))
    views = make_views("text")
    model = LinkSpreading(**PARAMETERS).fit(views, links)
    block = model.scores("text", "text")
    assert np.any(block.argmax(axis=1) != np.arange(N))
    np.fill_diagonal(block, -np.inf)
    ids, _ = model.search(range(N), source="text", target="text", n_results=4)
    np.testing.assert_array_equal(ids, sorted_results(block, 4)[0])


def test_unknown_views_of_a_search_are_named():
    model = fitted("labels")
    message = r"must be views of the fit, \['text', 'image'\], got 'video'"
    with pytest.raises(LinkspreadError, match=message):
        model.search(0, source="text", target="video")
    with pytest.raises(LinkspreadError, match=message):
        model.scores("video", "text")


@pytest.mark.parametrize("n_results", [0, -3, 2.0, "5", None, True])
def test_a_wrong_number_of_results_is_one_sentence(n_results):
    model = fitted("labels")
    with pytest.raises(
        LinkspreadError, match="`n_results` must be a positive integer, got"
    ):
        model.search(0, source="text", target="image", n_results=n_results)


@pytest.mark.parametrize("block_entries", [400, 1 << 21])
@pytest.mark.parametrize("kind", ["labels", "many pairs", "mixture"])
def test_exact_scores_do_not_depend_on_the_rank(monkeypatch, kind, block_entries):
    name = "linkspread.estimators.score_blocks.EXACT_ENTRIES"
    monkeypatch.setattr(name, block_entries)
    views, links = make_views(), make_links(kind)
    parameters = PARAMETERS | {"alpha": {"text": 0.2, "image": 0.5}, "rank": 1}
    model = LinkSpreading(**parameters).fit(views, links)
    S = [normalize(knn_graph(views[v], n_neighbors=4)) for v in ("text", "image")]
    Z = as_dense(links.resolve(SIZES).between("text", "image"))
    wanted = fixed_point(S[0], Z, S[1], (0.2, 0.5), 0.9)
    assert relative_error(model.scores("text", "image"), wanted) > 0.1
    assert relative_error(model.scores("text", "image", exact=True), wanted) <= 1e-8
    rows, cols = [3, 1, 3], [2, 8, 20, 5]
    for i, j in [(rows, cols), (cols, rows), ([], cols), (rows, [])]:
        got = model.scores("text", "image", rows=i, cols=j, exact=True)
        i, j = np.array(i, dtype=int), np.array(j, dtype=int)
        np.testing.assert_allclose(got, wanted[np.ix_(i, j)], atol=1e-8)


def test_a_block_that_is_too_large_is_refused_with_its_size():
    model = fitted("labels")
    message = "at most 9.6 kB, and 40 x 30 takes 9.6 kB.*`rows` or `cols`"
    with pytest.raises(BlockTooLargeError, match=message):
        model.scores("text", "image", max_bytes=N * M * 8 - 1)
    with pytest.raises(BlockTooLargeError):
        model.scores("text", "image", exact=True, max_bytes=100)
    assert model.scores("text", "image", max_bytes=N * M * 8).shape == (N, M)


def test_scores_of_new_rows_are_what_a_search_finds():
    views = make_views()
    model = LinkSpreading(**PARAMETERS).fit(views, make_links("labels"))
    rows = views["text"][:4] + 0.1
    block = model.scores("text", "image", rows=rows)
    ids, scores = model.search(rows, source="text", target="image", n_results=M)
    assert np.allclose(np.take_along_axis(block, ids, axis=1), scores)
