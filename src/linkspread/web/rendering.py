"""Templates and what they all know."""

from functools import cache
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from linkspread.web.searching import VERDICT_WORDS
from linkspread.web.site import Site
from linkspread.web.visitors import Visitor

HERE = Path(__file__).parent


@cache
def templates() -> Environment:
    """Return the templates; everything put into them is escaped."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["amount"] = format_amount
    made.filters["count"] = lambda n: f"{n:,}"
    made.globals["verdict_words"] = VERDICT_WORDS
    return made


def render(
    name: str, request: Request, site: Site, visitor: Visitor, **values: Any
) -> HTMLResponse:
    """Return a page."""
    text = (
        templates()
        .get_template(name)
        .render(
            site=site,
            settings=site.settings,
            visitor=visitor,
            path=request.url.path,
            takes_token=request.app.state.access.needs_token,
            **values,
        )
    )
    response = HTMLResponse(text)
    visitor.remember(response)
    return response


def render_error(title: str, status: int, sentence: str) -> HTMLResponse:
    """Return a page that says what was wrong."""
    page = templates().get_template("error.html")
    text = page.render(title=title, status=status, sentence=sentence)
    return HTMLResponse(text, status_code=status)


def format_amount(value: float) -> str:
    """Return a score with three digits that count."""
    return f"{value:+.3g}" if value < 0 else f"{value:.3g}"
