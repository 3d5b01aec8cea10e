"""The page where people who have the token come in."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from linkspread.web.access import Access
from linkspread.web.guard import PASS_COOKIE
from linkspread.web.rendering import render
from linkspread.web.visitors import Anyone, Here

doors = APIRouter(include_in_schema=False)


@doors.get("/enter")
def enter_page(request: Request, site: Here, visitor: Anyone) -> HTMLResponse:
    """Ask for the token."""
    return render("enter.html", request, site, visitor, is_wrong=False)


@doors.post("/enter")
def enter(
    request: Request,
    site: Here,
    visitor: Anyone,
    token: Annotated[str, Form(max_length=1000)] = "",
) -> Response:
    """Exchange the token for a cookie that does not tell it."""
    access: Access = request.app.state.access
    if not access.is_token(token):
        page = render("enter.html", request, site, visitor, is_wrong=True)
        page.status_code = 401
        return page
    response = RedirectResponse("/", status_code=303)
    visitor.set_cookie(response, PASS_COOKIE, access.pass_of_token())
    return visitor.remember(response)
