"""``linkspread featurize``: from pictures and texts to a features folder."""

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from linkspread.cli.asking import AsJson, tell
from linkspread.cli.featurize_summary import tell_features, tell_plan
from linkspread.cli.outputs import check_writable
from linkspread.ground.errors import LinkspreadError
from linkspread.manifests import (
    default_cache,
    featurize,
    load_features,
    read_collection,
)
from linkspread.manifests.feature_set import check_features_target, take_learnt
from linkspread.manifests.featurizing import estimate_views
from linkspread.manifests.transformers import choose_transformers, is_fitted
from linkspread.storage.manifest import MANIFEST


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
        str | None,
        typer.Option(help="histograms (the default), sift or network."),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(help="words (the default), topics, tags or sentences."),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="File of rows made before; otherwise in your cache folder."),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Neither use nor keep rows.")
    ] = False,
    refresh: Annotated[
        bool, typer.Option(help="Learn anew what an earlier run learnt.")
    ] = False,
    allow_outside: Annotated[
        bool,
        typer.Option(help="Follow paths and links out of the folder of the source."),
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of what is learnt.")] = 0,
    jobs: Annotated[
        int | None, typer.Option(help="Threads; otherwise one for each core.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option(help="Only say what would be done, and about how long.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Turn pictures and texts into features, ready for `linkspread fit`.

    How the folder is laid out is recognised by looking. Files that cannot be read are
    left out and listed. Exit status 1 means that nothing could be used.
    """
    output = _check_output(output, dry_run)
    collection = read_collection(source, allow_outside=allow_outside)
    names = {k: v for k, v in {"picture": picture, "text": text}.items() if v}
    chosen = choose_transformers(
        collection, names=names, random_state=seed, n_jobs=jobs
    )
    if output is not None and not refresh and (output / MANIFEST).exists():
        chosen = take_learnt(chosen, load_features(output), collection)
    if dry_run:
        tell_plan(collection, estimate_views(collection, chosen), as_json)
        return
    assert output is not None
    start = time.perf_counter()
    with _plain_warnings(), _stoppable(no_cache):
        features = featurize(
            collection,
            transformers=chosen,
            cache=None if no_cache else cache or default_cache(),
            n_jobs=jobs,
            verbose=not as_json,
            folder=_scratch(output),
        )
        if features.views:
            features.save(output)
    learnt = [view for view, own in chosen.items() if is_fitted(own)]
    tell_features(
        collection, features, output, time.perf_counter() - start, learnt, as_json
    )
    if not features.views:
        raise typer.Exit(1)


def _check_output(output: Path | None, dry_run: bool) -> Path | None:
    """Return where features may be written, before anything is computed."""
    if output is not None:
        check_features_target(output)
        check_writable(output)
    elif not dry_run:
        raise LinkspreadError(
            "`--output` must be a folder for the features, and was not given. Add "
            "--output features/."
        )
    return output


def _scratch(output: Path) -> Path:
    """Return a folder on the disk that the features will be on."""
    folder = output.absolute().parent
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Say what the library warns of as sentences."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            yield
    finally:
        for sentence in dict.fromkeys(str(own.message) for own in caught):
            tell(f"linkspread: {sentence}")


@contextmanager
def _stoppable(no_cache: bool) -> Iterator[None]:
    """Turn an interrupt into a sentence."""
    try:
        yield
    except KeyboardInterrupt:
        kept = "" if no_cache else " Rows made so far are in the cache."
        tell(f"linkspread: stopped; nothing was written to the output.{kept}")
        raise typer.Exit(130) from None
