"""People who may use a page, and queries that they judged.

A person is invited with a secret that is shown once; the store has only its hash. A
query that was judged is kept as an item of its view, with its features, so that its
judgements count wherever the store is read.
"""

import hashlib
import io
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from linkspread.ground.errors import LinkspreadError, StoreError
from linkspread.storage.database import Database, sqlalchemy
from linkspread.storage.tables import KEPT, PEOPLE, tables

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
