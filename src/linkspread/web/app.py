"""The application: a model and its store behind pages and JSON."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from linkspread import __version__
from linkspread.ground.errors import LinkspreadError, StoreError
from linkspread.storage import LinkStore
from linkspread.web.access import Access
from linkspread.web.api import api
from linkspread.web.api_page import api_page
from linkspread.web.ask_pages import ask_pages
from linkspread.web.doors import doors
from linkspread.web.files import plain_files
from linkspread.web.guard import Guard
from linkspread.web.history_pages import history_pages
from linkspread.web.model_pages import model_pages
from linkspread.web.rendering import render_error
from linkspread.web.search_pages import search_pages
from linkspread.web.settings import Settings
from linkspread.web.site import Site, choose_contents

PAGES = (search_pages, ask_pages, history_pages, model_pages, doors)
ROUTERS = (*PAGES, plain_files, api, api_page)


def create_app(
    model: Any,
    store: LinkStore,
    *,
    features: Any = None,
    absorbed: int = 0,
    settings: Settings | None = None,
) -> FastAPI:
    """Put a fitted model behind pages."""
    settings = settings or Settings()
    contents = choose_contents(model.items_, features)
    site = Site(model, store, contents, absorbed, settings)
    app = FastAPI(
        title=settings.title,
        version=__version__,
        # The usual pages load scripts from elsewhere; /api is one of our own.
        docs_url=None,
        redoc_url=None,
        lifespan=_live,
        redirect_slashes=False,
    )
    app.state.site, app.state.access = site, Access(settings)
    for router in ROUTERS:
        app.include_router(router)
    app.add_exception_handler(LinkspreadError, _tell_input)
    app.add_exception_handler(RequestValidationError, _tell_malformed)
    app.add_exception_handler(HTTPException, _tell_refused)
    app.add_middleware(Guard, settings=settings, telemetry=site.telemetry)
    return app


@asynccontextmanager
async def _live(app: FastAPI) -> AsyncIterator[None]:
    """Follow the store while the application runs."""
    app.state.site.start()
    yield
    app.state.site.stop()


def _tell_input(request: Request, error: Exception) -> Response:
    """Answer a mistake of the input with its sentence."""
    is_away = isinstance(error, StoreError)
    status = 503 if is_away else 400
    # A store's sentence names files of this machine.
    sentence = "the judgements cannot be reached now. Try again." if is_away else ""
    return _answer(request, status, sentence or str(error))


def _tell_malformed(request: Request, error: Exception) -> Response:
    """Answer a request whose parameters make no sense, naming them."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = str(first["loc"][-1])[:60]
    sentence = f"`{name}` cannot be read: {first['msg'].lower()}. Correct it."
    return _answer(request, 400, sentence)


def _tell_refused(request: Request, error: Exception) -> Response:
    """Answer with the status that a route or the framework chose."""
    assert isinstance(error, HTTPException)
    status = error.status_code
    sentences = {404: "there is no such page.", 405: "this cannot be done here."}
    detail = error.detail if error.detail.islower() or " " in error.detail else ""
    if detail in ("Not Found", "Method Not Allowed"):
        detail = ""
    return _answer(request, status, detail or sentences.get(status, "this is refused."))


def _answer(request: Request, status: int, sentence: str) -> Response:
    """Return a sentence as a page or as JSON, as the path wants it."""
    sentence = sentence[:1].upper() + sentence[1:]
    if request.url.path.startswith("/api"):
        return JSONResponse({"error": sentence}, status_code=status)
    return render_error(request.app.title, status, sentence)
