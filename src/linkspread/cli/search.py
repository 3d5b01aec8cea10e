"""``linkspread search``: the items of one view that go best with one of another."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.table import Table

from linkspread.cli.asking import (
    AsJson,
    Model,
    Source,
    Store,
    Target,
    console,
    open_searched,
    plain,
    tell,
    write_json,
)
from linkspread.cli.item_contents import ItemContents, read_contents
from linkspread.cli.questions import Asked, Question, read_limit, read_questions
from linkspread.cli.terminal_pictures import choose_display, show_picture

# Letters of a text in a table.
SHOWN = 300


class Found(NamedTuple):
    """An item that was found."""

    rank: int
    id: Any
    score: float
    content: str | None


class Answer(NamedTuple):
    """A query with what it found."""

    question: Question
    found: list[Found]


def run_search(
    model: Model,
    source: Source = None,
    target: Target = None,
    id: Annotated[
        list[str] | None, typer.Option(help="Item to search with; may be repeated.")
    ] = None,
    query_file: Annotated[
        str | None, typer.Option(help="New items: .npy, .npz, .parquet or .csv.")
    ] = None,
    row: Annotated[
        list[str] | None,
        typer.Option(help="Row of that file, by its id or else counted from 0."),
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="New text, if the model has a features folder.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="New picture, if it has a features folder.")
    ] = None,
    n_results: Annotated[
        int, typer.Option("--n-results", "-n", min=1, help="Items to find.")
    ] = 10,
    threshold: Annotated[
        float | None, typer.Option(help="Leave out items that score less.")
    ] = None,
    judged: Annotated[
        bool, typer.Option(help="Whether to find what was judged for the query.")
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
    pictures: Annotated[
        bool | None,
        typer.Option(
            help="Draw pictures, if need be with coloured blocks; or never.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """Find the items of one view that go best with items of another.

    Of two views --source and --target may be left out where the id tells which it is.
    Exit status 1 means that nothing was found.
    """
    asked = Asked(id or [], query_file, tuple(row or ()), text, picture)
    folder, loaded = open_searched(model, store)
    source, target, questions = read_questions(folder, loaded, asked, source, target)
    limits = {
        "only": read_limit(loaded, target, only, option="--only"),
        "exclude": read_limit(loaded, target, exclude, option="--exclude"),
    }
    ask = {"source": source, "target": target, "n_results": n_results, **limits}
    ask |= {"judged": judged, "method": method}
    contents, answers = read_contents(folder), []
    for question in questions:
        # One by one: many at once are all cut to the length of the shortest.
        ids, scores = (own.ravel() for own in loaded.search(question.asked, **ask))
        found = _found(ids, scores, threshold, contents, target)
        answers.append(Answer(question, found))
    if as_json:
        write_json(_document(source, target, answers))
    else:
        _print(answers, contents, target, choose_display(pictures))
    if not any(answer.found for answer in answers):
        tell("linkspread: nothing was found.")
        raise typer.Exit(1)


def _found(
    ids: np.ndarray,
    scores: np.ndarray,
    threshold: float | None,
    contents: ItemContents,
    view: str,
) -> list[Found]:
    """Return what one query found, without what scores too little."""
    pairs = zip(ids.tolist(), scores.tolist(), strict=True)
    return [
        Found(rank, item, score, contents.find(view, item))
        for rank, (item, score) in enumerate(pairs, start=1)
        if threshold is None or score >= threshold
    ]


def _document(source: str, target: str, answers: list[Answer]) -> dict[str, Any]:
    """Return all answers as a document."""
    queries = [
        question.told | {"results": [_result(own) for own in found]}
        for question, found in answers
    ]
    return {"source": source, "target": target, "queries": queries}


def _result(found: Found) -> dict[str, Any]:
    """Return an item of a document; what it is only where that is known."""
    values = found._asdict()
    if found.content is None:
        del values["content"]
    return values


def _print(
    answers: list[Answer], contents: ItemContents, view: str, display: str | None
) -> None:
    """Print a table for each query, and pictures where the terminal shows them."""
    screen = console()
    for question, found in answers:
        (how, what) = next(iter(question.told.items()))
        title = plain(f"{how} {what}"[:SHOWN])
        table = Table(title=title, title_justify="left")
        table.add_column("rank", justify="right")
        table.add_column("id", overflow="fold")
        table.add_column("score", justify="right")
        if contents.known(view):
            table.add_column("picture" if contents.is_picture(view) else "text")
        for own in found:
            row = [plain(own.rank), plain(own.id), plain(f"{own.score:.4g}")]
            more = [plain((own.content or "")[:SHOWN])] if contents.known(view) else []
            table.add_row(*row, *more)
        screen.print(table)
        if display and contents.is_picture(view):
            _show(found, display)


def _show(found: list[Found], display: str) -> None:
    """Show the pictures of what was found."""
    for own in found:
        if own.content is not None:
            print(f"{own.rank} {plain(own.id).plain}", flush=True)
            show_picture(own.content, display)
