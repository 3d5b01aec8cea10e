"""The pages of a team: history, agreement, invitations, and a fit beside the page."""

import time
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Form
from fastapi import Query as Param
from fastapi.responses import HTMLResponse, Response

from linkspread.storage.link_store import ROLES
from linkspread.web.doubts import SETTLED
from linkspread.web.history import Filter, doubtful, export, history, progress
from linkspread.web.pages import (
    Anyone,
    Asking,
    FromForm,
    Number,
    Page,
    Text,
    View,
    own_path,
)
from linkspread.web.site import NotAllowed

team = APIRouter(include_in_schema=False)

N_HISTORY = 50


def read_filter(
    who: View = "",
    verdict: Annotated[Literal["", "must", "cannot", "unsure", "undo"], Param()] = "",
    since: Annotated[str, Param(pattern=r"^(\d{4}-\d{2}-\d{2})?$")] = "",
    disputed: bool = False,
) -> Filter:
    """Return which rows of the history an address asks for."""
    return Filter(who, verdict, since, disputed)


Where = Annotated[Filter, Depends(read_filter)]


@team.get("/history")
def history_page(page: Anyone, where: Where, before: Number = None) -> HTMLResponse:
    """Show judgements, the newest first."""
    entries, oldest = history(page.site, before=before, n=N_HISTORY, where=where)
    return page.render(
        "history.html",
        entries=entries,
        older=oldest if oldest > 1 else None,
        is_newest=before is None,
        where=where,
        chosen={name: own for name, own in asdict(where).items() if own},
    )


@team.post("/history")
def undo_entry(page: FromForm, undo: Text = "", back: Text = "/history") -> Response:
    """Take back a judgement."""
    page.take_back(undo)
    return page.redirect(page.access.root + own_path(back))


@team.get("/judgements.{suffix}")
def export_judgements(page: Anyone, suffix: Literal["csv", "parquet"]) -> Response:
    """Return all judgements that count as a file."""
    with page.site.heavy:
        content = export(page.site, suffix)
    headers = {"Content-Disposition": f'attachment; filename="judgements.{suffix}"'}
    kind = "text/csv" if suffix == "csv" else "application/vnd.apache.parquet"
    return Response(content, media_type=kind, headers=headers)


@team.get("/team")
def team_page(page: Anyone, doubts: bool = False) -> HTMLResponse:
    """Show who judged how much, pairs to settle, and who is invited."""
    return _team(page, ask=doubts)


@team.post("/settle")
def settle_pair(
    page: FromForm,
    query: Asking,
    left: Text = "",
    right: Text = "",
    verdict: Text = "",
    back: Text = "/team",
) -> Response:
    """Store a judgement of a pair that people dispute or the model doubts."""
    page.judge(query, left, right, verdict=verdict, note=SETTLED)
    return page.redirect(page.access.root + own_path(back))


@team.post("/team")
def change_team(
    page: FromForm,
    name: Text = "",
    role: Text = "judge",
    remove: Text = "",
    refit: Annotated[Literal["", "start", "take", "drop"], Form()] = "",
) -> Response:
    """Invite a person or remove one; start a fit beside the page, or take it."""
    if not page.visitor.is_editor:
        raise NotAllowed(
            "people are invited and fits are started by editors, and you are a judge. "
            "Ask an editor."
        )
    if refit:
        with page.site.heavy:
            getattr(page.site.refit, refit)()
        return page.redirect(page.access.root + "/team")
    if not page.access.needs_token:
        raise NotAllowed(
            "people are invited to a page that needs a token, and this one has none. "
            "Serve it with a token."
        )
    people, secret = page.site.live.store.people, ""
    if remove:
        people.remove(remove)
    else:
        secret = people.invite(name, role=role)
    page.access.forget_people()
    return _team(page, invited="" if remove else name, secret=secret)


def _team(
    page: Page, *, invited: str = "", secret: str = "", ask: bool = False
) -> HTMLResponse:
    """Return the page of the team, with the secret of somebody just invited."""
    people = page.site.live.store.people.all() if page.access.needs_token else []
    with page.site.heavy:
        found, doubts = progress(page.site), page.site.doubts.found(ask=ask)
    return page.render(
        "team.html",
        progress=found,
        problem=doubts.problem,
        doubtful=None if doubts.doubts is None else doubtful(page.site, doubts.doubts),
        refit=page.site.refit.state(),
        now=time.time(),
        roles=ROLES,
        people=people,
        invited=invited,
        secret=secret,
    )
