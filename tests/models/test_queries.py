"""Queries and blocks: ids, positions, masks, and feature rows of new items."""

from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from linkspread import LinkSpreading
from linkspread.graphs import NeighborGraph, normalize, normalize_rows
from linkspread.ground.errors import LinkspreadError, UnknownItemError, ViewError
from linkspread.links import as_dense
from linkspread.models.vector_search import read_queries
from reference import extended_scores, relative_error
from small_views import (
    PARAMETERS,
    SIZES,
    M,
    N,
    make_links,
    make_views,
)

ALPHA = {"text": 0.3, "image": 0.5}
ASK = {"source": "text", "target": "image", "n_results": 6}


@cache
def fitted(kind="labels"):
    """Return a model that tests may ask but not change."""
    model = LinkSpreading(**PARAMETERS | {"alpha": ALPHA})
    return model.fit(make_views(), make_links(kind))


@cache
def named():
    """Return a model whose items have ids: strings and integers."""
    ids = {"text": [f"t{i}" for i in range(N)], "image": 100 + np.arange(M)[::-1]}
    return LinkSpreading(**PARAMETERS).fit(make_views(), make_links("labels"), ids=ids)


def unseen_oracle(kind, rows, source, target):
    """Return the scores of new items, each in a graph extended by it alone."""
    views, links = make_views(), make_links(kind)
    graph = NeighborGraph(n_neighbors=4)
    S_target = normalize(graph.fit(views[target]).affinity_)
    W = graph.fit(views[source]).affinity_
    s = normalize_rows(graph.extend(rows), W.sum(axis=1)).toarray()
    Z = as_dense(links.resolve(SIZES).between(source, target))
    alpha = (ALPHA[source], ALPHA[target])
    # 400 rounds of a contraction by beta^2 = 0.81 leave less than 1e-30.
    return np.array(
        [extended_scores(normalize(W), row, Z, S_target, alpha, 0.9, 400) for row in s]
    )


def all_scores(model, queries, source, target):
    """Return the scores of queries in the order of the target's items."""
    n_items = SIZES[target]
    ids, scores = model.search(queries, source=source, target=target, n_results=n_items)
    return np.take_along_axis(scores, np.argsort(ids, axis=-1), axis=-1)


@pytest.mark.parametrize("kind", ["labels", "soft labels", "many pairs", "mixture"])
@pytest.mark.parametrize("source, target", [("text", "image"), ("image", "text")])
def test_new_items_score_as_in_the_extended_graph(kind, source, target):
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((3, make_views()[source].shape[1]))
    wanted = unseen_oracle(kind, rows, source, target)
    got = all_scores(fitted(kind), rows, source, target)
    assert relative_error(got, wanted) <= 1e-8


@pytest.mark.parametrize(
    "make",
    [
        sparse.csr_array,
        sparse.coo_matrix,
        np.ndarray.tolist,
        pd.DataFrame,
        pl.DataFrame,
        lambda rows: pa.table(dict(zip("abc", rows.T, strict=True))),
    ],
    ids=["csr", "coo", "lists", "pandas", "polars", "pyarrow"],
)
def test_any_kind_of_new_rows_gives_the_same_results(make):
    rows = np.random.default_rng(7).standard_normal((4, 3))
    ids, scores = fitted().search(rows, **ASK)
    assert ids.shape == scores.shape == (4, 6)
    other_ids, other_scores = fitted().search(make(rows), **ASK)
    np.testing.assert_array_equal(other_ids, ids)
    np.testing.assert_allclose(other_scores, scores, rtol=1e-9, atol=1e-12)
    for i, row in enumerate(rows):  # batch = one by one, and one row is flat
        one_ids, one_scores = fitted().search(row, **ASK)
        np.testing.assert_array_equal(one_ids, ids[i])
        np.testing.assert_allclose(one_scores, scores[i], rtol=1e-9, atol=1e-12)


def test_whole_numbers_in_two_dimensions_are_features():
    whole, real = (fitted().search([[1, 0, 2]], **ASK), fitted().search(
        [[1.0, 0.0, 2.0]], **ASK))  # fmt: skip
    np.testing.assert_array_equal(whole[0], real[0])


def test_a_new_item_far_from_all_others_still_gets_finite_scores():
    ids, scores = fitted().search(np.full(3, 1e6), **ASK)
    assert np.all(np.isfinite(scores))
    assert np.any(scores != 0)


def test_new_items_within_their_own_view_may_find_every_item():
    X = make_views()["text"]
    ids, _ = fitted().search(X[:3] + 1e-9, source="text", target="text", n_results=N)
    np.testing.assert_array_equal(np.sort(ids, axis=1), [np.arange(N)] * 3)


@pytest.mark.parametrize(
    "queries, message",
    [
        (np.zeros((2, 5)), "view 'text' must have 3 columns as in the fit, got 5"),
        (np.zeros(4), "view 'text' must have 3 columns as in the fit, got 4"),
        (np.zeros((0, 3)), r"view 'text' must have rows.*0 sample\(s\)"),
        ([[0.0, np.nan, 1.0]], "view 'text' must be finite.*row 0"),
        (np.zeros((1, 3, 2)), r"`queries` must be ids.*float64 of shape \(1, 3, 2\)"),
        (2.5, r"`queries` must be ids.*float64 of shape \(\)"),
        (True, "`queries` must be ids of fitted items or rows of features, got bool"),
        ([[1.0, 2.0], [3.0]], "`queries` must be ids.*rows of different lengths"),
        ([["a", "b", "c"]], "view 'text' must hold numbers, got <U1"),
    ],
)
def test_queries_that_cannot_be_read_are_one_sentence(queries, message):
    with pytest.raises(LinkspreadError, match=message):
        fitted().search(queries, **ASK)


def test_without_smoothing_new_items_are_refused():
    alpha = {"text": 0.0, "image": 0.3}
    model = LinkSpreading(**PARAMETERS | {"alpha": alpha})
    model.fit(make_views(), make_links("labels"))
    message = "`alpha` of view 'text' must be above 0"
    with pytest.raises(LinkspreadError, match=message):
        model.search(np.zeros((1, 3)), **ASK)
    assert model.search(0, **ASK)[0].shape == (6,)
    found, _ = model.search(np.zeros((1, 4)), source="image", target="text")
    assert found.shape == (1, 10)


def test_columns_of_new_frames_must_be_those_of_the_fit():
    views = make_views()
    frame = pd.DataFrame(views["text"], columns=["width", "height", "depth"])
    model = LinkSpreading(**PARAMETERS)
    model.fit(views | {"text": frame}, make_links("labels"))
    ids, _ = model.search(frame[:2], **ASK)
    np.testing.assert_array_equal(ids, model.search(views["text"][:2], **ASK)[0])
    swapped = frame[["width", "depth", "height"]]
    for other in (swapped, pl.from_pandas(swapped)):
        np.testing.assert_array_equal(model.search(other[:2], **ASK)[0], ids)
    message = "view 'text' must have the columns of the fit, but lacks 'depth', got"
    for other in (frame[["width", "height"]], frame.rename(columns={"depth": "d"})):
        with pytest.raises(ViewError, match=message):
            model.search(other, **ASK)


@pytest.mark.parametrize(
    "ids",
    [
        np.array(["t3", "t39"]),
        ["t3", "t39"],
        np.array(["t3", "t39"], dtype=object),
        np.array(["t3", "t39"], dtype=np.dtypes.StringDType()),
        pd.Series(["t3", "t39"]),
        pl.Series(["t3", "t39"]),
        pa.array(["t3", "t39"]),
    ],
    ids=lambda ids: f"{type(ids).__module__}.{getattr(ids, 'dtype', '')}",
)
def test_ids_of_any_kind_find_the_same(ids):
    found, scores = named().search(ids, **ASK)
    assert found.shape == (2, 6)
    block = named().scores("text", "image", rows=slice(3, 40, 36))
    np.testing.assert_array_equal(100 + M - 1 - found, np.argsort(-block)[:, :6])
    np.testing.assert_allclose(scores, -np.sort(-block)[:, :6])
    one, _ = named().search("t3", **ASK)
    np.testing.assert_array_equal(one, found[0])


def test_integers_that_are_ids_are_not_positions():
    found, _ = named().search([100], source="image", target="text", n_results=3)
    last = named().scores("image", "text")[M - 1]
    assert found[0].tolist() == [f"t{i}" for i in np.argsort(-last)[:3]]
    with pytest.raises(UnknownItemError, match="not have 0"):
        named().search(0, source="image", target="text")


def test_unknown_queries_list_the_first_few():
    message = (
        "`queries` must name items of view 'text', which does not have "
        "'a', 'b', 'c' and 2 more, 5 of 6 in all. Its 40 ids are 't0', 't1'"
    )
    with pytest.raises(UnknownItemError, match=message):
        named().search(["e", "t1", "d", "c", "b", "a"], **ASK)
    for unknown in (N, -1, "t0"):
        with pytest.raises(UnknownItemError, match=f"not have {unknown!r}"):
            fitted().search(unknown, **ASK)


MASK = np.arange(N) % 3 == 1


@pytest.mark.parametrize(
    "rows, positions",
    [
        (None, np.arange(N)),
        (["t5", "t0", "t5"], [5, 0, 5]),
        ([5, 0, 5], [5, 0, 5]),
        (np.array([7], dtype=np.uint8), [7]),
        (range(3), [0, 1, 2]),
        (MASK, np.flatnonzero(MASK)),
        (MASK.tolist(), np.flatnonzero(MASK)),
        (slice(30, None, 2), [30, 32, 34, 36, 38]),
        (slice(-2, None), [38, 39]),
        ([], []),
    ],
)
def test_blocks_by_ids_positions_masks_and_slices(rows, positions):
    model, positions = named(), np.array(positions, dtype=int)
    full = model.scores("text", "image")
    got = model.scores("text", "image", rows=rows)
    np.testing.assert_allclose(got, full[positions], atol=1e-14)
    got = model.scores("image", "text", cols=rows, rows=[101, 129])
    np.testing.assert_allclose(got, full.T[[28, 0]][:, positions], atol=1e-14)


@pytest.mark.parametrize(
    "rows, message",
    [
        (["t40"], "`rows` must name items of view 'text', which does not have 't40'"),
        ([40], "`rows` must be ids of view 'text' or positions from 0 to 39, got 40"),
        (
            [3, -1],
            "`rows` must be ids of view 'text' or positions from 0 to 39, got -1",
        ),
        (MASK[:-1], r"`rows` must be a flat list.*mask of its 40 items.*shape \(39,\)"),
        (3, r"`rows` must be a flat list.*int64 of shape \(\). Write \[item\]"),
        ([["t1"]], r"`rows` must be a flat list.*shape \(1, 1\)"),
        ([0.5], "ids of view 'text' must be integers or strings, got 0.5"),
    ],
)
def test_rows_that_do_not_exist_are_one_sentence(rows, message):
    with pytest.raises(LinkspreadError, match=message):
        named().scores("text", "image", rows=rows)


def test_columns_that_do_not_exist_say_which_argument():
    with pytest.raises(
        UnknownItemError, match="`cols` must name items of view 'image'"
    ):
        named().scores("text", "image", cols=[5])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_of_every_library_give_the_scores_of_arrays(library):
    views = make_views()
    make = {
        "pandas": pd.DataFrame,
        "polars": lambda columns: pl.DataFrame(columns),
        "pyarrow": lambda columns: pa.table(columns),
    }[library]
    frames = {
        v: make({f"c{i}": X[:, i] for i in range(X.shape[1])}) for v, X in views.items()
    }
    model = LinkSpreading(**PARAMETERS).fit(frames, make_links("labels"))
    wanted = LinkSpreading(**PARAMETERS).fit(views, make_links("labels"))
    np.testing.assert_allclose(
        model.scores("text", "image"), wanted.scores("text", "image"), atol=1e-12
    )
    assert model.search(3, **ASK)[0].tolist() == wanted.search(3, **ASK)[0].tolist()


def test_the_index_of_a_pandas_frame_names_the_items_unless_ids_do():
    views = make_views()
    frame = pd.DataFrame(views["image"], index=[f"i{i}" for i in range(M)])
    tables = views | {"image": frame}
    model = LinkSpreading(**PARAMETERS).fit(tables, make_links("labels"))
    found, _ = model.search(3, **ASK)
    assert found.tolist() == [f"i{i}" for i in fitted_positions(model, 3)]
    model.fit(tables, make_links("labels"), ids={"image": np.arange(M) + 500})
    assert model.search(3, **ASK)[0].min() >= 500
    shuffled = pd.DataFrame(views["image"], index=np.arange(M)[::-1])
    model.fit(views | {"image": shuffled}, make_links("labels"))
    wanted = [M - 1 - i for i in fitted_positions(model, 3)]
    assert model.search(3, **ASK)[0].tolist() == wanted


def fitted_positions(model, query):
    """Return the positions of the six best images for a text."""
    return np.argsort(-model.scores("text", "image", rows=[query])[0])[:6]


@pytest.mark.parametrize(
    "queries, is_ids, single",
    [
        (7, True, True),
        ("t7", True, True),
        (np.int64(7), True, True),
        ([7, 8], True, False),
        ((), True, False),
        ([0.5, 0.1], False, True),
        ([[0.5, 0.1]], False, False),
        (sparse.csr_array([[0.5]]), False, False),
        (pd.DataFrame({"a": [1]}), False, False),
        (pd.Series(["t1"]), True, False),
    ],
)
def test_kinds_of_queries(queries, is_ids, single):
    got = read_queries(queries)
    assert (got.ids is not None, got.rows is not None) == (is_ids, not is_ids)
    assert got.single == single
