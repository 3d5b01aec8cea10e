"""What is no page: pictures, uploads, the style sheet, the script, health, counts."""

from importlib.resources import files
from typing import Annotated

from fastapi import APIRouter, File, Form, HTTPException, UploadFile
from fastapi import Query as Param
from fastapi.responses import PlainTextResponse, RedirectResponse, Response

from linkspread.ground.errors import LinkspreadError
from linkspread.web.searching import Query, choose_views
from linkspread.web.visitors import FromForm, Here

plain_files = APIRouter(include_in_schema=False)

# Nothing else of the folder is served.
STATIC = {"page.css": "text/css", "page.js": "text/javascript"}
STATIC |= {"icon.svg": "image/svg+xml"}
SIDES = {"small": 96, "large": 320}
KEPT = {"Cache-Control": "private, max-age=3600"}


@plain_files.get("/static/{name}")
def static_file(name: str) -> Response:
    """Return the style sheet, the script or the icon."""
    if name not in STATIC:
        raise HTTPException(404, "there is no such file.")
    content = files("linkspread.web").joinpath("static", name).read_bytes()
    return Response(content, media_type=STATIC[name], headers=KEPT)


@plain_files.get("/picture")
def picture(
    site: Here,
    view: Annotated[str, Param(max_length=200)],
    id: Annotated[str, Param(max_length=1000)],
    size: str = "small",
) -> Response:
    """Return the picture of an item, by its id; a path is never asked for."""
    if view not in site.items or size not in SIDES:
        raise HTTPException(404, "there is no such picture.")
    items = site.items[view]
    if not items.contains([id])[0]:
        raise HTTPException(404, "there is no such picture.")
    position, side = int(items.positions([id])[0]), SIDES[size]
    found = site.pictures.get(
        (view, position, side), lambda: site.contents.picture(view, position, side)
    )
    return Response(found, media_type="image/png", headers=KEPT)


@plain_files.post("/upload")
def upload(
    site: Here,
    visitor: FromForm,
    picture: Annotated[UploadFile, File()],
    target: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Keep a picture for a while, and search with it."""
    if site.uploads is None or not site.takes_pictures():
        raise LinkspreadError(
            "pictures must be readable by the model to search with, and this one has "
            "no view that reads them. Search with one of its items."
        )
    source = next(
        view
        for view in site.views
        if site.contents.has_pictures(view) and site.contents.can_read(view)
    )
    name = site.uploads.keep(picture.file.read())
    known = [own for own in site.directions() if own[0] == source]
    wanted = target if (source, target) in known else ""
    query = Query(*choose_views(site, source, wanted), upload=name)
    return visitor.remember(RedirectResponse(query.url(), status_code=303))


@plain_files.get("/upload/{name}")
def uploaded(site: Here, name: str) -> Response:
    """Return a picture that somebody searches with."""
    if site.uploads is None:
        raise HTTPException(404, "there is no such picture.")
    return Response(site.uploads.bytes_of(name), media_type="image/png", headers=KEPT)


@plain_files.get("/metrics")
def metrics(site: Here) -> PlainTextResponse:
    """Return the counters of this worker for Prometheus."""
    number = site.live.store.last_number()
    gauges = {
        "store_number": number,
        "model_number": site.live.shown.number,
        "pending_rows": number - site.live.shown.number,
        "absorb_seconds": site.live.seconds,
        "takes_links": float(not site.live.refusal),
    }
    gauges |= {f"{name}_judgements": n for name, n in site.live.ledger.verdicts.items()}
    text = site.telemetry.text(gauges)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


@plain_files.get("/healthz")
def health(site: Here) -> PlainTextResponse:
    """Say whether the model and the store are there."""
    site.live.store.last_number()
    return PlainTextResponse("ok\n")
