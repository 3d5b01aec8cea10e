"""``linkspread evaluate``: how well a model searches, by what it was not told."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table

from linkspread.cli.asking import AsJson, Model, console, plain, tell, write_json
from linkspread.cli.input_labels import read_labels
from linkspread.cli.input_links import JudgedTable, read_judged, tell_unsure
from linkspread.cli.input_places import parse_labels, parse_links
from linkspread.cli.inputs import (
    LabelsOption,
    LinksOption,
    MustAboveOption,
    SkipUnknownOption,
    join_judged,
)
from linkspread.cli.model_folder import ModelFolder
from linkspread.ground.errors import LinkspreadError
from linkspread.selection import (
    Quality,
    SearchQuality,
    evaluate_pairs,
    evaluate_search,
)

Qualities = Sequence[SearchQuality] | Sequence[Quality]


def run_evaluate(
    model: Model,
    labels: LabelsOption = None,
    links: LinksOption = None,
    must_above: MustAboveOption = None,
    skip_unknown: SkipUnknownOption = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Count also what the model was told in the fit."),
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Exit status 1 if the mean average precision, or the average "
            "precision of pairs, is below."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure searches by labels, or scores by judged pairs.

    Items whose label the model was told, and pairs that it was told, do not count
    unless --all is given. Pairs are measured with a 90 % interval and beside chance.
    """
    if bool(labels) == bool(links):
        got = "both" if labels else "neither"
        raise LinkspreadError(
            f"an evaluation must have --labels of two views or --links, got {got}. "
            "Write --labels text=labels.csv --labels image=labels.csv."
        )
    loaded = ModelFolder(model).load()
    notes: list[str] = []
    skipped: list[str] = []
    if labels:
        texts: dict[str, Any] = {}
        for place in map(parse_labels, labels):
            texts |= read_labels(
                place, loaded.items_, skip_unknown=skip_unknown, notes=skipped
            )
        found: Qualities = _by_labels(loaded, texts, every, notes)
    else:
        reading: Any = {"must_above": must_above, "skip_unknown": skip_unknown}
        judged = [
            read_judged(parse_links(text), loaded.items_, **reading)
            for text in links or ()
        ]
        skipped += [table.skipped for table in judged if table.skipped]
        found = _by_pairs(loaded, judged, every, notes)
    for note in skipped:
        tell(f"linkspread: {note}")
    notes.extend(loaded.notes_)
    precision = _precision(found)
    if as_json:
        write_json(_document(found, precision, every))
    else:
        _print(found, precision, notes)
    if threshold is not None and precision < threshold:
        tell(f"linkspread: {precision:.3f} is below the threshold {threshold:g}.")
        raise typer.Exit(1)


def _by_labels(
    model: Any, labels: dict[str, Any], every: bool, notes: list[str]
) -> list[SearchQuality]:
    """Search with all items that have a label."""
    told = {view: model.links_.memberships(view) for view in labels}
    notes.append(_counted(any(own is not None for own in told.values()), every))
    return evaluate_search(model, labels, include_known=every)


def _by_pairs(
    model: Any, judged: list[JudgedTable], every: bool, notes: list[str]
) -> list[Quality]:
    """Score judged pairs."""
    found = evaluate_pairs(model, join_judged(judged), include_known=every)
    n_known = sum(quality.n_known for quality in found)
    notes += tell_unsure(sum(table.n_unsure for table in judged))
    notes.append(
        "All pairs count, also those that the model was told."
        if every
        else f"{n_known:,} pairs that the model was told are not counted."
    )
    return found


def _counted(has_labels: bool, every: bool) -> str:
    """Say which items count."""
    if every:
        return "All items with a label count, also those whose label the model knows."
    if has_labels:
        return "Items whose label the model was told are not counted."
    return "All items with a label count; the model was told pairs, and no label."


def _precision(found: Qualities) -> float:
    """Return the mean of what the threshold is about."""
    values = [
        quality.mean_average_precision
        if isinstance(quality, SearchQuality)
        else quality.average_precision
        for quality in found
    ]
    return sum(values) / len(values)


def _document(found: Qualities, precision: float, every: bool) -> dict[str, Any]:
    """Return the outcome for another program."""
    kind = "searches" if isinstance(found[0], SearchQuality) else "pairs"
    return {
        kind: [asdict(quality) for quality in found],
        "mean": precision,
        "includes_known": every,
    }


def _print(found: Qualities, precision: float, notes: list[str]) -> None:
    """Print a row for each direction, or a sentence for each two views."""
    out = console()
    searches = [own for own in found if isinstance(own, SearchQuality)]
    if searches:
        table = Table()
        columns = _columns(searches)
        for name in columns:
            is_name = name in ("From", "To")
            table.add_column(name, justify="left" if is_name else "right")
        for row in zip(*columns.values(), strict=True):
            table.add_row(*(plain(cell) for cell in row))
        out.print(table)
        out.print(f"Mean: {precision:.3f}")
    else:
        for quality in found:
            out.print(plain(str(quality)), soft_wrap=True)
    for note in notes:
        out.print(plain(note))


def _columns(searches: Sequence[SearchQuality]) -> dict[str, list[str]]:
    """Return the table, a list for each column."""
    return {
        "From": [own.source for own in searches],
        "To": [own.target for own in searches],
        "Queries": [f"{own.n_queries:,}" for own in searches],
        "Items": [f"{own.n_items:,}" for own in searches],
        "MAP": [f"{own.mean_average_precision:.3f}" for own in searches],
        "Precision@10": [f"{own.precision_at_10:.3f}" for own in searches],
        "nDCG": [f"{own.ndcg:.3f}" for own in searches],
    }
