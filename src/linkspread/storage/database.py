"""The database of a link store: a file of SQLite, or a PostgreSQL server.

Opening it, transactions that are tried again where others write, and its tables. What
fails is said in sentences of our own; a URL and its password are in none of them.

To change the tables, raise ``VERSION`` and add to ``MIGRATIONS`` what makes the new
tables out of the old ones.
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

# A letter alone before a colon is a drive.
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
POSTGRES = {"postgres", "postgresql", "postgresql+psycopg"}
# Schemes that libpq itself does not know.
SPELT = re.compile(r"^(postgres|postgresql\+psycopg):", flags=re.IGNORECASE)
# Words of libpq's own form, which may hold a password and must not become a file name.
KEYWORDS = re.compile(r"(^|\s)(host|hostaddr|dbname|user|password|service)\s*=")
# Seconds that SQLite waits by itself, and a connection to PostgreSQL may take.
BUSY_TIMEOUT, CONNECT_TIMEOUT = 1.0, 10
# Bytes of a log of SQLite that is worth folding into its file.
LONG_LOG = 1 << 22
# What drivers say, and what is said here. Their own words may quote the URL, and with
# it a password, so they are never passed on.
REASONS = {
    "authentication failed": "the server refuses the user or the password",
    "no password supplied": "the server asks for a password",
    "does not exist": "the server has no such database or user",
    "refused": "no server answers there",
    "No such file": "no server answers there",
    "timeout": "the server does not answer in time",
    "resolve": "the name of the host is not known",
    "translate host": "the name of the host is not known",
}
# Seconds to wait before another attempt, drawn at random so that writers part.
PAUSE = 0.05
# Words of a failure, what they mean, and the remedy.
FAILURES = {
    "locked": (
        "others kept it locked for the whole `timeout`",
        "Try again: adding the same id twice is safe",
    ),
    "not a database": (
        "it is no SQLite file, or a damaged one",
        "Choose another path, or restore a copy",
    ),
    "malformed": (
        "the file is damaged",
        "Restore a copy, or save what can be read with the shell's `sqlite3 FILE "
        ".recover`",
    ),
    "unable to open": (
        "the file cannot be made or opened there",
        "Choose a path in a folder that you may write to",
    ),
    "readonly": (
        "the file or its folder can only be read",
        "Choose a path in a folder that you may write to",
    ),
    "is full": ("the disk is full", "Make room and try again"),
}
# PostgreSQL: lock_not_available, serialization_failure, deadlock_detected.
PASSING_STATES = {"55P03", "40001", "40P01"}
PASSING_WORDS = ("database is locked", "table is locked", "locking protocol")
VERSION = 1
# From each version, what leads to the next one, given a connection.
MIGRATIONS: dict[int, Callable[[Any], None]] = {}
# Any number, as long as all agree on it: who holds it prepares the tables.
PREPARING = 0x6C696E6B
STORE, JUDGEMENTS = "linkspread_link_store", "linkspread_judgements"


def sqlalchemy() -> ModuleType:
    """Return the package SQLAlchemy, or say how to install it."""
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
        """Return ``work(connection, **options)``, done in a transaction."""
        return self._run(work, options, writing=False)

    def write(self, work: Callable[..., T], **options: Any) -> T:
        """Do the same, and return only after it is committed.

        What fails in passing is done again, so `work` must be such that doing it
        twice is doing it once.
        """
        return self._run(work, options, writing=True)

    def close(self) -> None:
        """Close all connections."""
        # Those of another process are not ours to close.
        if self._open and self._process == os.getpid():
            self._engine.dispose()
        self._open = False

    def _run(self, work: Callable[..., T], options: Any, *, writing: bool) -> T:
        """Try a transaction until it ends, or for as long as allowed."""
        self._check_usable()
        deadline = time.monotonic() + self._timeout
        engine = self._engine.execution_options(linkspread_writing=writing)
        while True:
            try:
                with engine.begin() as connection:
                    return work(connection, **options)
            except sqlalchemy().exc.SQLAlchemyError as error:
                if time.monotonic() > deadline or not _is_passing(error):
                    raise self._explain(error) from error
            except LinkspreadError:
                raise
            except ValueError as error:
                # A text in the place of a time or a number.
                raise self._fail(*FAILURES["malformed"]) from error
            time.sleep(random.uniform(0, PAUSE))

    def _check_usable(self) -> None:
        """Refuse a store that was closed, or came here by a fork."""
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
        """Return a sentence of ours about a failure."""
        original = getattr(error, "orig", None)
        said = getattr(getattr(original, "diag", None), "message_primary", None)
        text = f"{said or original or 'no connection is free'}"
        if getattr(original, "sqlstate", None) == "55P03":
            text = "locked"
        known = (FAILURES[words] for words in FAILURES if words in text)
        return self._fail(*next(known, (text[:200], "Mend this and try again")))

    def _fail(self, reason: str, remedy: str) -> StoreError:
        """Return an error in three parts."""
        return StoreError(
            f"a link store must be there to read and to write, and {self.name} is "
            f"not: {reason}. {remedy}."
        )


def _is_passing(error: Any) -> bool:
    """Tell failures that others cause, and lost connections, from lasting ones."""
    original = getattr(error, "orig", None)
    if getattr(error, "connection_invalidated", False):
        return True
    if getattr(original, "sqlstate", None) in PASSING_STATES:
        return True
    return any(words in str(original) for words in PASSING_WORDS)


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
    """Open a connection; a failure must not show anything of the URL."""
    psycopg = require("psycopg", purpose="A PostgreSQL database")
    reason = "it is no URL of PostgreSQL"
    try:
        words = psycopg.conninfo.conninfo_to_dict(SPELT.sub("postgresql:", url))
        reason = "the connection failed"
        words = {"connect_timeout": CONNECT_TIMEOUT} | words
        connection = psycopg.connect(**words | {"client_encoding": "utf8"})
        set_up(connection)
        return connection
    except Exception as failure:  # whatever it is, it may quote the URL
        said = str(failure)
        reason = next((REASONS[words] for words in REASONS if words in said), reason)
    # Outside of `except`: a traceback would show the driver's error as the cause.
    raise error(
        f"`{name}` must lead to a PostgreSQL server, such as "
        "'postgresql://user@host:5432/database', and the one given does not: "
        f"{reason}. Correct it; write @ and / in a password as %40 and %2F."
    )


def _set_up(connection: Any, timeout: float) -> None:
    """Bound how long a lock is waited for, and let a commit wait for the disk."""
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
    """Return the tables as this version knows them."""
    sql = sqlalchemy()
    metadata = sql.MetaData()
    # Only "INTEGER PRIMARY KEY" is SQLite's own number of a row.
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
    """Tell whether there are tables of this version."""
    found = _found_version(connection)
    return found is not None and found[0] == VERSION


def prepare_tables(connection: Any) -> None:
    """Create the tables or bring them up to date, within one transaction."""
    if connection.dialect.name == "postgresql":
        lock = sqlalchemy().func.pg_advisory_xact_lock(PREPARING)
        connection.execute(sqlalchemy().select(lock))
    found = _found_version(connection)
    if found is None:
        store = tables().store
        store.metadata.create_all(connection)
        connection.execute(store.insert().values(one=1, **_written()))
        return
    _check_version(*found)
    for version in range(found[0], VERSION):
        MIGRATIONS[version](connection)
    if found[0] < VERSION:
        connection.execute(tables().store.update().values(**_written()))


def lock_store(connection: Any) -> None:
    """Let other writers wait until this transaction ends.

    Numbers are given while the lock is held, and it is let go after the rows can be
    seen. So whoever sees a number sees all smaller ones.
    """
    # SQLite has no such lock, but BEGIN IMMEDIATE did the same.
    store = tables().store
    statement = sqlalchemy().select(store.c.version, store.c.written_by)
    found = connection.execute(statement.with_for_update()).one()
    # Another process may have brought it up to date since it was opened here.
    _check_version(*found)


def _written() -> dict[str, Any]:
    """Return what a store says of who wrote it."""
    # The version stands at the top of the package, which imports this room.
    from linkspread import __version__

    return {"version": VERSION, "written_by": __version__}


def _found_version(connection: Any) -> tuple[int, str] | None:
    """Return the version that is there and who wrote it, or None."""
    if not sqlalchemy().inspect(connection).has_table(STORE):
        return None
    store = tables().store
    statement = sqlalchemy().select(store.c.version, store.c.written_by)
    version, written_by = connection.execute(statement).one()
    return version, written_by


def _check_version(version: int, written_by: str) -> None:
    """Refuse a store that this version does not understand."""
    if version > VERSION:
        raise StoreError(
            f"a link store must be of version {VERSION} or older, got version "
            f"{version}, written by linkspread {written_by}. Install that version or "
            "a newer one."
        )
    if set(range(version, VERSION)) - set(MIGRATIONS):
        raise StoreError(
            f"a link store must be of a version known here, got version {version}, "
            f"written by linkspread {written_by}. Open it with that version."
        )
