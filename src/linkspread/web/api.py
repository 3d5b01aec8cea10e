"""The same as the pages, as JSON for programs."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Request
from fastapi import Query as Param
from pydantic import BaseModel, Field

from linkspread.ground.errors import LinkspreadError
from linkspread.storage import Undo
from linkspread.web.explaining import explain
from linkspread.web.judging import judge, recent, take_back
from linkspread.web.overview import look
from linkspread.web.parameters import Id, View, Words
from linkspread.web.searching import (
    MAX_PAGES,
    PAGE,
    Query,
    choose_views,
    find_hits,
    resolve,
)
from linkspread.web.site import Site
from linkspread.web.visitors import Here, clean_name

api = APIRouter(prefix="/api", tags=["api"])

MAX_RESULTS = PAGE * MAX_PAGES


class JudgementIn(BaseModel):
    """What somebody says of two items."""

    who: str = Field("guest", max_length=200)
    source: str = Field(max_length=200)
    source_id: str = Field(max_length=1000)
    target: str = Field(max_length=200)
    target_id: str = Field(max_length=1000)
    verdict: Literal["must", "cannot", "unsure"]
    note: str = Field("", max_length=10_000)
    key: str = Field("", max_length=36, description="A UUID; the same one counts once.")


class UndoIn(BaseModel):
    """Who takes a judgement back."""

    who: str = Field("guest", max_length=200)


def _read(site: Site, source: str, target: str, item: str, q: str) -> tuple[Query, Any]:
    """Return a query and what searches, which must be something."""
    query = Query(*choose_views(site, source, target), item=item, q=q)
    asked = resolve(site, query)
    if asked is None:
        raise LinkspreadError(
            "a search must have `item`, the id of one, or `q`, words that the view "
            "can read. Ask /api/items for ids."
        )
    return query, asked


@api.get("/views")
def views(site: Here) -> dict[str, Any]:
    """Return the views, how many items they have, and which can be searched."""
    return {
        "views": {view: site.items[view].n_items for view in site.views},
        "directions": [list(own) for own in site.directions()],
    }


@api.get("/items")
def items(
    site: Here,
    view: View,
    q: Words,
    n: Annotated[int, Param(ge=1, le=100)] = 8,
) -> dict[str, Any]:
    """Return items whose titles have all of the words."""
    if view not in site.items:
        raise HTTPException(404, "there is no such view.")
    found = site.titles(view).find(q, n)
    ids = site.items[view].ids
    rows = [{"id": str(ids[k]), "title": site.contents.title(view, k)} for k in found]
    return {"items": rows}


@api.get("/search")
def search(
    site: Here,
    source: View = "",
    target: View = "",
    item: Id = "",
    q: Words = "",
    n: Annotated[int, Param(ge=1, le=MAX_RESULTS)] = 10,
) -> dict[str, Any]:
    """Search one view from another."""
    query, asked = _read(site, source, target, item, q)
    hits = find_hits(site, query, asked, who="", start=0, stop=n)
    return {
        "source": query.source,
        "target": query.target,
        "number": site.live.shown.number,
        "results": [
            {
                "id": hit.id,
                "rank": hit.rank,
                "score": hit.score,
                "title": hit.title,
                "picture": hit.picture or None,
            }
            for hit in hits
        ],
    }


@api.get("/explanation")
def explanation(
    site: Here,
    found: Id,
    source: View = "",
    target: View = "",
    item: Id = "",
    q: Words = "",
) -> dict[str, Any]:
    """Tell what a score is made of."""
    query, asked = _read(site, source, target, item, q)
    why = explain(site, query, asked, found)
    return {
        "score": why.explanation.score,
        "search_score": why.explanation.search_score,
        "text": str(why.explanation),
        "parts": [part._asdict() for part in why.parts],
    }


@api.get("/suggestions")
def suggestions(
    site: Here,
    source: View = "",
    target: View = "",
    who: Annotated[str, Param(max_length=200)] = "guest",
) -> dict[str, Any]:
    """Return the pairs that teach most, the best first."""
    source, target = choose_views(site, source, target)
    queue = site.asker.queue(source, target, clean_name(who))
    pairs = [own._asdict() for own in queue]
    return {"source": source, "target": target, "pairs": pairs}


@api.get("/judgements")
def judgements(
    site: Here,
    before: Annotated[int | None, Param(ge=1, le=2**62)] = None,
    n: Annotated[int, Param(ge=1, le=500)] = 50,
) -> dict[str, Any]:
    """Return what was judged, the newest first."""
    rows = []
    for entry in recent(site, before=before, n=n):
        row = {k: v for k, v in vars(entry.row).items() if k != "at"}
        row["at"] = entry.row.at.isoformat()
        is_undo = isinstance(entry.row, Undo)
        rows.append(row | {"is_undo": is_undo, "is_active": entry.is_active})
    return {"judgements": rows}


def _check_json(request: Request) -> None:
    """Refuse what a form of another site could send."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "a request must be of the type application/json.")


@api.post("/judgements", status_code=201)
def add_judgement(request: Request, site: Here, given: JudgementIn) -> dict[str, Any]:
    """Keep a judgement; it is on the disk when this answers."""
    _check_json(request)
    taken = judge(
        site,
        who=clean_name(given.who),
        source=(given.source, given.source_id),
        target=(given.target, given.target_id),
        verdict=given.verdict,
        key=given.key,
        note=given.note,
    )
    in_model = taken.is_in_model and not site.live.refusal
    return {"id": taken.id, "is_in_model": in_model}


@api.post("/judgements/{id}/undo", status_code=201)
def undo_judgement(
    request: Request, site: Here, id: str, given: UndoIn
) -> dict[str, Any]:
    """Take a judgement back."""
    _check_json(request)
    taken = take_back(site, id, who=clean_name(given.who))
    in_model = taken.is_in_model and not site.live.refusal
    return {"id": taken.id, "is_in_model": in_model}


@api.get("/overview")
def overview(site: Here) -> dict[str, Any]:
    """Return views, links and conflicts in numbers."""
    found = look(site)
    return found._asdict() | {
        "views": [own._asdict() for own in found.views],
        "links": [own._asdict() for own in found.links],
        "curve": [own._asdict() for own in site.curve.points],
    }


@api.get("/state")
def state(site: Here) -> dict[str, Any]:
    """Return how far the model is, for pages that wait for news."""
    return {"number": site.live.shown.number, "takes_links": not site.live.refusal}
