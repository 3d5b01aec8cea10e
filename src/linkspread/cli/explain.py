"""``linkspread explain``: the links and neighbours that made a score."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from linkspread.cli.asking import (
    AsJson,
    Model,
    Source,
    Store,
    Target,
    check_items,
    choose_views,
    console,
    open_model,
    plain,
    tell,
    write_json,
)
from linkspread.cli.item_contents import ItemContents, read_contents
from linkspread.ground.errors import LinkspreadError
from linkspread.judging import Explanation, Split, explanation_picture
from linkspread.judging.explanation import HEADINGS, amount_format, name_item
from linkspread.judging.explanation_picture import UNLINKED
from linkspread.studies.report import picture_data_uri, write_page

# Letters of a text beside its id.
SHOWN = 60


def run_explain(
    model: Model,
    id: Annotated[str, typer.Option(help="Item that searches.", show_default=False)],
    with_: Annotated[
        str, typer.Option("--with", help="Item that was found.", show_default=False)
    ],
    source: Source = None,
    target: Target = None,
    n_links: Annotated[
        int, typer.Option("--n-links", "-n", min=1, help="Parts to name.")
    ] = 8,
    output: Annotated[
        Path | None,
        typer.Option(help="Also draw it, as .svg.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """Tell which links, through which neighbours, make up the score of two items.

    Parts of each table add up to the score, with what is left out.
    """
    _check_output(output)
    folder, loaded = open_model(model, store)
    source, target = choose_views(loaded, source, target, [id])
    check_items(loaded, source, [id], option="--id")
    check_items(loaded, target, [with_], option="--with")
    why = loaded.explain(id, with_, source=source, target=target, n_links=n_links)
    contents = read_contents(folder)
    if output is not None:
        _draw(why, contents, output, n_links)
        tell(f"Picture: {output}")
    if as_json:
        write_json(_document(why))
    else:
        _print(why, contents)


def _check_output(output: Path | None) -> None:
    """Refuse a picture that cannot be written, before anything is computed."""
    if output is not None and output.suffix.lower() != ".svg":
        raise LinkspreadError(
            f"`--output` must end in .svg, got {str(output)!r}. Every browser shows "
            "an SVG, and prints it as anything else."
        )


def _document(why: Explanation) -> dict[str, Any]:
    """Return an explanation as a document."""
    names = ("source", "target", "source_item", "target_item", "score", "search_score")
    document = {name: getattr(why, name) for name in names}
    return document | {name: _split(own) for name, own in why.splits.items()}


def _split(split: Split) -> dict[str, Any]:
    """Return a split; JSON knows no numbers that are none."""
    parts = [
        {key: None if _is_nan(own) else own for key, own in asdict(part).items()}
        for part in split.parts
    ]
    return {"parts": parts, "rest": split.rest, "n_rest": split.n_rest}


def _is_nan(value: Any) -> bool:
    """Tell what is a number and yet none."""
    return isinstance(value, float) and math.isnan(value)


def _print(why: Explanation, contents: ItemContents) -> None:
    """Print the score, and a table for each split."""
    screen = console()
    names = {
        "source": name_item(why.source, why.source_item),
        "target": name_item(why.target, why.target_item),
        "target_view": why.target,
    }
    words = f"{names['source']} and {names['target']} score {why.score:.4g}"
    screen.print(plain(words))
    for name, split in why.splits.items():
        about = split.parts[0].classes[1] if split.parts else None
        title = HEADINGS[name].format(**names, about=about)
        screen.print(_table(title, split, why, contents))


def _table(title: str, split: Split, why: Explanation, contents: ItemContents) -> Table:
    """Return the parts of a split, with those that have a column of their own."""
    table = Table(title=plain(title), title_justify="left")
    table.add_column("amount", justify="right")
    for heading in ("kind", why.source, why.target):
        table.add_column(heading, overflow="fold")
    table.add_column("weight", justify="right")
    write = amount_format([part.amount for part in split.parts] or [split.rest])
    for part in split.parts:
        kind = UNLINKED.get(part.kind, part.kind) + _class_words(part.classes)
        left = _name(contents, why.source, part.source_item)
        right = _name(contents, why.target, part.target_item)
        weight = "" if _is_nan(part.weight) else f"{part.weight:.3g}"
        row = (write(part.amount), kind, left, right, weight)
        table.add_row(*map(plain, row))
    if split.n_rest:
        table.add_row(write(split.rest), plain(f"{split.n_rest:,} more"), "", "", "")
    return table


def _class_words(classes: tuple[int | None, int | None]) -> str:
    """Return the classes of a part, if it has any."""
    known = [str(own) for own in classes if own is not None]
    return f" {' and '.join(known)}" if known else ""


def _name(contents: ItemContents, view: str, item: Any) -> str:
    """Return the id of an item, and how its text begins."""
    if item is None:
        return ""
    content = None if contents.is_picture(view) else contents.find(view, item)
    return f"{item}" if content is None else f"{item}: {content[:SHOWN]}"


def _draw(why: Explanation, contents: ItemContents, output: Path, n_links: int) -> None:
    """Write the picture of an explanation."""
    parts = [part for split in why.splits.values() for part in split.parts]
    items = {
        why.source: {why.source_item, *(part.source_item for part in parts)},
        why.target: {why.target_item, *(part.target_item for part in parts)},
    }
    known = {v: _contents(contents, v, own) for v, own in items.items()}
    pictured = [view for view in known if contents.is_picture(view)]
    picture = explanation_picture(
        why,
        n_links=n_links,
        titles={v: own for v, own in known.items() if v not in pictured},
        pictures={v: _pictures(known[v]) for v in pictured},
    )
    write_page(output, picture)


def _contents(contents: ItemContents, view: str, items: set[Any]) -> dict[Any, str]:
    """Return what is known of some items."""
    found = {item: contents.find(view, item) for item in items if item is not None}
    return {item: content for item, content in found.items() if content}


def _pictures(paths: dict[Any, str]) -> dict[Any, str]:
    """Return pictures that travel inside a page; a lost file only leaves a gap."""
    found = {}
    for item, path in paths.items():
        try:
            found[item] = picture_data_uri(path)
        except LinkspreadError as error:
            tell(f"linkspread: {error}")
    return found
