"""Tables of PostgreSQL with pgvector: a server of its own tells what they hold."""

import json
import logging
import sys
import traceback
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from given_vectors import BETWEEN, GivenVectors, make_given
from linkspread import Links, LinkSpreading, datasets
from linkspread.exchange import postgres, write_postgres
from linkspread.exchange.postgres import BLOCK_ROWS
from linkspread.ground.errors import LinkspreadError, MissingDependencyError
from postgres_server import running_server

psycopg = pytest.importorskip("psycopg")

NEAREST = """
SELECT id, -(embedding <#> %(query)s::vector) FROM images
ORDER BY embedding <#> %(query)s::vector LIMIT 10
"""
SECRET = "hunter/2@horse"


@pytest.fixture(scope="module")
def server():
    with running_server() as url:
        yield url


@pytest.fixture
def url(server):
    """Yield the URL of a database that is empty but for the extension."""
    execute(server, "CREATE DATABASE test")
    address = server.replace("/postgres?", "/test?")
    execute(address, "CREATE EXTENSION vector")
    yield address
    execute(server, "DROP DATABASE test WITH (FORCE)")


def execute(url, statement, values=None):
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement, values)
        return cursor.fetchall() if cursor.description else None


def tables(url):
    listed = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
    return [name for (name,) in execute(url, listed)]


def stored(url, table="images"):
    """Return what a table holds, by id."""
    rows = execute(url, f"SELECT id, embedding::real[] FROM {table}")
    return {name: vector for name, vector in rows}


@cache
def make_model(kind, n_items=2000):
    """Return a model fitted to some labels, or to some judged pairs."""
    rng = np.random.default_rng(0)
    sizes = {"text": 300, "image": n_items}
    data = datasets.make_views(sizes, n_classes=8, random_state=0)
    labels = {
        v: np.where(rng.random(len(y)) < 0.1, y, -1) for v, y in data.labels.items()
    }
    links = Links.from_labels(labels)
    if kind == "pairs":
        i, j = (rng.integers(0, size, 500) for size in sizes.values())
        same = data.labels["text"][i] == data.labels["image"][j]
        pairs = np.column_stack([i, j, np.where(same, 1.0, -1.0)])
        links = Links.from_pairs(pairs, between=("text", "image"))
    return LinkSpreading(n_neighbors=10, rank=32).fit(data.views(), links)


def ask(url, vectors, settings=()):
    """Return ids and scores of the nearest images, from the database."""
    with psycopg.connect(url) as connection:
        for setting in settings:
            connection.execute(f"SET {setting}")
        rows = [
            connection.execute(NEAREST, {"query": str(vector.tolist())}).fetchall()
            for vector in vectors
        ]
    table = np.array(rows)
    return table[..., 0].astype(int), table[..., 1]


@pytest.mark.parametrize("kind", ["labels", "pairs"])
def test_an_exact_scan_gives_the_top_ten_of_the_model(kind, url):
    model = make_model(kind)
    assert write_postgres(model, url, "images", **BETWEEN) == 2000
    searching, _ = model.embeddings("text", "image")
    ids, scores = ask(url, searching[:100])
    wanted_ids, wanted = model.search(range(100), **BETWEEN, n_results=11)
    # float32, and sums in another order.
    tolerance = 1e-5 * np.abs(wanted).max()
    assert_allclose(scores, wanted[:, :10], atol=tolerance)
    gaps = -np.diff(wanted, axis=1)
    before = np.pad(gaps, [(0, 0), (1, 0)], constant_values=np.inf)[:, :10]
    clear = (gaps > 2 * tolerance) & (before > 2 * tolerance)
    assert clear.mean() > 0.5
    assert_array_equal(ids[clear], wanted_ids[:, :10][clear])


@pytest.mark.parametrize("kind", ["labels", "pairs"])
def test_the_index_finds_most_of_the_top_ten(kind, url):
    model = make_model(kind)
    write_postgres(model, url, "images", **BETWEEN, index="hnsw")
    plan = execute(url, "EXPLAIN " + NEAREST, {"query": str([0.0] * width(model))})
    assert "Index Scan using images_embedding_idx" in str(plan)
    searching, _ = model.embeddings("text", "image")
    ids, scores = ask(url, searching[:100], ["hnsw.ef_search = 200"])
    wanted, best = model.search(range(100), **BETWEEN)
    shared = [len(np.intersect1d(a, b)) for a, b in zip(ids, wanted, strict=True)]
    print(f"recall of the index for {kind}: {np.mean(shared) / 10:.3f}")
    assert np.mean(shared) / 10 >= 0.95
    # An index for another distance would order otherwise.
    assert (np.diff(scores, axis=1) <= 1e-6 * np.abs(best).max()).all()


def width(model):
    return model.embeddings("text", "image")[1].shape[1]


@pytest.mark.parametrize(
    "names",
    [
        [-(2**63), 7, 2**63 - 1],
        ["", "a\tb\nc\\N", "d'\"e", "\u00e9\U0001f600", "NULL", "\\."],
        [f"image {i}" for i in range(BLOCK_ROWS + 5)],
    ],
    ids=["numbers", "odd texts", "more than a block"],
)
def test_rows_come_back_bit_for_bit(names, url):
    model = make_given(len(names), names=names, dtype="float32")
    write_postgres(model, url, "images", **BETWEEN)
    rows = stored(url)
    assert set(rows) == set(names)
    assert_array_equal(np.array([rows[n] for n in names], np.float32), model.found)


def test_the_role_chooses_the_vectors_and_the_comment_tells_it(url):
    model = make_given(4, n_queries=3)
    write_postgres(model, url, "texts", **BETWEEN, role="searching")
    assert_allclose(list(stored(url, "texts").values()), model.searching, rtol=1e-6)
    [[comment]] = execute(url, "SELECT obj_description('texts'::regclass)")
    meaning = json.loads(comment)
    assert (meaning["view"], meaning["role"]) == ("text", "searching")
    assert meaning["scores"].endswith("not cosines")


@pytest.mark.parametrize(
    "table", ['Bobby"; DROP TABLE kept; --', "Images", "sélect", "own.images", "%s"]
)
def test_names_are_quoted(table, url):
    execute(url, "CREATE TABLE kept (x int)")
    execute(url, "CREATE SCHEMA own")
    for overwrite in (False, True):
        write_postgres(make_given(3), url, table, **BETWEEN, overwrite=overwrite)
        quoted = ".".join('"' + x.replace('"', '""') + '"' for x in table.split("."))
        assert execute(url, f"SELECT count(*) FROM {quoted}") == [(3,)]
    assert "kept" in tables(url)


def test_a_table_is_replaced_only_if_told(url):
    write_postgres(make_given(3), url, "images", **BETWEEN)
    with pytest.raises(LinkspreadError, match="`table` must be new .* existing images"):
        write_postgres(make_given(5), url, "images", **BETWEEN)
    assert len(stored(url)) == 3
    for n_items in (5, 6):
        model = make_given(n_items)
        write_postgres(model, url, "images", **BETWEEN, index="hnsw", overwrite=True)
        assert len(stored(url)) == n_items
    assert tables(url) == ["images"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_failure_half_way_leaves_the_database_as_it_was(overwrite, url, monkeypatch):
    copy_blocks = postgres.copy_blocks

    def fail(ids, vectors):
        yield next(copy_blocks(ids, vectors))
        raise KeyboardInterrupt

    if overwrite:
        write_postgres(make_given(3), url, "images", **BETWEEN)
    monkeypatch.setattr(postgres, "copy_blocks", fail)
    with pytest.raises(KeyboardInterrupt):
        write_postgres(make_given(5), url, "images", **BETWEEN, overwrite=overwrite)
    assert tables(url) == ["images"] * overwrite
    if overwrite:
        assert len(stored(url)) == 3


def test_readers_are_not_locked_out_while_a_table_is_replaced(url, monkeypatch):
    write_postgres(make_given(3), url, "images", **BETWEEN)
    seen, copy_blocks = [], postgres.copy_blocks

    def read_meanwhile(ids, vectors):
        yield from copy_blocks(ids, vectors)
        query = "SET lock_timeout = '1s'; SELECT count(*) FROM images"
        with psycopg.connect(url) as connection:
            cursor = connection.execute(query)
            cursor.nextset()
            seen.append(cursor.fetchone()[0])

    monkeypatch.setattr(postgres, "copy_blocks", read_meanwhile)
    write_postgres(make_given(5), url, "images", **BETWEEN, overwrite=True)
    assert seen == [3]
    assert len(stored(url)) == 5


def test_a_database_without_the_extension_is_told(url):
    execute(url, "DROP EXTENSION vector")
    with pytest.raises(LinkspreadError, match="run CREATE EXTENSION"):
        write_postgres(make_given(3), url, "images", **BETWEEN)


def test_the_extension_may_be_in_a_schema_of_its_own(url):
    execute(url, 'CREATE SCHEMA "Ext"')
    execute(url, 'ALTER EXTENSION vector SET SCHEMA "Ext"')
    model = make_given(3)
    write_postgres(model, url, "images", **BETWEEN, index="hnsw")
    assert tables(url) == ["images"]


@pytest.mark.parametrize(
    ("n_dimensions", "index", "message"),
    [
        (2001, "hnsw", "at most 2,000 .*index='hnsw'.* got 2,001.* index='exact'"),
        (16001, "exact", "at most 16,000 .* got 16,001. Fit with a smaller `rank`"),
    ],
)
def test_vectors_that_are_too_long_are_told(n_dimensions, index, message, url):
    model = make_given(2, width=n_dimensions)
    with pytest.raises(LinkspreadError, match=message):
        write_postgres(model, url, "images", **BETWEEN, index=index)
    assert tables(url) == []


@pytest.mark.parametrize("n_dimensions, index", [(2000, "hnsw"), (16000, "exact")])
def test_vectors_of_the_greatest_length_are_stored(n_dimensions, index, url):
    model = make_given(2, width=n_dimensions, dtype="float32")
    write_postgres(model, url, "images", **BETWEEN, index=index)
    assert_array_equal(np.array(list(stored(url).values()), np.float32), model.found)


def test_what_the_server_refuses_is_told_and_nothing_is_changed(url):
    with pytest.raises(LinkspreadError, match='schema "no" does not exist'):
        write_postgres(make_given(2), url, "no.images", **BETWEEN)
    execute(url, "CREATE VIEW images AS SELECT 1")
    with pytest.raises(LinkspreadError, match='"images" is not a table'):
        write_postgres(make_given(2), url, "images", **BETWEEN, overwrite=True)
    with pytest.raises(LinkspreadError, match="invalid byte sequence"):
        write_postgres(make_given(2, names=["a\0b", "c"]), url, "nuls", **BETWEEN)
    assert tables(url) == []


def test_a_server_that_goes_away_is_told(url, monkeypatch):
    def end_all(ids, vectors):
        execute(
            url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = 'test' AND pid <> pg_backend_pid()",
        )
        yield b"PGCOPY"

    monkeypatch.setattr(postgres, "copy_blocks", end_all)
    with pytest.raises(LinkspreadError, match="must accept the export"):
        write_postgres(make_given(2), url, "images", **BETWEEN)
    assert tables(url) == []


@pytest.mark.parametrize("table", ["", ".", "a.b.c", "a.", "é" * 32, "nul\0", None, 3])
def test_names_that_cannot_be_are_told(table, url):
    with pytest.raises(
        LinkspreadError, match="`table` must be 'name' or 'schema.name'"
    ):
        write_postgres(make_given(2), url, table, **BETWEEN)


def test_wrong_options_are_told_before_connecting():
    with pytest.raises(LinkspreadError, match="`index` must be one of 'exact', 'hnsw'"):
        write_postgres(make_given(2), "no url", "images", **BETWEEN, index="ivfflat")
    infinite = GivenVectors(np.ones((1, 1)), np.array([[np.inf]]))
    with pytest.raises(LinkspreadError, match="finite in float32"):
        write_postgres(infinite, "no url", "images", **BETWEEN)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@localhost/db",
        f"postgresql+psycopg://me:{SECRET}@localhost/db",
        f"me:{SECRET}@localhost",
        f"host=localhost password='{SECRET}",
        f"host=localhost password={SECRET} port=1",
        "postgresql://me:hunter@2@horse/db",
        "postgresql://me:hunter%2F2%40horse@localhost:1/db",
        f"host=/tmp/{SECRET} port=1",
        "postgresql://me:hunter\0horse@localhost/db",
        None,
    ],
)
def test_a_password_is_never_shown(url, caplog):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(LinkspreadError, match="`url` must lead to a PostgreSQL") as e:
        write_postgres(make_given(2), url, "images", **BETWEEN)
    shown = "".join(traceback.format_exception(e.value)) + caplog.text
    assert "hunter" not in shown
    assert "horse" not in shown
    assert e.value.__cause__ is e.value.__context__ is None


def test_a_wrong_password_is_told_but_not_shown(url):
    lock_up(url, "local all locked scram-sha-256", "local all all trust")
    execute(url, f"CREATE ROLE locked LOGIN PASSWORD '{SECRET}'")
    locked = url.replace("postgres@", "locked:hunter@")
    with pytest.raises(LinkspreadError, match="rejects the user or the password") as e:
        write_postgres(make_given(2), locked, "images", **BETWEEN)
    assert "hunter" not in "".join(traceback.format_exception(e.value))
    with pytest.raises(LinkspreadError, match="asks for a password"):
        write_postgres(
            make_given(2), url.replace("postgres@", "locked@"), "images", **BETWEEN
        )
    lock_up(url, "local all all trust")
    execute(url, "DROP ROLE locked")


def lock_up(url, *rules):
    """Write the rules of who may connect, and let the server read them."""
    [[path]] = execute(url, "SHOW hba_file")
    lines = ", ".join(f"('{rule}')" for rule in rules)
    execute(url, f"COPY (VALUES {lines}) TO '{path}'")
    execute(url, "SELECT pg_reload_conf()")
    execute(url, "SELECT pg_sleep(0.3)")


def test_why_there_is_no_connection_is_told(url):
    with pytest.raises(LinkspreadError, match="does not: no server answers there"):
        write_postgres(make_given(2), url + "&port=1", "images", **BETWEEN)
    with pytest.raises(LinkspreadError, match="no such database or user"):
        absent = url.replace("/test?", "/absent?")
        write_postgres(make_given(2), absent, "images", **BETWEEN)
    with pytest.raises(LinkspreadError, match="it is not a PostgreSQL URL"):
        write_postgres(make_given(2), "sqlite:///file", "images", **BETWEEN)


def test_a_missing_driver_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDependencyError, match=r"linkspread\[postgres\]"):
        write_postgres(make_given(2), "postgresql:///", "images", **BETWEEN)
