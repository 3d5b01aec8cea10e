"""A store of judgements: appended, never changed, never lost.

`add` returns after the commit. Rows are numbered without gaps in the order of their
commits, so the last number identifies a state of the store: reading up to it gives that
state, whatever is written meanwhile.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from types import TracebackType
from typing import Any, Self, cast

from linkspread.ground.checks import check_count, check_positive
from linkspread.ground.errors import LinkError
from linkspread.storage.database import (
    Database,
    is_current,
    lock_store,
    open_database,
    prepare_tables,
    sqlalchemy,
    tables,
)
from linkspread.storage.judgements import (
    Judgement,
    Undo,
    check_judgement,
    check_undo,
    same_content,
)
from linkspread.storage.ledger import JudgedPairs, gather_pairs

# Rows read at a time.
PAGE = 1000
# Values in one statement; the databases allow some ten thousand.
CHUNK = 1000


class LinkStore:
    """Judgements of people on pairs of items, in SQLite or PostgreSQL.

    Open one with :meth:`open`. Several processes may write at once, and the threads
    of one process may share a store.

    Parameters
    ----------
    database : Database
        Where the rows are.

    Examples
    --------
    >>> import tempfile
    >>> from linkspread.storage import Judgement, LinkStore
    >>> folder = tempfile.TemporaryDirectory()
    >>> pair = dict(left_view="text", left_id="t1", right_view="image", right_id=7)
    >>> with LinkStore.open(f"{folder.name}/judgements.db") as store:
    ...     first = store.add(Judgement(who="ann", **pair, verdict="must"))
    ...     store.pairs().columns["image", "text"].weight
    array([1.])
    >>> folder.cleanup()
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, place: str | os.PathLike[str], *, timeout: float = 30.0) -> Self:
        """Open a store, or create one.

        Parameters
        ----------
        place : str or Path
            Path of a file, or "postgresql://user@host:5432/database". What the URL
            omits comes from the environment (PGPASSWORD) or ~/.pgpass. It is never
            shown in a message.
        timeout : float, default=30.0
            Seconds to wait while other processes write.

        Returns
        -------
        store : LinkStore
        """
        check_positive(timeout, name="timeout", remedy="Give a number of seconds.")
        database = open_database(place, timeout=timeout)
        try:
            if not database.read(is_current):
                database.write(prepare_tables)
        except BaseException:
            database.close()
            raise
        return cls(database)

    def add(self, judgement: Judgement) -> str:
        """Store a judgement; it is on the disk when this returns.

        Parameters
        ----------
        judgement : Judgement

        Returns
        -------
        id : str
            Its id. A judgement that is there already is not stored again.
        """
        return self.add_many([judgement])[0]

    def add_many(self, judgements: Iterable[Judgement]) -> list[str]:
        """Store judgements, all of them or none.

        Parameters
        ----------
        judgements : iterable of Judgement

        Returns
        -------
        ids : list of str
        """
        checked = [check_judgement(judgement) for judgement in judgements]
        if checked:
            self._database.write(append_judgements, judgements=checked)
        return [judgement.id for judgement in checked]

    def undo(self, id: str, *, who: str, note: str = "") -> str:
        """Undo a judgement, which stays in the store but no longer counts.

        An undo cannot be undone: judge the pair again.

        Parameters
        ----------
        id : str
            Id of the judgement.
        who : str
            Name of the person.
        note : str, default=""

        Returns
        -------
        id : str
            Id of the undo; that of the first one if the judgement was undone before.
        """
        undo = check_undo(Undo(who=who, takes_back=id, note=note))
        return self._database.write(append_undo, undo=undo)

    def judgements(
        self, *, active_only: bool = True, after: int = 0, limit: int | None = None
    ) -> Iterator[Judgement]:
        """Return the judgements stored so far, in their order.

        Parameters
        ----------
        active_only : bool, default=True
            Whether to leave out judgements that were undone.
        after : int, default=0
            Only those with a larger number.
        limit : int, default=None
            How many at most.

        Returns
        -------
        judgements : iterator of Judgement
        """
        kind = "active" if active_only else "judgements"
        found = self._rows(kind, after=after, limit=limit, until=self.last_number())
        return cast(Iterator[Judgement], found)

    def changes(
        self, *, after: int = 0, limit: int | None = None
    ) -> Iterator[Judgement | Undo]:
        """Return judgements and undos after a number, in their order.

        Numbers have no gaps and follow the order of the commits. Continue from the
        number of the last row read.

        Parameters
        ----------
        after : int, default=0
            Number of the last row that is known.
        limit : int, default=None
            How many at most.

        Returns
        -------
        changes : iterator of Judgement and Undo
        """
        return self._rows("changes", after=after, limit=limit, until=self.last_number())

    def pairs(self, *, until: int | None = None) -> JudgedPairs:
        """Return the judged pairs, as columns for each pair of views.

        The latest judgement of each person on a pair counts, unless it was undone.
        Several people's judgements of one pair are separate rows.

        Parameters
        ----------
        until : int, default=None
            Number of the last row to read; None reads all.

        Returns
        -------
        pairs : JudgedPairs
            With the number of the last row read, and the pairs people disagree on.
        """
        newest = self.last_number()
        if until is not None:
            remedy = "Leave it out to get all."
            check_count(until, name="until", remedy=remedy, at_least=0)
            newest = min(newest, until)
        active = self._rows("active", after=0, limit=None, until=newest)
        return gather_pairs(cast(Iterator[Judgement], active), newest)

    def count(self, *, active_only: bool = True) -> int:
        """Return the number of judgements.

        Parameters
        ----------
        active_only : bool, default=True
            Whether to leave out judgements that were undone.

        Returns
        -------
        n_judgements : int
        """
        return self._database.read(count_judgements, active_only=active_only)

    def last_number(self) -> int:
        """Return the number of the last judgement or undo, 0 for an empty store.

        Returns
        -------
        number : int
        """
        return self._database.read(last_number)

    def close(self) -> None:
        """Close the connections; closing twice is allowed."""
        self._database.close()

    def _rows(
        self, kind: str, *, after: int, limit: int | None, until: int
    ) -> Iterator[Any]:
        """Check the arguments and return rows, read in pages."""
        remedy = "Leave it out to get all."
        check_count(after, name="after", remedy=remedy, at_least=0)
        if limit is not None:
            check_count(limit, name="limit", remedy=remedy, at_least=0)
        return self._pages(kind, after, limit, until)

    def _pages(
        self, kind: str, after: int, limit: int | None, until: int
    ) -> Iterator[Any]:
        """Yield rows page by page, so that no transaction lasts long."""
        left = until if limit is None else limit
        while left > 0:
            size = min(PAGE, left)
            page: list[Any] = self._database.read(
                read_page, after=after, until=until, size=size, kind=kind
            )
            yield from page
            if len(page) < size:
                return
            left, after = left - size, page[-1].number

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<LinkStore: {self._database.name}>"


def append_judgements(connection: Any, judgements: Sequence[Judgement]) -> None:
    """Append the judgements that are not stored yet."""
    lock_store(connection)
    there = _find(connection, [judgement.id for judgement in judgements])
    new: dict[str, Judgement] = {}
    for judgement in judgements:
        known = there.get(judgement.id) or new.setdefault(judgement.id, judgement)
        if isinstance(known, Undo) or not same_content(known, judgement):
            raise LinkError(
                "`id` must be unique, but another judgement has "
                f"{judgement.id}. Give it a new id."
            )
    _insert(connection, [_judgement_row(judgement) for judgement in new.values()])


def append_undo(connection: Any, undo: Undo) -> str:
    """Append an undo and return its id, or that of an earlier undo."""
    lock_store(connection)
    found = _find(connection, [undo.takes_back]).get(undo.takes_back)
    if found is None:
        raise LinkError(
            f"`id` must be of a judgement in this store, got {undo.takes_back}. "
            "Look it up with `judgements()`."
        )
    if isinstance(found, Undo):
        raise LinkError(
            f"`id` must be of a judgement, and {undo.takes_back} is an undo, which "
            "cannot be undone. Judge the pair again."
        )
    rows = tables().judgements
    earlier = sqlalchemy().select(rows.c.id).where(rows.c.takes_back == undo.takes_back)
    known = connection.execute(earlier).scalar()
    if known is not None:
        return known
    _insert(connection, [_undo_row(undo)])
    return undo.id


def last_number(connection: Any) -> int:
    """Return the number of the last row, 0 if there is none."""
    newest = sqlalchemy().func.max(tables().judgements.c.number)
    return connection.execute(sqlalchemy().select(newest)).scalar() or 0


def count_judgements(connection: Any, *, active_only: bool) -> int:
    """Return the number of judgements."""
    rows = tables().judgements
    is_undo = sqlalchemy().case((rows.c.verdict == "undo", 1), else_=0)
    n_rows, n_undos = sqlalchemy().func.count(), sqlalchemy().func.sum(is_undo)
    statement = sqlalchemy().select(n_rows, n_undos).select_from(rows)
    total, undos = connection.execute(statement).one()
    # Each undo is a row, and removes one judgement.
    return total - (undos or 0) * (2 if active_only else 1)


def read_page(
    connection: Any,
    *,
    after: int,
    until: int,
    size: int,
    kind: str,
) -> list[Judgement | Undo]:
    """Return the next rows after one number and up to another.

    `kind` is "changes" for all rows, "judgements" for those without undos, "active"
    for those not undone up to `until`.
    """
    rows = tables().judgements
    statement = sqlalchemy().select(rows)
    statement = statement.where(rows.c.number > after, rows.c.number <= until)
    if kind != "changes":
        statement = statement.where(rows.c.verdict != "undo")
    if kind == "active":
        undo = rows.alias("undo")
        taken_back = (
            sqlalchemy()
            .exists()
            .where(undo.c.takes_back == rows.c.id, undo.c.number <= until)
        )
        statement = statement.where(~taken_back)
    found = connection.execute(statement.order_by(rows.c.number).limit(size))
    return [_from_row(row) for row in found.mappings()]


def _find(connection: Any, ids: list[str]) -> dict[str, Judgement | Undo]:
    """Return the rows with these ids."""
    rows = tables().judgements
    found: dict[str, Judgement | Undo] = {}
    for start in range(0, len(ids), CHUNK):
        chosen = rows.c.id.in_(ids[start : start + CHUNK])
        result = connection.execute(sqlalchemy().select(rows).where(chosen))
        found |= {row["id"]: _from_row(row) for row in result.mappings()}
    return found


def _insert(connection: Any, values: list[dict[str, Any]]) -> None:
    """Insert rows with the next numbers; the caller holds the lock."""
    if values:
        first = last_number(connection) + 1
        numbered = [row | {"number": first + i} for i, row in enumerate(values)]
        connection.execute(tables().judgements.insert(), numbered)


def _judgement_row(judgement: Judgement) -> dict[str, Any]:
    """Return the columns of a judgement."""
    return vars(judgement) | {
        "left_id": str(judgement.left_id),
        "left_is_integer": isinstance(judgement.left_id, int),
        "right_id": str(judgement.right_id),
        "right_is_integer": isinstance(judgement.right_id, int),
        "takes_back": None,
    }


def _undo_row(undo: Undo) -> dict[str, Any]:
    """Return the columns of an undo."""
    return vars(undo) | {"verdict": "undo"}


def _from_row(row: Any) -> Judgement | Undo:
    """Return the judgement or undo of a row."""
    # SQLite has no time zones; times are stored in UTC.
    at = row["at"]
    at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    common = {name: row[name] for name in ("number", "id", "who", "note")} | {"at": at}
    if row["verdict"] == "undo":
        return Undo(takes_back=row["takes_back"], **common)
    return Judgement(
        left_view=row["left_view"],
        left_id=_item(row["left_id"], row["left_is_integer"]),
        right_view=row["right_view"],
        right_id=_item(row["right_id"], row["right_is_integer"]),
        verdict=row["verdict"],
        weight=row["weight"],
        **common,
    )


def _item(text: str, is_integer: bool) -> str | int:
    """Return the id of an item as it was given."""
    return int(text) if is_integer else text
