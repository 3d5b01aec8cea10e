"""``linkspread fit``: from tables and judged pairs to a model folder."""

from __future__ import annotations

import os
import shlex
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkspread.cli import options as option
from linkspread.cli.opening import is_model
from linkspread.cli.output import check_writable, notice, print_line, step_bar
from linkspread.ground.errors import ColumnWarning, LinkspreadError

if TYPE_CHECKING:
    from linkspread.cli.inputs import Inputs
    from linkspread.links import Links
    from linkspread.models.model_folder import PairsOfViews
    from linkspread.storage import LinkStore

MODELS = ("search", "spreading")
BY_VIEW = ("graph", "n_neighbors", "metric", "alpha")
PARAMETERS = (*option.BOTH_MODELS, *option.SPREADING)


@dataclass
class Task:
    """A fit: its model, its input, and where it is computed and written."""

    options: dict[str, Any]
    model: Any
    inputs: Inputs
    folder: Path
    store: str | None
    scheduler: str | None

    @property
    def is_spreading(self) -> bool:
        """Whether the model is LinkSpreading."""
        return self.options.get("model") == "spreading"

    @property
    def links(self) -> Links:
        """All links; spreading needs some."""
        return self.inputs.some_links if self.is_spreading else self.inputs.links

    @property
    def shared_folder(self) -> Path | None:
        """The parent of the model folder, which workers can probably read."""
        return self.folder.parent if self.folder.parent.is_dir() else None


@option.takes(option.INPUTS, option.BOTH_MODELS, option.SPREADING)
def run_fit(
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
    quiet: option.Quiet = False,
    *,
    typed: dict[str, Any],
) -> None:
    """Fit a model to tables, and to judged pairs, labels or matched items.

    The folder holds the model, run.toml to run the fit again, and a store with the
    pairs. The last lines state what was known, what was chosen, and how well held-out
    partners are found.
    """
    typed |= {"output": output, "model": model}
    options = option.gather_options(typed, config)
    _check_model(options | ({"shards": shards} if shards else {}))
    folder = _check_output(options.get("output"), shards, replaces=overwrite or dry_run)
    with step_bar(3, lines=True, quiet=quiet or dry_run) as step:
        from linkspread.cli.inputs import read_inputs

        step("Reading")
        inputs = read_inputs(options)
        chosen = choose_model(options, inputs)
        task = Task(options, chosen, inputs, folder, store, scheduler)
        if dry_run:
            _print_plan(task)
            return
        if shards:
            step("Fitting and saving")
            notes = [_fit_shards(task)]
        else:
            seconds, notes = _fit_and_save(task, step)
            notes += chosen.notes_
    if quiet:
        return
    for note in [*inputs.notes, *notes]:
        notice(f"linkspread: {note}")
    print_columns(inputs)
    if not shards:
        _print_fit(task, seconds)


def choose_model(options: Mapping[str, Any], inputs: Inputs) -> Any:
    """Return the model that the options describe, not fitted."""
    from linkspread.models import CrossViewSearch, LinkSpreading
    from linkspread.models.spreading import fitting_neighbors

    _check_model(options)
    is_spreading = options.get("model") == "spreading"
    make: Any = LinkSpreading if is_spreading else CrossViewSearch
    defaults = make().get_params(deep=False)
    # A view may have fewer items than the default number of neighbours.
    given: dict[str, Any] = {}
    if is_spreading:
        given["n_neighbors"] = fitting_neighbors(inputs.views)
    if inputs.metrics:
        metrics = dict.fromkeys(inputs.views, defaults["metric"])
        given["metric"] = metrics | inputs.metrics
    for name in [name for name in PARAMETERS if name in options]:
        if name in BY_VIEW:
            default = given.get(name, defaults[name])
            given[name] = _by_view(options[name], list(inputs.views), name, default)
        else:
            is_number = name == "balance"  # or a word
            own = options[name]
            given[name] = option.read_value(own) if is_number else own
    return make(**given)


def print_columns(inputs: Inputs) -> None:
    """Print which columns of each view are features."""
    for view, table in inputs.tables.items():
        print_line(f"{view}: {table}")


def _check_model(options: Mapping[str, Any]) -> None:
    """Refuse an unknown model, and options of the other model."""
    model = options.get("model", "search")
    if model not in MODELS:
        raise LinkspreadError(
            f"`--model` must be {' or '.join(MODELS)}, got {model!r}. Leave it out for "
            "search."
        )
    others = (*option.SPREADING, "shards")
    for name in others if model == "search" else ():
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


def _check_output(path: str | None, shards: bool, *, replaces: bool) -> Path:
    """Return the output folder, after checking it before anything is computed."""
    from linkspread.cluster.sharded_model import check_output, is_sharded

    kind = "shards" if shards else "a model"
    if path is None:
        raise LinkspreadError(
            f"`--output` must be a folder for {kind}, and was not given. Add --output "
            "model/."
        )
    folder = check_output(path) if shards else Path(path)
    holds_files = folder.is_dir() and any(folder.iterdir())
    holds = is_sharded(folder) if shards else holds_files and is_model(folder)
    is_other = holds_files and not holds and not shards
    if is_other or (folder.exists() and not folder.is_dir()):
        raise LinkspreadError(
            f"`--output` must be a new folder, an empty one, or a model, and "
            f"{str(folder)!r} {'holds other files' if is_other else 'is a file'}. Give "
            "another."
        )
    if holds and not replaces:
        raise LinkspreadError(
            f"`--output` must be a new folder, and {str(folder)!r} holds {kind}. Add "
            "--overwrite to replace it, or give another."
        )
    check_writable(folder)
    return folder


def _fit_shards(task: Task) -> str:
    """Fit by the workers of a cluster, which write the shards; return a note."""
    from linkspread import cluster

    if task.scheduler is None:
        raise LinkspreadError(
            "`--shards` needs the workers of a cluster to write them, and no "
            "`--scheduler` was given. Add its address, or leave --shards out."
        )
    with cluster.connect(task.scheduler) as client, warnings.catch_warnings():
        # The notes already contain these warnings, with the option to add.
        warnings.simplefilter("ignore", ColumnWarning)
        given = task.model, task.inputs.tables, task.inputs.some_links
        place: Any = {"output": task.folder, "folder": task.shared_folder}
        sharded = cluster.fit_shards(*given, client=client, **place)
    pairs = sharded.pairs_.values()
    n_files = sum(len(own.left.files) + len(own.right.files) for own in pairs)
    return f"wrote {n_files:,} shards to {task.folder}, for `linkspread search`."


def _fit_and_save(task: Task, step: Callable[[str], None]) -> tuple[float, list[str]]:
    """Fit here or by workers, and save; return seconds and notes for the user."""
    from linkspread import cluster
    from linkspread.cli.inputs import add_up
    from linkspread.models.model_folder import ModelFolder

    pairs = add_up(task.inputs.judged)
    applied = _add_judgements(task, pairs)
    step("Fitting")
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        # The notes already contain these warnings, with the option to add.
        warnings.simplefilter("ignore", ColumnWarning)
        model, given = task.model, (task.inputs.tables, task.links)
        if task.scheduler is None:
            model.fit(*given)
        else:
            with cluster.connect(task.scheduler) as client:
                shared = task.shared_folder
                cluster.fit(model, *given, client=client, folder=shared)
        seconds = time.perf_counter() - start
        step("Saving")
        run = option.run_file(task.options, task.folder)
        stored: Any = {"pairs": pairs, "applied": applied, "store": task.store}
        ModelFolder.create(task.folder, model, run=run, **stored)
    return seconds, list(dict.fromkeys(str(own.message) for own in caught))


def _add_judgements(task: Task, pairs: PairsOfViews) -> int | None:
    """Add the judgements of an older model's store; return its last row."""
    from linkspread.models.following import known_pairs
    from linkspread.models.model_folder import STORE
    from linkspread.storage import LinkStore

    place = task.store or task.folder / STORE
    if task.store is None and not (task.folder / STORE).is_file():
        return None
    with LinkStore.open(place) as opened:
        _follow_files(opened, pairs)
        judged = opened.pairs()
    inputs = task.inputs
    known = known_pairs(judged.columns, inputs.items)
    if known.n_unknown:
        inputs.notes.append(
            f"{known.n_unknown:,} judgements of the store are of unknown items and "
            "were left out."
        )
    links = [own for own in (known.links, *inputs.known) if own is not None]
    task.inputs = replace(inputs, judged=[], known=links)
    return judged.number


def _follow_files(store: LinkStore, pairs: PairsOfViews) -> None:
    """Add the pairs of the files, and take back pairs that are no longer in them."""
    from linkspread.models.model_folder import FITTED, IMPORTED, judgement_of
    from linkspread.storage import Judgement, Undo
    from linkspread.storage.judgements import pair_of

    def content_of(own: Judgement) -> tuple[Any, str, float]:
        """Return items, verdict and weight, the same whichever item comes first."""
        return tuple(sorted(pair_of(own))), own.verdict, own.weight

    new = {}
    for between, some in pairs.items():
        for pair in some:
            own = judgement_of(pair, between, who=IMPORTED, note=FITTED)
            new[content_of(own)] = own
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


def _print_plan(task: Task) -> None:
    """Print what a fit would do, with its memory and time."""
    from linkspread.models.search_pairs import plan_search
    from linkspread.models.spreading import prepare

    inputs, cost = task.inputs, ""
    if task.is_spreading:
        links = prepare(task.model, inputs.tables, task.links).links
    else:
        links, _, cost = plan_search(inputs.tables, task.links)
    for note in inputs.notes:
        notice(f"linkspread: {note}")
    print_line("Nothing is written. The fit would have:")
    for view, table in inputs.tables.items():
        print_line(f"  {view}: {table.shape[0]:,} items, {table}")
    _print_counts(links, "  ")
    chosen = {n: task.options[n] for n in PARAMETERS if n in task.options}
    typed = ", ".join(f"{name} {value}" for name, value in chosen.items())
    print_line(f"  {typed or 'all parameters as by default'}")
    if cost:
        print_line(f"  {cost}")
    print_line(f"  model folder: {_relative_path(task.folder)}")


def _print_counts(links: Links, start: str = "") -> None:
    """Print the numbers of links by kind."""
    from linkspread.links.collection import count_links

    for count in count_links(links):
        print_line(f"{start}{count}")


def _print_fit(task: Task, seconds: float) -> None:
    """Print what was fitted, and the next command."""
    from linkspread.ground.progress import format_seconds

    model = task.model
    if task.is_spreading:
        for view, own in model.report_.graphs.items():
            sizes = f"{own.n_items:,} items, {own.mean_degree:.1f} neighbours each"
            print_line(f"{view}: {sizes}, {own.n_isolated:,} isolated")
        _print_counts(model.links_)
    else:
        print_line(model.summary_)
    print_line(f"Fitted in {format_seconds(seconds)}.")
    # Two different views if there are any.
    source, target = min(model.pairs_, key=lambda pair: pair[0] == pair[1])
    words = ["linkspread", "search", _relative_path(task.folder), "--source", source]
    words += ["--target", target, "--id", str(model.items_[source].ids[0])]
    print_line(f"Next: {shlex.join(words)}")


def _relative_path(folder: Path) -> str:
    """Return a path relative to the current folder if it is inside."""
    relative = os.path.relpath(folder) if folder.anchor == Path.cwd().anchor else ""
    return str(folder) if not relative or relative.startswith("..") else relative
