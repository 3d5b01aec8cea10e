"""The database of a link store: transactions, and trying again where others write.

SQLite lives in one file, PostgreSQL behind a URL. What both say of failures is told in
sentences of our own; a URL and its password are in none of them.
"""

import os
import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from linkspread.ground.errors import LinkspreadError, StoreError
from linkspread.storage.link_store_tables import sqlalchemy

T = TypeVar("T")

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
