"""What ``linkspread featurize`` says: the plan, the summary, what was left out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from linkspread.cli.asking import console, plain, tell, write_json
from linkspread.ground.progress import format_bytes, format_seconds
from linkspread.manifests import FeatureSet, ItemCollection
from linkspread.manifests.featurizing import ViewEstimate

# Problems that are written out; the folder has all of them.
N_LISTED = 20


def tell_plan(
    collection: ItemCollection, estimates: Mapping[str, ViewEstimate], as_json: bool
) -> None:
    """Say what would be done."""
    if as_json:
        plans = {view: own._asdict() for view, own in estimates.items()}
        write_json({"layout": collection.layout, "views": plans})
        return
    tell(f"Recognised: {collection.layout}. Nothing is written.")
    table = _table("view", "items", "by", "time", "memory at least", "rows", "tried")
    for view, own in estimates.items():
        sizes = format_bytes(own.memory), format_bytes(own.disk)
        cells = f"{own.n_items:,} {own.kind}s", own.transformer
        table.add_row(
            *(plain(view), *cells, f"about {format_seconds(own.seconds)}"),
            *(*sizes, f"{own.n_tried:,}"),
        )
    _print(table)


def tell_features(
    collection: ItemCollection,
    features: FeatureSet,
    output: Path,
    seconds: float,
    learnt: list[str],
    as_json: bool,
) -> None:
    """Say what was done."""
    if as_json:
        write_json(_document(collection, features, output, seconds, learnt))
        return
    for skipped in collection.skipped:
        tell(f"Left out: {plain(skipped)}.")
    table = _table("view", "items", "features", "metric", "left out")
    for view in collection.views:
        n_bad = sum(problem.view == view for problem in features.problems)
        table.add_row(plain(view), *_sizes(features, view), f"{n_bad:,}")
    _print(table)
    _tell_problems(features)
    if learnt:
        names = ", ".join(str(plain(view)) for view in learnt)
        tell(f"Learnt by an earlier run: {names}. --refresh learns anew.")
    if features.views:
        tell(f"Written: {output}, in {format_seconds(seconds)}.")
    else:
        tell("linkspread: nothing could be used, and nothing was written.")


def _sizes(features: FeatureSet, view: str) -> tuple[str, str, str]:
    """Return items, features and metric of a view, as cells of a table."""
    if view not in features.views:
        return "0", "", ""
    n_items, n_features = features.views[view].shape
    return f"{n_items:,}", f"{n_features:,}", features.metrics[view]


def _tell_problems(features: FeatureSet) -> None:
    """List what was left out, by kind and by item."""
    if not features.problems:
        return
    table = _table("problem", "files")
    for kind, count in features.count_problems().items():
        table.add_row(plain(kind), f"{count:,}")
    _print(table)
    for problem in features.problems[:N_LISTED]:
        tell(f"{plain(problem.view)} {plain(problem.id)}: {plain(problem.sentence)}")
    n_more = len(features.problems) - N_LISTED
    if n_more > 0:
        tell(f"... and {n_more:,} more, all in `load_features(...).problems`.")


def _document(
    collection: ItemCollection,
    features: FeatureSet,
    output: Path,
    seconds: float,
    learnt: list[str],
) -> dict[str, Any]:
    """Return the summary for programs."""
    views = {
        view: {
            "kind": features.kinds[view],
            "items": X.shape[0],
            "features": X.shape[1],
            "metric": features.metrics[view],
        }
        for view, X in features.views.items()
    }
    return {
        "output": str(output) if views else None,
        "layout": collection.layout,
        "views": views,
        "seconds": round(seconds, 3),
        "learnt_before": learnt,
        "skipped": list(collection.skipped),
        "problems": features.count_problems(),
        "left_out": [problem._asdict() for problem in features.problems],
    }


def _table(*names: str) -> Table:
    """Return a table whose numbers stand on the right."""
    table = Table()
    for name in names:
        is_word = name in ("view", "by", "metric", "problem")
        table.add_column(name, justify="left" if is_word else "right")
    return table


def _print(table: Table) -> None:
    """Print a table on a terminal, plain lines elsewhere."""
    screen = console()
    if screen.is_terminal:
        screen.print(table)
        return
    columns = [[str(cell) for cell in column.cells] for column in table.columns]
    names = [str(column.header) for column in table.columns]
    for row in zip(*columns, strict=True):
        pairs = zip(names[1:], row[1:], strict=True)
        print(f"{row[0]}: {', '.join(f'{n} {v}' for n, v in pairs if v)}", flush=True)
