"""Who asks: a session, a name, and whether a form is one of ours."""

from typing import Annotated, Any
from urllib.parse import quote, unquote

from fastapi import Depends, Form, HTTPException, Request, Response

from linkspread.web.access import Access
from linkspread.web.guard import read_cookies
from linkspread.web.site import Site

SESSION_COOKIE, NAME_COOKIE = "linkspread_session", "linkspread_name"
A_YEAR = 365 * 24 * 3600
MAX_NAME = 60
NOBODY = "guest"


class Visitor:
    """Somebody with a browser."""

    def __init__(self, request: Request, access: Access) -> None:
        cookies = read_cookies(request.headers.get("cookie", ""))
        given = cookies.get(SESSION_COOKIE, "")
        self.is_new = not access.is_session(given)
        self.session = access.new_session() if self.is_new else given
        self.form_token = access.form_token(self.session)
        self.name = clean_name(unquote(cookies.get(NAME_COOKIE, "")))
        self.is_secure = request.url.scheme == "https"

    def remember(self, response: Response) -> Response:
        """Let the browser keep the session."""
        if self.is_new:
            self.set_cookie(response, SESSION_COOKIE, self.session)
        return response

    def rename(self, response: Response, name: str) -> Response:
        """Let the browser keep a name."""
        self.set_cookie(response, NAME_COOKIE, quote(clean_name(name), safe=""))
        return self.remember(response)

    def set_cookie(self, response: Response, name: str, value: str) -> None:
        """Set a cookie that scripts cannot read and other sites cannot use."""
        response.set_cookie(
            name,
            value,
            max_age=A_YEAR,
            httponly=True,
            samesite="lax",
            secure=self.is_secure,
        )


def clean_name(name: str) -> str:
    """Return a name in one short line."""
    plain = "".join(c if c.isprintable() else " " for c in name)
    return " ".join(plain.split())[:MAX_NAME] or NOBODY


# Without waiting for anything: a plain function would be sent to another thread.
async def find_site(request: Request) -> Site:
    """Return what the routes share."""
    site: Site = request.app.state.site
    return site


async def find_visitor(request: Request) -> Visitor:
    """Return who asks."""
    return Visitor(request, request.app.state.access)


async def check_form(
    request: Request, form_token: Annotated[str, Form(max_length=200)] = ""
) -> Visitor:
    """Return who sent a form, which must be one that we gave them."""
    visitor = Visitor(request, request.app.state.access)
    access: Access = request.app.state.access
    if visitor.is_new or not access.is_form_token(visitor.session, form_token):
        raise HTTPException(
            403,
            "a form must come from a page of this server, and this one is too old or "
            "from elsewhere. Reload the page and try again.",
        )
    return visitor


Here = Annotated[Site, Depends(find_site)]
FromForm = Annotated[Visitor, Depends(check_form)]
Anyone: Any = Annotated[Visitor, Depends(find_visitor)]
