"""``linkspread links``: judgements given, looked at, taken back and passed on."""

from pathlib import Path
from typing import Annotated

import typer

from linkspread.cli.asking import (
    AsJson,
    Model,
    Source,
    Store,
    Target,
    Who,
    check_items,
    choose_views,
    default_who,
    open_model,
    tell,
    write_json,
)
from linkspread.cli.input_links import read_judged, tell_unsure
from linkspread.cli.input_places import parse_links
from linkspread.cli.inputs import MustAboveOption, SkipUnknownOption
from linkspread.cli.links_tables import (
    choose_columns,
    conflict_document,
    conflicts_table,
    find_judgement,
    judgement_document,
    judgements_table,
    read_judgements,
)
from linkspread.cli.model_folder import ModelFolder
from linkspread.cli.pending import absorb_and_tell, tell_pending
from linkspread.exchange import write_pairs
from linkspread.ground.errors import LinkspreadError
from linkspread.storage import Judgement

links_app = typer.Typer(
    help="Judge pairs of items, look at judgements, take them back.",
    no_args_is_help=True,
    epilog="Example: linkspread links list model",
)

Note = Annotated[str, typer.Option(help="Anything worth remembering.")]


@links_app.command(
    "add", epilog="Example: linkspread links add model t7 i3 --must --who ann"
)
def add_link(
    model: Model,
    left: Annotated[str, typer.Argument(help="An item.", show_default=False)],
    right: Annotated[str, typer.Argument(help="Another.", show_default=False)],
    must: Annotated[bool, typer.Option("--must", help="They belong together.")] = False,
    cannot: Annotated[bool, typer.Option("--cannot", help="They do not.")] = False,
    unsure: Annotated[bool, typer.Option("--unsure", help="Nobody can tell.")] = False,
    source: Source = None,
    target: Target = None,
    weight: Annotated[float, typer.Option(help="How much it counts.")] = 1.0,
    note: Note = "",
    who: Who = None,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """Say whether two items belong together; the model learns it at once.

    The judgement is stored before the model changes. --source and --target name the
    views of the two items, where the first does not tell them.
    """
    verdict = _choose_verdict(must=must, cannot=cannot, unsure=unsure)
    folder, loaded = open_model(model, store, judging=True)
    views = choose_views(loaded, source, target, [left])
    for view, item, option in zip(views, (left, right), ("LEFT", "RIGHT"), strict=True):
        check_items(loaded, view, [item], option=option)
    judgement = Judgement(
        who=default_who(who),
        left_view=views[0],
        left_id=left,
        right_view=views[1],
        right_id=right,
        verdict=verdict,
        weight=weight,
        note=note,
    )
    with folder.store() as opened:
        id = opened.add(judgement)
    tell(f"Stored as {id}.")
    counts = absorb_and_tell(folder, loaded)
    if as_json:
        write_json({"id": id, "verdict": verdict, "absorbed": counts._asdict()})


@links_app.command("list", epilog="Example: linkspread links list model --all")
def list_links(
    model: Model,
    everything: Annotated[
        bool, typer.Option("--all", help="Also those that were taken back.")
    ] = False,
    who: Annotated[
        str | None, typer.Option(help="Only those of one person.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """List judgements, the oldest first. Exit status 1 means that there are none."""
    folder = ModelFolder(model, store=store)
    found = read_judgements(folder, everything=everything, who=who)
    tell_pending(folder)
    if as_json:
        write_json({"judgements": [judgement_document(*own) for own in found]})
    elif found:
        judgements_table(found)
    if not found:
        tell("linkspread: there are no such judgements.")
        raise typer.Exit(1)


@links_app.command("undo", epilog="Example: linkspread links undo model 1")
def undo_link(
    model: Model,
    id: Annotated[
        str,
        typer.Argument(help="Number or id of a judgement.", show_default=False),
    ],
    note: Note = "",
    who: Who = None,
    store: Store = None,
) -> None:
    """Take a judgement back; it stays in the store but no longer counts."""
    folder, loaded = open_model(model, store, judging=True)
    with folder.store() as opened:
        judgement = find_judgement(opened, id)
        opened.undo(judgement.id, who=default_who(who), note=note)
    tell(f"Taken back: {judgement.id}.")
    absorb_and_tell(folder, loaded)


@links_app.command("import", epilog="Example: linkspread links import model pairs.csv")
def import_links(
    model: Model,
    pairs: Annotated[
        str, typer.Argument(help="A .csv, .tsv or .parquet file.", show_default=False)
    ],
    who: Annotated[
        str, typer.Option(envvar="LINKSPREAD_WHO", help="Who judged them.")
    ] = "import",
    must_above: MustAboveOption = None,
    skip_unknown: SkipUnknownOption = None,
    store: Store = None,
) -> None:
    """Store the judged pairs of a file; the model learns them at once.

    What the same person said already is not stored again, also where it was taken back.
    """
    folder, loaded = open_model(model, store, judging=True)
    table = read_judged(
        parse_links(pairs),
        loaded.items_,
        must_above=must_above,
        skip_unknown=skip_unknown,
    )
    for note in [*tell_unsure(table.n_unsure), *filter(None, [table.skipped])]:
        tell(f"linkspread: {note}")
    new = folder.keep_pairs(table.pairs, table.between, who)
    tell(f"{len(new):,} of {len(table.pairs):,} pairs are new, and stored.")
    absorb_and_tell(folder, loaded)


@links_app.command("export", epilog="Example: linkspread links export model judged.csv")
def export_links(
    model: Model,
    output: Annotated[
        Path, typer.Argument(help="A .csv, .tsv or .parquet file.", show_default=False)
    ],
    source: Source = None,
    target: Target = None,
    overwrite: Annotated[bool, typer.Option(help="Replace what is there.")] = False,
    store: Store = None,
) -> None:
    """Write the pairs that count to a file that `linkspread fit --links` reads.

    Exit status 1 means that there are none.
    """
    folder = ModelFolder(model, store=store)
    between, columns = choose_columns(folder, source, target)
    tell_pending(folder)
    if columns is None:
        tell("linkspread: there are no judged pairs to write.")
        raise typer.Exit(1)
    write_pairs(columns, output, between=between, overwrite=overwrite)
    tell(f"Written: {output} ({len(columns.weight):,} pairs).")


@links_app.command("conflicts", epilog="Example: linkspread links conflicts model")
def show_conflicts(model: Model, as_json: AsJson = False, store: Store = None) -> None:
    """Show pairs about which people disagree.

    Exit status 1 means that there are none.
    """
    folder = ModelFolder(model, store=store)
    found = []
    if folder.has_store():
        with folder.store() as opened:
            found = opened.pairs().disagreements
    tell_pending(folder)
    if as_json:
        write_json({"conflicts": [conflict_document(own) for own in found]})
    elif found:
        conflicts_table(found)
    if not found:
        tell("linkspread: nobody disagrees.")
        raise typer.Exit(1)


@links_app.command("absorb", epilog="Example: linkspread links absorb model")
def absorb_links(model: Model, as_json: AsJson = False, store: Store = None) -> None:
    """Bring the model up to date with all judgements in the store."""
    folder = ModelFolder(model, store=store)
    counts = absorb_and_tell(folder, folder.load())
    if as_json:
        write_json(counts._asdict())


def _choose_verdict(**given: bool) -> str:
    """Return the one verdict that was given."""
    chosen = [verdict for verdict, is_given in given.items() if is_given]
    if len(chosen) != 1:
        got = " and ".join(f"--{verdict}" for verdict in chosen) or "none"
        raise LinkspreadError(
            f"a judgement must be one of --must, --cannot and --unsure, got {got}. "
            "Give one of them."
        )
    return chosen[0]
