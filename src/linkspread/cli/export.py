"""``linkspread export``: vectors and rankings for other programs."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from linkspread.cli.asking import (
    Model,
    Source,
    Store,
    Target,
    choose_views,
    open_model,
    tell,
)
from linkspread.cli.outputs import check_writable
from linkspread.exchange import (
    write_faiss,
    write_numpy,
    write_parquet,
    write_postgres,
    write_run,
)
from linkspread.ground.errors import LinkspreadError
from linkspread.storage.files import check_new

# Read here and not by typer, so that no help text can show what they hold.
URLS = ("LINKSPREAD_POSTGRES", "DATABASE_URL")
# What each form is written by, and the options that it knows.
WRITERS: dict[str, tuple[Callable[..., Any], set[str]]] = {
    ".parquet": (write_parquet, {"role", "dtype"}),
    ".npz": (write_numpy, {"role", "dtype"}),
    ".faiss": (write_faiss, {"role", "index"}),
    ".run": (write_run, {"n_results"}),
}
POSTGRES_OPTIONS = {"role", "index"}


def run_export(
    model: Model,
    source: Source = None,
    target: Target = None,
    output: Annotated[
        Path | None,
        typer.Option(help="File: .parquet, .npz, .faiss, or .run for rankings."),
    ] = None,
    postgres: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Table, in the database of LINKSPREAD_POSTGRES or DATABASE_URL.",
        ),
    ] = None,
    role: Annotated[
        str | None, typer.Option(help="found (the default), or searching: the queries.")
    ] = None,
    index: Annotated[
        str | None, typer.Option(help="Of faiss and PostgreSQL: exact or hnsw.")
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(help="Of files: float32 or float64.")
    ] = None,
    n_results: Annotated[
        int | None,
        typer.Option("--n-results", "-n", min=1, help="Of .run: items for each query."),
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace what is there.")] = False,
    store: Store = None,
) -> None:
    """Write vectors, whose inner products are scores, or rankings.

    The URL of a database is read from the environment and never shown. Files are
    written beside their place and then moved there.
    """
    options = {"role": role, "index": index, "dtype": dtype, "n_results": n_results}
    given = {name: value for name, value in options.items() if value is not None}
    write, where = _choose_writer(output, postgres, given)
    if output is not None:
        check_new(output, overwrite)
        check_writable(output)
    _, loaded = open_model(model, store)
    source, target = choose_views(loaded, source, target)
    views = {"source": source, "target": target}
    write(loaded, **views, **given, overwrite=overwrite)
    tell(f"Written: {where}")


def _choose_writer(
    output: Path | None, postgres: str | None, given: dict[str, Any]
) -> tuple[Callable[..., Any], str]:
    """Return what writes the form that is asked for, and where to."""
    if (output is None) == (postgres is None):
        raise LinkspreadError(
            "an export must go to one of `--output` and `--postgres`, got "
            f"{'both' if output else 'none'}. Give one of them."
        )
    if postgres is not None:
        _check_options("--postgres", POSTGRES_OPTIONS, given)
        table, url = postgres, _database_url()
        return lambda m, **more: write_postgres(m, url, table, **more), f"table {table}"
    assert output is not None
    suffix = output.suffix.lower()
    if suffix not in WRITERS:
        raise LinkspreadError(
            f"`--output` must end in {', '.join(WRITERS)}, got {str(output)!r}. Choose "
            "one of these."
        )
    write, known = WRITERS[suffix]
    _check_options(suffix, known, given)
    return lambda m, **more: write(m, output, **more), str(output)


def _check_options(form: str, known: set[str], given: dict[str, Any]) -> None:
    """Refuse an option that would have no effect."""
    for name in given:
        if name not in known:
            option = name.replace("_", "-")
            others = ", ".join(f"--{own.replace('_', '-')}" for own in sorted(known))
            raise LinkspreadError(
                f"`--{option}` must be left out for {form}, which knows {others}, got "
                f"{given[name]!r}. Leave it out."
            )


def _database_url() -> str:
    """Return the URL of the database from the environment."""
    for name in URLS:
        if os.environ.get(name):
            return os.environ[name]
    raise LinkspreadError(
        f"`--postgres` must have a database to go to, and neither {' nor '.join(URLS)} "
        "is set. Set one to a URL such as postgresql://user@host:5432/database."
    )
