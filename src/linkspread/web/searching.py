"""From what a browser asks to the cards of a page of results."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode

from linkspread.ground.errors import LinkspreadError
from linkspread.storage import Judgement
from linkspread.storage.ledger import pair_key
from linkspread.web.site import Site

PAGE = 24
MAX_PAGES = 50
VERDICT_WORDS = {"must": "belongs", "cannot": "does not belong", "unsure": "unsure"}


@dataclass(frozen=True)
class Query:
    """What is searched; the address of a page holds all of it."""

    source: str
    target: str
    item: str = ""
    q: str = ""
    upload: str = ""

    def url(self, path: str = "/", **more: Any) -> str:
        """Return the address of a page about this query."""
        given = {name: value for name, value in asdict(self).items() if value}
        return f"{path}?{urlencode(given | more)}"


class Asked(NamedTuple):
    """A query as the model takes it."""

    queries: Any
    position: int | None
    title: str
    text: str
    picture: str


@dataclass(frozen=True)
class Hit:
    """One card."""

    id: str
    rank: int
    score: float
    title: str
    caption: str
    picture: str
    mine: str
    others: tuple[str, ...]
    undo: str
    was: str


def choose_views(site: Site, source: str, target: str) -> tuple[str, str]:
    """Return the views to search between, by default the most useful ones."""
    directions = site.directions()
    if not directions:
        raise LinkspreadError(
            "views must be joined by links to be searched, and this model has none. "
            "Fit it with a few links."
        )
    fitting = [
        own
        for own in directions
        if (not source or own[0] == source) and (not target or own[1] == target)
    ]
    # What is asked for but not there is refused by the model, in a sentence.
    return fitting[0] if fitting else (source, target or source)


def resolve(site: Site, query: Query) -> Asked | None:
    """Return what searches; None where nothing, or no single thing, is meant."""
    model = site.live.open(query.source, query.target)
    items = model.items_[query.source]
    if query.item:
        return _asked_item(site, query.source, int(items.positions([query.item])[0]))
    if query.upload:
        return _asked_picture(site, query)
    if not query.q.strip():
        return None
    place = site.titles(query.source).exact(query.q)
    if place is not None:
        return _asked_item(site, query.source, place)
    contents = site.contents
    if contents.can_read(query.source) and contents.has_texts(query.source):
        rows = contents.rows(query.source, query.q)
        return Asked(rows, None, f"“{query.q}”", "", "")
    return None


def find_hits(
    site: Site,
    query: Query,
    asked: Asked,
    *,
    who: str,
    start: int = 0,
    stop: int = PAGE,
    seen: Sequence[str] = (),
) -> list[Hit]:
    """Return the cards of some ranks, with where each was before."""
    model = site.live.shown.model
    with site.searching:
        ids, scores = model.search(
            asked.queries,
            source=query.source,
            target=query.target,
            n_results=min(stop, PAGE * MAX_PAGES),
        )
    if asked.position is None:
        ids, scores = ids[0], scores[0]
    before = {id: rank for rank, id in enumerate(seen, start=1)}
    positions = site.items[query.target].positions(ids[start:stop])
    rows = zip(positions.tolist(), scores[start:stop].tolist(), strict=True)
    return [
        _hit(site, query, asked, who, before, position, rank, score)
        for rank, (position, score) in enumerate(rows, start=start + 1)
    ]


def _hit(
    site: Site,
    query: Query,
    asked: Asked,
    who: str,
    before: dict[str, int],
    position: int,
    rank: int,
    score: float,
) -> Hit:
    """Describe one result."""
    id, contents = str(site.items[query.target].ids[position]), site.contents
    words: dict[str, Judgement] = {}
    if asked.position is not None:
        own = query.source, str(asked.queries)
        words = site.live.ledger.words(pair_key(own, (query.target, id)))
    mine = words.get(who)
    return Hit(
        id=id,
        rank=rank,
        score=score,
        title=contents.title(query.target, position),
        caption=contents.caption(query.target, position),
        picture=picture_url(site, query.target, id),
        mine=mine.verdict if mine else "",
        others=tuple(
            f"{name}: {VERDICT_WORDS[word.verdict]}"
            for name, word in words.items()
            if name != who
        ),
        undo=mine.id if mine else "",
        was=_was(id, rank, before),
    )


def picture_url(site: Site, view: str, id: str) -> str:
    """Return the address of an item's picture, "" where it has none."""
    if not site.contents.has_pictures(view):
        return ""
    return f"/picture?{urlencode({'view': view, 'id': id})}"


def _asked_item(site: Site, view: str, position: int) -> Asked:
    """Describe a fitted item that searches."""
    id = site.items[view].ids[position].item()
    title, text = (
        site.contents.title(view, position),
        site.contents.text(view, position),
    )
    picture = picture_url(site, view, str(id))
    caption = site.contents.caption(view, position)
    return Asked(id, position, title, text if text != title else caption, picture)


def _asked_picture(site: Site, query: Query) -> Asked:
    """Describe a picture that somebody sent."""
    if site.uploads is None:
        raise LinkspreadError(
            "pictures must be allowed by the model to search with, and this one has no "
            "view that reads them. Search with one of its items."
        )
    rows = site.contents.rows(query.source, site.uploads.open(query.upload))
    return Asked(rows, None, "Your picture", "", f"/upload/{query.upload}")


def _was(id: str, rank: int, before: dict[str, int]) -> str:
    """Say where a card was, if it has moved."""
    if not before or before.get(id) == rank:
        return ""
    return f"was {ordinal(before[id])}" if id in before else "new here"


def ordinal(n: int) -> str:
    """Return a number as in "7th"."""
    endings = {1: "st", 2: "nd", 3: "rd"}
    is_teen = 10 < n % 100 < 14
    return f"{n}{'th' if is_teen else endings.get(n % 10, 'th')}"
