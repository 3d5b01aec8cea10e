"""The database of a link store: a file of SQLite, or a PostgreSQL server.

Opens it, and retries transactions while other processes write or the server is away.
Error messages never contain the URL, which may hold a password.
"""

import os
import random
import re
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from linkspread.ground.errors import LinkspreadError, StoreError, require
from linkspread.storage.files import FilePath, brief, new_file

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
AWAY = {
    "refused": "no server answers there",
    "No such file": "no server answers there",
    "timeout": "the server does not answer in time",
    "starting up": "the server is starting",
    "not yet accepting": "the server is starting",
    "recovery mode": "the server is starting",
    "shutting down": "the server is stopping",
    "closed the connection": "the server is stopping",
}
REASONS = AWAY | {
    "authentication failed": "the server rejects the user or the password",
    "no password supplied": "the server asks for a password",
    "does not exist": "the server has no such database or user",
    "resolve": "the host name is unknown",
    "translate host": "the host name is unknown",
    "service not known": "the host name is unknown",
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


def sqlalchemy() -> ModuleType:
    """Import SQLAlchemy."""
    return require("sqlalchemy", purpose="A link store")


class ServerAway(StoreError):
    """A server that does not answer at present."""


class Database:
    """Transactions on a database."""

    def __init__(self, engine: Any, *, name: str, timeout: float) -> None:
        self.name = name
        self._engine = engine
        self._timeout = timeout
        self._process = os.getpid()
        self._open = True
        # Threads wait for each other here: SQLite would make them sleep and try again.
        self._writing = threading.Lock()
        # An address that was never reached may be wrong, and is not tried again.
        self._was_reached = False

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

    def backup(self, path: FilePath, *, overwrite: bool) -> None:
        """Write a copy of one state of the database, while others may write."""
        self._check_usable()
        if self._engine.dialect.name != "sqlite":
            raise StoreError(
                "a link store must be an SQLite file to be copied, got "
                f"{self.name}. Use `pg_dump`."
            )
        with new_file(path, overwrite=overwrite) as copy:
            try:
                with closing(_connect_sqlite(Path(self.name), BUSY_TIMEOUT)) as own:
                    own.execute("VACUUM INTO ?", [str(copy)])
            except sqlite3.Error as error:
                raise self._explain(error) from error

    def _run(self, work: Callable[..., T], options: Any, *, writing: bool) -> T:
        """Run a transaction, and retry it until the timeout."""
        self._check_usable()
        deadline = time.monotonic() + self._timeout
        engine = self._engine.execution_options(linkspread_writing=writing)
        while True:
            try:
                turn = self._writing if writing else nullcontext()
                with turn, engine.begin() as connection:
                    self._was_reached = True
                    return work(connection, **options)
            except sqlalchemy().exc.SQLAlchemyError as error:
                if time.monotonic() > deadline or not _is_transient(error):
                    raise self._explain(getattr(error, "orig", None)) from error
            except ServerAway:
                if time.monotonic() > deadline or not self._was_reached:
                    raise
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

    def _explain(self, original: Any) -> StoreError:
        """Return an error for a failure of the database, given that of the driver."""
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
            url, name="place", set_up=lambda c: _set_up(c, timeout)
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
    set_up: Callable[[Any], None] = lambda connection: None,
) -> Any:
    """Open a connection; errors never contain the URL."""
    psycopg = require("psycopg", purpose="A PostgreSQL database")
    reason, words_said = "it is not a PostgreSQL URL", ""
    try:
        words = psycopg.conninfo.conninfo_to_dict(OTHER_SCHEMES.sub("postgresql:", url))
        reason = "the connection failed"
        words = {"connect_timeout": CONNECT_TIMEOUT} | words
        connection = psycopg.connect(**words | {"client_encoding": "utf8"})
        set_up(connection)
        return connection
    except Exception as failure:  # any error may quote the URL
        said = str(failure)
        words_said = next((words for words in REASONS if words in said), "")
        reason = REASONS.get(words_said, reason)
    # Outside `except`, so that the traceback does not show the driver's error.
    error = ServerAway if words_said in AWAY else StoreError
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
