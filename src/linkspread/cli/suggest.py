"""``linkspread suggest``: the pairs that are worth judging next."""

from typing import Annotated, Any, NamedTuple

import typer
from rich.table import Table

from linkspread.cli.asking import (
    AsJson,
    Model,
    Source,
    Store,
    Target,
    Who,
    choose_views,
    console,
    default_who,
    open_model,
    plain,
    tell,
    write_json,
)
from linkspread.cli.dialogue import Answer, judge_pairs
from linkspread.cli.item_contents import ItemContents, read_contents
from linkspread.cli.model_folder import ModelFolder
from linkspread.cli.pending import absorb_and_tell
from linkspread.cli.terminal_pictures import choose_display, show_picture

# Letters of a text in a table, and in a question.
SHOWN, SHOWN_WHOLE = 80, 2000


class Suggestion(NamedTuple):
    """A pair worth judging."""

    source_id: Any
    target_id: Any
    score: float
    gain: float
    source_content: str | None
    target_content: str | None


def run_suggest(
    model: Model,
    source: Source = None,
    target: Target = None,
    n: Annotated[
        int, typer.Option("--n-pairs", "-n", min=1, help="Pairs to suggest.")
    ] = 10,
    ask: Annotated[
        bool, typer.Option("--ask", help="Judge them now, one after the other.")
    ] = False,
    who: Who = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Another seed suggests other pairs.")
    ] = 0,
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
    """Suggest pairs whose judgement would teach the model most.

    The gain is the share of what is open about all pairs that one judgement would
    tell. With --ask each answer is stored at once, and the model learns all at the end.
    """
    judge = default_who(who) if ask else ""
    folder, loaded = open_model(model, store)
    names = loaded.view_names_
    if source is None and target is None and len(names) == 2:
        source = names[0]
    source, target = choose_views(loaded, source, target)
    contents = read_contents(folder)
    found = _suggest(folder, loaded, (source, target), n, seed, contents)
    answers: list[Answer] = []
    if ask and found:
        display = choose_display(pictures)
        answers = _ask(folder, found, (source, target), judge, contents, display)
        absorb_and_tell(folder, loaded)
    if as_json:
        write_json(_document((source, target), found, answers, asked=ask))
    elif not ask and found:
        _print((source, target), found, contents)
    if not found:
        tell("linkspread: there is no pair left to judge.")
        raise typer.Exit(1)


def _suggest(
    folder: ModelFolder,
    model: Any,
    between: tuple[str, str],
    n: int,
    seed: int,
    contents: ItemContents,
) -> list[Suggestion]:
    """Return pairs of which the store says nothing yet."""
    views = dict(zip(("source", "target"), between, strict=True))
    said = folder.said_beside_the_model()
    left, right = model.suggest_pairs(n + len(said), **views, random_state=seed)
    pairs = [
        pair
        for pair in zip(left.tolist(), right.tolist(), strict=True)
        if frozenset((v, str(i)) for v, i in zip(between, pair, strict=True))
        not in said
    ][:n]
    if not pairs:
        return []
    gains = model.expected_gains(*zip(*pairs, strict=True), **views, random_state=seed)
    return [
        Suggestion(
            *pair,
            model.scores(*between, rows=[pair[0]], cols=[pair[1]]).item(),
            gain,
            *(contents.find(v, i) for v, i in zip(between, pair, strict=True)),
        )
        for pair, gain in zip(pairs, gains.tolist(), strict=True)
    ]


def _ask(
    folder: ModelFolder,
    found: list[Suggestion],
    between: tuple[str, str],
    who: str,
    contents: ItemContents,
    display: str | None,
) -> list[Answer]:
    """Go through the pairs on the terminal."""

    def show(place: int) -> None:
        own = found[place]
        tell(f"\n{place + 1} of {len(found)}")
        for view, item, content in (
            (between[0], own.source_id, own.source_content),
            (between[1], own.target_id, own.target_content),
        ):
            what = f"{view} {item}: {content or ''}"[:SHOWN_WHOLE]
            tell(plain(what).plain.rstrip(": "))
            if content and display and contents.is_picture(view):
                show_picture(content, display)

    with folder.store() as store:
        pairs = [(own.source_id, own.target_id) for own in found]
        return judge_pairs(store, pairs, between=between, who=who, show=show)


def _document(
    between: tuple[str, str],
    found: list[Suggestion],
    answers: list[Answer],
    *,
    asked: bool,
) -> dict[str, Any]:
    """Return suggestions, and the answers to them, as a document."""
    verdicts = {answer.place: answer for answer in answers}
    pairs = []
    for place, own in enumerate(found):
        values = {k: v for k, v in own._asdict().items() if v is not None}
        if place in verdicts:
            values |= {"verdict": verdicts[place].verdict, "id": verdicts[place].id}
        pairs.append(values)
    document: dict[str, Any] = {"source": between[0], "target": between[1]}
    if asked:
        document["n_answers"] = len(answers)
    return document | {"pairs": pairs}


def _print(
    between: tuple[str, str], found: list[Suggestion], contents: ItemContents
) -> None:
    """Print the pairs as a table."""
    table = Table(title="Pairs worth judging", title_justify="left")
    for view in between:
        table.add_column(plain(view), overflow="fold")
        if contents.known(view):
            table.add_column("")
    for heading in ("score", "gain"):
        table.add_column(heading, justify="right")
    for own in found:
        sides = (own.source_id, own.source_content), (own.target_id, own.target_content)
        cells = []
        for view, (item, content) in zip(between, sides, strict=True):
            cells += [item, (content or "")[:SHOWN]] if contents.known(view) else [item]
        numbers = f"{own.score:.4g}", f"{own.gain:.2%}"
        table.add_row(*map(plain, (*cells, *numbers)))
    console().print(table)
