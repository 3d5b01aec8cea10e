"""The history of judgements, as pages and files show it, and how far people agree."""

import io
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from linkspread.judging import Doubt
from linkspread.storage import Judgement, Undo
from linkspread.storage.judgements import SIGNS, PairKey, pair_key, pair_of
from linkspread.web.doubts import N_SHOWN, SETTLED
from linkspread.web.site import VERDICT_WORDS, Site

# Rows of the history that are read at a time, and looked at for one filtered page.
N_READ, MAX_FILTERED = 200, 20_000
# Disputed pairs and pairs of people on the page of the team.
N_DISPUTED, N_AGREEMENTS = 20, 10


class Entry(NamedTuple):
    """A line of the history."""

    row: Judgement | Undo
    is_active: bool
    is_disputed: bool = False
    left: str = ""
    right: str = ""
    pictures: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Filter:
    """Which rows of the history are shown."""

    who: str = ""
    verdict: str = ""
    since: str = ""
    disputed: bool = False

    def has(self, entry: Entry) -> bool:
        """Return whether an entry is shown."""
        row = entry.row
        verdict = "undo" if isinstance(row, Undo) else row.verdict
        return (
            self.who in ("", row.who)
            and self.verdict in ("", verdict)
            and self.since <= row.at.isoformat()
            and entry.is_disputed >= self.disputed
        )


class Agreement(NamedTuple):
    """How far two people agree on the pairs that both judged."""

    left: str
    right: str
    n_pairs: int
    kappa: float


class Dispute(NamedTuple):
    """A pair to settle: both items, and what each person said."""

    pair: PairKey
    sides: list[dict[str, str]]
    words: list[tuple[str, str]]


class Doubtful(NamedTuple):
    """A doubtful judgement, and those that contradict it: two items and a verdict."""

    pair: PairKey
    sides: list[dict[str, str]]
    words: list[tuple[str, str]]
    verdict: str
    probability: float
    against: list[tuple[str, str, str]]


class Progress(NamedTuple):
    """Judgements per person, agreement, and pairs to settle."""

    judged: list[tuple[str, int]]
    agreements: list[Agreement]
    disputes: list[Dispute]


def history(
    site: Site, *, before: int | None, n: int, where: Filter
) -> tuple[list[Entry], int]:
    """Return rows of the store before a number, the newest first.

    Also returns the number of the last row that was looked at, 1 for the first one
    of all: a filter that hardly any row passes stops after some thousand.
    """
    last = site.live.store.last_number()
    start = last if before is None else max(0, min(before - 1, last))
    entries: list[Entry] = []
    stop = max(0, start - MAX_FILTERED)
    while start > stop and len(entries) < n:
        end, start = start, max(stop, start - N_READ)
        rows = list(site.live.store.changes(after=start, limit=end - start))
        found = filter(where.has, map(partial(_entry, site), reversed(rows)))
        entries += found
    if len(entries) > n:
        del entries[n:]
        return entries, entries[-1].row.number or 1
    return entries, start + 1


def _entry(site: Site, row: Judgement | Undo) -> Entry:
    """Return a row of the store with what is shown of its items."""
    if isinstance(row, Undo):
        return Entry(row, False)
    words = site.live.ledger.latest(pair_of(row)).values()
    items = (row.left_view, row.left_id), (row.right_view, row.right_id)
    left, right = (_picture(site, *item) for item in items)
    return Entry(
        row,
        site.live.ledger.is_active(row.id),
        {own.verdict for own in words} >= SIGNS.keys(),
        site.contents.name(*items[0]),
        site.contents.name(*items[1]),
        (left, right),
    )


def export(site: Site, suffix: str) -> bytes:
    """Return all judgements that count, as CSV or parquet."""
    import pyarrow
    from pyarrow import csv, parquet

    names = ["number", "at", "who", "left_view", "left_id", "right_view"]
    names += ["right_id", "verdict", "weight", "note"]
    latest = site.live.ledger.latest
    rows = [
        row
        for row in site.live.store.judgements()
        if latest(pair_of(row)).get(row.who, row).id == row.id
    ]
    columns: dict[str, list[Any]]
    columns = {name: [getattr(row, name) for row in rows] for name in names}
    for name in ("left_id", "right_id"):
        columns[name] = [str(id) for id in columns[name]]
    file = io.BytesIO()
    write = csv.write_csv if suffix == "csv" else parquet.write_table
    write(pyarrow.table(columns), file)
    return file.getvalue()


def progress(site: Site) -> Progress:
    """Return who judged how much, and how far people agree."""
    judged: Counter[str] = Counter()
    both: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for pair in site.live.ledger.judged():
        words = site.live.ledger.latest(pair)
        judged.update(words.keys())
        names = sorted(words)
        for k, left in enumerate(names):
            for right in names[k + 1 :]:
                verdicts = words[left].verdict, words[right].verdict
                both[left, right].append(verdicts)
    agreements = [
        Agreement(*names, len(own), cohen_kappa(own)) for names, own in both.items()
    ]
    disputed = list(islice(site.live.ledger.disagreements(), N_DISPUTED))
    return Progress(
        judged.most_common(),
        sorted(agreements, key=lambda own: -own.n_pairs)[:N_AGREEMENTS],
        [_dispute(site, pair) for pair in disputed],
    )


def _dispute(site: Site, pair: PairKey) -> Dispute:
    """Return a judged pair, with what each person said."""
    words = site.live.ledger.latest(pair)
    sides = [
        {
            "title": site.contents.name(*item),
            "picture": _picture(site, *item),
            "url": site.url("/", source=item[0], target=other[0], item=item[1]),
        }
        for item, other in (pair, pair[::-1])
    ]
    verdicts = [(who, VERDICT_WORDS[own.verdict]) for who, own in words.items()]
    return Dispute(pair, sides, verdicts)


def doubtful(
    site: Site, doubts: Sequence[tuple[tuple[str, str], Doubt]]
) -> list[Doubtful]:
    """Return doubts in words, without pairs that people dispute or have settled."""
    found: list[Doubtful] = []
    for (left, right), own in doubts:
        pair = pair_key((left, own.source_item), (right, own.target_item))
        words = site.live.ledger.latest(pair).values()
        if any(w.note == SETTLED or w.verdict != own.verdict for w in words):
            continue
        against = [
            (
                site.contents.name(left, part.source_item),
                site.contents.name(right, part.target_item),
                VERDICT_WORDS["must" if part.kind == "must-link" else "cannot"],
            )
            for part in own.contradictions
        ]
        shown = _dispute(site, pair)
        found.append(Doubtful(*shown, own.verdict, own.probability, against))
    return found[:N_SHOWN]


def _picture(site: Site, view: str, id: str | int) -> str:
    """Return the address of the picture of an item, "" if there is none."""
    items = site.items.get(view)
    known = items is not None and bool(items.contains([id])[0])
    return site.picture_url(view, id) if known else ""


def cohen_kappa(verdicts: Sequence[tuple[str, str]]) -> float:
    """Return Cohen's kappa of two people: 1 for agreement, 0 for that of chance."""
    n = len(verdicts)
    observed = sum(a == b for a, b in verdicts) / n
    left, right = (Counter(own[k] for own in verdicts) for k in (0, 1))
    chance = sum(left[own] * right[own] for own in left) / n**2
    return 1.0 if chance == 1 else (observed - chance) / (1 - chance)
