"""A store of judgements: appended, never changed, never lost.

`add` returns after the commit. Rows are numbered without gaps in the order of their
commits, so the last number identifies a state of the store: reading up to it gives that
state, whatever is written meanwhile.
"""

import hashlib
import io
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple, Self, cast

import numpy as np
from scipy import sparse

from linkspread.ground.checks import check_count, check_positive
from linkspread.ground.errors import LinkError, LinkspreadError, StoreError
from linkspread.storage.database import Database, open_database, sqlalchemy
from linkspread.storage.judgements import (
    JudgedPairs,
    Judgement,
    Ledger,
    Undo,
    check_judgement,
    check_undo,
    same_content,
)

VERSION = 2
# For each version the function that converts its tables to those of the next one.
MIGRATIONS: dict[int, Callable[[Any], None]] = {}
# Key of the PostgreSQL lock that is held while the tables are prepared.
PREPARING = 0x6C696E6B
STORE, JUDGEMENTS = "linkspread_link_store", "linkspread_judgements"
PEOPLE, KEPT = "linkspread_people", "linkspread_kept_items"


@cache
def tables() -> Any:
    """Return the metadata of all tables of this version."""
    sql = sqlalchemy()
    metadata = sql.MetaData()
    sql.Table(
        STORE,
        metadata,
        sql.Column("one", sql.Integer, primary_key=True),
        sql.Column("version", sql.Integer, nullable=False),
        sql.Column("written_by", sql.Text, nullable=False),
        sql.CheckConstraint("one = 1"),
    )
    # Only "INTEGER PRIMARY KEY" is the rowid of SQLite.
    number = sql.BigInteger().with_variant(sql.Integer(), "sqlite")
    item = {"view": sql.Text, "id": sql.Text, "is_integer": sql.Boolean}
    sql.Table(
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
    sql.Table(
        PEOPLE,
        metadata,
        sql.Column("name", sql.Text, primary_key=True),
        sql.Column("role", sql.Text, nullable=False),
        sql.Column("digest", sql.Text, nullable=False, unique=True),
        sql.Column("at", sql.DateTime(timezone=True), nullable=False),
    )
    sql.Table(
        KEPT,
        metadata,
        sql.Column("view", sql.Text, primary_key=True),
        sql.Column("id", sql.Text, primary_key=True),
        sql.Column("text", sql.Text),
        sql.Column("picture", sql.LargeBinary),
        sql.Column("features", sql.LargeBinary, nullable=False),
    )
    return metadata


def judgement_rows() -> Any:
    """Return the table of judgements."""
    return tables().tables[JUDGEMENTS]


def is_current(connection: Any) -> bool:
    """Return whether there are tables of this version."""
    return _stored_version(connection) == VERSION


def prepare_tables(connection: Any) -> None:
    """Create the tables or bring them up to date, within one transaction."""
    # Imported here, because the package imports this room.
    from linkspread import __version__

    if connection.dialect.name == "postgresql":
        lock = sqlalchemy().func.pg_advisory_xact_lock(PREPARING)
        connection.execute(sqlalchemy().select(lock))
    found = _stored_version(connection)
    tables().create_all(connection)
    store, row = tables().tables[STORE], {"version": VERSION, "written_by": __version__}
    if found is None:
        connection.execute(store.insert().values(one=1, **row))
    elif found < VERSION:
        for version in range(found, VERSION):
            if version in MIGRATIONS:
                MIGRATIONS[version](connection)
        connection.execute(store.update().values(**row))


def lock_store(connection: Any) -> None:
    """Make other writers wait until this transaction ends.

    Numbers are assigned under the lock, which is released after the commit, so a reader
    that sees a number sees all smaller ones.
    """
    # SQLite has no such lock; BEGIN IMMEDIATE has done the same. Another process may
    # have upgraded the store since it was opened here.
    _read_version(connection, locking=True)


def _stored_version(connection: Any) -> int | None:
    """Return the version of the tables, or None where there are none."""
    has_tables = sqlalchemy().inspect(connection).has_table(STORE)
    return _read_version(connection) if has_tables else None


def _read_version(connection: Any, *, locking: bool = False) -> int:
    """Return the version of the tables; refuse a newer one."""
    store = tables().tables[STORE]
    statement = sqlalchemy().select(store.c.version, store.c.written_by)
    statement = statement.with_for_update() if locking else statement
    version, written_by = connection.execute(statement).one()
    if version > VERSION:
        raise StoreError(
            f"a link store must be of version {VERSION} or older, got version "
            f"{version}, written by linkspread {written_by}. Install that version or "
            "a newer one."
        )
    return version


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
        self.people, self.kept = People(database), KeptItems(database)

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
            Seconds to wait while other processes write, or while the server of an open
            store is away.
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
        """Store a judgement and return its id; it is on the disk then.

        A judgement whose id is there already is not stored again.
        """
        return self.add_many([judgement])[0]

    def add_many(self, judgements: Iterable[Judgement]) -> list[str]:
        """Store judgements, all of them or none, and return their ids."""
        checked = [check_judgement(judgement) for judgement in judgements]
        if checked:
            self._database.write(append_judgements, judgements=checked)
        return [judgement.id for judgement in checked]

    def undo(self, id: str, *, who: str, note: str = "") -> str:
        """Undo a judgement, which stays but no longer counts; return the undo's id.

        A second undo returns the id of the first. An undo cannot be undone: judge the
        pair again.
        """
        undo = check_undo(Undo(who=who, takes_back=id, note=note))
        return self._database.write(append_undo, undo=undo)

    def judgements(
        self, *, active_only: bool = True, after: int = 0, limit: int | None = None
    ) -> Iterator[Judgement]:
        """Return the judgements stored so far, in their order.

        `active_only` leaves out those that were undone, `after` those up to a number;
        there are at most `limit`.
        """
        kind = "active" if active_only else "judgements"
        return cast(Iterator[Judgement], self._rows(kind, after=after, limit=limit))

    def changes(
        self, *, after: int = 0, limit: int | None = None
    ) -> Iterator[Judgement | Undo]:
        """Return judgements and undos after a number, in their order.

        Numbers have no gaps and follow the order of the commits. Continue from the
        number of the last row read.
        """
        return self._rows("changes", after=after, limit=limit)

    def pairs(self, *, until: int | None = None) -> JudgedPairs:
        """Return the judged pairs, as columns for each pair of views.

        The latest judgement of each person on a pair counts, unless it was undone.
        Several people's judgements of one pair are separate rows. `until` is the number
        of the last row to read.
        """
        newest = self.last_number()
        if until is not None:
            remedy = "Leave it out to get all."
            check_count(until, name="until", remedy=remedy, at_least=0)
            newest = min(newest, until)
        ledger = Ledger()
        ledger.read(self._rows("active", after=0, limit=None, until=newest))
        return ledger.pairs(newest)

    def count(self, *, active_only: bool = True) -> int:
        """Return the number of judgements, by default without those undone."""
        return self._database.read(count_judgements, active_only=active_only)

    def last_number(self) -> int:
        """Return the number of the last judgement or undo, 0 for an empty store."""
        return self._database.read(last_number)

    def backup(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a copy of an SQLite store; others may write meanwhile.

        The copy is a store with all rows up to one number. To restore it, put it in
        the place of the other while that is not open.
        """
        self._database.backup(path, overwrite=overwrite)

    def find(self, id: str) -> Judgement | Undo | None:
        """Return the row with an id, None if there is none."""
        return self._database.read(_find, ids=[id]).get(id)

    def close(self) -> None:
        """Close the connections; closing twice is allowed."""
        self._database.close()

    def _rows(
        self, kind: str, *, after: int, limit: int | None, until: int | None = None
    ) -> Iterator[Any]:
        """Check the arguments and return rows, read in pages."""
        remedy = "Leave it out to get all."
        check_count(after, name="after", remedy=remedy, at_least=0)
        if limit is not None:
            check_count(limit, name="limit", remedy=remedy, at_least=0)
        until = self.last_number() if until is None else until
        return self._pages(kind, after, until if limit is None else limit, until)

    def _pages(self, kind: str, after: int, left: int, until: int) -> Iterator[Any]:
        """Yield rows page by page, so that no transaction lasts long."""
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

    def __exit__(self, *error: object) -> None:
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
    rows = judgement_rows()
    earlier = sqlalchemy().select(rows.c.id).where(rows.c.takes_back == undo.takes_back)
    known = connection.execute(earlier).scalar()
    if known is not None:
        return known
    _insert(connection, [vars(undo) | {"verdict": "undo"}])
    return undo.id


def last_number(connection: Any) -> int:
    """Return the number of the last row, 0 if there is none."""
    newest = sqlalchemy().func.max(judgement_rows().c.number)
    return connection.execute(sqlalchemy().select(newest)).scalar() or 0


def count_judgements(connection: Any, *, active_only: bool) -> int:
    """Return the number of judgements."""
    sql, rows = sqlalchemy(), judgement_rows()
    n_undos = sql.func.count(rows.c.takes_back)
    statement = sql.select(sql.func.count(), n_undos).select_from(rows)
    total, undos = connection.execute(statement).one()
    # Each undo is a row, and removes one judgement.
    return total - undos * (2 if active_only else 1)


def read_page(
    connection: Any, *, after: int, until: int, size: int, kind: str
) -> list[Judgement | Undo]:
    """Return the next rows after one number and up to another.

    `kind` is "changes" for all rows, "judgements" for those without undos, "active"
    for those not undone up to `until`.
    """
    sql, rows = sqlalchemy(), judgement_rows()
    statement = sql.select(rows).where(rows.c.number > after, rows.c.number <= until)
    if kind != "changes":
        statement = statement.where(rows.c.verdict != "undo")
    if kind == "active":
        undo = rows.alias("undo")
        is_undone = undo.c.takes_back == rows.c.id, undo.c.number <= until
        statement = statement.where(~sql.exists().where(*is_undone))
    found = connection.execute(statement.order_by(rows.c.number).limit(size))
    return [_from_row(row) for row in found.mappings()]


def _find(connection: Any, ids: list[str]) -> dict[str, Judgement | Undo]:
    """Return the rows with these ids."""
    rows = judgement_rows()
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
        connection.execute(judgement_rows().insert(), numbered)


def _judgement_row(judgement: Judgement) -> dict[str, Any]:
    """Return the columns of a judgement."""
    return vars(judgement) | {
        "left_id": str(judgement.left_id),
        "left_is_integer": isinstance(judgement.left_id, int),
        "right_id": str(judgement.right_id),
        "right_is_integer": isinstance(judgement.right_id, int),
    }


def _from_row(row: Any) -> Judgement | Undo:
    """Return the judgement or undo of a row."""
    # SQLite has no time zones; times are stored in UTC.
    at = row["at"]
    at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    common = {name: row[name] for name in ("number", "id", "who", "note")} | {"at": at}
    if row["verdict"] == "undo":
        return Undo(takes_back=row["takes_back"], **common)
    items: dict[str, Any] = {
        f"{side}_id": int(row[f"{side}_id"])
        if row[f"{side}_is_integer"]
        else row[f"{side}_id"]
        for side in ("left", "right")
    }
    plain = ("left_view", "right_view", "verdict", "weight")
    return Judgement(**items, **{name: row[name] for name in plain}, **common)


ROLES = ("judge", "editor")
MAX_NAME = 60


class Person(NamedTuple):
    """Somebody who was invited; an editor may undo all judgements and invite others."""

    name: str
    role: str
    digest: str
    at: datetime


class People:
    """The people of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def invite(self, name: str, *, role: str) -> str:
        """Add a person, or give one a new secret; return the secret."""
        name = " ".join(name.split())
        if not (0 < len(name) <= MAX_NAME and name.isprintable()):
            raise LinkspreadError(
                f"a name must have 1 to {MAX_NAME} letters, got {name[:80]!r}. "
                "Choose another."
            )
        if role not in ROLES:
            raise LinkspreadError(
                f"a role must be one of {', '.join(ROLES)}, got {role[:60]!r}. Choose "
                "one of these."
            )
        secret = secrets.token_urlsafe(24)
        person = Person(name, role, digest_of(secret), datetime.now(UTC))
        self._database.write(_put_person, person=person)
        return secret

    def remove(self, name: str) -> None:
        """Remove a person; the judgements stay."""
        self._database.write(_remove_person, name=name)

    def all(self) -> list[Person]:
        """Return all people, by name."""
        return self._database.read(_read_people)


@dataclass(frozen=True)
class KeptItem:
    """A query that was judged: words, or a picture as PNG, and its features."""

    view: str
    id: str
    content: str | bytes
    rows: Any


class KeptItems:
    """The judged queries of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, item: KeptItem) -> None:
        """Keep an item; one that is there stays as it is."""
        self._database.write(_keep, item=item)

    def read(self, view: str, ids: Sequence[str]) -> list[KeptItem]:
        """Return the kept items of a view with these ids."""
        return self._database.read(_read_kept, view=view, ids=[*ids]) if ids else []


def digest_of(secret: str) -> str:
    """Return the hash of a secret; secrets are random, so that a fast one will do."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _put_person(connection: Any, *, person: Person) -> None:
    """Write a person in place of one with the same name."""
    _remove_person(connection, name=person.name)
    connection.execute(tables().tables[PEOPLE].insert().values(**person._asdict()))


def _remove_person(connection: Any, *, name: str) -> None:
    """Delete a person."""
    rows = tables().tables[PEOPLE]
    connection.execute(rows.delete().where(rows.c.name == name))


def _read_people(connection: Any) -> list[Person]:
    """Return all people, by name."""
    rows = tables().tables[PEOPLE]
    found = connection.execute(sqlalchemy().select(rows).order_by(rows.c.name))
    return [Person(**row) for row in found.mappings()]


def _keep(connection: Any, *, item: KeptItem) -> None:
    """Insert an item unless it is there."""
    rows = tables().tables[KEPT]
    same = (rows.c.view == item.view) & (rows.c.id == item.id)
    if connection.execute(sqlalchemy().select(rows.c.id).where(same)).first() is None:
        is_text = isinstance(item.content, str)
        values = {
            "view": item.view,
            "id": item.id,
            "text": item.content if is_text else None,
            "picture": None if is_text else item.content,
            "features": _pack(item.rows),
        }
        connection.execute(rows.insert().values(**values))


def _read_kept(connection: Any, *, view: str, ids: list[str]) -> list[KeptItem]:
    """Return the items of a view with these ids."""
    rows, found = tables().tables[KEPT], []
    for start in range(0, len(ids), 500):
        chosen = (rows.c.view == view) & rows.c.id.in_(ids[start : start + 500])
        read = connection.execute(sqlalchemy().select(rows).where(chosen)).mappings()
        for row in read:
            content = row["picture"] if row["text"] is None else row["text"]
            features = _unpack(row["features"])
            found.append(KeptItem(row["view"], row["id"], content, features))
    return found


def _pack(rows: Any) -> bytes:
    """Return one row of features as bytes."""
    file = io.BytesIO()
    if sparse.issparse(rows):
        row = sparse.csr_array(rows)
        values, columns = row.data, row.indices
    else:
        values, columns = np.asarray(rows).ravel(), np.zeros(0, dtype=np.int64)
    np.savez(file, values=values, columns=columns, n_columns=rows.shape[1])
    return file.getvalue()


def _unpack(data: bytes) -> Any:
    """Return one row of features, checked, from bytes."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as parts:
            values, columns = parts["values"], parts["columns"]
            n_columns = int(parts["n_columns"])
        if not len(columns) and len(values) == n_columns:
            return values[None]
        row = sparse.csr_array((values, columns, [0, len(values)]), (1, n_columns))
        row.check_format(full_check=True)
    except Exception as error:
        raise StoreError(
            "the features of a kept item must be one row of numbers, and some are "
            "damaged. Restore a copy of the store."
        ) from error
    return row
