"""``linkspread serve``: search and judge in a browser."""

from __future__ import annotations

import os
import secrets
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linkspread.cli import options
from linkspread.cli.opening import open_folder, read_features
from linkspread.cli.output import notice
from linkspread.ground.errors import LinkspreadError, require

if TYPE_CHECKING:
    from fastapi import FastAPI

FACTORY = "linkspread.cli.serve:make_app"
# Environment variables: the model and its store for the workers, and the token.
FOLDER, STORE = "LINKSPREAD_SERVE_MODEL", "LINKSPREAD_STORE"
TOKEN = "LINKSPREAD_TOKEN"
LABELS_PER_FAMILY = 5


def run_serve(
    model: options.Model,
    store: options.Store = None,
    host: Annotated[
        str,
        typer.Option(help="Address; one that other machines can reach needs a token."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port.")] = 8000,
    token: Annotated[
        str,
        typer.Option(help="Token that people must enter; generated if needed."),
    ] = "",
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Processes that serve the page.")
    ] = 1,
    requests_per_second: Annotated[
        float,
        typer.Option(
            min=1,
            help="Requests per second for each client address; bursts of ten times "
            "that are allowed.",
        ),
    ] = 60.0,
    public_url: Annotated[
        str,
        typer.Option(
            help="Address that people use if a proxy stands in front, such as "
            "https://example.org/search."
        ),
    ] = "",
    title: Annotated[
        str, typer.Option(help="Title of the pages; by default the folder's name.")
    ] = "",
    glyphs: Annotated[
        bool, typer.Option(help="Fit glyphs first if there is no model.")
    ] = False,
) -> None:
    """Search and judge in a browser; judgements go to MODEL/judgements.db or --store.

    Prefer LINKSPREAD_TOKEN to --token, because others can see command lines.
    """
    for module in (
        "fastapi",
        "jinja2",
        "prometheus_client",
        "python_multipart",
        "uvicorn",
    ):
        require(module, purpose="Serving a page")
    from linkspread.storage.folder import MANIFEST
    from linkspread.web import Settings, serve
    from linkspread.web.server import check_public_url, keep_secret

    if glyphs and not (model / MANIFEST).is_file():
        notice("Fitting glyphs, once; this takes some fifteen seconds.")
        _fit_glyphs(model)
    open_folder(model, store).check_store()
    settings = Settings(
        title=title or model.resolve().name or "linkspread",
        host=host,
        token=token or os.environ.get(TOKEN, ""),
        requests_per_second=requests_per_second,
        secret=keep_secret(model),
        public_url=check_public_url(public_url) if public_url else "",
    )
    if not settings.token and settings.is_public:
        settings = replace(settings, token=secrets.token_urlsafe(24))
        notice(f"Token: {settings.token}")
    if 0 < len(settings.token) < 12:
        raise LinkspreadError(
            f"a token must have at least 12 letters, got {len(settings.token)}. Leave "
            "it out to get one."
        )
    os.environ[FOLDER], os.environ[STORE] = str(model.resolve()), store or ""
    shown = f"[{host}]" if ":" in host else host
    here = settings.public_url or f"http://{shown}:{port}"
    notice(f"{here}/ (end with Ctrl+C)")
    serve(FACTORY, settings, port=port, workers=workers)


def make_app() -> FastAPI:
    """Return the application of one worker."""
    from linkspread.web import create_app
    from linkspread.web.server import read_settings

    folder = open_folder(Path(os.environ[FOLDER]), os.environ.get(STORE) or None)
    return create_app(folder, features=read_features(folder), settings=read_settings())


def _fit_glyphs(folder: Path) -> None:
    """Fit the glyphs of the demo to a few labels of each family, and save them."""
    import numpy as np

    from linkspread.datasets import load_glyphs
    from linkspread.links import Links
    from linkspread.models import CrossViewSearch
    from linkspread.studies.collections import choose_labeled

    glyphs = load_glyphs()
    known = choose_labeled(glyphs.labels, LABELS_PER_FAMILY, random_state=0)
    labels = np.where(known, glyphs.labels, -1)
    model = CrossViewSearch().fit(
        glyphs.views,
        Links.from_labels(dict.fromkeys(glyphs.views, labels)),
        ids=dict.fromkeys(glyphs.views, glyphs.ids),
    )
    model.save(folder)
