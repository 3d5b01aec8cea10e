"""``linkspread evaluate`` and ``linkspread tune``: quality and settings of models."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
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
from linkspread.ground.errors import ColumnWarning, LinkspreadError

if TYPE_CHECKING:
    from linkspread.cli.inputs import Inputs
    from linkspread.selection import Tuning

# Settings in the printed table; --output has all.
N_SHOWN = 10
TRIED = ("alpha", "beta", "n_neighbors")
FOLDS = ("n_splits", "n_repeats", "protocol", "folds", "seed")


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
    from linkspread.cli.inputs import join_judged, read_judged, read_labels
    from linkspread.selection import evaluate_pairs, evaluate_search

    if bool(labels) == bool(links):
        raise LinkspreadError(
            "an evaluation must have --labels of two views or --links, got "
            f"{'both' if labels else 'neither'}. Write --labels text=labels.csv "
            "--labels image=labels.csv."
        )
    loaded = open_folder(model).model
    rules: Any = {"skip_unknown": bool(skip_unknown)}
    found: list[Any]
    if labels:
        names, skipped = read_labels(labels, loaded.items_, **rules)
        found = evaluate_search(loaded, names, include_known=every)
        values = [own.mean_average_precision for own in found]
        knows_labels = any(loaded.links_.memberships(v) is not None for v in names)
        note = "All items with a label count; the model was fitted to pairs alone."
        if knows_labels:
            note = "Items whose label the model was fitted to are not counted."
    else:
        rules["must_above"] = must_above
        judged, skipped = read_judged(links or [], loaded.items_, **rules)
        found = evaluate_pairs(loaded, join_judged(judged), include_known=every)
        values = [own.average_precision for own in found]
        n_known = sum(own.n_known for own in found)
        note = f"{n_known:,} pairs that the model was fitted to are not counted."
    if every:
        what = "items with a label" if labels else "pairs"
        note = f"All {what} count, also those that the model was fitted to."
    for line in skipped:
        notice(f"linkspread: {line}")
    mean = sum(values) / len(values)
    if as_json:
        kind = "searches" if labels else "pairs"
        document: dict[str, Any] = {kind: [asdict(own) for own in found]}
        print_json(document | {"mean": mean, "includes_known": every})
    else:
        _print_measures(found, mean if labels else None)
        for line in [note, *loaded.notes_]:
            print_line(line)
    if threshold is not None and mean < threshold:
        notice(f"linkspread: {mean:.3f} is below the threshold {threshold:g}.")
        raise typer.Exit(1)


def _print_measures(found: list[Any], mean: float | None) -> None:
    """Print a row for each direction of a search, or a line for pairs of two views."""
    if mean is None:
        for own in found:
            print_line(own)
        return
    headings = ("From", "To", "Queries", "Items", "MAP", "Precision@10", "nDCG")
    rows = []
    for own in found:
        measures = (own.mean_average_precision, own.precision_at_10, own.ndcg)
        cells = [f"{own.n_queries:,}", f"{own.n_items:,}"]
        rows.append((own.source, own.target, *cells, *(f"{m:.3f}" for m in measures)))
    print_table(headings, rows, right=headings[2:])
    print_line(f"Mean: {mean:.3f}")


@option.takes(option.INPUTS, {"graph": option.SPREADING["graph"]}, option.BOTH_MODELS)
def run_tune(
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
    output: Annotated[
        Path | None, typer.Option(help="File for all settings, .csv.")
    ] = None,
    config: option.Config = None,
    as_json: option.AsJson = False,
    quiet: option.Quiet = False,
    *,
    typed: dict[str, Any],
) -> None:
    """Compare settings of --model spreading by cross-validation on the links.

    Give values by options or in the table grid of the --config file; by default a small
    grid of n_neighbors, alpha and beta is tried. The default of `fit --model spreading`
    is measured too. The model search chooses its settings by itself.
    """
    typed |= {"alpha": alpha, "beta": beta, "n_neighbors": n_neighbors}
    drawn = (n_splits, n_repeats, protocol, folds, seed)
    typed |= dict(zip(FOLDS, drawn, strict=True))
    # In a --config file, `output` is the model folder of `fit`.
    also = ["grid", "model", "output", *PARAMETERS]
    options = option.gather_options(typed, config, also=also)
    if options.get("model", "spreading") != "spreading":
        raise LinkspreadError(
            f"`model` must be spreading to be tuned, got {options['model']!r}. The "
            "model search chooses by itself: use `linkspread fit`."
        )
    if output is not None:
        if output.suffix.lower() != ".csv" or output.is_dir():
            raise LinkspreadError(
                f"`--output` must be a file that ends in .csv, got {str(output)!r}. "
                "Write --output settings.csv."
            )
        check_writable(output)
    with step_bar(2, lines=True, quiet=quiet) as step:
        from linkspread.cli.inputs import read_inputs

        step("Reading")
        inputs = read_inputs(options)
        step("Trying settings")
        tuning = _tune(options, inputs)
    if output is not None:
        from linkspread.storage.files import new_file

        with new_file(output, overwrite=True) as file:
            tuning.frame().to_csv(file, index=False)
    for note in [] if quiet else inputs.notes:
        notice(f"linkspread: {note}")
    if as_json:
        print_json(_document(tuning))
    elif not quiet:
        print_columns(inputs)
        _print_tuning(tuning)


def _tune(options: Mapping[str, Any], inputs: Inputs) -> Tuning:
    """Search the grid of the options, of the file, or the default one."""
    from linkspread.selection import tune

    grid = dict(options.get("grid", {}))
    for name in [name for name in TRIED if name in options]:
        typed = options[name] if isinstance(options[name], list) else [options[name]]
        parts = [v.split(",") if isinstance(v, str) else [v] for v in typed]
        grid[name] = [option.read_value(value) for own in parts for value in own]
    fixed = {n: options[n] for n in PARAMETERS if n in options and n not in TRIED}
    how = {name: options[name] for name in FOLDS if name in options}
    if "seed" in how:
        how["random_state"] = how.pop("seed")
    model = choose_model(fixed | {"model": "spreading"}, inputs)
    with warnings.catch_warnings():
        # The notes already contain these warnings, with the option to add.
        warnings.simplefilter("ignore", ColumnWarning)
        return tune(inputs.tables, inputs.some_links, grid or None, model=model, **how)


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

    columns = tuning.columns().items()
    shown = {name: own for name, own in columns if not name.startswith("fold ")}
    n_settings = len(tuning.settings)
    best = sorted(range(n_settings), key=lambda k: -tuning.scores[k])[:N_SHOWN]
    rows = [[own[k] for own in shown.values()] for k in best]
    cells = [[f"{v:.4g}" if isinstance(v, float) else v for v in row] for row in rows]
    title = f"{n_settings:,} settings, best first"
    print_table(list(shown), cells, right=shown, title=title)
    print_line(f"{str(tuning).capitalize()}.")
    print_line(f"Tried in {format_seconds(tuning.seconds)}.")
    advice = ["--model spreading"]
    if tuning.keeps_default:
        advice.append("alone, its default is best.")
    for name, value in () if tuning.keeps_default else tuning.best_parameters.items():
        own = option.option_of(name)
        by_view = value if isinstance(value, Mapping) else {"": value}
        advice += [f"{own} {v}{'=' if v else ''}{one}" for v, one in by_view.items()]
    print_line(f"Add to `linkspread fit`: {' '.join(advice)}")
