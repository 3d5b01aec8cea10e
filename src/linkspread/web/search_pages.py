"""The search page, and judging on it."""

import uuid
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi import Query as Param
from fastapi.responses import HTMLResponse, RedirectResponse

from linkspread.ground.errors import LinkspreadError
from linkspread.web.judging import judge, take_back
from linkspread.web.parameters import Field, Id, View, Words
from linkspread.web.rendering import render
from linkspread.web.searching import (
    MAX_PAGES,
    PAGE,
    Query,
    choose_views,
    find_hits,
    resolve,
)
from linkspread.web.site import Site
from linkspread.web.visitors import Anyone, FromForm, Here, Visitor

search_pages = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)

N_MATCHES = 8


def read_query(
    site: Site, source: str, target: str, item: str, q: str, upload: str
) -> Query:
    """Return what an address asks for."""
    source, target = choose_views(site, source, target)
    return Query(source, target, item=item, q=q, upload=upload)


@search_pages.get("/")
def search_page(
    request: Request,
    site: Here,
    visitor: Anyone,
    source: View = "",
    target: View = "",
    item: Id = "",
    q: Words = "",
    upload: View = "",
    page: Annotated[int, Param(ge=1, le=MAX_PAGES)] = 1,
    shown: Annotated[int, Param(ge=0, le=MAX_PAGES)] = 0,
    part: bool = False,
) -> HTMLResponse:
    """Show the search, and a page of results; `shown` shows all pages up to one."""
    query = read_query(site, source, target, item, q, upload)
    last = shown or page
    cards = _cards(site, visitor, query, start=0 if shown else page - 1, stop=last)
    name = "_results.html" if part else "search.html"
    response = render(name, request, site, visitor, **cards)
    response.status_code = 400 if cards["problem"] else 200
    return response


@search_pages.post("/")
def judge_result(
    request: Request,
    site: Here,
    visitor: FromForm,
    source: View = "",
    target: View = "",
    item: Id = "",
    q: Words = "",
    must: Field = "",
    cannot: Field = "",
    unsure: Field = "",
    undo: Field = "",
    key: Field = "",
    seen: Annotated[str, Form(max_length=500_000)] = "",
    part: bool = False,
) -> HTMLResponse:
    """Keep a judgement on a result, or take one back; show the list as it is then."""
    query = read_query(site, source, target, item, q, "")
    verdicts = {"must": must, "cannot": cannot, "unsure": unsure}
    notice = _keep(site, visitor, query, verdicts, undo=undo, key=key)
    before = [own for own in seen.splitlines() if own]
    n_pages = max(1, min(MAX_PAGES, -(-len(before) // PAGE)))
    cards = _cards(site, visitor, query, start=0, stop=n_pages, seen=before)
    name = "_results.html" if part else "search.html"
    return render(name, request, site, visitor, **(cards | {"notice": notice}))


@search_pages.post("/name")
def set_name(
    visitor: FromForm, name: Field = "", back: Field = "/"
) -> RedirectResponse:
    """Keep the name under which somebody judges."""
    # Only a path of ours: what starts with two slashes leads elsewhere.
    safe = back if back.startswith("/") and back[1:2] not in ("/", "\\") else "/"
    safe = safe if safe.isprintable() else "/"
    response = RedirectResponse(safe, status_code=303)
    visitor.rename(response, name)
    return response


def _keep(
    site: Site,
    visitor: Visitor,
    query: Query,
    verdicts: dict[str, str],
    *,
    undo: str,
    key: str,
) -> dict[str, Any]:
    """Keep what a form says, and return what the page says of it."""
    if undo:
        taken = take_back(site, undo, who=visitor.name)
        return {"undo": undo, "is_in_model": taken.is_in_model}
    asked = resolve(site, query)
    if asked is None or asked.position is None:
        raise LinkspreadError(
            "a result can be judged for an item of the model only, and this search is "
            "not by one. Pick an item."
        )
    verdict, found = next(((v, id) for v, id in verdicts.items() if id), ("", ""))
    taken = judge(
        site,
        who=visitor.name,
        source=(query.source, str(asked.queries)),
        target=(query.target, found),
        verdict=verdict,
        key=key,
    )
    position = int(site.items[query.target].positions([found])[0])
    title = site.contents.caption(query.target, position)
    return {
        "undo": "",
        "id": taken.id,
        "verdict": verdict,
        "title": title or site.contents.title(query.target, position),
        "is_in_model": taken.is_in_model and not site.live.refusal,
    }


def _cards(
    site: Site,
    visitor: Visitor,
    query: Query,
    *,
    start: int,
    stop: int,
    seen: Sequence[str] = (),
) -> dict[str, Any]:
    """Return what the search page shows of some pages of results."""
    asked, problem, hits = None, "", []
    try:
        asked = resolve(site, query)
    except LinkspreadError as error:
        problem = str(error)
    if asked is not None:
        hits = find_hits(
            site,
            query,
            asked,
            who=visitor.name,
            start=start * PAGE,
            stop=stop * PAGE,
            seen=seen,
        )
    n_items = site.items[query.target].n_items if query.target in site.items else 0
    return {
        "query": query,
        "asked": asked,
        "problem": problem,
        "hits": hits,
        "first": start + 1,
        "last": stop,
        "has_more": bool(hits) and stop * PAGE < n_items and stop < MAX_PAGES,
        "matches": _matches(site, query, asked),
        "examples": _examples(site, query) if asked is None else [],
        "number": site.live.shown.number,
        "key": str(uuid.uuid4()),
        "notice": None,
    }


def _matches(site: Site, query: Query, asked: Any) -> list[tuple[str, str]]:
    """Return items to pick instead of words: their titles and addresses."""
    if not query.q or (asked is not None and asked.position is not None):
        return []
    found = site.titles(query.source).find(query.q, N_MATCHES)
    return [_pick(site, query, position) for position in found]


def _examples(site: Site, query: Query) -> list[tuple[str, str]]:
    """Return some items to begin with, spread evenly over the view."""
    if query.source not in site.items:
        return []
    n_items = site.items[query.source].n_items
    places = {k * n_items // 12 for k in range(12)}
    return [_pick(site, query, place) for place in sorted(places) if place < n_items]


def _pick(site: Site, query: Query, position: int) -> tuple[str, str]:
    """Return the title of an item and the address of its search."""
    id = str(site.items[query.source].ids[position])
    url = Query(query.source, query.target, item=id).url()
    return site.contents.title(query.source, position), url
