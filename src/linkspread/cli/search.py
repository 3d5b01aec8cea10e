"""``linkspread search`` and ``linkspread explain``: find items and explain scores."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from linkspread.cli import options
from linkspread.cli.opening import (
    ItemContents,
    check_items,
    choose_views,
    open_model,
    open_searched,
    read_contents,
    read_features,
)
from linkspread.cli.output import (
    notice,
    print_json,
    print_line,
    print_table,
    shorten,
)
from linkspread.ground.errors import LinkspreadError, UnknownItemError, ViewError

if TYPE_CHECKING:
    from linkspread.judging import Explanation, Split
    from linkspread.models import ModelFolder

# Letters of a text in a table of results, and beside an id.
SHOWN, SHOWN_BESIDE = 300, 60


class Query(NamedTuple):
    """A query of the model, and the option and value that name it."""

    asked: Any
    name: dict[str, Any]


def run_search(
    model: options.Model,
    source: options.Source = None,
    target: options.Target = None,
    id: Annotated[
        list[str] | None, typer.Option(help="Item to search by; may be repeated.")
    ] = None,
    query_file: Annotated[
        str | None, typer.Option(help="New items: .npy, .npz, .parquet or .csv.")
    ] = None,
    row: Annotated[
        list[str] | None,
        typer.Option(help="Row of that file, by its id, or counted from 0."),
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="New text, if the model has a features folder.")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(help="New picture, if the model has a features folder."),
    ] = None,
    n_results: Annotated[
        int, typer.Option("--n-results", "-n", min=1, help="Items to find.")
    ] = 10,
    threshold: Annotated[
        float | None, typer.Option(help="Leave out items with a lower score.")
    ] = None,
    judged: Annotated[
        bool, typer.Option(help="Whether to find items that were judged for the query.")
    ] = True,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Id that may be found, or @FILE with one in each line."),
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Id that may not be found, or @FILE.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="exact, approximate (by faiss) or auto.")
    ] = "exact",
    as_json: options.AsJson = False,
    store: options.Store = None,
) -> None:
    """Find the best items of one view for items of another.

    With two views, --source and --target may be left out if the id is in one view only.
    Exit status 1 means that nothing was found.
    """
    ways: dict[str, Any] = {"--id": id, "--query-file": query_file}
    ways |= {"--text": text, "--picture": picture}
    given = [option for option, value in ways.items() if value not in (None, [])]
    if len(given) != 1:
        raise LinkspreadError(
            f"a search must have one of {', '.join(ways)}, got "
            f"{' and '.join(given) or 'none'}. Give one of them."
        )
    if row and query_file is None:
        raise LinkspreadError(
            "`--row` must be a row of a `--query-file`, got no such file. Name the "
            "file too, or use --id."
        )
    folder, loaded = open_searched(model, store)
    if text is not None or picture is not None:
        found = _new_content(folder, loaded, text, picture, source, target)
        source, target, queries = found
    else:
        source, target = choose_views(loaded, source, target, id or [])
        if query_file is None:
            check_items(loaded, source, id or [], option="--id")
            queries = [Query(item, {"id": item}) for item in id or []]
        else:
            queries = _rows_of_file(loaded, source, query_file, row or [])
    limits = {
        "only": _read_ids(loaded, target, only, option="--only"),
        "exclude": _read_ids(loaded, target, exclude, option="--exclude"),
    }
    views = {"source": source, "target": target}
    contents = read_contents(folder)
    answers = []
    for query in queries:
        # One by one: several at once would all be as short as the shortest.
        ids, scores = loaded.search(
            query.asked,
            **views,
            **limits,
            n_results=n_results,
            judged=judged,
            method=method,
        )
        answers.append(_results(ids, scores, threshold, contents, target))
    if as_json:
        named = zip(queries, answers, strict=True)
        print_json(views | {"queries": [q.name | {"results": a} for q, a in named]})
    else:
        for query, results in zip(queries, answers, strict=True):
            _print_results(query, results, contents, target)
    if not any(answers):
        notice("linkspread: nothing was found.")
        raise typer.Exit(1)


def run_explain(
    model: options.Model,
    id: Annotated[str, typer.Option(help="Item of the query.", show_default=False)],
    with_: Annotated[
        str, typer.Option("--with", help="Item that was found.", show_default=False)
    ],
    source: options.Source = None,
    target: options.Target = None,
    n_links: Annotated[
        int, typer.Option("--n-links", "-n", min=1, help="Parts to name.")
    ] = 8,
    output: Annotated[
        Path | None,
        typer.Option(help="Picture of the explanation, .svg.", show_default=False),
    ] = None,
    as_json: options.AsJson = False,
    store: options.Store = None,
) -> None:
    """Split the score of two items into links, neighbours and other parts.

    The parts of a table and its last row, the rest, add up.
    """
    if output is not None and output.suffix.lower() != ".svg":
        raise LinkspreadError(
            f"`--output` must end in .svg, got {str(output)!r}. Change the ending; "
            "browsers show SVG and can print it to other formats."
        )
    folder, loaded = open_model(model, store)
    source, target = choose_views(loaded, source, target, [id])
    check_items(loaded, source, [id], option="--id")
    check_items(loaded, target, [with_], option="--with")
    why = loaded.explain(id, with_, source=source, target=target, n_links=n_links)
    contents = read_contents(folder)
    if output is not None:
        _draw(why, contents, output, n_links)
        notice(f"Picture: {output}")
    if as_json:
        names = ("source", "target", "source_item", "target_item", "score")
        document = {name: getattr(why, name) for name in (*names, "search_score")}
        print_json(
            document | {name: _document(own) for name, own in why.splits.items()}
        )
    else:
        _print_explanation(why, contents)


def _read_ids(
    model: Any, view: str, given: list[str] | None, *, option: str
) -> list[str] | None:
    """Return the ids of --only or --exclude; @FILE names a file of ids."""
    ids = []
    for word in given or ():
        if not word.startswith("@"):
            ids.append(word)
            continue
        try:
            lines = Path(word[1:]).read_text(encoding="utf-8-sig").splitlines()
        except (OSError, ValueError) as error:
            raise LinkspreadError(
                f"`{option} @FILE` must name a UTF-8 file with an id in each line, "
                f"and {word[1:]!r} cannot be read. Correct the path."
            ) from error
        ids += [line.strip() for line in lines if line.strip()]
    check_items(model, view, ids, option=option)
    return ids if given else None


def _rows_of_file(
    model: Any, source: str, query_file: str, chosen: list[str]
) -> list[Query]:
    """Return all rows of a table, or the chosen ones, as queries."""
    from linkspread.cli.inputs import read_view
    from linkspread.tables.validation import WITH_COLUMNS

    place = options.split_columns(query_file, (source,))
    # Shards do not know the names of their columns.
    known = getattr(model, "_columns", {}).get(source) or ()
    has_names = place.path.suffix.lower() in WITH_COLUMNS
    table = read_view(place, columns=known if has_names else ())
    n_rows = table.values.shape[0]
    names = [str(k) for k in (range(n_rows) if table.ids is None else table.ids)]
    rows = {name: row for row, name in enumerate(names)}
    for name in chosen:
        if name not in rows:
            raise UnknownItemError(
                f"`--row` must be a row of the file, which has {n_rows:,} from "
                f"{names[0]!r} to {names[-1]!r}, got {name!r}. Correct it."
            )
    return [Query(table.values[[rows[n]]], {"row": n}) for n in chosen or names]


def _new_content(
    folder: ModelFolder | None,
    model: Any,
    text: str | None,
    picture: Path | None,
    source: str | None,
    target: str | None,
) -> tuple[str, str, list[Query]]:
    """Return the features of a new text or picture as a query."""
    import numpy as np

    kind = "text" if picture is None else "picture"
    features = None if folder is None else read_features(folder)
    kinds = features.kinds if features else {}
    views = [view for view, own in kinds.items() if own == kind]
    if source is None and len(views) == 1:
        source = views[0]
    source, target = choose_views(model, source, target)
    if features is None or source not in views:
        raise ViewError(
            f"`--{kind}` needs a view of {kind}s from `linkspread featurize`, and "
            f"{source!r} is none. Fit the model with a features folder, or give "
            "features with --query-file."
        )
    if picture is not None and not picture.is_file():
        raise LinkspreadError(
            f"`--picture` must be a file, and there is none at {str(picture)!r}. "
            "Correct the path."
        )
    content: Any = text if picture is None else picture
    rows: Any = features.transform(source, [content])
    rows = rows if hasattr(rows, "tocsr") else np.asarray(rows)
    return source, target, [Query(rows, {kind: str(content)})]


def _results(
    ids: Any, scores: Any, threshold: float | None, contents: ItemContents, view: str
) -> list[dict[str, Any]]:
    """Return the results of one query that reach the threshold."""
    found = []
    pairs = zip(ids.ravel().tolist(), scores.ravel().tolist(), strict=True)
    for rank, (item, score) in enumerate(pairs, start=1):
        if threshold is None or score >= threshold:
            content = contents.find(view, item)
            more = {} if content is None else {"content": content}
            found.append({"rank": rank, "id": item, "score": score} | more)
    return found


def _print_results(
    query: Query, results: list[dict[str, Any]], contents: ItemContents, view: str
) -> None:
    """Print the results of a query as a table."""
    ((option, value),) = query.name.items()
    headings = ["rank", "id", "score"]
    if contents.known(view):
        headings.append("picture" if contents.is_picture(view) else "text")
    rows = []
    for own in results:
        content = shorten(own.get("content", ""), SHOWN)
        cells = (own["rank"], own["id"], f"{own['score']:.4g}", content)
        rows.append(cells[: len(headings)])
    title = f"{option} {value}"[:SHOWN]
    print_table(headings, rows, right=("rank", "score"), title=title)


def _document(split: Split) -> dict[str, Any]:
    """Return a split for programs; JSON has no NaN."""
    parts = [asdict(part) for part in split.parts]
    for part in parts:
        part["weight"] = None if math.isnan(part["weight"]) else part["weight"]
    return {"parts": parts, "rest": split.rest, "n_rest": split.n_rest}


def _print_explanation(why: Explanation, contents: ItemContents) -> None:
    """Print the score, and a table for each split."""
    from linkspread.judging.explanation import HEADINGS, name_item

    names = {
        "source": name_item(why.source, why.source_item),
        "target": name_item(why.target, why.target_item),
        "target_view": why.target,
    }
    print_line(f"{names['source']} and {names['target']} score {why.score:.4g}")
    for name, split in why.splits.items():
        about = split.parts[0].classes[1] if split.parts else None
        _print_split(HEADINGS[name].format(**names, about=about), split, why, contents)


def _print_split(
    title: str, split: Split, why: Explanation, contents: ItemContents
) -> None:
    """Print the parts of a split, the rest in one row."""
    from linkspread.judging.explanation import amount_format
    from linkspread.judging.explanation_picture import UNLINKED

    def name(view: str, item: Any) -> str:
        content = None if contents.is_picture(view) else contents.find(view, item)
        beside = "" if content is None else f": {shorten(content, SHOWN_BESIDE)}"
        return "" if item is None else f"{item}{beside}"

    write = amount_format([part.amount for part in split.parts] or [split.rest])
    rows = []
    for part in split.parts:
        classes = " and ".join(str(own) for own in part.classes if own is not None)
        kind = f"{UNLINKED.get(part.kind, part.kind)} {classes}".strip()
        items = name(why.source, part.source_item), name(why.target, part.target_item)
        weight = "" if math.isnan(part.weight) else f"{part.weight:.3g}"
        rows.append((write(part.amount), kind, *items, weight))
    if split.n_rest:
        rows.append((write(split.rest), f"{split.n_rest:,} more", "", "", ""))
    headings = ("amount", "kind", why.source, why.target, "weight")
    print_table(headings, rows, right=("amount", "weight"), title=title)


def _draw(why: Explanation, contents: ItemContents, output: Path, n_links: int) -> None:
    """Draw an explanation; an unreadable picture of an item leaves a gap."""
    from linkspread.judging import explanation_picture
    from linkspread.studies.report.page import picture_data_uri
    from linkspread.studies.report.study import write_page

    parts = [part for split in why.splits.values() for part in split.parts]
    items = {
        why.source: {why.source_item, *(part.source_item for part in parts)},
        why.target: {why.target_item, *(part.target_item for part in parts)},
    }
    titles: dict[str, dict[Any, str]] = {}
    pictures: dict[str, dict[Any, str]] = {}
    for view, own in items.items():
        found = {item: contents.find(view, item) for item in own if item is not None}
        known = {item: content for item, content in found.items() if content}
        if not contents.is_picture(view):
            titles[view] = known
            continue
        pictures[view] = {}
        for item, path in known.items():
            try:
                pictures[view][item] = picture_data_uri(path)
            except LinkspreadError as error:
                notice(f"linkspread: {error}")
    picture = explanation_picture(
        why, n_links=n_links, titles=titles, pictures=pictures
    )
    write_page(output, picture)
