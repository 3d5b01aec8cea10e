"""``linkspread tune``: parameters by cross-validation on the links there are."""

import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from linkspread.cli.asking import AsJson, console, plain, tell, write_json
from linkspread.cli.config import gather_options
from linkspread.cli.fit import ConfigOption, QuietOption, quiet_steps, tell_columns
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
from linkspread.cli.outputs import check_writable
from linkspread.cli.parameters import (
    PARAMETERS,
    Graph,
    Jobs,
    Metric,
    choose_model,
    read_value,
)
from linkspread.ground.errors import (
    ColumnWarning,
    LinkspreadError,
    MissingDependencyError,
)
from linkspread.ground.progress import format_seconds
from linkspread.selection import Tuning, tune
from linkspread.storage.files import new_file
from linkspread.studies.report import draw_curve, write_page

# Rows of the table on the screen; --output has all.
N_SHOWN = 10
TRIED = ("alpha", "beta", "n_neighbors")
SUFFIXES = (".csv", ".parquet")


def _tried(help: str) -> Any:
    """Return an option for values that are tried."""
    return typer.Option(metavar="VALUE,VALUE", help=help)


def run_tune(
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
    graph: Graph = None,
    metric: Metric = None,
    alpha: Annotated[str | None, _tried("Values of alpha.")] = None,
    beta: Annotated[str | None, _tried("Values of beta.")] = None,
    n_neighbors: Annotated[str | None, _tried("Numbers of neighbours.")] = None,
    n_splits: Annotated[int | None, typer.Option(help="Folds, 5 if left out.")] = None,
    n_repeats: Annotated[
        int | None, typer.Option(help="How often folds are drawn, 1 if left out.")
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="transductive, or inductive for new queries.")
    ] = None,
    folds: Annotated[
        str | None, typer.Option(help="What is held out: auto, items or links.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the folds, 0.")] = None,
    n_jobs: Jobs = None,
    output: Annotated[
        Path | None,
        typer.Option(help="All settings as .csv or .parquet, figures beside it."),
    ] = None,
    config: ConfigOption = None,
    as_json: AsJson = False,
    quiet: QuietOption = False,
) -> None:
    """Try settings of spreading on folds of the links, beside its default.

    Values stand in the options or in the table grid of the --config file; without any
    a small grid of n_neighbors, alpha and beta is tried. The default is what `fit
    --model spreading` takes without these options. The model search chooses by itself.
    """
    typed = {k: v for k, v in locals().items() if k not in ("as_json", "quiet")}
    options = gather_options(typed, also=["grid", "model", *PARAMETERS])
    if options.get("model", "spreading") != "spreading":
        raise LinkspreadError(
            f"`model` must be spreading to be tuned, got {options['model']!r}. The "
            "model search chooses by itself: use `linkspread fit`."
        )
    # The output of a file is the model of `fit`, which may share it.
    frame = _check_frame(output)
    with quiet_steps(2, quiet=quiet) as step:
        step("Reading")
        inputs = read_inputs(options)
        step("Trying settings")
        tuning = _tune(options, inputs)
    written = _write(tuning, frame) if frame else []
    for note in [] if quiet else [*inputs.notes, *written]:
        tell(f"linkspread: {note}")
    if as_json:
        write_json(_document(tuning))
    elif not quiet:
        tell_columns(inputs)
        _print(tuning)


def _tune(options: Mapping[str, Any], inputs: Inputs) -> Tuning:
    """Search the grid of the options."""
    fixed = {n: options[n] for n in PARAMETERS if n in options and n not in TRIED}
    seed = {"random_state": options["seed"]} if "seed" in options else {}
    names = ("n_splits", "n_repeats", "protocol", "folds")
    with warnings.catch_warnings():
        # The notes have these already, with the option to type.
        warnings.simplefilter("ignore", ColumnWarning)
        return tune(
            inputs.tables,
            inputs.some_links,
            _grid(options),
            model=choose_model(fixed | {"model": "spreading"}, inputs),
            **{name: options[name] for name in names if name in options},
            **seed,
        )


def _grid(options: Mapping[str, Any]) -> Any:
    """Return the grid that was typed or stands in the file; None for the default."""
    grid = dict(options.get("grid", {}))
    for name in TRIED:
        if name in options:
            grid[name] = [read_value(own) for own in _split(options[name])]
    return grid or None


def _split(given: Any) -> list[Any]:
    """Return values that were typed between commas, or listed in a file."""
    values = given if isinstance(given, list) else [given]
    parts = [v.split(",") if isinstance(v, str) else [v] for v in values]
    return [part for own in parts for part in own]


def _check_frame(path: Path | None) -> Path | None:
    """Return where the settings go, before they are tried."""
    if path is not None and (path.suffix.lower() not in SUFFIXES or path.is_dir()):
        raise LinkspreadError(
            f"`--output` must be a file that ends in {' or '.join(SUFFIXES)}, got "
            f"{str(path)!r}. Write --output settings.csv."
        )
    if path is not None:
        check_writable(path)
    return path


def _write(tuning: Tuning, path: Path) -> list[str]:
    """Write all settings, and a figure for each parameter that was tried."""
    frame = tuning.frame()
    with new_file(path, overwrite=True) as file:
        if path.suffix.lower() == ".csv":
            frame.to_csv(file, index=False)
        else:
            # A column of one kind each, as parquet wants it.
            texts = {n: str for n, c in frame.items() if c.dtype == object}
            frame.astype(texts).to_parquet(file, index=False)
    try:
        figures = _figures(tuning)
    except MissingDependencyError as error:
        return [f"no figures were drawn: {error}"]
    for name, svg in figures.items():
        place = path.with_name(f"{path.stem}-{name.replace(' ', '-')}.svg")
        write_page(place, svg)
    return []


def _figures(tuning: Tuning) -> dict[str, str]:
    """Return a figure for each parameter of which several values were tried."""
    names = [name for name, values in tuning.columns().items()
             if name not in ("mean", "deviation") and not name.startswith("fold ")
             and len(set(map(str, values))) > 1]  # fmt: skip
    curves = {name: tuning.curve(name) for name in names}
    return {
        name: draw_curve(name, values, scores.tolist())
        for name, (values, scores) in curves.items()
        if len(values) > 1
    }


def _document(tuning: Tuning) -> dict[str, Any]:
    """Return the outcome for another program."""
    return {
        "best": tuning.best_parameters,
        "score": tuning.best_score,
        "default": tuning.default,
        "default_score": _number(tuning.default_score),
        "default_folds": [_number(own) for own in tuning.default_fold_scores],
        "keeps_default": tuning.keeps_default,
        "measure": tuning.measure,
        "seconds": tuning.seconds,
        "columns": tuning.columns(),
    }


def _print(tuning: Tuning) -> None:
    """Print the best settings, the default, and the command that fits the best."""
    columns = tuning.columns()
    names = [name for name in columns if not name.startswith("fold ")]
    table = Table(title=f"{len(tuning.settings):,} settings, best first",
                  title_justify="left")  # fmt: skip
    for name in names:
        table.add_column(plain(name), justify="right")
    for k in sorted(range(len(tuning.settings)), key=lambda k: -tuning.scores[k])[
        :N_SHOWN
    ]:
        table.add_row(*(plain(_cell(columns[name][k])) for name in names))
    out = console()
    out.print(table)
    out.print(plain(f"{str(tuning).capitalize()}."), soft_wrap=True)
    out.print(f"Tried in {format_seconds(tuning.seconds)}.")
    out.print(plain(f"Add to `linkspread fit`: {_advice(tuning)}"))


def _advice(tuning: Tuning) -> str:
    """Return what to add to a fit."""
    if tuning.keeps_default:
        return "--model spreading alone, its default is best."
    return "--model spreading " + " ".join(
        _typed(n, v) for n, v in tuning.best_parameters.items()
    )


def _number(value: float) -> float | None:
    """Return a number as JSON has it, which knows no NaN."""
    return None if math.isnan(value) else float(value)


def _cell(value: Any) -> str:
    """Return a value for a cell of the table."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _typed(name: str, value: Any) -> str:
    """Return a parameter as it is typed."""
    option = f"--{name.replace('_', '-')}"
    if isinstance(value, Mapping):
        return " ".join(f"{option} {view}={own}" for view, own in value.items())
    return f"{option} {value}"
