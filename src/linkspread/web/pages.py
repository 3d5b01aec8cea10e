"""The pages to search, judge, answer and look, and the files they load."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, File, Form, HTTPException, Request, UploadFile
from fastapi import Query as Param
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import BaseModel, Field

from linkspread.ground.errors import LinkspreadError
from linkspread.web.guard import PASS_COOKIE, Access, Visitor
from linkspread.web.overview import look
from linkspread.web.server import Settings
from linkspread.web.site import (
    MAX_PAGES,
    PAGE,
    VERDICT_WORDS,
    Query,
    Site,
)

pages = APIRouter(include_in_schema=False)

N_MATCHES, N_EXAMPLES, N_ASKED = 8, 24, 8
# Nothing else of the folder is served.
STATIC = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
SIDES = {"small": 320, "huge": 1280}
# Pages that can be asked for again after a form.
LASTING = ("/", "/ask", "/history", "/team", "/look", "/why", "/docs")
CACHED = {"Cache-Control": "private, max-age=3600"}

# Parameters of addresses and forms, with limits.
View = Annotated[str, Param(max_length=200)]
Id = Annotated[str, Param(max_length=1000)]
Words = Annotated[str, Param(max_length=2000)]
Text = Annotated[str, Form(max_length=1000)]
Number = Annotated[int | None, Param(ge=1, le=2**62)]


@cache
def templates() -> Environment:
    """Return the templates; all values are escaped."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["amount"] = lambda own: f"{own:+.3g}" if own < 0 else f"{own:.3g}"
    made.filters["count"] = lambda n: f"{n:,}"
    made.globals["verdict_words"] = VERDICT_WORDS
    return made


class Page:
    """A request for a page: the site, the visitor, and functions to answer."""

    def __init__(self, request: Request) -> None:
        self.site: Site = request.app.state.site
        self.access: Access = request.app.state.access
        self.visitor = Visitor(request, self.access)
        query = request.url.query
        self._path = request.scope["path"]
        # Where to go back to, without the part of a page that a script asks for.
        self._here = self._path + (f"?{query}" if query else "")

    def render(self, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page from a template."""
        shared = {
            "site": self.site,
            "settings": self.site.settings,
            "visitor": self.visitor,
            "path": self._path,
            "here": self._here if self._path in LASTING else "/",
            "root": self.access.root,
            "takes_token": self.access.needs_token,
        }
        text = templates().get_template(name).render(**shared, **values)
        response = HTMLResponse(text, status_code=status)
        self.visitor.remember(response)
        return response

    def judge(
        self, query: Query, left: str, right: str, **how: Any
    ) -> tuple[str, bool]:
        """Store a judgement of the visitor about an item of each view of a query."""
        source, target = (query.source, left), (query.target, right)
        return self.site.judge(
            who=self.visitor.name, source=source, target=target, **how
        )

    def take_back(self, id: str, **how: Any) -> tuple[str, bool]:
        """Take back a judgement for the visitor."""
        visitor = self.visitor
        return self.site.take_back(
            id, who=visitor.name, is_editor=visitor.is_editor, **how
        )

    def redirect(self, url: str, **cookies: str) -> Response:
        """Redirect to another page."""
        response = RedirectResponse(url, status_code=303)
        return self.visitor.remember(response, **cookies)


# `async` without waiting: a plain function would run in another thread.
async def find_site(request: Request) -> Site:
    """Return the site that the routes share."""
    site: Site = request.app.state.site
    return site


async def find_page(request: Request) -> Page:
    """Return the request of any visitor."""
    return Page(request)


def check_token(request: Request, form_token: str) -> Page:
    """Return the request of a form, which must come from this server."""
    page = Page(request)
    visitor = page.visitor
    if visitor.is_new or not page.access.is_form_token(visitor.session, form_token):
        raise HTTPException(
            403,
            "a form must come from a page of this server, and this one is too old or "
            "from another site. Reload the page and try again.",
        )
    return page


async def check_form(
    request: Request, form_token: Annotated[str, Form(max_length=200)] = ""
) -> Page:
    """Return the request of a form, which must come from this server."""
    return check_token(request, form_token)


async def check_json(request: Request) -> None:
    """Refuse requests that a form of another site could send."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "a request must be of the type application/json.")


Here = Annotated[Site, Depends(find_site)]
Anyone = Annotated[Page, Depends(find_page)]
FromForm = Annotated[Page, Depends(check_form)]


def read_query(
    site: Here,
    source: View = "",
    target: View = "",
    item: Id = "",
    q: Words = "",
    way: Annotated[str, Param(max_length=410)] = "",
) -> Query:
    """Return the query of an address; `way` names both views, as forms send them."""
    if "~" in way:
        source, _, target = way.partition("~")
    return Query(*site.choose_views(source, target), item=item, q=q)


Asking = Annotated[Query, Depends(read_query)]


@pages.get("/")
def search_page(
    page: Anyone,
    query: Asking,
    upload: View = "",
    number: Annotated[int, Param(ge=1, le=MAX_PAGES, alias="page")] = 1,
    shown: Annotated[int, Param(ge=0, le=MAX_PAGES)] = 0,
    part: bool = False,
) -> HTMLResponse:
    """Show the search and a page of results; `shown` shows all pages up to it."""
    query = replace(query, upload=upload)
    first, last = (1, shown) if shown else (number, number)
    values = _results(page, query, first, last)
    return page.render("_results.html" if part else "search.html", **values)


@pages.post("/")
def judge_result(
    page: FromForm,
    query: Asking,
    must: Text = "",
    cannot: Text = "",
    unsure: Text = "",
    undo: Text = "",
    key: Text = "",
    seen: Annotated[str, Form(max_length=500_000)] = "",
    upload: View = "",
    part: bool = False,
) -> HTMLResponse:
    """Store a judgement of a result, or take one back; show the new list."""
    verdicts = {"must": must, "cannot": cannot, "unsure": unsure}
    verdict, found = next(((v, id) for v, id in verdicts.items() if id), ("", ""))
    site, query = page.site, replace(query, upload=upload)
    notice: dict[str, Any] = {"undo": undo}
    if undo:
        _, is_in_model = page.take_back(undo)
    else:
        id, is_in_model = page.judge(
            query, site.keep(query), found, verdict=verdict, key=key
        )
        title = site.contents.name(query.target, found)
        notice |= {"id": id, "verdict": verdict, "title": title}
    before = [own for own in seen.splitlines() if own]
    last = max(1, min(MAX_PAGES, -(-len(before) // PAGE)))
    values = _results(page, query, 1, last, seen=before)
    values["notice"] = notice | {"is_in_model": is_in_model}
    return page.render("_results.html" if part else "search.html", **values)


class Given(BaseModel):
    """A judgement, or what takes one back, as the script of a page sends it."""

    form_token: str = Field(max_length=200)
    source: str = Field("", max_length=200)
    left: str = Field("", max_length=1000)
    q: str = Field("", max_length=2000)
    upload: str = Field("", max_length=200)
    target: str = Field("", max_length=200)
    right: str = Field("", max_length=1000)
    verdict: Literal["must", "cannot", "unsure", "undo"]
    key: str = Field("", max_length=36)
    undo: str = Field("", max_length=36)
    note: str = Field("", max_length=1000)


@pages.post("/judgements", dependencies=[Depends(check_json)])
def keep_judgement(request: Request, given: Given) -> dict[str, str]:
    """Store a judgement, and answer without waiting for the model."""
    page = check_token(request, given.form_token)
    if given.verdict == "undo":
        id, _ = page.take_back(given.undo, patience=0.0)
        return {"id": id}
    query = Query(given.source, given.target, given.left, given.q, given.upload)
    id, _ = page.judge(
        query,
        given.left or page.site.keep(query),
        given.right,
        verdict=given.verdict,
        key=given.key,
        note=given.note,
        patience=0.0,
    )
    return {"id": id}


@pages.get("/session")
def session(page: Anyone) -> Response:
    """Return the token of forms, for pages that were open for long."""
    answer = {"form_token": page.visitor.form_token, "name": page.visitor.name}
    return page.visitor.remember(JSONResponse(answer))


@pages.post("/name")
def set_name(page: FromForm, name: Text = "", back: Text = "/") -> Response:
    """Store the name of the visitor."""
    return page.visitor.rename(page.redirect(page.access.root + own_path(back)), name)


@pages.get("/ask")
def ask_page(page: Anyone, query: Asking, part: bool = False) -> HTMLResponse:
    """Ask about a suggested pair."""
    return _ask(page, query, part, None)


@pages.post("/ask")
def answer_question(
    page: FromForm,
    query: Asking,
    left: Text = "",
    right: Text = "",
    verdict: Text = "",
    undo: Text = "",
    key: Text = "",
    note: Text = "",
    part: bool = False,
) -> HTMLResponse:
    """Store an answer, or take one back, and ask about the next pair."""
    if undo:
        page.take_back(undo)
        return _ask(page, query, part, {"undo": undo})
    id, _ = page.judge(query, left, right, verdict=verdict, key=key, note=note)
    return _ask(page, query, part, {"id": id, "verdict": verdict, "undo": ""})


@pages.get("/why")
def why_page(page: Anyone, query: Asking, found: Id, upload: View = "") -> HTMLResponse:
    """Explain one score."""
    query = replace(query, upload=upload)
    asked = page.site.resolve(query)
    if asked is None:
        raise LinkspreadError(
            "an explanation needs a query and a result, and this address has no query. "
            "Search first, then click a score."
        )
    with page.site.heavy:
        why = page.site.explain(query, asked, found)
    return page.render("why.html", query=query, asked=asked, why=why)


@pages.get("/look")
def look_page(page: Anyone, query: Asking) -> HTMLResponse:
    """Show an overview of the model."""
    site = page.site
    with site.heavy:
        overview, recall = look(site.live, site.contents), site.curve.recall_chart()
    return page.render(
        "look.html",
        query=query,
        overview=overview,
        recall=recall,
        curve=site.curve.chart(),
    )


@pages.get("/map")
def map_part(page: Anyone, source: View, target: View) -> HTMLResponse:
    """Draw the map, which takes a second or two."""
    with page.site.mapping:
        marks = page.site.atlas.map(source, target)
    return page.render("_map.html", source=source, marks=marks)


@pages.get("/enter")
def enter_page(page: Anyone, back: Words = "/") -> HTMLResponse:
    """Ask for the token."""
    return page.render("enter.html", is_wrong=False, back=own_path(back))


@pages.post("/enter")
def enter(page: Anyone, token: Text = "", back: Text = "/") -> Response:
    """Exchange the token for a cookie that does not contain it."""
    back = own_path(back)
    person = page.access.person(token)
    if not (person or page.access.is_token(token)):
        return page.render("enter.html", status=401, is_wrong=True, back=back)
    cookie = page.access.cookie_of(person) if person else page.access.pass_cookie
    return page.redirect(page.access.root + back, **{PASS_COOKIE: cookie})


@pages.get("/docs")
def describe_api(request: Request, page: Anyone) -> HTMLResponse:
    """List the routes for programs, from their OpenAPI description."""
    return page.render("api.html", schema=request.app.openapi())


@pages.get("/static/{name}")
def static_file(name: str) -> Response:
    """Return the style sheet, the script or the icon."""
    if name not in STATIC:
        raise HTTPException(404, "there is no such file.")
    content = files("linkspread.web").joinpath("static", name).read_bytes()
    return Response(content, media_type=STATIC[name], headers=CACHED)


@pages.get("/picture")
def picture(site: Here, view: View, id: Id, size: str = "small") -> Response:
    """Return the picture of an item by its id, never by a path."""
    items = site.items.get(view)
    if items is None or size not in SIDES or not items.contains([id])[0]:
        raise HTTPException(404, "there is no such picture.")
    key = view, int(items.positions([id])[0]), SIDES[size]

    def draw() -> bytes:
        with site.drawing:
            return site.contents.picture(*key)

    found = site.pictures.get(key, draw)
    return Response(found, media_type="image/png", headers=CACHED)


@pages.post("/upload")
def upload(
    page: FromForm,
    picture: Annotated[UploadFile, File()],
    target: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Store a picture for a short time, and search by it."""
    site, source = page.site, page.site.picture_view()
    if site.uploads is None or not source:
        raise LinkspreadError(
            "a search by pictures needs a view that reads pictures, and this model has "
            "none. Search by one of its items."
        )
    with site.heavy:
        name = site.uploads.keep(picture.file.read())
    wanted = target if (source, target) in site.directions() else ""
    query = Query(*site.choose_views(source, wanted), upload=name)
    return page.redirect(site.url("/", query))


@pages.get("/upload/{name}")
def uploaded(site: Here, name: str) -> Response:
    """Return an uploaded picture."""
    if site.uploads is None:
        raise HTTPException(404, "there is no such picture.")
    return Response(site.uploads.read(name), media_type="image/png", headers=CACHED)


def own_path(path: str) -> str:
    """Return a path of this site, "/" for anything that could lead to another one."""
    is_own = path.startswith("/") and path[1:2] not in ("/", "\\")
    return path if is_own and path.isprintable() else "/"


def render_error(settings: Settings, status: int, sentence: str) -> HTMLResponse:
    """Return a page with the message of an error and a way back."""
    text = (
        templates()
        .get_template("error.html")
        .render(settings=settings, root=settings.root, status=status, sentence=sentence)
    )
    return HTMLResponse(text, status_code=status)


def _results(
    page: Page, query: Query, first: int, last: int, seen: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the values of the search page for some pages of results."""
    site, asked, problem, hits = page.site, None, "", []
    contents, is_known = site.contents, query.source in site.items
    unknown: dict[str, list[str]] = {}
    try:
        asked = site.resolve(query)
        if asked is not None and asked.position is None and query.q:
            unknown = contents.unknown_words(query.source, query.q)
            if unknown and not abs(asked.queries).sum():
                asked = None
    except LinkspreadError as error:
        problem = str(error)
        if query.q and is_known:
            unknown = contents.unknown_words(query.source, query.q)
    is_weak = False
    if asked is not None:
        start, stop, who = (first - 1) * PAGE, last * PAGE, page.visitor.name
        hits = site.find_hits(query, asked, who=who, start=start, stop=stop, seen=seen)
        usual = site.searches.usual(query.source, query.target)
        is_weak = first == 1 and bool(hits) and hits[0].score < usual.weak
    matches = []
    if is_known and query.q and (asked is None or asked.position is None):
        matches = site.titles(query.source).find(query.q, N_MATCHES)
    n_items = site.items[query.target].n_items if query.target in site.items else 0
    return {
        "query": query,
        "asked": asked,
        "problem": "" if unknown else problem,
        "unknown": unknown,
        "is_weak": is_weak,
        "hits": hits,
        "first": first,
        "last": last,
        "has_more": bool(hits) and last * PAGE < n_items and last < MAX_PAGES,
        "matches": [_pick(site, query.source, query.target, k) for k in matches],
        "wall": _wall(site, query) if asked is None and is_known else [],
        "number": site.live.shown.number,
        "key": str(uuid.uuid4()),
        "notice": None,
        "status": 400 if problem and not unknown else 200,
    }


def _pick(site: Site, source: str, target: str, position: int) -> dict[str, str]:
    """Return what a link to the search of an item shows."""
    id = str(site.items[source].ids[position])
    return {
        "title": site.contents.caption(source, position)
        or site.contents.title(source, position),
        "picture": site.picture_url(source, id),
        "url": site.url("/", Query(source, target, item=id)),
    }


def _wall(site: Site, query: Query) -> list[dict[str, str]]:
    """Return items of a view, evenly spread; pictures where there are any."""
    ways, views = site.ways(), (query.target, query.source)
    view = next((v for v in views if site.contents.has_pictures(v)), query.source)
    others = (query.source, query.target, view)
    target = next((t for t in others if t != view and (view, t) in ways), view)
    n_items = site.items[view].n_items
    places = sorted({k * n_items // N_EXAMPLES for k in range(N_EXAMPLES)})
    return [_pick(site, view, target, k) for k in places]


def _ask(
    page: Page, query: Query, part: bool, notice: dict[str, str] | None
) -> HTMLResponse:
    """Return the page with the next questions; a script shows one after the other."""
    site = page.site
    query = Query(query.source, query.target)
    who = page.visitor.name
    queue = site.questions(query.source, query.target, who, n=N_ASKED)
    asked = [
        {
            "pair": (own.left, own.right),
            "gain": own.gain,
            "sides": [
                _side(site, query.source, own.left),
                _side(site, query.target, own.right),
            ],
        }
        for own in queue[:N_ASKED]
    ]
    return page.render(
        "_question.html" if part else "ask.html",
        query=query,
        asked=asked,
        n_waiting=len(queue),
        curve=site.curve.chart(),
        key=str(uuid.uuid4()),
        number=site.live.shown.number,
        notice=notice,
    )


def _side(site: Site, view: str, id: str) -> dict[str, str]:
    """Return what one side of a question shows."""
    contents, position = site.contents, int(site.items[view].positions([id])[0])
    return {
        "view": view,
        "title": contents.caption(view, position) or contents.title(view, position),
        "text": contents.text(view, position) or contents.title(view, position),
        "picture": site.picture_url(view, id),
    }
