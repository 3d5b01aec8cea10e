"""The pages as JSON for programs, and routes for monitoring."""

import logging
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException
from fastapi import Query as Param
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, Field

from linkspread.ground.errors import LinkspreadError
from linkspread.storage import Undo
from linkspread.web.guard import NOBODY, clean_name
from linkspread.web.overview import look
from linkspread.web.pages import Asking, Here, Id, Number, View, Words, check_json
from linkspread.web.site import MAX_PAGES, PAGE, Asked

log = logging.getLogger("linkspread.web")
# Seconds that an answer to a program waits until a judgement is applied.
QUICK = 0.5

api = APIRouter(prefix="/api", tags=["api"])
monitoring = APIRouter(include_in_schema=False)


def resolve(site: Here, query: Asking) -> Asked:
    """Return the query as the model takes it; it must not be empty."""
    asked = site.resolve(query)
    if asked is None:
        raise LinkspreadError(
            "a search must have `item`, an id, or `q`, words for a view of texts; got "
            "neither. Ask /api/items for ids."
        )
    return asked


Resolved = Annotated[Asked, Depends(resolve)]


class JudgementIn(BaseModel):
    """A judgement of two items."""

    who: str = Field(NOBODY, max_length=200)
    source: str = Field(max_length=200)
    source_id: str = Field(max_length=1000)
    target: str = Field(max_length=200)
    target_id: str = Field(max_length=1000)
    verdict: Literal["must", "cannot", "unsure"]
    note: str = Field("", max_length=10_000)
    key: str = Field("", max_length=36, description="A UUID; the same one counts once.")


class UndoIn(BaseModel):
    """The person who takes a judgement back."""

    who: str = Field(NOBODY, max_length=200)


@api.get("/views")
def views(site: Here) -> dict[str, Any]:
    """Return the views, how many items they have, and which can be searched."""
    sizes = {view: site.items[view].n_items for view in site.views}
    return {"views": sizes, "directions": site.directions()}


@api.get("/items")
def items(
    site: Here, view: View, q: Words, n: Annotated[int, Param(ge=1, le=100)] = 8
) -> dict[str, Any]:
    """Return items whose titles have all of the words."""
    if view not in site.items:
        raise HTTPException(404, "there is no such view.")
    found, ids = site.titles(view).find(q, n), site.items[view].ids
    rows = [{"id": str(ids[k]), "title": site.contents.title(view, k)} for k in found]
    return {"items": rows}


@api.get("/search")
def search(
    site: Here,
    query: Asking,
    asked: Resolved,
    n: Annotated[int, Param(ge=1, le=PAGE * MAX_PAGES)] = 10,
) -> dict[str, Any]:
    """Search one view from another."""
    results = [
        {
            "id": hit.id,
            "rank": hit.rank,
            "score": hit.score,
            "strength": round(hit.strength, 3),
            "title": hit.title,
            "picture": hit.picture or None,
        }
        for hit in site.find_hits(query, asked, stop=n)
    ]
    number = site.live.shown.number
    views = {"source": query.source, "target": query.target}
    return views | {"number": number, "results": results}


@api.get("/explanation")
def explanation(
    site: Here, query: Asking, asked: Resolved, found: Id
) -> dict[str, Any]:
    """Explain a score."""
    with site.heavy:
        why = site.explain(query, asked, found)
    return {
        "score": why.explanation.score,
        "search_score": why.explanation.search_score,
        "text": str(why.explanation),
        "parts": [asdict(part) for part in why.parts],
    }


@api.get("/suggestions")
def suggestions(
    site: Here,
    source: View = "",
    target: View = "",
    who: Annotated[str, Param(max_length=200)] = NOBODY,
) -> dict[str, Any]:
    """Return suggested pairs, the best first."""
    source, target = site.choose_views(source, target)
    pairs = site.questions(source, target, clean_name(who))
    return {"source": source, "target": target, "pairs": [asdict(own) for own in pairs]}


@api.get("/judgements")
def judgements(
    site: Here,
    before: Number = None,
    n: Annotated[int, Param(ge=1, le=500)] = 50,
) -> dict[str, Any]:
    """Return judgements and undos, the newest first."""
    rows = [
        vars(entry.row)
        | {"at": entry.row.at.isoformat(), "is_active": entry.is_active}
        | {"is_undo": isinstance(entry.row, Undo)}
        for entry in site.history(before=before, n=n)
    ]
    return {"judgements": rows}


@api.post("/judgements", status_code=201, dependencies=[Depends(check_json)])
def add_judgement(site: Here, given: JudgementIn) -> dict[str, Any]:
    """Store a judgement; it is on the disk before the answer."""
    id, is_in_model = site.judge(
        who=clean_name(given.who),
        source=(given.source, given.source_id),
        target=(given.target, given.target_id),
        verdict=given.verdict,
        key=given.key,
        note=given.note,
        patience=QUICK,
    )
    return {"id": id, "is_in_model": is_in_model}


@api.post("/judgements/{id}/undo", status_code=201, dependencies=[Depends(check_json)])
def undo_judgement(site: Here, id: str, given: UndoIn) -> dict[str, Any]:
    """Take a judgement back."""
    id, is_in_model = site.take_back(id, who=clean_name(given.who), patience=QUICK)
    return {"id": id, "is_in_model": is_in_model}


@api.get("/overview")
def overview(site: Here) -> dict[str, Any]:
    """Return views, links and conflicts in numbers."""
    curve = [asdict(own) for own in site.curve.points]
    return look(site.live, site.contents) | {"curve": curve}


@api.get("/state")
def state(site: Here) -> dict[str, Any]:
    """Return the last row in the model, for pages that wait for changes."""
    return {"number": site.live.shown.number, "takes_links": not site.live.refusal}


@monitoring.get("/metrics")
def metrics(site: Here) -> PlainTextResponse:
    """Return the counters of this worker for Prometheus."""
    live, number = site.live, site.live.store.last_number()
    gauges = {
        "store_number": number,
        "model_number": live.shown.number,
        "pending_rows": number - live.shown.number,
        "absorb_seconds": live.seconds,
        "takes_links": float(not live.refusal),
    }
    gauges |= {f"{name}_judgements": n for name, n in live.ledger.verdicts.items()}
    text = site.telemetry.text(gauges)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


@monitoring.get("/health")
def health(site: Here) -> PlainTextResponse:
    """Check that the store can be read and that a search gives finite scores."""
    try:
        site.check()
    except Exception:
        log.exception("health")
        return PlainTextResponse("The search or its store fails.\n", status_code=503)
    return PlainTextResponse("ok\n")
