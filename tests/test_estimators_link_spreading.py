"""LinkSpreading against dense closed forms: scores, search, several views."""

from functools import cache

import numpy as np
import pytest
from scipy import sparse

from linkspread import Links, LinkSpreading
from linkspread.exceptions import BlockTooLargeError, LinkError, LinkspreadError
from linkspread.graphs import knn_graph, normalize
from linkspread.links import as_dense
from reference import fixed_point, relative_error

SIZES = {"text": 40, "image": 30, "sound": 20}
N, M = SIZES["text"], SIZES["image"]
PARAMETERS = {"n_neighbors": 4, "alpha": 0.3, "beta": 0.9, "tol": 1e-9}


def make_views(*names, seed=0):
    """Return random tables, each with a number of columns of its own."""
    rng = np.random.default_rng(seed)
    names = names or ("text", "image")
    return {v: rng.standard_normal((SIZES[v], 3 + i)) for i, v in enumerate(names)}


def make_pairs(seed, n_pairs, between=("text", "image")):
    """Return distinct judged pairs with weights of both signs."""
    rng = np.random.default_rng(seed)
    n, m = (SIZES[view] for view in between)
    i, j = np.divmod(rng.choice(n * m, n_pairs, replace=False), m)
    weights = rng.choice([-1.0, 1.0, 0.5], n_pairs)
    weights[:2] = 1.0, -1.0  # both kinds, always
    return Links.from_pairs(list(zip(i, j, weights, strict=True)), between=between)


def make_links(kind, seed=1):
    """Return links of one kind between texts and images."""
    rng = np.random.default_rng(seed)
    labels = {v: rng.integers(-1, 3, SIZES[v]) for v in ("text", "image")}
    soft = {v: rng.random((SIZES[v], 3)) for v in ("text", "image")}
    return {
        "labels": lambda: Links.from_labels(labels),
        "soft labels": lambda: Links.from_labels(soft),
        "few pairs": lambda: make_pairs(seed, 3),
        "many pairs": lambda: make_pairs(seed, 150),
        "matched": lambda: Links.from_matched(("text", "image"), 25),
        "mixture": lambda: Links.from_labels(labels) + make_pairs(seed, 40),
    }[kind]()


KINDS = ["labels", "soft labels", "few pairs", "many pairs", "matched", "mixture"]


@cache
def fitted(kind):
    """Return a model that tests may ask but not change."""
    return LinkSpreading(**PARAMETERS).fit(make_views(), make_links(kind))


def closed_form(views, links, source, target, balance="auto", alpha=0.3, beta=0.9):
    """Return all scores of two views by solving one dense system."""
    S = {v: normalize(knn_graph(views[v], n_neighbors=4)) for v in (source, target)}
    Z = links.resolve({v: len(X) for v, X in views.items()})
    Z = as_dense(Z.between(source, target, balance=balance))
    return fixed_point(S[source], Z, S[target], (alpha, alpha), beta)


def sorted_results(scores, n_results):
    """Return the positions and scores of the best columns, ties in order."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :n_results]
    return order, np.take_along_axis(scores, order, axis=1)


@pytest.mark.parametrize(
    "kind, balance",
    [(kind, "auto") for kind in KINDS] + [("mixture", "literal"), ("mixture", 0.25)],
)
def test_scores_are_the_closed_form(kind, balance):
    views, links = make_views(), make_links(kind)
    model = LinkSpreading(balance=balance, **PARAMETERS).fit(views, links)
    wanted = closed_form(views, links, "text", "image", balance)
    assert relative_error(model.scores("text", "image"), wanted) <= 1e-6
    assert relative_error(model.scores("image", "text"), wanted.T) <= 1e-6


def test_every_parameter_can_differ_between_views():
    views, links = make_views(), make_links("labels")
    views = {view: np.abs(X) for view, X in views.items()}
    rng = np.random.default_rng(3)
    W = rng.random((M, M))
    model = LinkSpreading(
        graph={"text": "knn", "image": W + W.T},
        n_neighbors={"text": 6, "image": 2},
        metric={"text": "hellinger", "image": "euclidean"},
        bandwidth={"text": 0.7, "image": "local"},
        weights={"text": "gaussian", "image": "binary"},
        alpha={"image": 0.6, "text": 0.2},
        tol=1e-9,
    ).fit(views, links)
    W_text = knn_graph(views["text"], n_neighbors=6, metric="hellinger", bandwidth=0.7)
    Z = links.between("text", "image").toarray()
    wanted = fixed_point(normalize(W_text), Z, normalize(W + W.T), (0.2, 0.6), 0.95)
    assert relative_error(model.scores("text", "image"), wanted) <= 1e-6


def test_metric_and_neighbours_by_view():
    views, links = make_views(), make_links("many pairs")
    metric, n_neighbors = (
        {"text": "cosine", "image": "euclidean"},
        {"text": 3, "image": 7},
    )
    model = LinkSpreading(metric=metric, n_neighbors=n_neighbors, tol=1e-9)
    model.fit(views, links)
    S = [
        normalize(knn_graph(views[v], n_neighbors=n_neighbors[v], metric=metric[v]))
        for v in views
    ]
    Z = links.resolve(SIZES).between("text", "image").toarray()
    wanted = fixed_point(S[0], Z, S[1], (0.1, 0.1), 0.95)
    assert relative_error(model.scores("text", "image"), wanted) <= 1e-6


@pytest.mark.parametrize("kind", ["labels", "many pairs"])
def test_swapping_the_views_transposes_the_scores(kind):
    model = fitted(kind)
    there, back = model.scores("text", "image"), model.scores("image", "text")
    np.testing.assert_allclose(back, there.T, rtol=1e-12, atol=1e-14)


def test_the_order_of_the_views_does_not_matter():
    views, links = make_views(), make_links("mixture")
    turned = dict(reversed(views.items()))
    one = LinkSpreading(**PARAMETERS).fit(views, links).scores("text", "image")
    other = LinkSpreading(**PARAMETERS).fit(turned, links).scores("text", "image")
    assert relative_error(other, one) <= 1e-8


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


def test_labels_link_items_within_a_view_too():
    wanted = closed_form(make_views(), make_links("labels"), "text", "text")
    assert relative_error(fitted("labels").scores("text", "text"), wanted) <= 1e-6


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


def test_links_within_a_view_by_pairs_are_symmetric():
    views = make_views("text")
    table = [(i, j, 1.0 if (i + j) % 3 else -1.0) for i, j in
             zip(range(20), range(20, 40), strict=True)]  # fmt: skip
    links = Links.from_pairs(table, between=("text", "text"))
    model = LinkSpreading(**PARAMETERS).fit(views, links)
    wanted = closed_form(views, links, "text", "text")
    got = model.scores("text", "text")
    assert relative_error(got, wanted) <= 1e-6
    np.testing.assert_allclose(got, got.T, atol=1e-9)


def test_one_view_with_labels_is_the_form_of_scikit_learn():
    views = make_views("text")
    y = np.random.default_rng(2).integers(-1, 3, N)
    model = LinkSpreading(**PARAMETERS).fit(views["text"], y)
    assert model.view_names_ == ("X",)
    assert model.n_features_in_ == 3
    wanted = closed_form({"X": views["text"]}, Links.from_labels({"X": y}), "X", "X")
    assert relative_error(model.scores("X", "X"), wanted) <= 1e-6


def test_labels_by_view_are_links():
    views, rng = make_views(), np.random.default_rng(4)
    labels = {v: rng.integers(-1, 2, len(X)) for v, X in views.items()}
    one = LinkSpreading(**PARAMETERS).fit(views, labels)
    other = LinkSpreading(**PARAMETERS).fit(views, Links.from_labels(labels))
    np.testing.assert_array_equal(
        one.scores("text", "image"), other.scores("text", "image")
    )


def test_three_views_with_labels():
    views, rng = make_views(*SIZES), np.random.default_rng(4)
    links = Links.from_labels({v: rng.integers(-1, 3, n) for v, n in SIZES.items()})
    model = LinkSpreading(**PARAMETERS).fit(views, links)
    assert set(model.spreads_) == {
        ("text", "image"),
        ("text", "sound"),
        ("image", "sound"),
    }
    for source, target in [("text", "image"), ("sound", "text"), ("image", "sound")]:
        wanted = closed_form(views, links, source, target)
        assert relative_error(model.scores(source, target), wanted) <= 1e-6


def test_three_views_with_pairs_between_some():
    views = make_views(*SIZES)
    links = make_pairs(1, 20) + make_pairs(2, 15, between=("sound", "image"))
    model = LinkSpreading(**PARAMETERS).fit(views, links)
    for source, target in [("text", "image"), ("image", "sound")]:
        wanted = closed_form(views, links, source, target)
        assert relative_error(model.scores(source, target), wanted) <= 1e-6
    message = "joined by links.*none join 'text' and 'sound'. Add links between them"
    with pytest.raises(LinkError, match=message):
        model.search(0, source="text", target="sound")
    with pytest.raises(LinkError, match="none join items within 'text'"):
        model.scores("text", "text")


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


def test_two_dimensions_hold_less_than_the_report_allows():
    views, links = make_views(), make_links("many pairs")
    model = LinkSpreading(rank=2, **PARAMETERS).fit(views, links)
    report = model.report_.spreads["text", "image"]
    wanted = closed_form(views, links, "text", "image")
    error = relative_error(model.scores("text", "image"), wanted)
    assert report.rank == 2
    assert report.error == pytest.approx(error, rel=0.4)
    assert error > 0.1


def test_pairs_are_cut_at_the_largest_rank_and_labels_are_not(monkeypatch):
    monkeypatch.setattr("linkspread.estimators.link_choice.MAX_RANK", 2)
    views = make_views()
    for kind in ("many pairs", "mixture"):
        model = LinkSpreading(**PARAMETERS).fit(views, make_links(kind))
        report = model.report_.spreads["text", "image"]
        assert report.rank == 2
        assert report.error > 0.01
    model = LinkSpreading(**PARAMETERS).fit(views, make_links("labels"))
    report = model.report_.spreads["text", "image"]
    assert report.rank > 2
    assert report.error <= 2e-9


def test_a_block_that_is_too_large_is_refused_with_its_size():
    model = fitted("labels")
    message = "at most 9.6 kB, and 40 x 30 takes 9.6 kB.*`rows` or `cols`"
    with pytest.raises(BlockTooLargeError, match=message):
        model.scores("text", "image", max_bytes=N * M * 8 - 1)
    with pytest.raises(BlockTooLargeError):
        model.scores("text", "image", exact=True, max_bytes=100)
    assert model.scores("text", "image", max_bytes=N * M * 8).shape == (N, M)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"objective": "ridge"}, "`objective` must be 'spread', got 'ridge'"),
        ({"beta": 1}, r"`beta` must be a number in \[0, 1\), got 1"),
        ({"tol": 0}, "`tol` must be between 0 and 1, got 0"),
        ({"rank": 0}, "`rank` must be a positive integer, got 0. None keeps"),
        ({"balance": "fair"}, "`balance` must be 'auto', 'literal'.*got 'fair'"),
        ({"alpha": 1.0}, r"view 'text': `alpha` must be a number.*got 1.0"),
        (
            {"alpha": {"text": 0.1, "image": "x"}},
            r"view 'image': `alpha` must be a number.*got 'x'",
        ),
        ({"alpha": (0.1, 0.2)}, r"`alpha` must be a number.*got \(0.1, 0.2\)"),
        ({"alpha": {"text": 0.1}}, r"`alpha` given by view must name each.*\['text'\]"),
        ({"n_neighbors": M}, "view 'image': `n_neighbors` must be smaller.*30 items"),
        ({"n_neighbors": "ten"}, "view 'text': `n_neighbors` must be a whole.*'ten'"),
        ({"n_neighbors": None}, "view 'text': `n_neighbors` must be a whole.*None"),
        ({"graph": "tree"}, "view 'text': `graph` must be one of.*got 'tree'"),
        ({"graph": None}, "view 'text': `graph` must be one of.*got None"),
        (
            {"metric": {"text": "cosine", "image": "miles"}},
            "view 'image': `metric` must be one of.*got 'miles'",
        ),
        ({"bandwidth": -1}, "view 'text': `bandwidth` must be.*got -1"),
        ({"weights": "heavy"}, "view 'text': `weights` must be one of.*'heavy'"),
    ],
)
def test_wrong_parameters_are_one_sentence_before_any_work(
    monkeypatch, parameters, message
):
    # Nothing may be computed: a graph can take minutes, a mistake must not.
    monkeypatch.setattr(
        "linkspread.estimators.link_spreading.build_graphs", lambda *_, **__: 1 / 0
    )
    model = LinkSpreading(**{"n_neighbors": 4} | parameters)
    with pytest.raises(LinkspreadError, match=message):
        model.fit(make_views(), make_links("labels"))


@pytest.mark.parametrize(
    "links, message",
    [
        (None, "`links` must be Links or labels by view, got None.*target y is None"),
        ([0, 1], "`links` must be Links or labels by view, got list for 2 views"),
        ({"text": np.zeros(3, int)}, "labels of view 'text' must fit.*3 labels for 40"),
        (
            Links.from_pairs([(0, 0)], between=("text", "video")),
            r"links must be among the views at hand.*'video'",
        ),
        (
            Links.from_pairs([(0, 99)], between=("text", "image")),
            "links must name items of view 'image', which has none called 99",
        ),
    ],
)
def test_wrong_links_are_one_sentence(links, message):
    with pytest.raises(LinkError, match=message):
        LinkSpreading(n_neighbors=4).fit(make_views(), links)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.dok_array])
def test_any_kind_of_table_gives_the_same_scores(make):
    views, links = make_views(), make_links("labels")
    model = LinkSpreading(**PARAMETERS)
    wanted = model.fit(views, links).scores("text", "image")
    model.fit({view: make(X) for view, X in views.items()}, links)
    assert relative_error(model.scores("text", "image"), wanted) <= 1e-8


def test_a_bare_sparse_table_in_the_format_of_a_dict_is_one_view():
    X = make_views()["text"]
    y = np.arange(N) % 2
    model = LinkSpreading(**PARAMETERS).fit(sparse.dok_array(X), y)
    wanted = LinkSpreading(**PARAMETERS).fit(X, y).scores("X", "X")
    assert relative_error(model.scores("X", "X"), wanted) <= 1e-8


def test_links_of_an_isolated_item_stay_with_it():
    W = np.zeros((N, N))
    W[1:, 1:] = 1.0  # item 0 has no neighbour
    links = Links.from_pairs([(0, 3, 1.0)], between=("text", "image"))
    model = LinkSpreading(**PARAMETERS | {"graph": {"text": W, "image": "knn"}})
    scores = model.fit(make_views(), links).scores("text", "image")
    assert scores[0].argmax() == 3
    np.testing.assert_allclose(scores[1:], 0, atol=1e-12)
    assert model.report_.graphs["text"].n_isolated == 1


def test_scores_of_new_rows_are_what_a_search_finds():
    views = make_views()
    model = LinkSpreading(**PARAMETERS).fit(views, make_links("labels"))
    rows = views["text"][:4] + 0.1
    block = model.scores("text", "image", rows=rows)
    ids, scores = model.search(rows, source="text", target="image", n_results=M)
    assert np.allclose(np.take_along_axis(block, ids, axis=1), scores)
