"""Judgements of people: committed first, taken up by the model then."""

import uuid
from typing import NamedTuple

from linkspread.ground.errors import LinkspreadError
from linkspread.storage import Judgement, Undo
from linkspread.storage.judgements import check_uuid
from linkspread.web.site import Site


class Outcome(NamedTuple):
    """What became of a judgement."""

    id: str
    is_in_model: bool


class Entry(NamedTuple):
    """A line of the history."""

    row: Judgement | Undo
    is_active: bool
    left: str
    right: str


def judge(
    site: Site,
    *,
    who: str,
    source: tuple[str, str],
    target: tuple[str, str],
    verdict: str,
    key: str = "",
    note: str = "",
) -> Outcome:
    """Store what somebody says of two items, each a view and an id.

    The same `key` with the same content is one judgement, however often it is sent.
    """
    left, right = (_known_id(site, *item) for item in (source, target))
    content = "\n".join((verdict, source[0], str(left), target[0], str(right)))
    # A made-up key is no UUID and is refused in a sentence.
    base = uuid.UUID(check_uuid(key, "key")) if key else uuid.uuid4()
    judgement = Judgement(
        who=who,
        left_view=source[0],
        left_id=left,
        right_view=target[0],
        right_id=right,
        verdict=verdict,
        note=note,
        id=str(uuid.uuid5(base, content)),
    )
    id = site.live.store.add(judgement)
    site.telemetry.count("judgements", verdict)
    return Outcome(id, site.live.catch_up(id=id))


def take_back(site: Site, id: str, *, who: str) -> Outcome:
    """Take a judgement back."""
    undone = site.live.store.undo(id, who=who)
    site.telemetry.count("judgements", "undo")
    return Outcome(undone, site.live.catch_up(id=undone))


def recent(site: Site, *, before: int | None, n: int) -> list[Entry]:
    """Return rows of the store before a number, the newest first."""
    last = site.live.store.last_number()
    end = last + 1 if before is None else max(1, min(before, last + 1))
    start = max(0, end - 1 - n)
    rows = list(site.live.store.changes(after=start, limit=end - 1 - start))
    return [_entry(site, row) for row in reversed(rows)]


def _entry(site: Site, row: Judgement | Undo) -> Entry:
    """Describe a row."""
    if isinstance(row, Undo):
        return Entry(row, False, "", "")
    left = _title(site, row.left_view, row.left_id)
    right = _title(site, row.right_view, row.right_id)
    return Entry(row, site.live.ledger.is_active(row.id), left, right)


def _title(site: Site, view: str, id: str | int) -> str:
    """Return what an item is called, its id where the model has no such item."""
    items = site.items.get(view)
    if items is None or not items.contains([id])[0]:
        return str(id)
    return site.contents.title(view, int(items.positions([id])[0]))


def _known_id(site: Site, view: str, id: str) -> str | int:
    """Return the id of an item as the model has it."""
    if view not in site.items:
        raise LinkspreadError(
            f"a judgement must name views of the model, {list(site.views)}, got "
            f"{view[:60]!r}. Correct the name."
        )
    items = site.items[view]
    return items.ids[items.positions([id], what="a judgement")[0]].item()
