"""``linkspread fit``: from tables and judged pairs to a model folder."""

import os
import shlex
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from linkspread import cluster
from linkspread.cli.asking import Store, console, plain, tell
from linkspread.cli.config import gather_options, run_file
from linkspread.cli.fit_judgements import take_up_judged
from linkspread.cli.inputs import (
    ColumnsOption,
    FeaturesOption,
    IdColumnOption,
    Inputs,
    LabelColumnOption,
    LabelsOption,
    LinksOption,
    MatchedOption,
    MustAboveOption,
    SkipUnknownOption,
    ViewOption,
    read_inputs,
)
from linkspread.cli.model_output import (
    FittedPairs,
    check_output,
    write_model,
    write_run,
)
from linkspread.cli.parameters import (
    Alpha,
    Balance,
    Beta,
    Graph,
    Jobs,
    Metric,
    ModelName,
    Neighbors,
    Rank,
    Tol,
    check_options,
    choose_model,
    is_spreading,
)
from linkspread.cli.rendering import step_bar
from linkspread.cli.sharded import (
    check_shards_output,
    fit_in_shards,
    shared_folder,
)
from linkspread.ground.errors import ColumnWarning, FewLinksError, LinkspreadError
from linkspread.ground.progress import format_seconds
from linkspread.links import Links
from linkspread.links.collection import count_links
from linkspread.models import LinkSpreading
from linkspread.models.plan import plan_fit
from linkspread.selection import (
    Quality,
    held_out_quality,
    plan_held_out,
    plan_search,
)

ConfigOption = Annotated[
    Path | None,
    typer.Option(help="File of options, such as the run.toml of a model."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")]
# Options of this one call, which are no part of how the model was made.
OF_THE_CALL = (
    "overwrite",
    "dry_run",
    "quality",
    "quiet",
    "scheduler",
    "shards",
    "store",
)
# Time that fits with held-out items may take, where each is as long as the fit.
MAX_SECONDS = 30.0


def run_fit(
    view: ViewOption = None,
    columns: ColumnsOption = None,
    features: FeaturesOption = None,
    links: LinksOption = None,
    labels: LabelsOption = None,
    label_column: LabelColumnOption = None,
    id_column: IdColumnOption = None,
    matched: MatchedOption = None,
    must_above: MustAboveOption = None,
    skip_unknown: SkipUnknownOption = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder for the model.", show_default=False)
    ] = None,
    model: ModelName = None,
    metric: Metric = None,
    graph: Graph = None,
    n_neighbors: Neighbors = None,
    alpha: Alpha = None,
    beta: Beta = None,
    balance: Balance = None,
    rank: Rank = None,
    tol: Tol = None,
    n_jobs: Jobs = None,
    config: ConfigOption = None,
    store: Store = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Address of a Dask scheduler whose workers fit."),
    ] = None,
    shards: Annotated[
        bool,
        typer.Option(
            "--shards", help="Workers write the model in shards, for `search` alone."
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the model in the folder.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would happen, and stop.")
    ] = False,
    quality: Annotated[
        bool | None,
        typer.Option(
            "--quality/--no-quality",
            help="Measure the fit of spreading by items held out of it.",
        ),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Fit a model to tables, and to judged pairs, labels or matched items.

    The folder gets the model, run.toml to run it again, and a store with the pairs.
    At the end it says what was known, what counted, and how well held-out items are
    found.
    """
    typed = {name: value for name, value in locals().items() if name not in OF_THE_CALL}
    options = gather_options(typed, also=["grid"])
    options.pop("grid", None)  # of `tune`, which may share the file
    measured = "no_quality" if quality is False else "quality"
    of_spreading = {"shards": shards or None, measured: quality}
    check_options(options | {k: v for k, v in of_spreading.items() if v is not None})
    check = check_shards_output if shards else check_output
    folder = check(options.get("output"), overwrite=overwrite or dry_run)
    measures = is_spreading(options) and not shards and quality is not False
    with quiet_steps(4 if measures else 3, quiet=quiet or dry_run) as step:
        step("Reading")
        inputs = read_inputs(options)
        chosen = choose_model(options, inputs)
        if dry_run:
            _tell_plan(options, chosen, inputs, folder, quality=measures)
            return
        if shards:
            step("Fitting and saving")
            told = fit_in_shards(chosen, inputs, scheduler, folder)
            if not quiet:
                _tell_notes([*inputs.notes, told])
                tell_columns(inputs)
            return
        inputs, pairs = _take_up(folder, store, inputs)
        step("Fitting")
        start = time.perf_counter()
        fitted = _fit(chosen, inputs, scheduler, folder)
        seconds = time.perf_counter() - start
        step("Saving")
        run = run_file("fit", options, folder)
        notes = write_model(fitted, folder, run=run, pairs=pairs)
        found = None
        if measures:
            step("Measuring")
            found = _measure(fitted, inputs, notes)
        if found is not None:
            told = run_file("fit", options, folder, quality=_document(found))
            write_run(folder, told)
    if not quiet:
        _tell_notes([*inputs.notes, *notes, *fitted.notes_])
        tell_columns(inputs)
        _tell_fit(fitted, folder, seconds, found)


@contextmanager
def quiet_steps(n_steps: int, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show a bar on a terminal and lines elsewhere, or nothing at all."""
    if quiet:
        yield lambda description: None
        return
    with step_bar(n_steps, lines=True) as step:
        yield step


def tell_columns(inputs: Inputs) -> None:
    """Print which columns of each view are features."""
    out = console()
    for view, table in inputs.tables.items():
        out.print(plain(f"{view}: {table}"), soft_wrap=True)


def _take_up(
    folder: Path, store: str | None, inputs: Inputs
) -> tuple[Inputs, FittedPairs]:
    """Join what people judged since an older fit, where there is a store."""
    own = folder / "judgements.db"
    if store is None and not own.is_file():
        return inputs, FittedPairs(inputs.judged)
    judged, number, n_unknown = take_up_judged(store or own, inputs)
    if n_unknown:
        inputs.notes.append(
            f"{n_unknown:,} judgements of the store are of items that no view has."
        )
    return replace(inputs, judged=judged), FittedPairs(judged, store, number)


def _fit(model: Any, inputs: Inputs, scheduler: str | None, folder: Path) -> Any:
    """Fit the model; what it warns of becomes a note."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        # The notes have these already, with the option to type.
        warnings.simplefilter("ignore", ColumnWarning)
        given = inputs.tables, _links_for(model, inputs)
        if scheduler is None:
            model.fit(*given)
        else:
            with cluster.connect(scheduler) as client:
                shared = shared_folder(folder)
                cluster.fit(model, *given, client=client, folder=shared)
    inputs.notes.extend(dict.fromkeys(str(own.message) for own in caught))
    return model


def _links_for(model: Any, inputs: Inputs) -> Links:
    """Return the links, of which spreading must have some."""
    return inputs.some_links if isinstance(model, LinkSpreading) else inputs.links


def _measure(model: Any, inputs: Inputs, notes: list[str]) -> Quality | None:
    """Return the quality on held-out items, or note why there is none."""
    try:
        return held_out_quality(model, inputs.views, max_seconds=MAX_SECONDS)
    except LinkspreadError as error:
        notes.append(f"no held-out figure of quality: {error}")
        return None


def _document(quality: Quality) -> dict[str, Any]:
    """Return a quality as it is stored, with its sentence."""
    return {"summary": str(quality), **asdict(quality)}


def _tell_plan(
    options: Mapping[str, Any],
    model: Any,
    inputs: Inputs,
    folder: Path,
    *,
    quality: bool,
) -> None:
    """Print what a fit would do, and what it would take."""
    plan: Any
    if isinstance(model, LinkSpreading):
        plan = plan_fit(model, inputs.tables, inputs.some_links)
    else:
        plan = plan_search(inputs.tables, inputs.links)
    _tell_notes(inputs.notes)
    out = console()
    out.print("Nothing is written. The fit would have:")
    for view, table in inputs.tables.items():
        told = f"  {view}: {table.shape[0]:,} items, {table}"
        out.print(plain(told), soft_wrap=True)
    for count in count_links(plan.links):
        out.print(plain(f"  {count}"))
    chosen = {n: v for n, v in options.items() if n in model.get_params(deep=False)}
    told = ", ".join(f"{name} {value}" for name, value in chosen.items())
    out.print(plain(f"  {told or 'all parameters as by default'}"))
    out.print(plain(f"  {plan.cost}"), soft_wrap=True)
    if quality:
        out.print(plain(f"  {_expected_quality(plan.links)}"), soft_wrap=True)
    out.print(plain(f"  model folder: {_shown(folder)}"), soft_wrap=True)


def _expected_quality(links: Links) -> str:
    """Say what will be held out to measure the fit, which takes time of its own."""
    try:
        held_out = plan_held_out(links)
    except FewLinksError as error:
        return f"no held-out figure of quality: {error}"
    return f"then its quality by {held_out}, held out (--no-quality skips it)"


def _tell_notes(notes: list[str]) -> None:
    """Write what a person should know to standard error."""
    for note in notes:
        tell(f"linkspread: {note}")


def _tell_fit(
    model: Any, folder: Path, seconds: float, quality: Quality | None
) -> None:
    """Print what was fitted, and what to type next."""
    out = console()
    if isinstance(model, LinkSpreading):
        for view, report in model.report_.graphs.items():
            told = f"{report.n_items:,} items, {report.mean_degree:.1f} neighbours each"
            out.print(plain(f"{view}: {told}, {report.n_isolated:,} isolated"))
        for count in count_links(model.links_):
            out.print(plain(count))
    else:
        out.print(plain(model.summary_), soft_wrap=True)
    if quality is not None:
        out.print(plain(str(quality)), soft_wrap=True)
    out.print(plain(f"Fitted in {format_seconds(seconds)}."))
    out.print(plain(f"Next: {_next_command(model, folder)}"), soft_wrap=True)


def _next_command(model: Any, folder: Path) -> str:
    """Return a search that can be typed as it is."""
    # Two views where there are two, and else one that is searched from itself.
    source, target = min(model.pairs_, key=lambda pair: pair[0] == pair[1])
    item = str(model.items_[source].ids[0])
    words = ["linkspread", "search", _shown(folder), "--source", source]
    return shlex.join([*words, "--target", target, "--id", item])


def _shown(folder: Path) -> str:
    """Return a path as one would type it here."""
    relative = os.path.relpath(folder) if folder.anchor == Path.cwd().anchor else ""
    return str(folder) if not relative or relative.startswith("..") else relative
