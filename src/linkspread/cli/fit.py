"""``linkspread fit``: from tables and judged pairs to a model folder."""

from __future__ import annotations

import os
import shlex
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkspread.cli import options as option
from linkspread.cli.opening import is_model
from linkspread.cli.output import check_writable, notice, print_line, step_bar
from linkspread.ground.errors import ColumnWarning, FewLinksError, LinkspreadError

if TYPE_CHECKING:
    from linkspread.cli.inputs import Inputs
    from linkspread.links import Links
    from linkspread.models.model_folder import PairsOfViews
    from linkspread.selection import Quality
    from linkspread.storage import LinkStore

# Options that do not change the model and are not stored in run.toml.
CALL_OPTIONS = (
    "overwrite",
    "dry_run",
    "quality",
    "quiet",
    "scheduler",
    "shards",
    "store",
)
SEARCH, SPREADING = MODELS = ("search", "spreading")
BY_VIEW = ("graph", "n_neighbors", "metric", "alpha")
ONE = ("beta", "balance", "rank", "tol", "n_jobs")
PARAMETERS = (*BY_VIEW, *ONE)
# Options of `--model spreading` only.
SPREADING_OPTIONS = (
    "graph",
    "n_neighbors",
    "alpha",
    "beta",
    "balance",
    "rank",
    "tol",
    "shards",
    "quality",
    "no_quality",
)
# Most seconds for held-out fits, each of which takes as long as the fit.
MAX_SECONDS = 30.0


def run_fit(
    view: option.View = None,
    columns: option.Columns = None,
    features: option.Features = None,
    links: option.PairTables = None,
    labels: option.LabelTables = None,
    label_column: option.LabelColumn = None,
    id_column: option.IdColumn = None,
    matched: option.Matched = None,
    must_above: option.MustAbove = None,
    skip_unknown: option.SkipUnknown = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder for the model.", show_default=False)
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="search, or spreading: the graph propagation of a paper, with options "
            "for graphs and links.",
        ),
    ] = None,
    metric: option.Metric = None,
    graph: option.Graph = None,
    n_neighbors: option.Neighbors = None,
    alpha: option.Alpha = None,
    beta: Annotated[
        float | None, typer.Option(help="How strongly the views' results must agree.")
    ] = None,
    balance: Annotated[
        str | None,
        typer.Option(help="Weight of cannot-links: auto, literal or a number."),
    ] = None,
    rank: Annotated[
        int | None, typer.Option(help="Most dimensions of the vectors.")
    ] = None,
    tol: Annotated[
        float | None, typer.Option(help="Relative error of the scores.")
    ] = None,
    n_jobs: option.Jobs = None,
    config: option.Config = None,
    store: option.Store = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Address of a Dask scheduler; its workers fit."),
    ] = None,
    shards: Annotated[
        bool,
        typer.Option(
            "--shards", help="Workers write the model in shards, only for `search`."
        ),
    ] = False,
    overwrite: option.Overwrite = False,
    dry_run: option.DryRun = False,
    quality: Annotated[
        bool | None,
        typer.Option(
            "--quality/--no-quality",
            help="Measure the model spreading on held-out items.",
        ),
    ] = None,
    quiet: option.Quiet = False,
) -> None:
    """Fit a model to tables, and to judged pairs, labels or matched items.

    The folder holds the model, run.toml to run the fit again, and a store with the
    pairs. The last lines state what was known, what was chosen, and how well held-out
    items are found.
    """
    typed = {
        name: value for name, value in locals().items() if name not in CALL_OPTIONS
    }
    options = option.gather_options(typed, also=["grid"])
    options.pop("grid", None)  # of `tune`, which may share the file
    measured = "no_quality" if quality is False else "quality"
    of_spreading = {"shards": shards or None, measured: quality}
    _check_model(options | {k: v for k, v in of_spreading.items() if v is not None})
    may_replace = overwrite or dry_run
    folder = _check_output(options.get("output"), shards, overwrite=may_replace)
    is_spreading = options.get("model") == SPREADING
    measures = is_spreading and not shards and quality is not False
    n_steps = 4 if measures else 3
    with step_bar(n_steps, lines=True, quiet=quiet or dry_run) as step:
        from linkspread.cli.inputs import read_inputs

        step("Reading")
        inputs = read_inputs(options)
        chosen = choose_model(options, inputs)
        if dry_run:
            _print_plan(options, chosen, inputs, folder, quality=measures)
            return
        if shards:
            step("Fitting and saving")
            notes = [*inputs.notes, _fit_shards(chosen, inputs, scheduler, folder)]
            if not quiet:
                _print_notes(notes, inputs)
            return
        seconds, found, notes = _fit_and_write(
            chosen,
            inputs,
            options,
            folder,
            store=store,
            scheduler=scheduler,
            measures=measures,
            step=step,
        )
    if not quiet:
        _print_notes([*notes, *chosen.notes_], inputs)
        _print_fit(chosen, folder, seconds, found)


def choose_model(options: Mapping[str, Any], inputs: Inputs) -> Any:
    """Return the model that the options describe, not fitted."""
    from linkspread.models import CrossViewSearch, LinkSpreading
    from linkspread.models.view_graphs import fitting_neighbors

    _check_model(options)
    given = {name: options[name] for name in ONE if name in options}
    if "balance" in given:
        given["balance"] = option.read_value(given["balance"])
    is_spreading = options.get("model") == SPREADING
    make = LinkSpreading if is_spreading else CrossViewSearch
    usual: dict[str, Any] = {}
    if is_spreading:
        # A view may have fewer items than the default number of neighbours.
        usual["n_neighbors"] = fitting_neighbors(inputs.views)
    defaults = make().get_params(deep=False)
    if inputs.metrics:
        metrics = dict.fromkeys(inputs.views, defaults["metric"])
        usual["metric"] = metrics | inputs.metrics
    for name in set(BY_VIEW) & options.keys():
        default = usual.get(name, defaults[name])
        given[name] = _by_view(options[name], list(inputs.views), name, default)
    return make(**usual | given)


def print_columns(inputs: Inputs) -> None:
    """Print which columns of each view are features."""
    for view, table in inputs.tables.items():
        print_line(f"{view}: {table}")


def _check_model(options: Mapping[str, Any]) -> None:
    """Refuse an unknown model, and options of the other model."""
    model = options.get("model", SEARCH)
    if model not in MODELS:
        raise LinkspreadError(
            f"`--model` must be {' or '.join(MODELS)}, got {model!r}. Leave it out for "
            "search."
        )
    for name in SPREADING_OPTIONS if model == SEARCH else ():
        if name in options:
            own = option.option_of(name)
            raise LinkspreadError(
                f"`{own}` must go with --model spreading, got it for the model "
                f"search. Leave {own} out, or add --model spreading."
            )


def _by_view(typed: Any, views: list[str], name: str, default: Any) -> Any:
    """Return one value for all views, or a value for each."""
    parts = [str(one).partition("=") for one in typed]
    for_all = [option.read_value(head) for head, sign, _ in parts if not sign]
    own = {head.strip(): option.read_value(v) for head, sign, v in parts if sign}
    unknown = [view for view in own if view not in views]
    if unknown or len(for_all) > 1:
        got = repr(unknown[0]) if unknown else f"{len(for_all)} values for all"
        flag = option.option_of(name)
        raise LinkspreadError(
            f"`{flag}` must be one value, or a value for each of the views "
            f"{', '.join(map(repr, views))}, got {got}. Write {flag} VALUE or "
            f"{flag} {views[0]}=VALUE."
        )
    if not own:
        return for_all[0]
    rest = for_all[0] if for_all else default
    others = rest if isinstance(rest, Mapping) else dict.fromkeys(views, rest)
    return {**others, **own}


def _check_output(path: str | None, shards: bool, *, overwrite: bool) -> Path:
    """Return the output folder, after checking it before anything is computed."""
    from linkspread import cluster

    kind = "shards" if shards else "model"
    if path is None:
        raise LinkspreadError(
            f"`--output` must be a folder for the {kind}, and was not given. Add "
            "--output model/."
        )
    folder = cluster.check_output(path) if shards else Path(path)
    if folder.exists() and not folder.is_dir():
        raise LinkspreadError(
            f"`--output` must be a folder, and {str(folder)!r} is a file. Give another."
        )
    holds_files = folder.exists() and any(folder.iterdir())
    holds = cluster.is_sharded(folder) if shards else holds_files and is_model(folder)
    if holds_files and not holds and not shards:
        raise LinkspreadError(
            f"`--output` must be a new folder, an empty one, or a model, and "
            f"{str(folder)!r} holds other files. Give another."
        )
    if holds and not overwrite:
        what = kind if shards else "a model"
        raise LinkspreadError(
            f"`--output` must be a new folder, and {str(folder)!r} holds {what}. Add "
            "--overwrite to replace it, or give another."
        )
    check_writable(folder)
    return folder


def _fit_shards(model: Any, inputs: Inputs, scheduler: str | None, folder: Path) -> str:
    """Fit by the workers of a cluster, which write the shards; return a note."""
    from linkspread import cluster

    if scheduler is None:
        raise LinkspreadError(
            "`--shards` needs the workers of a cluster to write them, and no "
            "`--scheduler` was given. Add its address, or leave --shards out."
        )
    with cluster.connect(scheduler) as client, warnings.catch_warnings():
        # The notes already contain these warnings, with the option to add.
        warnings.simplefilter("ignore", ColumnWarning)
        given = model, inputs.tables, inputs.some_links
        shared = _shared_folder(folder)
        sharded = cluster.fit_shards(
            *given, client=client, output=folder, folder=shared
        )
    pairs = sharded.pairs_.values()
    n_files = sum(len(own.left.files) + len(own.right.files) for own in pairs)
    return f"wrote {n_files:,} shards to {folder}, for `linkspread search`."


def _shared_folder(folder: Path) -> Path | None:
    """Return the parent of the model folder, which workers can probably read."""
    return folder.parent if folder.parent.is_dir() else None


def _fit_and_write(
    model: Any,
    inputs: Inputs,
    options: Mapping[str, Any],
    folder: Path,
    *,
    store: str | None,
    scheduler: str | None,
    measures: bool,
    step: Callable[[str], None],
) -> tuple[float, Quality | None, list[str]]:
    """Fit, save and measure; return seconds, quality and notes for the user."""
    from linkspread.cli.inputs import add_up
    from linkspread.models.model_folder import ModelFolder, write_run
    from linkspread.selection import held_out_quality

    pairs = add_up(inputs.judged)
    inputs, applied = _with_judgements(folder, store, inputs, pairs)
    notes = list(inputs.notes)
    step("Fitting")
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        # The notes already contain these warnings, with the option to add.
        warnings.simplefilter("ignore", ColumnWarning)
        _fit(model, inputs, scheduler, folder)
        seconds = time.perf_counter() - start
        step("Saving")
        run = option.run_file("fit", options, folder)
        ModelFolder.create(
            folder, model, pairs=pairs, applied=applied, store=store, run=run
        )
    notes += dict.fromkeys(str(own.message) for own in caught)
    quality = None
    if measures:
        step("Measuring")
        try:
            quality = held_out_quality(model, inputs.views, max_seconds=MAX_SECONDS)
        except LinkspreadError as error:
            notes.append(f"no held-out quality: {error}")
        else:
            document = {"summary": str(quality), **asdict(quality)}
            run = option.run_file("fit", options, folder, quality=document)
            write_run(folder, run)
    return seconds, quality, notes


def _with_judgements(
    folder: Path, store: str | None, inputs: Inputs, pairs: PairsOfViews
) -> tuple[Inputs, int | None]:
    """Add the judgements of an older model's store; return also its last row."""
    from linkspread.models.model_folder import STORE, known_pairs
    from linkspread.storage import LinkStore

    if store is None and not (folder / STORE).is_file():
        return inputs, None
    with LinkStore.open(store or folder / STORE) as opened:
        _follow_files(opened, pairs)
        judged = opened.pairs()
    known = known_pairs(judged.columns, inputs.items)
    notes = list(inputs.notes)
    if known.n_unknown:
        notes.append(
            f"{known.n_unknown:,} judgements of the store are of unknown items and "
            "were left out."
        )
    links = [own for own in (known.links, *inputs.known) if own is not None]
    return replace(inputs, judged=[], known=links, notes=notes), judged.number


def _follow_files(store: LinkStore, pairs: PairsOfViews) -> None:
    """Add the pairs of the files, and take back pairs that are no longer in them."""
    from linkspread.models.model_folder import FITTED, IMPORTED, judgement_of
    from linkspread.storage import Judgement, Undo
    from linkspread.storage.ledger import pair_of

    def content_of(own: Judgement) -> tuple[Any, str, float]:
        """Return items, verdict and weight, the same whichever item comes first."""
        return tuple(sorted(pair_of(own))), own.verdict, own.weight

    given = [
        judgement_of(pair, between, who=IMPORTED, note=FITTED)
        for between, own in pairs.items()
        for pair in own
    ]
    new = {content_of(own): own for own in given}
    undone = {r.takes_back: r.who for r in store.changes() if isinstance(r, Undo)}
    for row in list(store.judgements(active_only=False)):
        # The files may contain a pair again that they had taken back.
        if row.who != IMPORTED or undone.get(row.id) == IMPORTED:
            continue
        content = content_of(row)
        if row.id not in undone and row.note == FITTED and content not in new:
            store.undo(row.id, who=IMPORTED, note=f"no longer {FITTED}")
        new.pop(content, None)
    store.add_many(new.values())


def _fit(model: Any, inputs: Inputs, scheduler: str | None, folder: Path) -> None:
    """Fit the model here or by the workers of a cluster."""
    given = inputs.tables, _links_for(model, inputs)
    if scheduler is None:
        model.fit(*given)
        return
    from linkspread import cluster

    with cluster.connect(scheduler) as client:
        cluster.fit(model, *given, client=client, folder=_shared_folder(folder))


def _links_for(model: Any, inputs: Inputs) -> Links:
    """Return the links; spreading needs some."""
    return inputs.some_links if _is_spreading(model) else inputs.links


def _is_spreading(model: Any) -> bool:
    """Return whether a model is LinkSpreading."""
    from linkspread.models import LinkSpreading

    return isinstance(model, LinkSpreading)


def _print_plan(
    options: Mapping[str, Any],
    model: Any,
    inputs: Inputs,
    folder: Path,
    *,
    quality: bool,
) -> None:
    """Print what a fit would do, with its memory and time."""
    from linkspread.links.collection import count_links
    from linkspread.models.plan import plan_fit
    from linkspread.selection import plan_held_out, plan_search

    links = _links_for(model, inputs)
    plan: Any
    if _is_spreading(model):
        plan = plan_fit(model, inputs.tables, links)
    else:
        plan = plan_search(inputs.tables, links)
    for note in inputs.notes:
        notice(f"linkspread: {note}")
    print_line("Nothing is written. The fit would have:")
    for view, table in inputs.tables.items():
        print_line(f"  {view}: {table.shape[0]:,} items, {table}")
    for count in count_links(plan.links):
        print_line(f"  {count}")
    chosen = {n: v for n, v in options.items() if n in model.get_params(deep=False)}
    typed = ", ".join(f"{name} {value}" for name, value in chosen.items())
    print_line(f"  {typed or 'all parameters as by default'}")
    print_line(f"  {plan.cost}")
    if quality:
        try:
            held_out = f"then its quality by {plan_held_out(plan.links)}, held out"
            print_line(f"  {held_out} (--no-quality skips it)")
        except FewLinksError as error:
            print_line(f"  no held-out quality: {error}")
    print_line(f"  model folder: {_relative_path(folder)}")


def _print_notes(notes: Iterable[str], inputs: Inputs) -> None:
    """Print notes, and which columns are features."""
    for note in notes:
        notice(f"linkspread: {note}")
    print_columns(inputs)


def _print_fit(
    model: Any, folder: Path, seconds: float, quality: Quality | None
) -> None:
    """Print what was fitted, and the next command."""
    from linkspread.ground.progress import format_seconds
    from linkspread.links.collection import count_links

    if _is_spreading(model):
        for view, own in model.report_.graphs.items():
            sizes = f"{own.n_items:,} items, {own.mean_degree:.1f} neighbours each"
            print_line(f"{view}: {sizes}, {own.n_isolated:,} isolated")
        for count in count_links(model.links_):
            print_line(count)
    else:
        print_line(model.summary_)
    if quality is not None:
        print_line(quality)
    print_line(f"Fitted in {format_seconds(seconds)}.")
    # Two different views if there are any.
    source, target = min(model.pairs_, key=lambda pair: pair[0] == pair[1])
    words = ["linkspread", "search", _relative_path(folder), "--source", source]
    words += ["--target", target, "--id", str(model.items_[source].ids[0])]
    print_line(f"Next: {shlex.join(words)}")


def _relative_path(folder: Path) -> str:
    """Return a path relative to the current folder if it is inside."""
    relative = os.path.relpath(folder) if folder.anchor == Path.cwd().anchor else ""
    return str(folder) if not relative or relative.startswith("..") else relative
