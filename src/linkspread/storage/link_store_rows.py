"""Rows of a link store: appended under a lock, read in their order.

Rows are never changed, and numbered without gaps in the order of their commits. So the
last number names a state of the store, and reading up to it gives that state however
many pages it takes and whatever is written meanwhile.
"""

from collections.abc import Sequence
from datetime import UTC
from typing import Any

from linkspread.ground.errors import LinkError
from linkspread.storage.judgements import Judgement, Undo, same_content
from linkspread.storage.link_store_tables import lock_store, sqlalchemy, tables

# Values in one statement; the databases allow some ten thousand.
CHUNK = 1000


def append_judgements(connection: Any, judgements: Sequence[Judgement]) -> None:
    """Append the judgements that are not there yet."""
    lock_store(connection)
    there = _find(connection, [judgement.id for judgement in judgements])
    new: dict[str, Judgement] = {}
    for judgement in judgements:
        known = there.get(judgement.id) or new.setdefault(judgement.id, judgement)
        if isinstance(known, Undo) or not same_content(known, judgement):
            raise LinkError(
                "`id` must belong to one judgement, but another one has "
                f"{judgement.id}. Give it a new id."
            )
    _insert(connection, [_judgement_row(judgement) for judgement in new.values()])


def append_undo(connection: Any, undo: Undo) -> str:
    """Append an undo and return its id, or that of the one that is there."""
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
            "cannot be taken back. Judge the pair again."
        )
    rows = tables().judgements
    earlier = sqlalchemy().select(rows.c.id).where(rows.c.takes_back == undo.takes_back)
    known = connection.execute(earlier).scalar()
    if known is not None:
        return known
    _insert(connection, [_undo_row(undo)])
    return undo.id


def last_number(connection: Any) -> int:
    """Return the number of the last row, 0 where there is none."""
    newest = sqlalchemy().func.max(tables().judgements.c.number)
    return connection.execute(sqlalchemy().select(newest)).scalar() or 0


def count_judgements(connection: Any, *, active_only: bool) -> int:
    """Return the number of judgements."""
    rows = tables().judgements
    is_undo = sqlalchemy().case((rows.c.verdict == "undo", 1), else_=0)
    n_rows, n_undos = sqlalchemy().func.count(), sqlalchemy().func.sum(is_undo)
    statement = sqlalchemy().select(n_rows, n_undos).select_from(rows)
    total, undos = connection.execute(statement).one()
    # Each undo is a row itself, and takes back one judgement.
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
    for those that were not taken back by the time of `until`.
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
    """Return what is there under these ids."""
    rows = tables().judgements
    found: dict[str, Judgement | Undo] = {}
    for start in range(0, len(ids), CHUNK):
        chosen = rows.c.id.in_(ids[start : start + CHUNK])
        result = connection.execute(sqlalchemy().select(rows).where(chosen))
        found |= {row["id"]: _from_row(row) for row in result.mappings()}
    return found


def _insert(connection: Any, values: list[dict[str, Any]]) -> None:
    """Insert rows with the next numbers; the lock is held."""
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
    """Return what a row holds."""
    # SQLite has no time zones: what it holds was UTC when it was written.
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
