"""A cache of rows, by the content of the item and the transformer.

One SQLite file, which several processes may use at once. Every entry has a checksum; a
damaged file is deleted and created again.
"""

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from platformdirs import user_cache_path

from linkspread.ground.errors import LinkspreadError, warn_caller

Result = TypeVar("Result")
# Identify a cache file and its layout.
_APPLICATION = 0x6C73_6663
_LAYOUT = 1
# Seconds that one process waits for another.
_PATIENCE = 30
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS entry (key BLOB PRIMARY KEY, value BLOB, sum BLOB)"
)
# Keys that every SQLite takes in one statement.
_MANY = 500


class RowCache:
    """Keep bytes by key in a file that may be deleted at any time."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.n_added = 0
        self._connection: sqlite3.Connection | None = None
        self._try(self._connect)

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the entries of the keys that are in the cache."""
        wanted = list(keys)
        found: dict[bytes, bytes] = {}
        for start in range(0, len(wanted), _MANY):
            part = wanted[start : start + _MANY]
            for key, value, sum_ in self._try(partial(self._select, part)) or []:
                if sum_ != _checksum(key, value):
                    why = "an entry has another checksum than it was written with"
                    self._discard(why)
                    return {}
                found[key] = value
        return found

    def put(self, entries: Mapping[bytes, bytes]) -> None:
        """Add entries, all or none."""
        rows = [(key, own, _checksum(key, own)) for key, own in entries.items()]

        def write() -> int:
            if self._connection is None:
                return 0
            with self._connection as connection:
                statement = "INSERT OR REPLACE INTO entry VALUES (?, ?, ?)"
                connection.executemany(statement, rows)
            return len(rows)

        self.n_added += (self._try(write) or 0) if rows else 0

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _select(self, keys: list[bytes]) -> list[tuple[bytes, bytes, bytes]]:
        """Return key, value and checksum of the entries in the cache."""
        if self._connection is None:
            return []
        places = ",".join("?" * len(keys))
        statement = f"SELECT key, value, sum FROM entry WHERE key IN ({places})"
        with closing(self._connection.execute(statement, keys)) as rows:
            return rows.fetchall()

    def _try(self, work: Callable[[], Result]) -> Result | None:
        """Return the result of work on the file, or None if the file is unusable."""
        try:
            return work()
        # Locked for too long, a full disk or no permission, but not damaged.
        except (sqlite3.OperationalError, OSError) as error:
            self.close()
            warn_caller(
                "the cache must be a file that can be written, got "
                f"{str(self.path)!r} ({error!s:.80}). This run does not use it."
            )
        except sqlite3.DatabaseError as error:
            self._discard(str(error))
        return None

    def _discard(self, why: str) -> None:
        """Delete the file, and create a new one."""
        self.close()
        _check_ours(self.path)
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                os.unlink(f"{self.path}{suffix}")
        warn_caller(
            f"the cache {str(self.path)!r} must be as it was written, got a damaged "
            f"file ({why:.80}). It was deleted; rows are made again."
        )
        with suppress(OSError, sqlite3.Error):
            self._connect()

    def _connect(self) -> None:
        """Open a cache file, created if missing."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=_PATIENCE)
        try:
            # One process at a time, so that none sees a half-made file. No write-ahead
            # log, as SQLite does not wait for others before it begins one.
            connection.execute("BEGIN IMMEDIATE")
            with connection:
                if not _is_ours(connection):
                    connection.execute(f"PRAGMA application_id={_APPLICATION}").close()
                    connection.execute(f"PRAGMA user_version={_LAYOUT}").close()
                    connection.execute(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        self._connection = connection


def default_cache() -> Path:
    """Return the path of the command line's cache, in the user's cache folder."""
    return user_cache_path("linkspread", appauthor=False) / "rows.sqlite"


def _is_ours(connection: sqlite3.Connection) -> bool:
    """Return whether a file is a cache, not a new file; refuse other databases."""
    tables = [own for (own,) in connection.execute("SELECT name FROM sqlite_master")]
    if not tables:
        return False
    application, layout = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    )
    if application != _APPLICATION:
        raise LinkspreadError(
            "`cache` must be a file that linkspread made or a new one, got another "
            "database. Give another path."
        )
    if layout != _LAYOUT or "entry" not in tables:
        raise sqlite3.DatabaseError(f"layout {layout} of another version")
    return True


def _check_ours(path: Path) -> None:
    """Refuse to delete a file that is not a SQLite database."""
    with suppress(OSError), open(path, "rb") as file:
        start = file.read(16)
        if start and start != b"SQLite format 3\0" and path.suffix != ".sqlite":
            raise LinkspreadError(
                f"`cache` must be a file that linkspread made or a new one, got "
                f"{str(path)!r} with other content. Give another path."
            )


def _checksum(key: bytes, value: Any) -> bytes:
    """Return the checksum of an entry."""
    if not isinstance(value, bytes):
        return b""
    return hashlib.blake2b(value, digest_size=16, key=key[:64]).digest()
