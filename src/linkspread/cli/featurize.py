"""``linkspread featurize``: from pictures and texts to a features folder."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkspread.cli import options
from linkspread.cli.output import (
    check_writable,
    clean,
    console,
    notice,
    print_json,
    print_table,
)
from linkspread.ground.errors import LinkspreadError

if TYPE_CHECKING:
    from linkspread.manifests import ItemCollection

# Problems that are printed; the folder has all of them.
N_LISTED = 20


def run_featurize(
    source: Annotated[
        Path,
        typer.Argument(
            help="Folder of pictures and texts, or a table (.csv, .tsv, .parquet).",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None, typer.Option(help="Features folder.", show_default=False)
    ] = None,
    picture: Annotated[
        str | None, typer.Option(help="histograms (the default), sift or network.")
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="words (the default), topics, tags or sentences.")
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="File of cached rows; by default in your cache folder."),
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Use no cache.")] = False,
    refresh: Annotated[
        bool, typer.Option(help="Learn again what an earlier run learnt.")
    ] = False,
    allow_outside: Annotated[
        bool,
        typer.Option(help="Follow paths and links out of the folder of the source."),
    ] = False,
    seed: options.Seed = 0,
    jobs: Annotated[
        int | None, typer.Option(help="Threads; by default one for each core.")
    ] = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
) -> None:
    """Turn pictures and texts into features, ready for `linkspread fit`.

    The layout of the folder is recognised. Files that cannot be read are left out and
    listed. Exit status 1 means that no file could be used.
    """
    from linkspread import manifests
    from linkspread.manifests.cache import default_cache
    from linkspread.manifests.feature_set import check_features_target, reuse_fitted
    from linkspread.manifests.transformers import choose_transformers, is_fitted
    from linkspread.storage.folder import MANIFEST

    if output is not None:
        check_features_target(output)
        check_writable(output)
    elif not dry_run:
        raise LinkspreadError(
            "`--output` must be a folder for the features, and was not given. Add "
            "--output features/."
        )
    collection = manifests.read_collection(source, allow_outside=allow_outside)
    names = {k: v for k, v in {"picture": picture, "text": text}.items() if v}
    chosen = choose_transformers(
        collection, names=names, random_state=seed, n_jobs=jobs
    )
    if output is not None and not refresh and (output / MANIFEST).exists():
        chosen = reuse_fitted(chosen, manifests.load_features(output), collection)
    if output is None or dry_run:
        _print_plan(collection, chosen, as_json)
        return
    start = time.perf_counter()
    # Rows are written to the disk of the output.
    scratch = output.absolute().parent
    scratch.mkdir(parents=True, exist_ok=True)
    with _plainly(no_cache):
        features = manifests.featurize(
            collection,
            transformers=chosen,
            cache=None if no_cache else cache or default_cache(),
            n_jobs=jobs,
            verbose=not as_json,
            folder=scratch,
        )
        if features.views:
            features.save(output)
    document = {
        "output": str(output) if features.views else None,
        "layout": collection.layout,
        "views": {
            view: {
                "kind": features.kinds[view],
                "items": X.shape[0],
                "features": X.shape[1],
                "metric": features.metrics[view],
            }
            for view, X in features.views.items()
        },
        "seconds": round(time.perf_counter() - start, 3),
        "learnt_before": [view for view, own in chosen.items() if is_fitted(own)],
        "skipped": list(collection.skipped),
        "problems": features.count_problems(),
        "left_out": [problem._asdict() for problem in features.problems],
    }
    if as_json:
        print_json(document)
    else:
        _print_features(document, list(collection.views))
    if not features.views:
        raise typer.Exit(1)


@contextmanager
def _plainly(no_cache: bool) -> Iterator[None]:
    """Print warnings of the library as sentences, and one for Ctrl-C."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            yield
    except KeyboardInterrupt:
        kept = "" if no_cache else " Rows made so far are in the cache."
        notice(f"linkspread: stopped; nothing was written to the output.{kept}")
        raise typer.Exit(130) from None
    finally:
        for sentence in dict.fromkeys(str(own.message) for own in caught):
            notice(f"linkspread: {sentence}")


def _print_plan(
    collection: ItemCollection, chosen: dict[str, Any], as_json: bool
) -> None:
    """Print what would be done."""
    plans = {
        view: {
            "items": len(items.ids),
            "kind": items.kind,
            "by": type(chosen[view]).__name__,
        }
        for view, items in collection.views.items()
    }
    if as_json:
        print_json({"layout": collection.layout, "views": plans})
        return
    notice(f"Recognised: {collection.layout}. Nothing is written.")
    rows = [
        (view, f"{own['items']:,} {own['kind']}s", str(own["by"]))
        for view, own in plans.items()
    ]
    _print_rows(("view", "items", "by"), rows)


def _print_features(document: dict[str, Any], views: list[str]) -> None:
    """Print a summary, and what was left out."""
    from linkspread.ground.progress import format_seconds

    for skipped in document["skipped"]:
        notice(f"Left out: {clean(skipped)}.")
    problems, rows = document["left_out"], []
    for view in views:
        own = document["views"].get(view, {"items": 0})
        n_features = f"{own['features']:,}" if "features" in own else ""
        n_bad = sum(problem["view"] == view for problem in problems)
        sizes = f"{own['items']:,}", n_features, own.get("metric", "")
        rows.append((view, *sizes, f"{n_bad:,}"))
    _print_rows(("view", "items", "features", "metric", "left out"), rows)
    if problems:
        counts = document["problems"].items()
        _print_rows(("problem", "files"), [(kind, f"{n:,}") for kind, n in counts])
    for problem in problems[:N_LISTED]:
        notice(clean("{view} {id}: {sentence}".format(**problem)))
    if len(problems) > N_LISTED:
        n_more = len(problems) - N_LISTED
        notice(f"... and {n_more:,} more, all in `load_features(...).problems`.")
    if document["learnt_before"]:
        names = ", ".join(map(clean, document["learnt_before"]))
        notice(f"Learnt by an earlier run: {names}. --refresh learns again.")
    if document["views"]:
        seconds = format_seconds(document["seconds"])
        notice(f"Written: {document['output']}, in {seconds}.")
    else:
        notice("linkspread: no file could be used, and nothing was written.")


def _print_rows(names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on a terminal, plain lines elsewhere."""
    if console().is_terminal:
        words = {"view", "by", "metric", "problem"}
        print_table(names, rows, right={name for name in names if name not in words})
        return
    for first, *rest in rows:
        pairs = zip(names[1:], rest, strict=True)
        cells = ", ".join(f"{name} {value}" for name, value in pairs if value)
        print(f"{clean(first)}: {clean(cells)}", flush=True)
