"""The application that serves a model and its store as pages and JSON."""

import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from linkspread import __version__
from linkspread.ground.errors import LinkspreadError, StoreError
from linkspread.models import ModelFolder
from linkspread.web.api import api, describe, monitoring
from linkspread.web.guard import Access, Guard
from linkspread.web.pages import pages, render_error
from linkspread.web.searching import Busy
from linkspread.web.server import Settings, end_process
from linkspread.web.site import NotAllowed, Site
from linkspread.web.team import team

log = logging.getLogger("linkspread.web")

N_THREADS, SWITCH_SECONDS = 200, 0.0005
SENTENCES = {404: "there is no such page.", 405: "this cannot be done here."}


class Application(FastAPI):
    """An application whose description says what its routes answer."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI description."""
        return describe(super().openapi(), needs_token=self.state.access.needs_token)


def create_app(
    folder: ModelFolder, *, features: Any = None, settings: Settings | None = None
) -> FastAPI:
    """Serve the model of a folder, and its judgements, as pages and JSON."""
    settings = settings or Settings()
    site = Site(folder, features, settings)
    access = Access(settings, site.live.store.people.all)

    @asynccontextmanager
    async def live(app: FastAPI) -> AsyncIterator[None]:
        # A thread that computes lets others go on sooner than the usual 5 ms.
        sys.setswitchinterval(SWITCH_SECONDS)
        # More than may wait for searches, pictures and heavy work together, so that
        # none of these keeps the others from a thread.
        to_thread.current_default_thread_limiter().total_tokens = N_THREADS
        site.start()
        yield
        if settings.owns_process:
            end_process()
        site.stop()

    app = Application(
        title=settings.title,
        version=__version__,
        # The usual pages load scripts from other sites; ours does not.
        docs_url=None,
        redoc_url=None,
        lifespan=live,
        redirect_slashes=False,
        servers=[{"url": settings.public_url or "/"}],
    )
    app.state.site, app.state.access = site, access
    for router in (pages, team, api, monitoring):
        app.include_router(router)
    app.add_exception_handler(LinkspreadError, _answer_error)
    app.add_exception_handler(RequestValidationError, _answer_malformed)
    app.add_exception_handler(HTTPException, _answer_refused)
    app.add_middleware(
        Guard,
        access=access,
        settings=settings,
        telemetry=site.telemetry,
        answer=lambda request, refusal: _answer(settings, request, *refusal),
    )
    return app


def _answer_error(request: Request, error: Exception) -> Response:
    """Answer an error of the input with its message."""
    settings = request.app.state.site.settings
    if isinstance(error, Busy):
        return _answer(settings, request, 503, str(error), {"Retry-After": "2"})
    if isinstance(error, NotAllowed):
        return _answer(settings, request, 403, str(error))
    if isinstance(error, StoreError):
        log.error("store", extra={"event": {"problem": str(error)}})
        # The message of the store names files of this machine.
        sentence = "the link store cannot be reached now. Try again."
        return _answer(settings, request, 503, sentence)
    return _answer(settings, request, 400, str(error))


def _answer_malformed(request: Request, error: Exception) -> Response:
    """Answer a request with invalid parameters, naming the first of them."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = str(first["loc"][-1])[:60]
    sentence = f"`{name}` cannot be read: {first['msg'].lower()}. Correct it."
    return _answer(request.app.state.site.settings, request, 400, sentence)


def _answer_refused(request: Request, error: Exception) -> Response:
    """Answer with the status that a route or the framework chose."""
    assert isinstance(error, HTTPException)
    # The framework's own messages are in title case.
    detail = "" if error.detail in ("Not Found", "Method Not Allowed") else error.detail
    detail = detail if detail.islower() or " " in detail else ""
    sentence = detail or SENTENCES.get(error.status_code, "this is refused.")
    settings = request.app.state.site.settings
    return _answer(settings, request, error.status_code, sentence)


def _answer(
    settings: Settings,
    request: Request,
    status: int,
    sentence: str,
    headers: dict[str, str] | None = None,
) -> Response:
    """Return a sentence as JSON for paths of the API, else as a page."""
    sentence = sentence[:1].upper() + sentence[1:]
    response: Response
    if request.scope["path"].startswith("/api"):
        response = JSONResponse({"error": sentence}, status_code=status)
    else:
        response = render_error(settings, status, sentence)
    response.headers.update(headers or {})
    return response
