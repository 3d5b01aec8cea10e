"""Features, ids and labels of DataFrames: the same from every package."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import linkspread as ls
from linkspread.ground.errors import ViewError
from linkspread.tables import Table
from linkspread.tables.frames import read_frame
from linkspread.tables.validation import check_views

MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
X = np.arange(12.0).reshape(4, 3)
IDS = ["a", "b", "c", "d"]


@pytest.fixture(params=MAKERS)
def make(request):
    """Return what makes a DataFrame of a dict of columns."""
    return MAKERS[request.param]


def numbers(**more):
    """Return columns x0 to x2, and others."""
    return {f"x{j}": X[:, j] for j in range(3)} | more


def test_an_id_and_a_list_column_are_ids_and_features(make):
    read = read_frame(make({"id": IDS, "title": IDS, "embedding": X.tolist()}))
    np.testing.assert_array_equal(read.values, X)
    assert read.ids.tolist() == IDS
    assert read.columns == ("embedding",)
    assert str(read) == "3 features of the list column 'embedding'; left out: title"


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"e": list(X.astype("f4"))}),
        pd.DataFrame({"e": X.tolist()}).astype(pd.ArrowDtype(pa.list_(pa.float32()))),
        pl.DataFrame({"e": X.tolist()}, schema={"e": pl.List(pl.Float32)}),
        pl.DataFrame({"e": X.tolist()}, schema={"e": pl.Array(pl.Float32, 3)}),
        pa.table({"e": pa.array(X.tolist(), pa.list_(pa.float32(), 3))}),
        pa.table({"e": pa.array(X.tolist(), pa.large_list(pa.float32()))}),
    ],
)  # fmt: skip
def test_lists_of_every_kind_are_one_table(frame):
    read = read_frame(frame)
    assert read.values.dtype == np.float32
    np.testing.assert_array_equal(read.values, X)


def test_columns_of_numbers_are_features_and_others_are_left_out(make):
    whole = [1, 2, 3, 4]
    frame = make(numbers(title=IDS, count=whole, good=[True, False, True, True]))
    read = read_frame(frame)
    wanted = np.column_stack([X, whole, [1, 0, 1, 1]])
    np.testing.assert_array_equal(read.values, wanted)
    assert read.ids is None and read.left_out == ("title",)
    assert str(read) == "5 features: x0 to x2, count, good; left out: title"


def test_columns_are_taken_or_left_out_by_name(make):
    frame = make(numbers(id=IDS, **{"-x0": X[:, 0]}))
    taken = read_frame(frame, columns=["x2", "x0"])
    np.testing.assert_array_equal(taken.values, X[:, [2, 0]])
    assert taken.chosen and taken.left_out == ("x1", "-x0")
    assert read_frame(frame, columns=["-x1", "-x2"]).columns == ("x0", "-x0")
    # A column that is called so goes before the meaning of the minus.
    assert read_frame(frame, columns=["-x0"]).columns == ("-x0",)


def test_ids_may_be_features_only_where_they_are_named(make):
    frame = make(numbers(id=[7, 8, 9, 10]))
    assert read_frame(frame).ids.tolist() == [7, 8, 9, 10]
    assert read_frame(frame, read_ids=False).columns == ("x0", "x1", "x2")
    assert read_frame(frame, columns=["id", "x0"]).values[0].tolist() == [7, 0]


def test_labels_are_texts_and_no_features(make):
    read = read_frame(make(numbers(kind=["u", None, "v", ""])), label_column="kind")
    assert read.labels.tolist() == ["u", "", "v", ""]
    assert read.columns == ("x0", "x1", "x2") and read.left_out == ()


def test_numbers_that_pandas_keeps_as_objects_are_numbers():
    frame = pd.DataFrame({"x": pd.Series([1, 2.5], dtype=object), "word": ["1", "2"]})
    read = read_frame(frame)
    assert read.values.tolist() == [[1], [2.5]] and read.left_out == ("word",)


def test_a_title_that_is_a_number_is_a_title():
    titles = ["1984", "Animal Farm", "Emma", "Ulysses"]
    assert read_frame(pd.DataFrame(numbers(title=titles))).left_out == ("title",)


@pytest.mark.parametrize(
    "columns, options, message",
    [
        (numbers(x1=[1, 2, None, 4]), {}, "column 'x1' must hold finite.* in row 2 "),
        (numbers(y=["1", "2", "oh", "4"]), {}, "'y' must hold numbers throughout, got "
         "'oh' in row 2. Correct it, or leave the column out with '-y'"),
        (numbers(y=IDS), {"columns": ["y"]}, "'y' must hold numbers, got String such"),
        ({"e": X.tolist(), "y": [1, 2, 3, 4]}, {"columns": ["e", "y"]},
         "column 'e' must hold numbers, got .*Take it alone"),
        ({"e": [[1.0], [2.0, 3.0], [1.0]]}, {}, "same length, 1 here, got 2 values in "
         "row 1 and 0 more"),
        ({"e": [[1.0], None, [1.0]]}, {}, "got no list in row 1"),
        ({"e": [["u"], ["v"]]}, {}, "must hold numbers only, got .* such as"),
        ({"e": X.tolist(), "f": X.tolist()}, {}, "got 2 columns of lists. It has 'e' .*"
         "name the features in `columns`"),
        (numbers(id=["a", None, "b", "c"]), {}, "must have an id in each row, .* in "
         "row 1"),
        (numbers(id=["a", "", "b", "c"]), {}, "an id in each row.* got '' in row 1"),
        (numbers(id=[1.5, 2.5, 3.5, 4.5]), {}, "a text or an integer, got 1.5 in row"),
        (numbers(), {"id_column": "sku"}, "must have the column 'sku' for the ids"),
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence(make, columns, options, message):
    with pytest.raises(ViewError, match=message):
        read_frame(make(columns), **options)


def test_something_among_objects_is_named_by_row():
    frame = pd.DataFrame({"x": pd.Series([1, "oh"], dtype=object)})
    with pytest.raises(
        ViewError, match="'x' must hold numbers throughout, got 'oh' in"
    ):
        read_frame(frame)


@pytest.mark.parametrize(
    "columns, text",
    [
        (None, "5 features"),
        (["a", "b", "c", "d", "e"], "5 features: a, b, c, d, e"),
        (["f8", "f9", "f10", "f11", "g1"], "5 features: f8 to f11, g1"),
        (["f1", "f2", "f4", "f5", "a b"], "5 features: f1, f2, f4, f5, 'a b'"),
        (["embedding"], "5 features of the list column 'embedding'"),
    ],
)  # fmt: skip
def test_columns_are_described(columns, text):
    assert str(Table(np.zeros((2, 5)), columns and tuple(columns))) == text


def test_only_some_of_many_columns_are_named():
    names = tuple(f"{letter}x" for letter in "abcdefghij")
    text = str(Table(np.zeros((2, 10)), names))
    assert text == "10 features: ax, bx, cx, dx, ex, fx and 4 more"


def test_ids_come_from_the_argument_then_the_column_then_the_index():
    frame = pd.DataFrame(numbers(id=IDS), index=[9, 8, 7, 6])
    given = {"b": ["u", "v", "w", "x"]}
    views = {"a": frame, "b": frame, "c": frame.drop(columns="id")}
    ids = check_views(views, given).ids
    assert {view: own.tolist() for view, own in ids.items()} == given | {
        "a": IDS,
        "c": [9, 8, 7, 6],
    }
    repeated = frame.assign(id="same")  # is not read where ids are given
    assert check_views({"b": repeated}, given).ids["b"].tolist() == given["b"]


@pytest.fixture(scope="module")
def collection():
    """Return arrays of two views, their ids and judged pairs."""
    data = ls.datasets.make_views({"text": 60, "image": 40}, n_classes=3)
    ids = {v: [f"{v[0]}{i}" for i in range(len(T))] for v, T in data.views().items()}
    same = data.labels["text"][:, None] == data.labels["image"]
    pairs = [(f"t{i}", f"i{7 * i % 40}", 1.0 if same[i, 7 * i % 40] else -1.0)
             for i in range(40)]  # fmt: skip
    views = {view: T.astype(np.float64) for view, T in data.views().items()}
    return views, ids, ls.Links.from_pairs(pairs, between=("text", "image"))


def test_a_fit_takes_the_parquet_of_the_tutorial(make, collection):
    views, ids, links = collection
    frames = {v: make({"id": ids[v], "embedding": T.tolist(), "title": ids[v]})
              for v, T in views.items()}  # fmt: skip
    model = ls.LinkSpreading(n_neighbors=5).fit(frames, links)
    expected = ls.LinkSpreading(n_neighbors=5).fit(views, links, ids=ids)
    scores = expected.scores("text", "image")
    np.testing.assert_array_equal(model.scores("text", "image"), scores)
    told = "32 features of the list column 'embedding'; left out: title"
    assert model.report_.columns == {"text": told, "image": told}
    assert f"text: {told}" in str(model.report_)
    found = model.search(frames["text"], source="text", target="image")[0]
    rows = expected.search(views["text"], source="text", target="image")[0]
    np.testing.assert_array_equal(found, rows)
    assert model.search("t3", source="text", target="image")[0][0].startswith("i")


def test_a_model_takes_its_columns_of_any_frame(make, collection, tmp_path, rng):
    views, ids, links = collection
    text = {f"f{j}": views["text"][:, j] for j in range(32)}
    more = {"year": rng.integers(1990, 2020, 60), "customer_id": rng.permutation(60)}
    frames = {"text": make(text | more), "image": views["image"]}
    columns = {"text": ["-year", "-customer_id"]}
    model = ls.LinkSpreading(n_neighbors=5)
    model.fit(frames, links, ids=ids, columns=columns)
    expected = ls.LinkSpreading(n_neighbors=5).fit(views, links, ids=ids)
    ask = {"source": "text", "target": "image"}
    scores = expected.scores("text", "image")
    np.testing.assert_array_equal(model.scores("text", "image"), scores)
    model.save(tmp_path / "model")
    loaded = ls.load(tmp_path / "model")
    assert loaded.report_.columns == model.report_.columns
    turned = make(dict(reversed((text | more).items())))
    for own in (model, loaded):
        for rows in (frames["text"], turned, make(text), views["text"]):
            vectors = own.embed(rows, **ask)
            np.testing.assert_array_equal(vectors, expected.embed(views["text"], **ask))
        one = make({name: own[:1] for name, own in (text | more).items()})
        why = own.explain(one, "i3", **ask)
        assert why.score == expected.explain(views["text"][:1], "i3", **ask).score
        with pytest.raises(
            ViewError, match="view 'text' must have the col.*lacks 'f0'"
        ):
            own.search(make({"year": more["year"]}), **ask)
    new = make({name: own[:2] + 0.5 for name, own in (text | more).items()})
    loaded.add_items("text", new, ids=["n1", "n2"]).rebuild()
    assert loaded.scores("text", "image").shape == (62, 40)
    assert loaded.search(new, **ask)[0].shape == (2, 10)
    assert loaded.report_.columns["text"] == "32 features: f0 to f31"
