"""The tables of a link store, and their versions.

To add a table, define it in `tables` and raise `VERSION`: stores get the tables they
lack when they are opened. To change one, also add a function to `MIGRATIONS`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from linkspread.ground.errors import StoreError
from linkspread.storage.database import sqlalchemy

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
