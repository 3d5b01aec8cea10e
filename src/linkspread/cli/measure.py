"""``linkspread evaluate``: the quality of a model on labels or judged pairs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from linkspread.cli import options as option
from linkspread.cli.opening import open_folder
from linkspread.cli.output import notice, print_json, print_line, print_table
from linkspread.ground.errors import LinkspreadError


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
