"""What was judged, and taking any of it back."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from linkspread.web.judging import recent, take_back
from linkspread.web.parameters import Field
from linkspread.web.rendering import render
from linkspread.web.site import Site
from linkspread.web.visitors import Anyone, FromForm, Here

history_pages = APIRouter(include_in_schema=False)

N_HISTORY = 50


@history_pages.get("/history")
def history_page(
    request: Request,
    site: Here,
    visitor: Anyone,
    before: Annotated[int | None, Query(ge=1, le=2**62)] = None,
) -> HTMLResponse:
    """Show what was judged, the newest first."""
    values = _history(site, before)
    return render("history.html", request, site, visitor, **values)


@history_pages.post("/history")
def undo_entry(
    request: Request, site: Here, visitor: FromForm, undo: Field = ""
) -> Response:
    """Take back a judgement of anybody."""
    take_back(site, undo, who=visitor.name)
    return visitor.remember(RedirectResponse("/history", status_code=303))


def _history(site: Site, before: int | None) -> dict[str, Any]:
    """Return the entries of a page of the history."""
    entries = recent(site, before=before, n=N_HISTORY)
    oldest = min((own.row.number or 1 for own in entries), default=1)
    return {
        "entries": entries,
        "older": oldest if oldest > 1 else None,
        "is_newest": before is None,
    }
