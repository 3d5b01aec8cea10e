"""Where a link store lies: a file of SQLite, or a PostgreSQL server."""

import os
import re
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

from linkspread.ground.errors import StoreError, require
from linkspread.storage.files import brief
from linkspread.storage.link_store_database import Database
from linkspread.storage.link_store_tables import sqlalchemy
from linkspread.storage.postgres_failures import failure_reason

# A letter alone before a colon is a drive.
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
POSTGRES = {"postgres", "postgresql", "postgresql+psycopg"}
# Words of libpq's own form, which may hold a password and must not become a file name.
KEYWORDS = re.compile(r"(^|\s)(host|hostaddr|dbname|user|password|service)\s*=")
# Seconds that SQLite waits by itself, and a connection to PostgreSQL may take.
BUSY_TIMEOUT, CONNECT_TIMEOUT = 1.0, 10
# Bytes of a log of SQLite that is worth folding into its file.
LONG_LOG = 1 << 22


def open_database(place: str | os.PathLike[str], *, timeout: float) -> Database:
    """Return the database at a path or a URL; it need not have any tables yet."""
    sqlalchemy()  # says now if it is missing
    scheme = SCHEME.match(place) if isinstance(place, str) else None
    kind = scheme[1].lower() if scheme else "path"
    if kind in POSTGRES:
        return _open_postgres(str(place), timeout)
    if kind not in ("path", "sqlite"):
        raise _wrong_place(f"a URL of {kind!r:.30}")
    return _open_sqlite(_path(place), timeout)


def _path(place: Any) -> Path:
    """Return the path of a file that will last."""
    if not isinstance(place, str | os.PathLike):
        raise _wrong_place(brief(place))
    text = os.fspath(place)
    if isinstance(place, str) and KEYWORDS.search(place):
        raise _wrong_place("words of a connection")
    if isinstance(place, str) and SCHEME.match(place):
        # Three slashes and a relative path, or four and an absolute one.
        scheme, _, text = place.partition(":///")
        text = text if scheme.lower() == "sqlite" else ""
    if text in ("", ":memory:") or "\0" in text:
        raise _wrong_place("one without a file, which would keep nothing")
    path = Path(text)
    if not path.parent.is_dir():
        raise StoreError(
            f"the folder of a link store must exist, and {path.parent} does not. "
            "Create it first."
        )
    return path


def _wrong_place(got: str) -> StoreError:
    """Return the sentence about something that is no place for a store."""
    return StoreError(
        "`place` must be the path of a file, 'sqlite:///PATH' or "
        f"'postgresql://user@host/database', got {got}. Choose one of these."
    )


def _open_sqlite(path: Path, timeout: float) -> Database:
    """Return a database in a file, which is created if need be."""
    sql = sqlalchemy()
    # A URL without the path: a path may have any letters.
    engine = sql.create_engine(
        "sqlite://",
        creator=lambda: _connect_sqlite(path, min(timeout, BUSY_TIMEOUT)),
        poolclass=sql.pool.QueuePool,
        hide_parameters=True,
    )
    sql.event.listen(engine, "begin", _begin)
    log = Path(f"{os.path.realpath(path)}-wal")
    sql.event.listen(engine, "checkin", lambda connection, _: _fold(connection, log))
    return Database(engine, name=str(path), timeout=timeout)


def _connect_sqlite(path: Path, busy_timeout: float) -> sqlite3.Connection:
    """Open a file so that a commit is on the disk when it returns."""
    connection = sqlite3.connect(
        path, timeout=busy_timeout, isolation_level=None, check_same_thread=False
    )
    try:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        # With NORMAL, usual for WAL, the last commits may go with the power.
        connection.execute("PRAGMA synchronous = FULL")
        # On macOS fsync alone does not reach the disk; elsewhere this does nothing.
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
    except BaseException:
        connection.close()
        raise
    if mode != "wal":
        connection.close()
        raise StoreError(
            "the file of a link store must allow a write-ahead log, and the file "
            f"system of {path} does not ({mode}). Choose a folder on a local disk."
        )
    return connection


def _fold(connection: sqlite3.Connection | None, log: Path) -> None:
    """Fold a long log into its file, after waiting for the lock of writers.

    SQLite would do that by itself, but beside other writers; before its version 3.51.3
    that may, very rarely, damage the file (https://sqlite.org/wal.html#walresetbug).
    """
    # What fails here is done after another transaction; this one is committed.
    with suppress(OSError, sqlite3.Error):
        if connection is not None and log.stat().st_size >= LONG_LOG:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def _begin(connection: Any) -> None:
    """Begin a transaction; one that writes takes its lock now and not midway."""
    writing = connection.get_execution_options().get("linkspread_writing")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _open_postgres(url: str, timeout: float) -> Database:
    """Return a database of a server."""
    require("psycopg", extra="postgres", purpose="A link store in PostgreSQL")
    # libpq reads the URL, and SQLAlchemy never sees it.
    engine = sqlalchemy().create_engine(
        "postgresql+psycopg://",
        creator=lambda: _connect_postgres(url, timeout),
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        hide_parameters=True,
    )
    return Database(engine, name="the PostgreSQL database", timeout=timeout)


def _connect_postgres(url: str, timeout: float) -> Any:
    """Open a connection; a failure must not tell anything of the URL."""
    psycopg = require("psycopg", extra="postgres", purpose="A link store in PostgreSQL")
    reason = "it is no URL of PostgreSQL"
    try:
        url = re.sub("^[^:]+:", "postgresql:", url)
        words = psycopg.conninfo.conninfo_to_dict(url)
        reason = "the connection failed"
        words = {"connect_timeout": CONNECT_TIMEOUT} | words
        connection = psycopg.connect(**words | {"client_encoding": "utf8"})
        _set_up_postgres(connection, timeout)
        return connection
    except Exception as error:  # whatever it is, it may quote the URL
        reason = failure_reason(error, otherwise=reason)
    # Outside of `except`: a traceback would show the driver's error as the cause.
    raise StoreError(
        "`place` must lead to a PostgreSQL server, such as "
        "'postgresql://user@host:5432/database', and the one given does not: "
        f"{reason}. Correct it; write @ and / in a password as %40 and %2F."
    )


def _set_up_postgres(connection: Any, timeout: float) -> None:
    """Bound how long a lock is waited for, and let a commit wait for the disk."""
    wait = f"{max(1, round(1000 * timeout))}ms"
    connection.execute("SELECT set_config('lock_timeout', %s, false)", [wait])
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false) "
        "WHERE current_setting('synchronous_commit') = 'off'"
    )
    connection.commit()
