"""``linkspread evaluate`` and ``linkspread tune``: quality and settings of models."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkspread.cli import options as option
from linkspread.cli.fit import PARAMETERS, choose_model, print_columns
from linkspread.cli.opening import open_folder
from linkspread.cli.output import (
    check_writable,
    notice,
    print_json,
    print_line,
    print_table,
    step_bar,
)
from linkspread.ground.errors import (
    ColumnWarning,
    LinkspreadError,
    MissingDependencyError,
)

if TYPE_CHECKING:
    from linkspread.cli.inputs import Inputs
    from linkspread.selection import Quality, SearchQuality, Tuning

# Settings in the printed table; --output has all.
N_SHOWN = 10
TRIED = ("alpha", "beta", "n_neighbors")
SUFFIXES = (".csv", ".parquet")


def run_evaluate(
    model: option.Model,
    labels: option.LabelTables = None,
    links: option.PairTables = None,
    must_above: option.MustAbove = None,
    skip_unknown: option.SkipUnknown = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Include labels and pairs of the fit."),
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Exit status 1 if the mean average precision, or the average "
            "precision of pairs, is lower."
        ),
    ] = None,
    as_json: option.AsJson = False,
) -> None:
    """Measure searches by labels, or scores by judged pairs.

    Labels and pairs that the model was fitted to count only with --all. Pairs are
    measured with a 90 % interval and compared with chance.
    """
    if bool(labels) == bool(links):
        got = "both" if labels else "neither"
        raise LinkspreadError(
            f"an evaluation must have --labels of two views or --links, got {got}. "
            "Write --labels text=labels.csv --labels image=labels.csv."
        )
    loaded = open_folder(model).model
    reading = {"skip_unknown": skip_unknown}
    if labels:
        searches, notes = _search_with_labels(loaded, labels, every, reading)
        values = [own.mean_average_precision for own in searches]
        document = {"searches": [asdict(own) for own in searches]}
    else:
        pairs, notes = _score_pairs(
            loaded, links or [], every, reading | {"must_above": must_above}
        )
        values = [own.average_precision for own in pairs]
        document = {"pairs": [asdict(own) for own in pairs]}
    precision = sum(values) / len(values)
    if as_json:
        print_json(document | {"mean": precision, "includes_known": every})
    else:
        if labels:
            _print_searches(searches)
            print_line(f"Mean: {precision:.3f}")
        else:
            for quality in pairs:
                print_line(quality)
        for note in [*notes, *loaded.notes_]:
            print_line(note)
    if threshold is not None and precision < threshold:
        notice(f"linkspread: {precision:.3f} is below the threshold {threshold:g}.")
        raise typer.Exit(1)


def run_tune(
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
    graph: option.Graph = None,
    metric: option.Metric = None,
    alpha: option.Tried = None,
    beta: option.Tried = None,
    n_neighbors: option.Tried = None,
    n_splits: Annotated[int | None, typer.Option(help="Folds, by default 5.")] = None,
    n_repeats: Annotated[
        int | None, typer.Option(help="How often folds are drawn, by default once.")
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="transductive, or inductive for new queries.")
    ] = None,
    folds: Annotated[
        str | None, typer.Option(help="What folds hold out: auto, items or links.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the folds, by default 0.")
    ] = None,
    n_jobs: option.Jobs = None,
    output: Annotated[
        Path | None,
        typer.Option(help="File for all settings, .csv or .parquet, with figures."),
    ] = None,
    config: option.Config = None,
    as_json: option.AsJson = False,
    quiet: option.Quiet = False,
) -> None:
    """Compare settings of --model spreading by cross-validation on the links.

    Give values by options or in the table grid of the --config file; by default a small
    grid of n_neighbors, alpha and beta is tried. The default of `fit --model spreading`
    is measured too. The model search chooses its settings by itself.
    """
    typed = {k: v for k, v in locals().items() if k not in ("as_json", "quiet")}
    options = option.gather_options(typed, also=["grid", "model", *PARAMETERS])
    if options.get("model", "spreading") != "spreading":
        raise LinkspreadError(
            f"`model` must be spreading to be tuned, got {options['model']!r}. The "
            "model search chooses by itself: use `linkspread fit`."
        )
    # In a --config file, `output` is the model folder of `fit`.
    if output is not None and (
        output.suffix.lower() not in SUFFIXES or output.is_dir()
    ):
        raise LinkspreadError(
            f"`--output` must be a file that ends in {' or '.join(SUFFIXES)}, got "
            f"{str(output)!r}. Write --output settings.csv."
        )
    if output is not None:
        check_writable(output)
    with step_bar(2, lines=True, quiet=quiet) as step:
        from linkspread.cli.inputs import read_inputs

        step("Reading")
        inputs = read_inputs(options)
        step("Trying settings")
        tuning = _tune(options, inputs)
    notes = [*inputs.notes, *(_write(tuning, output) if output else [])]
    for note in [] if quiet else notes:
        notice(f"linkspread: {note}")
    if as_json:
        print_json(_document(tuning))
    elif not quiet:
        print_columns(inputs)
        _print_tuning(tuning)


def _search_with_labels(
    model: Any, labels: list[str], every: bool, reading: dict[str, Any]
) -> tuple[list[SearchQuality], list[str]]:
    """Search with all items that have a label; return also notes for the user."""
    from linkspread.cli.inputs import read_labels
    from linkspread.selection import evaluate_search

    names: dict[str, Any] = {}
    skipped: list[str] = []
    for place in map(option.parse_labels, labels):
        names |= read_labels(place, model.items_, notes=skipped, **reading)
    for note in skipped:
        notice(f"linkspread: {note}")
    known = [model.links_.memberships(view) for view in names]
    if every:
        note = "All items with a label count, also those that the model was fitted to."
    elif any(own is not None for own in known):
        note = "Items whose label the model was fitted to are not counted."
    else:
        note = "All items with a label count; the model was fitted to pairs alone."
    return evaluate_search(model, names, include_known=every), [note]


def _score_pairs(
    model: Any, links: list[str], every: bool, reading: dict[str, Any]
) -> tuple[list[Quality], list[str]]:
    """Score judged pairs; return also notes for the user."""
    from linkspread.cli.inputs import count_unsure, join_judged, read_judged
    from linkspread.selection import evaluate_pairs

    judged = [
        read_judged(option.parse_links(text), model.items_, **reading) for text in links
    ]
    for table in judged:
        if table.skipped:
            notice(f"linkspread: {table.skipped}")
    found = evaluate_pairs(model, join_judged(judged), include_known=every)
    n_known = sum(quality.n_known for quality in found)
    note = f"{n_known:,} pairs that the model was fitted to are not counted."
    if every:
        note = "All pairs count, also those that the model was fitted to."
    return found, [*count_unsure(judged), note]


def _print_searches(searches: Sequence[SearchQuality]) -> None:
    """Print a row for each direction."""
    headings = ("From", "To", "Queries", "Items", "MAP", "Precision@10", "nDCG")
    rows = [
        (
            own.source,
            own.target,
            f"{own.n_queries:,}",
            f"{own.n_items:,}",
            f"{own.mean_average_precision:.3f}",
            f"{own.precision_at_10:.3f}",
            f"{own.ndcg:.3f}",
        )
        for own in searches
    ]
    print_table(headings, rows, right=headings[2:])


def _tune(options: Mapping[str, Any], inputs: Inputs) -> Tuning:
    """Search the grid of the options, of the file, or the default one."""
    from linkspread.selection import tune

    grid = dict(options.get("grid", {}))
    for name in set(TRIED) & options.keys():
        typed = options[name] if isinstance(options[name], list) else [options[name]]
        parts = [v.split(",") if isinstance(v, str) else [v] for v in typed]
        grid[name] = [option.read_value(value) for own in parts for value in own]
    fixed = {n: options[n] for n in PARAMETERS if n in options and n not in TRIED}
    names = ("n_splits", "n_repeats", "protocol", "folds", "seed")
    how = {name: options[name] for name in names if name in options}
    if "seed" in how:
        how["random_state"] = how.pop("seed")
    with warnings.catch_warnings():
        # The notes already contain these warnings, with the option to add.
        warnings.simplefilter("ignore", ColumnWarning)
        return tune(
            inputs.tables,
            inputs.some_links,
            grid or None,
            model=choose_model(fixed | {"model": "spreading"}, inputs),
            **how,
        )


def _write(tuning: Tuning, path: Path) -> list[str]:
    """Write all settings, and a figure for each parameter with several values.

    Returns a note if there are no figures.
    """
    from linkspread.storage.files import new_file
    from linkspread.studies.report import draw_curve, write_page

    frame = tuning.frame()
    with new_file(path, overwrite=True) as file:
        if path.suffix.lower() == ".csv":
            frame.to_csv(file, index=False)
        else:
            # Parquet needs one type in each column.
            texts = {n: str for n, c in frame.items() if c.dtype == object}
            frame.astype(texts).to_parquet(file, index=False)
    for name, column in _settings(tuning).items():
        if name in ("mean", "deviation") or len(set(map(str, column))) < 2:
            continue
        values, scores = tuning.curve(name)
        if len(values) < 2:
            continue
        try:
            svg = draw_curve(name, values, scores.tolist())
        except MissingDependencyError as error:
            return [f"no figures were drawn: {error}"]
        place = path.with_name(f"{path.stem}-{name.replace(' ', '-')}.svg")
        write_page(place, svg)
    return []


def _settings(tuning: Tuning) -> dict[str, list[Any]]:
    """Return the columns of a tuning without single folds."""
    columns = tuning.columns().items()
    return {name: own for name, own in columns if not name.startswith("fold ")}


def _document(tuning: Tuning) -> dict[str, Any]:
    """Return the result for programs; JSON has no NaN."""

    def number(value: float) -> float | None:
        return None if math.isnan(value) else float(value)

    return {
        "best": tuning.best_parameters,
        "score": tuning.best_score,
        "default": tuning.default,
        "default_score": number(tuning.default_score),
        "default_folds": [number(own) for own in tuning.default_fold_scores],
        "keeps_default": tuning.keeps_default,
        "measure": tuning.measure,
        "seconds": tuning.seconds,
        "columns": tuning.columns(),
    }


def _print_tuning(tuning: Tuning) -> None:
    """Print the best settings, the default, and the command that fits the best."""
    from linkspread.ground.progress import format_seconds

    columns = _settings(tuning)
    n_settings = len(tuning.settings)
    best = sorted(range(n_settings), key=lambda k: -tuning.scores[k])[:N_SHOWN]
    rows = [[_cell(own[k]) for own in columns.values()] for k in best]
    title = f"{n_settings:,} settings, best first"
    print_table(list(columns), rows, right=columns, title=title)
    print_line(f"{str(tuning).capitalize()}.")
    print_line(f"Tried in {format_seconds(tuning.seconds)}.")
    advice = ["--model spreading"]
    if tuning.keeps_default:
        advice.append("alone, its default is best.")
    else:
        advice += [_typed(n, own) for n, own in tuning.best_parameters.items()]
    print_line(f"Add to `linkspread fit`: {' '.join(advice)}")


def _cell(value: Any) -> str:
    """Format a value for the table."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _typed(name: str, value: Any) -> str:
    """Return a parameter as an option."""
    own = option.option_of(name)
    if isinstance(value, Mapping):
        return " ".join(f"{own} {view}={one}" for view, one in value.items())
    return f"{own} {value}"
