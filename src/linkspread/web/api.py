"""The pages as JSON for programs, and routes for monitoring."""

import logging
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException
from fastapi import Query as Param
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, Field

from linkspread.ground.errors import LinkspreadError
from linkspread.storage import Undo
from linkspread.web.guard import NOBODY, clean_name
from linkspread.web.history import Entry, Filter, history
from linkspread.web.overview import CurvePoint, look
from linkspread.web.pages import (
    Anyone,
    Asking,
    Here,
    Id,
    Number,
    Page,
    View,
    Words,
    check_json,
)
from linkspread.web.site import MAX_PAGES, PAGE, Asked, Part, Question

log = logging.getLogger("linkspread.web")
# Seconds that an answer to a program may wait until a judgement is applied.
MAX_WAIT = 10.0
ERRORS = {
    400: "A parameter is missing, unknown or malformed.",
    401: "The token is missing or wrong.",
    403: "The request came from another site, or an editor must do this.",
    404: "There is no such view or page.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    429: "Too many requests, or too many wrong tokens.",
    503: "The store cannot be reached, or too much is asked at once.",
}


class Problem(BaseModel):
    """Why a request was refused: the rule, what was received, and a remedy."""

    error: str


class Views(BaseModel):
    """The number of items of each view, and pairs of views that can be searched."""

    views: dict[str, int]
    directions: list[list[str]]


class Item(BaseModel):
    """An item and its title."""

    id: str
    title: str


class Items(BaseModel):
    """Items whose titles have all of the words."""

    items: list[Item]


class Result(BaseModel):
    """One result of a search."""

    id: str
    rank: int
    score: float
    strength: float = Field(description="0 for chance, 1 for a usual best result")
    title: str
    picture: str | None = Field(description="Path of its picture, if it has one")


class Results(BaseModel):
    """The results of a search, the best first."""

    source: str
    target: str
    number: int = Field(description="Last row of the store that the search knows")
    results: list[Result]


class Explained(BaseModel):
    """What a score is made of."""

    score: float
    search_score: float
    text: str
    parts: list[Part]


class Pairs(BaseModel):
    """Suggested pairs, the best first."""

    source: str
    target: str
    pairs: list[Question]


WAIT = Field(
    0.0, ge=0, le=MAX_WAIT, description="Seconds to wait until searches know it"
)


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
    wait: float = WAIT


class UndoIn(BaseModel):
    """The person who takes a judgement back."""

    who: str = Field(NOBODY, max_length=200)
    wait: float = WAIT


class Stored(BaseModel):
    """What was stored; it is on the disk."""

    id: str
    is_in_model: bool = Field(description="Whether searches know it already")


class Row(BaseModel):
    """A row of the store: a judgement, or the undo of one."""

    number: int
    id: str
    who: str
    at: datetime
    note: str
    is_undo: bool
    is_active: bool
    takes_back: str | None = None
    left_view: str | None = None
    left_id: str | None = None
    right_view: str | None = None
    right_id: str | None = None
    verdict: str | None = None
    weight: float | None = None


class Rows(BaseModel):
    """Rows of the store, the newest first."""

    judgements: list[Row]


class ViewFacts(BaseModel):
    """A view of the model."""

    name: str
    n_items: int
    kind: str
    facts: dict[str, str | int | float]


class LinkFacts(BaseModel):
    """The links between two views."""

    between: list[str]
    n_must: int
    n_cannot: int
    has_labels: bool


class Overview(BaseModel):
    """Views, links and conflicts in numbers."""

    views: list[ViewFacts]
    links: list[LinkFacts]
    n_labelled: dict[str, int]
    n_conflicts: int
    n_disagreements: int
    n_unknown: int
    verdicts: dict[str, int]
    number: int
    summary: str
    inexact: list[str]
    curve: list[CurvePoint]


class State(BaseModel):
    """How far the model is."""

    number: int = Field(description="Last row of the store in the model")
    takes_links: bool


api = APIRouter(
    prefix="/api",
    tags=["api"],
    responses={
        status: {"model": Problem, "description": about}
        for status, about in ERRORS.items()
    },
)
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


def name_of(page: Page, given: str) -> str:
    """Return the name of whoever was invited, else the one that was given."""
    person = page.visitor.person
    return person.name if person else clean_name(given)


Resolved = Annotated[Asked, Depends(resolve)]


@api.get("/views")
def views(site: Here) -> Views:
    """Return the views, how many items they have, and which can be searched."""
    sizes = {view: site.items[view].n_items for view in site.views}
    return Views(views=sizes, directions=[[*own] for own in site.directions()])


@api.get("/items")
def items(
    site: Here, view: View, q: Words, n: Annotated[int, Param(ge=1, le=100)] = 8
) -> Items:
    """Return items whose titles have all of the words."""
    if view not in site.items:
        raise HTTPException(404, "there is no such view.")
    found, ids = site.titles(view).find(q, n), site.items[view].ids
    return Items(
        items=[Item(id=str(ids[k]), title=site.contents.title(view, k)) for k in found]
    )


@api.get("/search")
def search(
    site: Here,
    query: Asking,
    asked: Resolved,
    n: Annotated[int, Param(ge=1, le=PAGE * MAX_PAGES)] = 10,
) -> Results:
    """Search one view from another."""
    hits = site.find_hits(query, asked, stop=n)
    return Results(
        source=query.source,
        target=query.target,
        number=site.live.shown.number,
        results=[
            Result(**asdict(own) | {"picture": own.picture or None}) for own in hits
        ],
    )


@api.get("/explanation")
def explanation(site: Here, query: Asking, asked: Resolved, found: Id) -> Explained:
    """Explain a score."""
    with site.heavy:
        why = site.explain(query, asked, found)
    return Explained(
        score=why.explanation.score,
        search_score=why.explanation.search_score,
        text=str(why.explanation),
        parts=why.parts,
    )


@api.get("/suggestions")
def suggestions(
    site: Here,
    source: View = "",
    target: View = "",
    who: Annotated[str, Param(max_length=200)] = NOBODY,
) -> Pairs:
    """Return suggested pairs, the best first."""
    source, target = site.choose_views(source, target)
    found = site.questions(source, target, clean_name(who))
    return Pairs(source=source, target=target, pairs=found)


@api.get("/judgements")
def judgements(
    site: Here,
    before: Number = None,
    n: Annotated[int, Param(ge=1, le=500)] = 50,
) -> Rows:
    """Return judgements and undos, the newest first."""
    entries, _ = history(site, before=before, n=n, where=Filter())
    return Rows(judgements=[_row(own) for own in entries])


@api.post("/judgements", status_code=201, dependencies=[Depends(check_json)])
def add_judgement(page: Anyone, given: JudgementIn) -> Stored:
    """Store a judgement; it is on the disk before the answer."""
    id, is_in_model = page.site.judge(
        who=name_of(page, given.who),
        source=(given.source, given.source_id),
        target=(given.target, given.target_id),
        verdict=given.verdict,
        key=given.key,
        note=given.note,
        patience=given.wait,
    )
    return Stored(id=id, is_in_model=is_in_model)


@api.post("/judgements/{id}/undo", status_code=201, dependencies=[Depends(check_json)])
def undo_judgement(page: Anyone, id: str, given: UndoIn) -> Stored:
    """Take a judgement back."""
    who, is_editor = name_of(page, given.who), page.visitor.is_editor
    id, is_in_model = page.site.take_back(
        id, who=who, is_editor=is_editor, patience=given.wait
    )
    return Stored(id=id, is_in_model=is_in_model)


@api.get("/overview")
def overview(site: Here) -> Overview:
    """Return views, links and conflicts in numbers."""
    with site.heavy:
        return Overview(**look(site.live, site.contents), curve=site.curve.points)


@api.get("/state")
async def state(site: Here) -> State:
    """Return the last row in the model, for pages that wait for changes."""
    return State(number=site.live.shown.number, takes_links=not site.live.refusal)


@monitoring.get("/metrics")
def metrics(site: Here) -> PlainTextResponse:
    """Return the counters of this worker for Prometheus."""
    live, number = site.live, site.live.store.last_number()
    gauges = {
        "store_number": number,
        "model_number": live.shown.number,
        "pending_rows": number - live.shown.number,
        "apply_seconds": live.seconds,
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


def describe(schema: dict[str, Any], *, needs_token: bool) -> dict[str, Any]:
    """Return the OpenAPI description with the answers and access that routes have."""
    parts = schema["components"]
    for name in ("HTTPValidationError", "ValidationError"):
        parts["schemas"].pop(name, None)
    for methods in schema["paths"].values():
        for call in methods.values():
            # Malformed parameters are answered with 400, as all errors of the input.
            call["responses"].pop("422", None)
    if needs_token:
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}]
    return schema


def _row(entry: Entry) -> Row:
    """Return a row of the store as JSON has it."""
    row = entry.row
    given = asdict(row) | {"is_undo": isinstance(row, Undo)}
    for name in given.keys() & {"left_id", "right_id"}:
        given[name] = str(given[name])
    return Row(**given, is_active=entry.is_active)
