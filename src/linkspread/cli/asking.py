"""What commands that ask a model have in common: options, views, items."""

import getpass
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from linkspread import cluster
from linkspread.cli.model_folder import ModelFolder
from linkspread.cli.pending import tell_pending
from linkspread.ground.errors import LinkspreadError, UnknownItemError

# What a table is wide without a terminal, so that a file has the whole texts.
PIPED_WIDTH = 200

Model = Annotated[Path, typer.Argument(help="Folder of a model.", show_default=False)]
Source = Annotated[
    str | None, typer.Option(help="View that searches.", show_default=False)
]
Target = Annotated[
    str | None, typer.Option(help="View that is searched.", show_default=False)
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Write one JSON document and nothing else.")
]
Store = Annotated[
    str | None,
    typer.Option(
        envvar="LINKSPREAD_STORE",
        help="Judgements elsewhere: a file, or a URL of PostgreSQL.",
        show_default=False,
    ),
]
Who = Annotated[
    str | None,
    typer.Option(
        envvar="LINKSPREAD_WHO",
        help="Who judges; your login name otherwise.",
        show_default=False,
    ),
]


def open_searched(path: Path, store: str | None = None) -> tuple[Any, Any]:
    """Load a model to search in, or open shards, which have no folder of a model."""
    if cluster.is_sharded(path):
        return None, cluster.open_shards(path)
    return open_model(path, store)


def open_model(
    path: Path, store: str | None = None, *, judging: bool = False
) -> tuple[ModelFolder, Any]:
    """Load a model, and tell which judgements it lacks, unless it will have them."""
    folder = ModelFolder(path, store=store)
    model = folder.load()
    if not judging:
        tell_pending(folder)
    return folder, model


def choose_views(
    model: Any, source: str | None, target: str | None, ids: Sequence[str] = ()
) -> tuple[str, str]:
    """Return the view that searches and the one that is searched.

    Of two views both may be left out, where the ids tell which one they are of.
    """
    names = model.view_names_
    for option, view in (("--source", source), ("--target", target)):
        if view is not None and view not in names:
            raise LinkspreadError(
                f"`{option}` must be a view of the model, which has "
                f"{', '.join(map(repr, names))}, got {view!r}. Choose one of these."
            )
    if source is None:
        source = _view_of(model, ids, target)
    if target is None:
        target = _other(names, source)
    return source, target


def check_items(model: Any, view: str, ids: Sequence[str], *, option: str) -> None:
    """Refuse an id that a view does not have, and name those spelt like it."""
    items = model.items_[view]
    for item, known in zip(ids, items.contains(list(ids)), strict=True):
        if not known:
            near = [repr(own) for own in items.spelt_like(item)]
            hint = f"Near it are {', '.join(near)}" if near else _first_ids(items)
            raise UnknownItemError(
                f"`{option}` must be an item of view {view!r}, which has none called "
                f"{item!r}. {hint}; correct the id."
            )


def default_who(who: str | None) -> str:
    """Return who judges: as given, or the login name."""
    try:
        return who or getpass.getuser()
    except (KeyError, OSError, ImportError) as error:
        raise LinkspreadError(
            "`--who` must say who judges, and this system tells no login name. Give "
            "--who NAME or set LINKSPREAD_WHO."
        ) from error


def console() -> Console:
    """Return standard output as something that tables are printed on."""
    return Console(
        width=None if sys.stdout.isatty() else PIPED_WIDTH,
        highlight=False,
        markup=False,
    )


def tell(text: str) -> None:
    """Write a sentence for people, where it does not disturb what is read."""
    print(text, file=sys.stderr, flush=True)


def plain(value: Any) -> Text:
    """Return a text of unknown origin for a terminal: no codes that steer it."""
    words = "".join(c if c.isprintable() else " " for c in str(value))
    return Text(words)


def write_json(document: Any) -> None:
    """Write one document to standard output."""
    print(json.dumps(document, ensure_ascii=False, indent=1), flush=True)


def _view_of(model: Any, ids: Sequence[str], target: str | None) -> str:
    """Return the view that has all the ids, if only one does."""
    names = model.view_names_
    found = [v for v in names if ids and model.items_[v].contains(list(ids)).all()]
    if len(found) == 1:
        return found[0]
    if ids and not found:
        _refuse_everywhere(model, ids)
    if target is not None and len(names) == 2:
        return _other(names, target)
    got = f"{', '.join(map(repr, found))}" if found else f"one of {len(names)} views"
    raise LinkspreadError(
        f"`--source` must be given where the items do not tell it, got {got}. Add "
        f"--source {names[0]} or another of {', '.join(names)}."
    )


def _refuse_everywhere(model: Any, ids: Sequence[str]) -> None:
    """Name the ids of any view that are spelt like one that none has."""
    views = {view: model.items_[view] for view in model.view_names_}
    for item in ids:
        if not any(items.contains([item]).all() for items in views.values()):
            near = [f"{own!r} ({v})" for v in views for own in
                    views[v].spelt_like(item, n=2)]  # fmt: skip
            hint = f"Near it are {', '.join(near)}" if near else "None is spelt like it"
            raise UnknownItemError(
                f"`--id` must be an item of the model, whose views have none called "
                f"{item!r}. {hint}; correct the id."
            )


def _other(names: Sequence[str], view: str) -> str:
    """Return the other of two views."""
    others = [name for name in names if name != view]
    if len(others) != 1:
        raise LinkspreadError(
            f"`--target` must be given for a model of {len(names)} views, got none. "
            f"Choose one of {', '.join(names)}."
        )
    return others[0]


def _first_ids(items: Any) -> str:
    """Return what ids of a view look like."""
    return f"Its ids are like {', '.join(repr(i) for i in items.ids[:3].tolist())}"
