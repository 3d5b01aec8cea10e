"""Questions: pairs side by side, one key each."""

import uuid
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from linkspread.web.charts import curve_chart
from linkspread.web.judging import judge, take_back
from linkspread.web.parameters import Field, View
from linkspread.web.rendering import render
from linkspread.web.searching import Query, choose_views, picture_url
from linkspread.web.site import Site
from linkspread.web.visitors import Anyone, FromForm, Here, Visitor

ask_pages = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


@ask_pages.get("/ask")
def ask_page(
    request: Request,
    site: Here,
    visitor: Anyone,
    source: View = "",
    target: View = "",
    part: bool = False,
) -> HTMLResponse:
    """Ask about the pair that teaches most."""
    values = _question(site, visitor, source, target)
    name = "_question.html" if part else "ask.html"
    return render(name, request, site, visitor, **values)


@ask_pages.post("/ask")
def answer_question(
    request: Request,
    site: Here,
    visitor: FromForm,
    source: View = "",
    target: View = "",
    left: Field = "",
    right: Field = "",
    verdict: Field = "",
    undo: Field = "",
    key: Field = "",
    part: bool = False,
) -> HTMLResponse:
    """Keep an answer, or take one back, and ask the next."""
    source, target = choose_views(site, source, target)
    if undo:
        take_back(site, undo, who=visitor.name)
        notice = {"undo": undo}
    else:
        taken = judge(
            site,
            who=visitor.name,
            source=(source, left),
            target=(target, right),
            verdict=verdict,
            key=key,
        )
        notice = {"id": taken.id, "verdict": verdict, "undo": ""}
    values = _question(site, visitor, source, target)
    name = "_question.html" if part else "ask.html"
    return render(name, request, site, visitor, **(values | {"notice": notice}))


def _question(site: Site, visitor: Visitor, source: str, target: str) -> dict[str, Any]:
    """Return what the page asks."""
    source, target = choose_views(site, source, target)
    queue = site.asker.queue(source, target, visitor.name)
    sides = []
    first = (queue[0].left, queue[0].right) if queue else ()
    for view, id in zip((source, target), first, strict=False):
        position = int(site.items[view].positions([id])[0])
        sides.append(
            {
                "view": view,
                "id": id,
                "title": site.contents.title(view, position),
                "text": site.contents.text(view, position),
                "caption": site.contents.caption(view, position),
                "picture": picture_url(site, view, id),
            }
        )
    return {
        "query": Query(source, target),
        "sides": sides,
        "n_waiting": len(queue),
        "gain": queue[0].gain if queue else 0.0,
        "curve": curve_chart(site.curve.points),
        "key": str(uuid.uuid4()),
        "number": site.live.shown.number,
        "notice": None,
    }
