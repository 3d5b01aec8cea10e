"""Tables of a link store, and bringing older ones up to date.

To change the tables, raise ``VERSION`` and add to ``MIGRATIONS`` what makes the new
tables out of the old ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from linkspread.ground.errors import StoreError, require

VERSION = 1
# From each version, what leads to the next one, given a connection.
MIGRATIONS: dict[int, Callable[[Any], None]] = {}
# Any number, as long as all agree on it: who holds it prepares the tables.
PREPARING = 0x6C696E6B
STORE, JUDGEMENTS = "linkspread_link_store", "linkspread_judgements"


def sqlalchemy() -> ModuleType:
    """Return the package SQLAlchemy, or say how to install it."""
    return require("sqlalchemy", extra="store", purpose="A link store")


@dataclass(frozen=True)
class Tables:
    """The tables of a store."""

    store: Any
    judgements: Any

    def create(self, connection: Any) -> None:
        """Create the tables, of which there are none yet."""
        self.store.metadata.create_all(connection)
        connection.execute(self.store.insert().values(one=1, **_written()))


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
    judgements = sql.Table(
        JUDGEMENTS,
        metadata,
        sql.Column("number", number, primary_key=True, autoincrement=False),
        sql.Column("id", sql.Text, nullable=False, unique=True),
        sql.Column("takes_back", sql.Text, sql.ForeignKey(f"{JUDGEMENTS}.id")),
        sql.Column("who", sql.Text, nullable=False),
        sql.Column("at", sql.DateTime(timezone=True), nullable=False),
        *_pair_columns(sql),
        sql.Column("note", sql.Text, nullable=False),
        sql.UniqueConstraint("takes_back"),
        sql.CheckConstraint("verdict IN ('must', 'cannot', 'unsure', 'undo')"),
        sql.CheckConstraint("(verdict = 'undo') = (takes_back IS NOT NULL)"),
        sql.CheckConstraint("(verdict = 'undo') = (left_id IS NULL)"),
    )
    return Tables(store, judgements)


def _pair_columns(sql: ModuleType) -> list[Any]:
    """Return the columns of a pair, which are empty for an undo."""
    kinds = {
        "left_view": sql.Text,
        "left_id": sql.Text,
        "left_is_integer": sql.Boolean,
        "right_view": sql.Text,
        "right_id": sql.Text,
        "right_is_integer": sql.Boolean,
        "weight": sql.Double,
    }
    columns = [sql.Column(name, kind) for name, kind in kinds.items()]
    return [*columns, sql.Column("verdict", sql.Text, nullable=False)]


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
        tables().create(connection)
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
