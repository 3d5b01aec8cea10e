"""Judgements and conflicts as tables and documents."""

from typing import Any

from rich.table import Table

from linkspread.cli.asking import console, plain
from linkspread.cli.model_folder import ModelFolder
from linkspread.ground.errors import LinkError
from linkspread.storage import Disagreement, Judgement, LinkStore, PairColumns

# Letters of an id that are shown, and fewest by which it is known.
SHORT_ID, FEWEST = 8, 4

ViewPair = tuple[str, str]


def read_judgements(
    folder: ModelFolder, *, everything: bool, who: str | None
) -> list[tuple[Judgement, bool]]:
    """Return judgements, each with whether it was left standing."""
    if not folder.has_store():
        return []
    with folder.store() as store:
        active = {own.id for own in store.judgements()}
        found = store.judgements(active_only=not everything)
        return [(own, own.id in active) for own in found if who in (None, own.who)]


def find_judgement(store: LinkStore, id: str) -> Judgement:
    """Return the one judgement that has a number, or an id that begins so."""
    wanted = id.strip().lower()
    is_number = wanted.isdecimal() and len(wanted) < SHORT_ID
    found = [
        own
        for own in store.judgements(active_only=False)
        if (is_number and own.number == int(wanted))
        or (len(wanted) >= FEWEST and own.id.startswith(wanted))
    ]
    if len(found) != 1:
        raise LinkError(
            "`ID` must be the number of a judgement, or how its id begins, by "
            f"{FEWEST} letters or more, got {id!r}, which {len(found):,} have. Look "
            "it up with `linkspread links list`."
        )
    return found[0]


def judgement_document(judgement: Judgement, counts: bool) -> dict[str, Any]:
    """Return a judgement for JSON."""
    values = vars(judgement) | {"at": judgement.at.isoformat()}
    return values | {"taken_back": not counts}


def judgements_table(found: list[tuple[Judgement, bool]]) -> None:
    """Print judgements."""
    table = Table()
    table.add_column("number", justify="right")
    for heading in ("id", "when (UTC)", "who", "first", "verdict", "second", "note"):
        table.add_column(heading, overflow="fold")
    for own, counts in found:
        weight = "" if own.weight == 1 else f" × {own.weight:g}"
        undone = "" if counts else " (taken back)"
        row = (
            own.number,
            own.id[:SHORT_ID],
            f"{own.at:%Y-%m-%d %H:%M}",
            own.who,
            f"{own.left_view} {own.left_id}",
            f"{own.verdict}{weight}{undone}",
            f"{own.right_view} {own.right_id}",
            own.note,
        )
        table.add_row(*map(plain, row))
    console().print(table)


def conflict_document(conflict: Disagreement) -> dict[str, Any]:
    """Return a disagreement for JSON."""
    return {name: own for name, own in vars(conflict).items()}


def conflicts_table(found: list[Disagreement]) -> None:
    """Print disagreements."""
    table = Table()
    for heading in ("first", "second", "must", "cannot"):
        table.add_column(heading, overflow="fold")
    for own in found:
        left, right = own.between
        row = (f"{left} {own.left}", f"{right} {own.right}")
        table.add_row(*map(plain, (*row, ", ".join(own.must), ", ".join(own.cannot))))
    console().print(table)


def choose_columns(
    folder: ModelFolder, source: str | None, target: str | None
) -> tuple[ViewPair, PairColumns | None]:
    """Return the judged pairs of two views, turned so that `source` comes first."""
    if not folder.has_store():
        return ("", ""), None
    with folder.store() as store:
        columns = store.pairs().columns
    wanted = {view for view in (source, target) if view is not None}
    fitting = {own for own in columns if wanted <= set(own)}
    if source is not None and source == target:
        fitting = {own for own in fitting if own == (source, target)}
    if not fitting:
        return ("", ""), None
    if len(fitting) > 1:
        named = "; ".join(" and ".join(own) for own in sorted(fitting))
        raise LinkError(
            f"the pairs of two views must be chosen, and the store has those of {named}"
            ". Name the views with --source and --target."
        )
    (between,) = fitting
    left, right, weight = columns[between]
    if target == between[0] != between[1] or source == between[1] != between[0]:
        return between[::-1], PairColumns(right, left, weight)
    return between, PairColumns(left, right, weight)
