"""Searches and blocks of scores of a fitted model against its dense scores."""

import pickle

import numpy as np
import pytest

from linkspread import Links, LinkSpreading
from linkspread.graphs import knn_graph, normalize
from linkspread.ground.errors import (
    BlockTooLargeError,
    LinkspreadError,
    UnknownItemError,
)
from linkspread.links import Items, as_dense
from linkspread.models.vector_search import VectorSearch
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
def test_scores_without_a_rank_are_exact(monkeypatch, kind, block_entries):
    monkeypatch.setattr("linkspread.propagation.rows.BLOCK_ENTRIES", block_entries)
    views, links = make_views(), make_links(kind)
    parameters = PARAMETERS | {"alpha": {"text": 0.2, "image": 0.5}}
    model = LinkSpreading(**parameters).fit(views, links)
    cut = LinkSpreading(**parameters, rank=1).fit(views, links)
    S = [normalize(knn_graph(views[v], n_neighbors=4)) for v in ("text", "image")]
    Z = as_dense(links.resolve(SIZES).between("text", "image"))
    wanted = fixed_point(S[0], Z, S[1], (0.2, 0.5), 0.9)
    assert relative_error(cut.scores("text", "image"), wanted) > 0.1
    assert relative_error(model.scores("text", "image"), wanted) <= 1e-8
    searching, found = model.embeddings("text", "image")
    assert relative_error(searching @ found.T, wanted) <= 1e-8
    rows, cols = [3, 1, 3], [2, 8, 20, 5]
    for i, j in [(rows, cols), (cols, rows), ([], cols), (rows, [])]:
        got = model.scores("text", "image", rows=i, cols=j)
        i, j = np.array(i, dtype=int), np.array(j, dtype=int)
        np.testing.assert_allclose(got, wanted[np.ix_(i, j)], atol=1e-8)


def test_a_block_that_is_too_large_is_refused_with_its_size():
    model = fitted("labels")
    message = "at most 9.6 kB, and 40 x 30 takes 9.6 kB.*`rows` or `cols`"
    with pytest.raises(BlockTooLargeError, match=message):
        model.scores("text", "image", max_bytes=N * M * 8 - 1)
    assert model.scores("text", "image", max_bytes=N * M * 8).shape == (N, M)


def test_scores_of_new_rows_are_what_a_search_finds():
    views = make_views()
    model = LinkSpreading(**PARAMETERS).fit(views, make_links("labels"))
    rows = views["text"][:4] + 0.1
    block = model.scores("text", "image", rows=rows)
    ids, scores = model.search(rows, source="text", target="image", n_results=M)
    assert np.allclose(np.take_along_axis(block, ids, axis=1), scores)


def open_results(model, queries, source, target, n_results, is_open):
    """Return the best of the items that each query may find, by a plain loop."""
    block = model.scores(source, target)[queries]
    rows = [
        sorted(np.flatnonzero(mask), key=lambda j, row=row: (-row[j], j))[:n_results]
        for row, mask in zip(block, is_open, strict=True)
    ]
    shortest = min(map(len, rows))
    return np.array([row[:shortest] for row in rows])


@pytest.mark.parametrize("source, target", [("text", "image"), ("text", "text")])
@pytest.mark.parametrize("judged", [True, False])
@pytest.mark.parametrize(
    "only, exclude",
    [
        (None, None),
        ([3, 17, 4, 17, 0, 9], None),
        (None, [5, 5, 2]),
        (np.arange(5, 25), [7, 8, 29]),
        (slice(2, None), slice(20, None)),
    ],
)
def test_filters_leave_what_a_loop_leaves(source, target, judged, only, exclude):
    model = fitted("many pairs" if source != target else "labels")
    n_items, queries = SIZES[target], np.array([7, 0, 21, 7])
    is_open = np.ones((4, n_items), dtype=bool)
    if only is not None:
        is_open[:, np.setdiff1d(np.arange(n_items), np.arange(n_items)[only])] = False
    if exclude is not None:
        is_open[:, exclude] = False
    if source == target:
        is_open[np.arange(4), queries] = False
    if not judged:
        is_open &= ~(model.links_.judged(source, target)[queries].toarray() != 0)
    asked = {"source": source, "target": target, "only": only, "exclude": exclude}
    ids, scores = model.search(queries, n_results=4, judged=judged, **asked)
    wanted = open_results(model, queries, source, target, 4, is_open)
    np.testing.assert_array_equal(ids, wanted)
    block = model.scores(source, target)[queries]
    np.testing.assert_allclose(scores, np.take_along_axis(block, ids, axis=1))


def test_judged_items_are_left_out_for_their_query_alone():
    links = Links.from_pairs(
        [(0, 9, 1.0), (0, 4, -1.0), (1, 2, 1.0)], between=("text", "image")
    )
    model = LinkSpreading(**PARAMETERS).fit(make_views(), links)
    ask = {"source": "text", "target": "image", "n_results": M, "judged": False}
    assert set(range(M)) - set(model.search(0, **ask)[0]) == {4, 9}
    assert set(range(M)) - set(model.search(1, **ask)[0]) == {2}
    # Rows of one table are as long as the shortest of them.
    assert model.search([0, 1, 5], **ask)[0].shape == (3, M - 2)
    back = ask | {"source": "image", "target": "text", "n_results": N}
    assert set(range(N)) - set(model.search(9, **back)[0]) == {0}
    # The features of item 0, but as a new item, which nobody has judged.
    assert model.search(make_views()["text"][:1], **ask)[0].shape == (1, M)


def test_masks_and_ids_of_ones_own_filter_too():
    ids = {"image": [f"i{i}" for i in range(M)]}
    model = LinkSpreading(**PARAMETERS).fit(make_views(), make_links("labels"), ids=ids)
    ask = {"source": "text", "target": "image", "n_results": 3}
    mask = np.isin(np.arange(M), [4, 8, 15, 16])
    wanted = model.search(0, only=["i16", "i4", "i8", "i15"], **ask)
    for only in (mask, mask.tolist(), [4, 8, 15, 16]):
        got = model.search(0, only=only, **ask)
        assert got[0].tolist() == wanted[0].tolist()
    assert model.search(0, exclude=~mask, **ask)[0].tolist() == wanted[0].tolist()
    assert model.search([0, 1], only=[], **ask)[0].shape == (2, 0)


@pytest.mark.parametrize(
    "asked, error, message",
    [
        ({"only": ["x"]}, UnknownItemError, "`only` must name items of view 'image'"),
        ({"exclude": [M]}, UnknownItemError, "`exclude` must name items of view"),
        ({"only": 3}, LinkspreadError, r"`only` must be a flat list.*Write \[item\]"),
        ({"exclude": [True]}, LinkspreadError, "`exclude` must be a flat list"),
        ({"judged": None}, LinkspreadError, "`judged` must be True or False, got None"),
        ({"method": "hnsw"}, LinkspreadError, "`method` must be one of.*'hnsw'"),
    ],
)
def test_filters_that_cannot_be_are_one_sentence(asked, error, message):
    with pytest.raises(error, match=message):
        fitted("labels").search(0, source="text", target="image", **asked)


class GivenVectors(VectorSearch):
    """Search vectors that are given, without links."""

    def fit(self, left, right):
        self.sides_ = left, right
        self.items_ = {
            view: Items(len(side), view=view)
            for view, side in zip(("text", "image"), self.sides_, strict=True)
        }
        return self

    def _vectors_of_fitted(self, positions, source, target):
        return self.sides_[0][positions]

    def _vectors_of_new(self, rows, source, target):
        return rows

    def _vectors_found(self, source, target):
        return self.sides_[1]


ASK = {"source": "text", "target": "image"}


def test_a_model_without_links_cannot_know_what_is_judged(rng):
    model = GivenVectors().fit(rng.random((5, 2)), rng.random((6, 2)))
    with pytest.raises(LinkspreadError, match="`judged` must be True, got False"):
        model.search(0, judged=False, **ASK)


@pytest.mark.slow
def test_an_index_is_built_once_for_each_fit(rng, monkeypatch):
    pytest.importorskip("faiss")
    built = []
    monkeypatch.setattr(
        "linkspread.search.index.ItemIndex._tune",
        lambda index, queries: built.append(len(queries)),
    )
    left, right = rng.standard_normal((50, 4)), rng.standard_normal((1500, 4))
    model = GivenVectors().fit(left, right)
    for _ in range(3):
        model.search(0, method="approximate", **ASK)
    assert model.index("text", "image", method="approximate").recall_ > 0
    assert built == [50]
    model.fit(left, right.copy()).search(0, method="approximate", **ASK)
    assert built == [50, 50]
    loaded = pickle.loads(pickle.dumps(model))
    assert not {"_made", "_model", "_changing"} & set(vars(loaded))
    loaded.search(0, method="approximate", **ASK)
    assert built == [50, 50, 50]


def test_an_approximate_search_is_told_and_filtered(rng):
    pytest.importorskip("faiss")
    model = GivenVectors().fit(rng.random((50, 4)), rng.random((2000, 4)))
    index = model.index("text", "image", method="approximate")
    assert index.method_ == "approximate"
    assert model.index("text", "image").method_ == "exact"
    index._cells.n_probed = index._cells.n_cells
    for asked in ({}, {"exclude": [3, 1999]}, {"only": range(1, 2000, 3)}):
        got = model.search(range(50), method="approximate", **asked, **ASK)
        wanted = model.search(range(50), **asked, **ASK)
        np.testing.assert_array_equal(got[0], wanted[0])


@pytest.mark.parametrize("source, target", [("text", "image"), ("image", "text")])
def test_vectors_of_queries_and_items_give_the_scores(source, target):
    model, rows = fitted("labels"), make_views()[source][:3] + 0.1
    searching, found = model.embeddings(source, target)
    block = model.scores(source, target)
    np.testing.assert_allclose(searching @ found.T, block, atol=1e-12)
    np.testing.assert_array_equal(
        model.embed([4, 0], source=source, target=target), searching[[4, 0]]
    )
    new = model.embed(rows, source=source, target=target)
    expected = model.scores(source, target, rows=rows)
    np.testing.assert_allclose(new @ found.T, expected, atol=1e-12)
    one = model.embed(rows[1], source=source, target=target)
    np.testing.assert_allclose(one, new[1], atol=1e-12)
