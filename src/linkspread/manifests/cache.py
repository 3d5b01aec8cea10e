"""Rows that were made before, by the content of the file and by the transformer.

One SQLite file, which several processes may use at the same time. Nothing in it is
believed without its checksum; a damaged file is thrown away and begun anew.
"""

import hashlib
import os
import sqlite3
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from linkspread.ground.errors import LinkspreadError

Result = TypeVar("Result")
# Says that a file is ours, and how it is laid out.
APPLICATION = 0x6C73_6663
LAYOUT = 1
# Seconds that one process waits for another.
PATIENCE = 30
SCHEMA = "CREATE TABLE IF NOT EXISTS entry (key BLOB PRIMARY KEY, value BLOB, sum BLOB)"
# As many keys as every SQLite takes in one question.
MANY = 500


class RowCache:
    """Keep bytes by key in a file that may be deleted at any time.

    Parameters
    ----------
    path : str or Path
        Made where there is none.

    Attributes
    ----------
    n_found, n_added : int
        Entries that were found and added.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from linkspread.manifests import RowCache
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with RowCache(Path(folder) / "rows.sqlite") as cache:
    ...         cache.put({b"key": b"value"})
    ...         cache.get([b"key", b"other"])
    {b'key': b'value'}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.n_found = self.n_added = 0
        self._connection: sqlite3.Connection | None = None
        self._open()

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the entries that there are.

        Parameters
        ----------
        keys : iterable of bytes

        Returns
        -------
        entries : dict from bytes to bytes
        """
        found = self._try(lambda connection: _select(connection, list(keys))) or {}
        if any(sum_ != _checksum(key, value) for key, (value, sum_) in found.items()):
            self._discard("an entry has another checksum than it was written with")
            return {}
        self.n_found += len(found)
        return {key: value for key, (value, _) in found.items()}

    def put(self, entries: Mapping[bytes, bytes]) -> None:
        """Add entries, all of them or none.

        Parameters
        ----------
        entries : mapping from bytes to bytes
        """
        rows = [(key, own, _checksum(key, own)) for key, own in entries.items()]

        def write(connection: sqlite3.Connection) -> bool:
            with connection:
                connection.executemany(
                    "INSERT OR REPLACE INTO entry VALUES (?, ?, ?)", rows
                )
            return True

        written = self._try(write) if rows else None
        self.n_added += len(rows) if written else 0

    def close(self) -> None:
        """Give the file back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> None:
        """Open the file, a new one where it is damaged."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = _connect(self.path)
        except sqlite3.OperationalError as error:
            self._do_without(error)
        except sqlite3.DatabaseError as error:
            self._discard(str(error))
        except OSError as error:
            self._do_without(error)

    def _try(self, work: Callable[[sqlite3.Connection], Result]) -> Result | None:
        """Return what a question to the file gives, or None where it gives nothing."""
        if self._connection is None:
            return None
        try:
            return work(self._connection)
        except sqlite3.OperationalError as error:
            # Locked for too long, or a full disk: neither means damage.
            self._do_without(error)
        except sqlite3.DatabaseError as error:
            self._discard(str(error))
        return None

    def _do_without(self, error: Exception) -> None:
        """Go on without the file, and say so."""
        self.close()
        warnings.warn(
            f"the cache must be a file that can be written, and {str(self.path)!r} "
            f"cannot be used ({error!s:.80}). This run does without.",
            stacklevel=2,
        )

    def _discard(self, why: str) -> None:
        """Throw the file away, and begin anew."""
        self.close()
        _check_ours(self.path)
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                os.unlink(f"{self.path}{suffix}")
        warnings.warn(
            f"the cache {str(self.path)!r} must be as it was written, and is damaged "
            f"({why:.80}). It was thrown away; rows are made again.",
            stacklevel=2,
        )
        try:
            self._connection = _connect(self.path)
        except (OSError, sqlite3.Error) as error:
            self._do_without(error)


def default_cache() -> Path:
    """Return where the command line keeps rows: in the user's folder for caches.

    Returns
    -------
    path : Path
    """
    if sys.platform == "win32":
        folder = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        folder = Path.home() / "Library" / "Caches"
    else:
        folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "linkspread" / "rows.sqlite"


def _connect(path: Path) -> sqlite3.Connection:
    """Return a connection to a file of ours."""
    connection = sqlite3.connect(path, timeout=PATIENCE)
    try:
        # One at a time, so that nobody sees a file that another has half made. No
        # write-ahead log: SQLite does not wait for others before it begins one.
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            if not _is_ours(connection):
                connection.execute(f"PRAGMA application_id={APPLICATION}").close()
                connection.execute(f"PRAGMA user_version={LAYOUT}").close()
                connection.execute(SCHEMA)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_ours(connection: sqlite3.Connection) -> bool:
    """Tell a cache from a new file, and refuse what is something else."""
    found = [
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    ]
    tables = [own for (own,) in connection.execute("SELECT name FROM sqlite_master")]
    if not tables:
        return False
    if found[0] != APPLICATION:
        raise LinkspreadError(
            "`cache` must be a file that linkspread made or a new one, got a database "
            "of something else. Give another path."
        )
    if found[1] != LAYOUT or "entry" not in tables:
        raise sqlite3.DatabaseError(f"layout {found[1]} of another version")
    return True


def _check_ours(path: Path) -> None:
    """Refuse to throw away a file that does not begin as a database does."""
    with suppress(OSError), open(path, "rb") as file:
        start = file.read(16)
        if start and start != b"SQLite format 3\0" and path.suffix != ".sqlite":
            raise LinkspreadError(
                f"`cache` must be a file that linkspread made or a new one, got "
                f"{str(path)!r}, which is something else. Give another path."
            )


def _select(
    connection: sqlite3.Connection, keys: Sequence[bytes]
) -> dict[bytes, tuple[bytes, bytes]]:
    """Return value and checksum of each key that there is."""
    found: dict[bytes, tuple[bytes, bytes]] = {}
    for start in range(0, len(keys), MANY):
        part = keys[start : start + MANY]
        places = ",".join("?" * len(part))
        question = f"SELECT key, value, sum FROM entry WHERE key IN ({places})"
        with closing(connection.execute(question, part)) as rows:
            found |= {key: (value, sum_) for key, value, sum_ in rows}
    return found


def _checksum(key: bytes, value: Any) -> bytes:
    """Return what tells an entry that is whole."""
    if not isinstance(value, bytes):
        return b""
    return hashlib.blake2b(value, digest_size=16, key=key[:64]).digest()
