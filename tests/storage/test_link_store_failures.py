"""What a link store says when it cannot be opened, read or written."""

import logging
import os
import shutil
import sqlite3
import sys
import tempfile
import threading
import traceback
from contextlib import contextmanager
from pathlib import Path

import pytest

from link_store_places import empty_database, execute, judge
from linkspread.ground.errors import LinkspreadError, MissingDependencyError, StoreError
from linkspread.storage import LinkStore, database
from linkspread.storage import link_store as tables
from linkspread.storage.link_store import append_judgements
from postgres_server import stopped

sqlalchemy = pytest.importorskip("sqlalchemy")

SECRET = "hunter/2@horse"
QUOTED = "hunter%2F2%40horse"


def run_sql(place, *statements):
    """Execute statements beside the store."""
    if "://" in str(place):
        for statement in statements:
            execute(place, statement)
        return
    connection = sqlite3.connect(place)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@contextmanager
def as_ordinary_user():
    """Take the rights of an ordinary user: to root, nothing is read-only."""
    is_root = os.name == "posix" and os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@pytest.mark.skipif(os.name != "posix", reason="needs rights of POSIX")
@pytest.mark.parametrize("exists", [False, True])
def test_a_folder_that_can_only_be_read(exists):
    folder = Path(tempfile.mkdtemp())
    try:
        if exists:
            LinkStore.open(folder / "a.db").close()
            (folder / "a.db").chmod(0o444)
        folder.chmod(0o555)
        with as_ordinary_user(), pytest.raises(StoreError) as caught:
            LinkStore.open(folder / "a.db")
        assert "that you may write to." in str(caught.value)
        assert "is read-only" in str(caught.value) or not exists
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_file_that_is_no_database(tmp_path):
    path = tmp_path / "a.db"
    path.write_text("left,right\n" * 1000)
    with pytest.raises(StoreError, match=r"a\.db is not: it is not an SQLite file"):
        LinkStore.open(path)
    assert path.read_text() == "left,right\n" * 1000


def test_a_damaged_file(tmp_path):
    path = tmp_path / "a.db"
    with LinkStore.open(path) as store:
        store.add_many([judge(left_id=i) for i in range(500)])
    content = bytearray(path.read_bytes())
    # All pages but the first, where the tables are described.
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="the file is damaged. Restore a copy"):
        with LinkStore.open(path) as store:
            list(store.judgements())


def test_a_value_that_is_none_of_its_column(tmp_path):
    path = tmp_path / "a.db"
    with LinkStore.open(path) as store:
        store.add(judge())
        run_sql(path, "UPDATE linkspread_judgements SET at = 'yesterday'")
        with pytest.raises(StoreError, match="the file is damaged"):
            list(store.judgements())


def test_a_writer_waits_no_longer_than_it_may(place):
    with LinkStore.open(place, timeout=0.3) as store, _held(place):
        with pytest.raises(StoreError, match="kept it locked for the whole `timeout`"):
            store.add(judge())
        # Readers do not wait.
        assert store.count() == 0
    with LinkStore.open(place) as store:
        store.add(judge())


@contextmanager
def _held(place):
    """Hold the lock of writers."""
    if "://" in str(place):
        import psycopg

        connection = psycopg.connect(place)
        connection.execute("SELECT version FROM linkspread_link_store FOR UPDATE")
    else:
        connection = sqlite3.connect(place, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
    yield
    connection.close()


def test_a_writer_tries_again_until_others_are_done(tmp_path, monkeypatch):
    # SQLite itself gives up at once.
    monkeypatch.setattr(database, "BUSY_TIMEOUT", 0.001)
    with LinkStore.open(tmp_path / "a.db") as store:
        writer = threading.Thread(target=store.add, args=[judge()])
        with _held(tmp_path / "a.db"):
            writer.start()
            writer.join(0.5)
            assert writer.is_alive()
        writer.join(30)
        assert store.count() == 1


def test_a_connection_lost_before_the_commit_is_made_again(server):
    def append(connection):
        attempts.append(connection)
        append_judgements(connection, [judgement])
        if len(attempts) == 1:
            kill = "SELECT pg_terminate_backend(pg_backend_pid())"
            connection.exec_driver_sql(kill)

    attempts, judgement = [], judge()
    with empty_database(server) as url, LinkStore.open(url) as store:
        store._database.write(append)
        assert len(attempts) == 2
        assert [one.id for one in store.judgements()] == [judgement.id]


def test_a_connection_lost_in_between_is_made_again(server):
    with empty_database(server) as url, LinkStore.open(url) as store:
        store.add(judge())
        kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
        execute(server, kill + "'judged'")
        store.add(judge("bob"))
        assert store.count() == 2


def test_a_writer_waits_for_a_server_that_is_away(server):
    with empty_database(server) as url, LinkStore.open(url) as store:
        store.add(judge())
        writer = threading.Thread(target=store.add, args=[judge("bob")])
        with stopped(server):
            writer.start()
            writer.join(1)
            assert writer.is_alive()
            # An address that was never reached may be wrong.
            with pytest.raises(StoreError, match="no server answers there"):
                LinkStore.open(url)
        writer.join(30)
        assert [one.who for one in store.judgements()] == ["ann", "bob"]


def test_a_server_that_stays_away_is_named_after_the_timeout(server):
    with empty_database(server) as url, LinkStore.open(url, timeout=0.3) as store:
        with stopped(server), pytest.raises(StoreError, match="no server answers"):
            store.add(judge())
        store.add(judge())


def test_a_store_of_a_newer_version(place):
    store = LinkStore.open(place)
    newer = "UPDATE linkspread_link_store SET version = 7, written_by = '9.9'"
    run_sql(place, newer)
    wanted = "must be of version 2 or older, got version 7, written by linkspread 9.9"
    with pytest.raises(StoreError, match=wanted):
        LinkStore.open(place)
    # Also one that became newer while it was open here.
    with store, pytest.raises(StoreError, match=wanted):
        store.add(judge())


def make_version_0(place):
    """Make up an older version, in which judgements had no notes."""
    with LinkStore.open(place) as store:
        store.add_many([judge(), judge("bob")])
    run_sql(
        place,
        "ALTER TABLE linkspread_judgements DROP COLUMN note",
        "UPDATE linkspread_link_store SET version = 0, written_by = '0.0.1'",
    )


def add_notes(connection):
    connection.exec_driver_sql(
        "ALTER TABLE linkspread_judgements ADD COLUMN note TEXT NOT NULL DEFAULT ''"
    )


def test_an_older_version_is_brought_up_to_date(place, monkeypatch):
    make_version_0(place)
    monkeypatch.setitem(tables.MIGRATIONS, 0, add_notes)
    for _ in range(2):
        with LinkStore.open(place) as store:
            assert [one.who for one in store.judgements()] == ["ann", "bob"]
            assert [one.note for one in store.judgements()] == ["", ""]
    with LinkStore.open(place) as store:
        store.add(judge("cem", note="new"))
        assert store.count() == 3


def test_an_older_version_gets_the_tables_that_it_lacks(place, monkeypatch):
    with LinkStore.open(place) as store:
        store.add(judge())
    column = sqlalchemy.Column("text", sqlalchemy.Text)
    notes = sqlalchemy.Table("linkspread_later", tables.tables(), column)
    try:
        monkeypatch.setattr(tables, "VERSION", 3)
        with LinkStore.open(place) as store:
            store._database.write(lambda c: c.execute(notes.insert().values(text="x")))
            assert store.count() == 1
    finally:
        tables.tables().remove(notes)
    monkeypatch.undo()
    with pytest.raises(StoreError, match="of version 2 or older, got version 3"):
        LinkStore.open(place)


def test_a_migration_that_fails_leaves_all_as_it_was(place, monkeypatch):
    def fail(connection):
        add_notes(connection)
        raise RuntimeError("midway")

    make_version_0(place)
    monkeypatch.setitem(tables.MIGRATIONS, 0, fail)
    with pytest.raises(RuntimeError, match="midway"):
        LinkStore.open(place)
    # It would fail if the column were there already.
    monkeypatch.setitem(tables.MIGRATIONS, 0, add_notes)
    with LinkStore.open(place) as store:
        store.add(judge("cem", note="new"))
        assert [one.note for one in store.judgements()] == ["", "", "new"]


@pytest.mark.parametrize(
    ("wrong", "got"),
    [
        ("mysql://ann:hunter2@host/database", "got a URL of 'mysql'"),
        ("ann:hunter2@host", "got a URL of 'ann'"),
        ("host=localhost password=hunter2", "got keywords of a connection"),
        ("sqlite://", "without a file"),
        ("sqlite:///:memory:", "without a file"),
        (":memory:", "without a file"),
        ("", "without a file"),
        ("a\0b", "without a file"),
        (7, "got 7"),
        (b"a.db", "got b'a.db'"),
    ],
)
def test_a_place_that_is_none(wrong, got):
    with pytest.raises(StoreError, match="`place` must be the path of a file") as told:
        LinkStore.open(wrong)
    assert got in str(told.value)
    assert "hunter2" not in str(told.value)


def test_a_folder_that_is_missing(tmp_path):
    with pytest.raises(StoreError, match="the folder of a link store must exist, and"):
        LinkStore.open(tmp_path / "none" / "a.db")
    with pytest.raises(StoreError, match="cannot be created or opened there"):
        LinkStore.open(tmp_path)


@pytest.mark.parametrize("timeout", [0, -1, "1", None])
def test_a_timeout_must_be_positive(tmp_path, timeout):
    with pytest.raises(LinkspreadError, match="`timeout` must be a positive number"):
        LinkStore.open(tmp_path / "a.db", timeout=timeout)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        (f"postgresql://ann:{QUOTED}@127.0.0.1:1/database", "no server answers there"),
        (f"postgres://ann:{QUOTED}@nowhere.invalid/a", "the host name is unknown"),
        (f"postgresql://ann:{SECRET}@127.0.0.1:1/database", ""),
        (f"postgresql://ann:{QUOTED}@host:port/database", ""),
        (f"postgresql:/ann:{QUOTED}@host", ""),
        (f"postgresql://ann@/database?host=/none&passwd={QUOTED}", "not a Postg"),
    ],
)
def test_a_password_is_in_no_message(address, reason):
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError, match="must lead to a PostgreSQL server") as caught:
        LinkStore.open(address)
    assert reason in str(caught.value)
    told = "".join(traceback.format_exception(caught.value))
    told = "".join(line for line in told.splitlines() if "address" not in line)
    assert not any(word in told for word in (SECRET, QUOTED, "hunter", "horse"))


def test_a_password_is_in_no_log(server, caplog):
    for name in ("psycopg", "sqlalchemy"):
        caplog.set_level(logging.DEBUG, logger=name)
    with empty_database(server) as url:
        address = url.replace("postgres@", f"postgres:{QUOTED}@")
        with LinkStore.open(address) as store:
            store.add(judge(note="between us"))
            told = f"{caplog.text} {store!r} {store._database._engine!r}"
            execute(url, "DROP TABLE linkspread_judgements")
            with pytest.raises(
                StoreError, match="does not exist. Correct this"
            ) as caught:
                store.add(judge(note="between us"))
    told += "".join(traceback.format_exception(caught.value))
    assert "<LinkStore: the PostgreSQL database>" in told
    assert "INSERT INTO linkspread_judgements" in caplog.text
    told = told.replace('judge(note="between us")', "")
    assert not any(word in told for word in (SECRET, QUOTED, "hunter", "between us"))


def test_a_missing_driver_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDependencyError, match="psycopg, .*pip install"):
        LinkStore.open("postgresql://a@b/c")
