"""Columns that are no features are found, and those that are one are left alone."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import linkspread as ls
from linkspread.ground.errors import ColumnWarning
from linkspread.metrics import mean_average_precision
from linkspread.selection import calibrate, tune
from linkspread.studies.baselines import KernelSmoother
from linkspread.tables import Table
from linkspread.tables import validation as doubts
from linkspread.tables.validation import doubtful_columns

N = 300


@pytest.fixture
def embeddings(rng):
    """Return a table of unit vectors, as encoders write them."""
    X = rng.standard_normal((N, 16))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def table(X, **more):
    """Return a table with columns f0, f1, ... and others."""
    names = [f"f{j}" for j in range(X.shape[1])]
    return Table(np.column_stack([X, *more.values()]), (*names, *more))


INDEX, ID, LABEL, DATE = (
    "counts the rows",
    "looks like an id",
    "looks like a label",
    "looks like a date",
)
GENERATOR = np.random.default_rng(0)


@pytest.mark.parametrize(
    "name, values, reason",
    [
        ("Unnamed: 0", GENERATOR.permutation(N), INDEX),
        ("", np.arange(N) * 0.1, INDEX),
        ("__index_level_0__", np.arange(N), INDEX),
        ("n", np.arange(N), INDEX),
        ("row", np.arange(N) + 1.0, INDEX),
        ("customer_id", GENERATOR.integers(0, 40, N), ID),
        ("customerId", GENERATOR.integers(10**6, 10**7, N), ID),
        ("ID", GENERATOR.integers(0, 10**6, N), ID),
        ("order-key", GENERATOR.integers(0, 50, N), ID),
        ("sku", GENERATOR.permutation(N) + 5000, ID),
        ("sku", GENERATOR.permutation(10**8)[:N], ID),
        ("y", GENERATOR.integers(0, 10, N), LABEL),
        ("is_spam", GENERATOR.integers(0, 2, N), LABEL),
        ("year", GENERATOR.integers(1450, 1900, N), DATE),
        ("release_date", GENERATOR.integers(0, 300, N) + 20_240_101, DATE),
        ("createdAt", GENERATOR.random(N) * 1e7 + 1.6e9, DATE),
        ("built", GENERATOR.integers(1950, 2020, N), DATE),
        ("seen", GENERATOR.integers(1.5e9, 1.6e9, N), DATE),
        ("seen", GENERATOR.integers(1.5e12, 1.6e12, N), DATE),
    ],
)
def test_columns_that_are_no_features_are_named(embeddings, name, values, reason):
    found = doubtful_columns(table(embeddings, **{name: values}))
    assert list(found) == [name]
    assert found[name].startswith(reason)


def test_each_column_has_its_own_reasons(embeddings, rng):
    year, customer = rng.integers(1990, 2020, N), rng.permutation(N) * 10
    doubted = table(embeddings, year=year, customer_id=customer)
    found = doubtful_columns(doubted)
    share = np.var(customer) / np.var(doubted.values, axis=0).sum()
    assert found == {
        "year": DATE,
        "customer_id": f"{ID} and makes {100 * share:.0f} % of all squared distances",
    }


def test_the_share_is_that_of_the_squared_distances(rng):
    X = rng.standard_normal((50, 4)) * [1, 1, 9, 1] + 1e6
    squares = ((X[:, None] - X) ** 2).sum(axis=(0, 1))
    share = squares[2] / squares.sum()
    assert 0.9 < share < 0.99
    told = f"makes {100 * share:.0f} % of all squared distances"
    assert doubtful_columns(Table(X)) == {"column 2": told}
    assert doubtful_columns(Table(sparse.csr_array(X - 1e6))) == {"column 2": told}
    assert doubtful_columns(Table(X, tuple("abcd"))) == {"c": told}
    assert doubtful_columns(Table(X.astype("f4"), ("e",))) == {"column 2": told}
    assert doubtful_columns(Table(X * [1, 1, 0.5, 1])) == {}


TEXTS = ["the year and the key", "id of the date", "year year date", "a key to time",
         "nothing else here", "time of a year id"] * 20  # fmt: skip


def made(vectorizer, dense=True):
    """Return words as columns, called as the words are."""
    X = vectorizer.fit_transform(TEXTS)
    names = tuple(vectorizer.get_feature_names_out())
    return Table(X.toarray() if dense else X, names)


CONTROLS = {
    "embeddings": lambda rng: table(rng.standard_normal((N, 64))),
    "single precision": lambda rng: table(rng.random((N, 64)).astype("f4")),
    "TF-IDF": lambda rng: made(TfidfVectorizer()),
    "word counts": lambda rng: made(CountVectorizer()),
    "sparse word counts": lambda rng: made(CountVectorizer(), dense=False),
    "pixels": lambda rng: table(load_digits().data),
    "intensities": lambda rng: table(rng.integers(0, 2**16, (100, 40))),
    "grey values": lambda rng: table(rng.integers(1900, 2100, (N, 30))),
    "one-hot": lambda rng: table(np.eye(10)[rng.integers(0, 10, N)]),
    "one-hot beside fractions": lambda rng: table(
        np.hstack([np.eye(3)[rng.integers(0, 3, N)], rng.random((N, 5))])
    ),
    "ranks": lambda rng: table(rng.random((N, 8)).argsort(axis=0)),
    "measures": lambda rng: table(load_iris().data),
    "ratings": lambda rng: table(rng.integers(1, 6, (N, 12))),
    "binary": lambda rng: table(rng.integers(0, 2, (N, 12))),
    "one column": lambda rng: Table(np.arange(N)[:, None], ("id",)),
    "constant beside": lambda rng: table(np.c_[rng.random(N), np.ones(N)]),
    "scaled year": lambda rng: table(rng.random((N, 5)), year=rng.random(N)),
    "few rows": lambda rng: table(rng.random((5, 5)), n=np.arange(5)),
    "widths": lambda rng: table(rng.integers(200, 4000, (N, 2)), z=rng.random(N) * 999),
    "huge": lambda rng: Table(rng.random((N, 2)) * 1e308),
}


@pytest.mark.parametrize("control", CONTROLS)
def test_features_are_left_alone(control, rng):
    assert doubtful_columns(CONTROLS[control](rng)) == {}


def test_columns_that_somebody_named_are_not_doubted(embeddings):
    doubted = table(embeddings, n=np.arange(N))
    assert doubtful_columns(doubted)
    chosen = Table(doubted.values, doubted.columns, chosen=True)
    assert doubtful_columns(chosen) == {}


def test_of_many_rows_a_sample_is_looked_at(embeddings, monkeypatch):
    more = {"n": np.arange(N), "sku": np.random.default_rng(1).permutation(N)}
    whole = doubtful_columns(table(embeddings, **more))
    assert set(whole) == {"n", "sku"}
    monkeypatch.setattr(doubts, "MAX_ROWS", 100)
    assert set(doubtful_columns(table(embeddings, **more))) == {"n", "sku"}


def views_with(rng, **more):
    """Return two views of classes, the text with more columns, and their labels."""
    data = ls.datasets.make_views({"text": 120, "image": 80}, n_classes=3)
    text = pd.DataFrame(data.views()["text"]).add_prefix("f").assign(**more)
    return {"text": text, "image": data.views()["image"]}, data.labels


def test_a_fit_warns_once_and_says_what_to_write(rng):
    views, labels = views_with(rng, year=rng.integers(1990, 2020, 120))
    message = (
        "view 'text' may be misled by its columns: 'year' looks like a date. "
        "Leave it out with columns={'text': .'-year'.}, or name the columns to use"
    )
    with pytest.warns(ColumnWarning, match=message) as caught:
        ls.LinkSpreading(n_neighbors=5).fit(views, labels)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    for frames in (views, {**views, "text": pl.from_pandas(views["text"])}):
        with pytest.warns(ColumnWarning, match="year"):
            ls.LinkSpreading().fit(frames, labels)
    with pytest.warns(ColumnWarning, match="year"):
        KernelSmoother().fit(views, labels)
    # As errors, warnings would end these.
    ls.LinkSpreading(n_neighbors=5).fit(views, labels, columns={"text": ["-year"]})
    ls.LinkSpreading(n_neighbors=5).fit(
        views, labels, columns={"text": list(views["text"])}
    )


def test_what_is_left_out_no_longer_costs(rng):
    views, labels = views_with(
        rng, year=rng.integers(1990, 2020, 120), customer_id=rng.permutation(120)
    )
    known = {v: np.where(np.arange(len(y)) < 40, y, -1) for v, y in labels.items()}
    columns = {"text": ["-year", "-customer_id"]}
    model = ls.LinkSpreading(n_neighbors=5, alpha=0.6)

    def quality(**given):
        block = model.fit(views, known, **given).scores("text", "image")
        return mean_average_precision(block[40:, 40:], labels["text"][40:],
                                      labels["image"][40:])  # fmt: skip

    with pytest.warns(ColumnWarning, match="'year' .*'customer_id'"):
        misled = quality()
    assert quality(columns=columns) > misled + 0.2


def test_columns_of_arrays_are_named_by_position(rng):
    data = ls.datasets.make_views(60, n_classes=3, random_state=0)
    views = data.views()
    views["text"][:, 7] *= 100
    message = "column 7 makes 100 % of all squared distances. Leave it out, or scale it"
    with pytest.warns(ColumnWarning, match=message) as caught:
        tuning = tune(views, data.labels, {"n_neighbors": [5]}, n_splits=2)
    assert len(caught) == 1
    with pytest.warns(ColumnWarning, match="column 7"):
        model = tuning.model.fit(views, data.labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calibrate(model, views, source="text", target="image", n_splits=2)
        model.rebuild()


def test_a_verbose_fit_says_which_columns_it_uses(caplog, rng):
    views, labels = views_with(rng)
    caplog.set_level("INFO", logger="linkspread")
    model = ls.LinkSpreading(n_neighbors=5, verbose=True).fit(views, labels)
    assert "text: 32 features: f0 to f31" in caplog.messages
    assert "image: 32 features" in caplog.messages
    assert model.report_.columns["text"] == "32 features: f0 to f31"
