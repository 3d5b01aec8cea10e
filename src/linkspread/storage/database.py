"""The database of a link store: a file of SQLite, or a PostgreSQL server.

Opens it, retries transactions while other processes write, and defines its tables.
Error messages never contain the URL, which may hold a password.

To change the tables, raise ``VERSION`` and add a function to ``MIGRATIONS`` that
converts the old tables.
"""

import os
import random
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from linkspread.ground.errors import LinkspreadError, StoreError, require
from linkspread.storage.files import brief

T = TypeVar("T")

# A single letter before a colon is a Windows drive.
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
POSTGRES = {"postgres", "postgresql", "postgresql+psycopg"}
# Schemes that libpq does not know.
OTHER_SCHEMES = re.compile(r"^(postgres|postgresql\+psycopg):", flags=re.IGNORECASE)
# Keywords of libpq's own format, which may hold a password: never a file name.
KEYWORDS = re.compile(r"(^|\s)(host|hostaddr|dbname|user|password|service)\s*=")
# Seconds that SQLite waits for a lock, and that connecting to PostgreSQL may take.
BUSY_TIMEOUT, CONNECT_TIMEOUT = 1.0, 10
# Bytes of SQLite's log from which it is written back into its file.
MAX_LOG_BYTES = 1 << 22
# Words of the drivers' messages, and the messages of linkspread. The drivers' own may
# quote the URL and its password, so they are never passed on.
REASONS = {
    "authentication failed": "the server rejects the user or the password",
    "no password supplied": "the server asks for a password",
    "does not exist": "the server has no such database or user",
    "refused": "no server answers there",
    "No such file": "no server answers there",
    "timeout": "the server does not answer in time",
    "resolve": "the host name is unknown",
    "translate host": "the host name is unknown",
}
# Largest random pause, in seconds, before another attempt.
PAUSE = 0.05
# Words of a failure, the reason, and the remedy.
FAILURES = {
    "locked": (
        "other processes kept it locked for the whole `timeout`",
        "Try again: adding the same id twice is safe",
    ),
    "not a database": (
        "it is not an SQLite file, or it is damaged",
        "Choose another path, or restore a copy",
    ),
    "malformed": (
        "the file is damaged",
        "Restore a copy, or save what can be read with the shell's `sqlite3 FILE "
        ".recover`",
    ),
    "unable to open": (
        "the file cannot be created or opened there",
        "Choose a path in a folder that you may write to",
    ),
    "readonly": (
        "the file or its folder is read-only",
        "Choose a path in a folder that you may write to",
    ),
    "is full": ("the disk is full", "Make room and try again"),
}
# PostgreSQL: lock_not_available, serialization_failure, deadlock_detected.
TRANSIENT_STATES = {"55P03", "40001", "40P01"}
TRANSIENT_WORDS = ("database is locked", "table is locked", "locking protocol")
VERSION = 1
# For each version the function that converts the tables to the next one.
MIGRATIONS: dict[int, Callable[[Any], None]] = {}
# Key of the PostgreSQL lock that is held while the tables are prepared.
PREPARING = 0x6C696E6B
STORE, JUDGEMENTS = "linkspread_link_store", "linkspread_judgements"


def sqlalchemy() -> ModuleType:
    """Import SQLAlchemy."""
    return require("sqlalchemy", purpose="A link store")


class Database:
    """Transactions on a database."""

    def __init__(self, engine: Any, *, name: str, timeout: float) -> None:
        self.name = name
        self._engine = engine
        self._timeout = timeout
        self._process = os.getpid()
        self._open = True

    def read(self, work: Callable[..., T], **options: Any) -> T:
        """Return ``work(connection, **options)``, run in a transaction."""
        return self._run(work, options, writing=False)

    def write(self, work: Callable[..., T], **options: Any) -> T:
        """Do the same, and return after the commit.

        Transient failures are retried, so `work` must be idempotent.
        """
        return self._run(work, options, writing=True)

    def close(self) -> None:
        """Close all connections."""
        # After a fork the connections belong to the parent process.
        if self._open and self._process == os.getpid():
            self._engine.dispose()
        self._open = False

    def _run(self, work: Callable[..., T], options: Any, *, writing: bool) -> T:
        """Run a transaction, and retry it until the timeout."""
        self._check_usable()
        deadline = time.monotonic() + self._timeout
        engine = self._engine.execution_options(linkspread_writing=writing)
        while True:
            try:
                with engine.begin() as connection:
                    return work(connection, **options)
            except sqlalchemy().exc.SQLAlchemyError as error:
                if time.monotonic() > deadline or not _is_transient(error):
                    raise self._explain(error) from error
            except LinkspreadError:
                raise
            except ValueError as error:
                # A text where a time or a number should be.
                raise self._fail(*FAILURES["malformed"]) from error
            time.sleep(random.uniform(0, PAUSE))

    def _check_usable(self) -> None:
        """Refuse a store that was closed, or opened before a fork."""
        if not self._open:
            raise StoreError(
                f"a link store must be open, and {self.name} was closed. Open it with "
                "`LinkStore.open`."
            )
        if self._process != os.getpid():
            raise StoreError(
                "a link store must be opened by the process that uses it, and "
                f"{self.name} was opened by process {self._process}. Call "
                "`LinkStore.open` after the fork."
            )

    def _explain(self, error: Any) -> StoreError:
        """Return an error for a failure of the database."""
        original = getattr(error, "orig", None)
        said = getattr(getattr(original, "diag", None), "message_primary", None)
        text = f"{said or original or 'no connection is free'}"
        if getattr(original, "sqlstate", None) == "55P03":
            text = "locked"
        known = (FAILURES[words] for words in FAILURES if words in text)
        return self._fail(*next(known, (text[:200], "Correct this and try again")))

    def _fail(self, reason: str, remedy: str) -> StoreError:
        """Return the error with a reason and a remedy."""
        return StoreError(
            f"a link store must be readable and writable, and {self.name} is "
            f"not: {reason}. {remedy}."
        )


def _is_transient(error: Any) -> bool:
    """Return whether a failure is a lock, a conflict or a lost connection."""
    original = getattr(error, "orig", None)
    if getattr(error, "connection_invalidated", False):
        return True
    if getattr(original, "sqlstate", None) in TRANSIENT_STATES:
        return True
    return any(words in str(original) for words in TRANSIENT_WORDS)


def open_database(place: str | os.PathLike[str], *, timeout: float) -> Database:
    """Return the database at a path or a URL, which may have no tables yet."""
    sqlalchemy()  # raises now if it is missing
    scheme = SCHEME.match(place) if isinstance(place, str) else None
    kind = scheme[1].lower() if scheme else "path"
    if kind in POSTGRES:
        return _open_postgres(str(place), timeout)
    if kind not in ("path", "sqlite"):
        raise _place_error(f"a URL of {kind!r:.30}")
    return _open_sqlite(_path(place), timeout)


def _path(place: Any) -> Path:
    """Return the path of an SQLite file."""
    if not isinstance(place, str | os.PathLike):
        raise _place_error(brief(place))
    text = os.fspath(place)
    if isinstance(place, str) and KEYWORDS.search(place):
        raise _place_error("keywords of a connection")
    if isinstance(place, str) and SCHEME.match(place):
        # Three slashes and a relative path, or four and an absolute one.
        scheme, _, text = place.partition(":///")
        text = text if scheme.lower() == "sqlite" else ""
    if text in ("", ":memory:") or "\0" in text:
        raise _place_error("one without a file, which would not be stored")
    path = Path(text)
    if not path.parent.is_dir():
        raise StoreError(
            f"the folder of a link store must exist, and {path.parent} does not. "
            "Create it first."
        )
    return path


def _place_error(got: str) -> StoreError:
    """Return the error about an invalid place."""
    return StoreError(
        "`place` must be the path of a file, 'sqlite:///PATH' or "
        f"'postgresql://user@host/database', got {got}. Choose one of these."
    )


def _open_sqlite(path: Path, timeout: float) -> Database:
    """Return a database in a file, which is created if it is missing."""
    sql = sqlalchemy()
    # The URL is without the path, which may contain any character.
    engine = sql.create_engine(
        "sqlite://",
        creator=lambda: _connect_sqlite(path, min(timeout, BUSY_TIMEOUT)),
        poolclass=sql.pool.QueuePool,
        hide_parameters=True,
    )
    sql.event.listen(engine, "begin", _begin)
    log = Path(f"{os.path.realpath(path)}-wal")
    sql.event.listen(
        engine, "checkin", lambda connection, _: _checkpoint(connection, log)
    )
    return Database(engine, name=str(path), timeout=timeout)


def _connect_sqlite(path: Path, busy_timeout: float) -> sqlite3.Connection:
    """Open a file so that a commit is on the disk when it returns."""
    connection = sqlite3.connect(
        path, timeout=busy_timeout, isolation_level=None, check_same_thread=False
    )
    try:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        # With NORMAL, usual for WAL, a power failure may lose the last commits.
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


def _checkpoint(connection: sqlite3.Connection | None, log: Path) -> None:
    """Write a long log back into its file, after waiting for the write lock.

    SQLite would do so by itself, but while others write; before version 3.51.3 that
    may, very rarely, damage the file (https://sqlite.org/wal.html#walresetbug).
    """
    # If it fails, a later transaction does it; this one is committed.
    with suppress(OSError, sqlite3.Error):
        if connection is not None and log.stat().st_size >= MAX_LOG_BYTES:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def _begin(connection: Any) -> None:
    """Begin a transaction; one that writes takes the lock at once."""
    writing = connection.get_execution_options().get("linkspread_writing")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _open_postgres(url: str, timeout: float) -> Database:
    """Return a database on a PostgreSQL server."""
    require("psycopg", purpose="A link store in PostgreSQL")
    # libpq reads the URL, and SQLAlchemy never sees it.
    engine = sqlalchemy().create_engine(
        "postgresql+psycopg://",
        creator=lambda: connect_postgres(
            url, name="place", error=StoreError, set_up=lambda c: _set_up(c, timeout)
        ),
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        hide_parameters=True,
    )
    return Database(engine, name="the PostgreSQL database", timeout=timeout)


def connect_postgres(
    url: str,
    *,
    name: str,
    error: type[LinkspreadError],
    set_up: Callable[[Any], None] = lambda connection: None,
) -> Any:
    """Open a connection; errors never contain the URL."""
    psycopg = require("psycopg", purpose="A PostgreSQL database")
    reason = "it is not a PostgreSQL URL"
    try:
        words = psycopg.conninfo.conninfo_to_dict(OTHER_SCHEMES.sub("postgresql:", url))
        reason = "the connection failed"
        words = {"connect_timeout": CONNECT_TIMEOUT} | words
        connection = psycopg.connect(**words | {"client_encoding": "utf8"})
        set_up(connection)
        return connection
    except Exception as failure:  # any error may quote the URL
        said = str(failure)
        reason = next((REASONS[words] for words in REASONS if words in said), reason)
    # Outside `except`, so that the traceback does not show the driver's error.
    raise error(
        f"`{name}` must lead to a PostgreSQL server, such as "
        "'postgresql://user@host:5432/database', and the one given does not: "
        f"{reason}. Correct it; write @ and / in a password as %40 and %2F."
    )


def _set_up(connection: Any, timeout: float) -> None:
    """Set the lock timeout, and make commits wait for the disk."""
    wait = f"{max(1, round(1000 * timeout))}ms"
    connection.execute("SELECT set_config('lock_timeout', %s, false)", [wait])
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false) "
        "WHERE current_setting('synchronous_commit') = 'off'"
    )
    connection.commit()


class Tables(NamedTuple):
    """The tables of a store."""

    store: Any
    judgements: Any


@cache
def tables() -> Tables:
    """Return the tables of this version."""
    sql = sqlalchemy()
    metadata = sql.MetaData()
    # Only "INTEGER PRIMARY KEY" is the rowid of SQLite.
    number = sql.BigInteger().with_variant(sql.Integer(), "sqlite")
    store = sql.Table(
        STORE,
        metadata,
        sql.Column("one", sql.Integer, primary_key=True),
        sql.Column("version", sql.Integer, nullable=False),
        sql.Column("written_by", sql.Text, nullable=False),
        sql.CheckConstraint("one = 1"),
    )
    item = {"view": sql.Text, "id": sql.Text, "is_integer": sql.Boolean}
    judgements = sql.Table(
        JUDGEMENTS,
        metadata,
        sql.Column("number", number, primary_key=True, autoincrement=False),
        sql.Column("id", sql.Text, nullable=False, unique=True),
        sql.Column("takes_back", sql.Text, sql.ForeignKey(f"{JUDGEMENTS}.id")),
        sql.Column("who", sql.Text, nullable=False),
        sql.Column("at", sql.DateTime(timezone=True), nullable=False),
        # The pair, which is empty for an undo.
        *(
            sql.Column(f"{side}_{part}", kind)
            for side in ("left", "right")
            for part, kind in item.items()
        ),
        sql.Column("weight", sql.Double),
        sql.Column("verdict", sql.Text, nullable=False),
        sql.Column("note", sql.Text, nullable=False),
        sql.UniqueConstraint("takes_back"),
        sql.CheckConstraint("verdict IN ('must', 'cannot', 'unsure', 'undo')"),
        sql.CheckConstraint("(verdict = 'undo') = (takes_back IS NOT NULL)"),
        sql.CheckConstraint("(verdict = 'undo') = (left_id IS NULL)"),
    )
    return Tables(store, judgements)


def is_current(connection: Any) -> bool:
    """Return whether there are tables of this version."""
    found = _stored_version(connection)
    return found is not None and found[0] == VERSION


def prepare_tables(connection: Any) -> None:
    """Create the tables or bring them up to date, within one transaction."""
    if connection.dialect.name == "postgresql":
        lock = sqlalchemy().func.pg_advisory_xact_lock(PREPARING)
        connection.execute(sqlalchemy().select(lock))
    found = _stored_version(connection)
    if found is None:
        store = tables().store
        store.metadata.create_all(connection)
        connection.execute(store.insert().values(one=1, **_version_row()))
        return
    _check_version(*found)
    for version in range(found[0], VERSION):
        MIGRATIONS[version](connection)
    if found[0] < VERSION:
        connection.execute(tables().store.update().values(**_version_row()))


def lock_store(connection: Any) -> None:
    """Make other writers wait until this transaction ends.

    Numbers are assigned under the lock, which is released after the commit, so a reader
    that sees a number sees all smaller ones.
    """
    # SQLite has no such lock; BEGIN IMMEDIATE has done the same.
    store = tables().store
    statement = sqlalchemy().select(store.c.version, store.c.written_by)
    found = connection.execute(statement.with_for_update()).one()
    # Another process may have upgraded the store since it was opened here.
    _check_version(*found)


def _version_row() -> dict[str, Any]:
    """Return the version columns of the store."""
    # Imported here, because the package imports this room.
    from linkspread import __version__

    return {"version": VERSION, "written_by": __version__}


def _stored_version(connection: Any) -> tuple[int, str] | None:
    """Return the version of the tables and of linkspread, or None."""
    if not sqlalchemy().inspect(connection).has_table(STORE):
        return None
    store = tables().store
    statement = sqlalchemy().select(store.c.version, store.c.written_by)
    version, written_by = connection.execute(statement).one()
    return version, written_by


def _check_version(version: int, written_by: str) -> None:
    """Refuse a store of an unsupported version."""
    if version > VERSION:
        raise StoreError(
            f"a link store must be of version {VERSION} or older, got version "
            f"{version}, written by linkspread {written_by}. Install that version or "
            "a newer one."
        )
    if set(range(version, VERSION)) - set(MIGRATIONS):
        raise StoreError(
            f"a link store must be of a supported version, got version {version}, "
            f"written by linkspread {written_by}. Open it with that version."
        )
