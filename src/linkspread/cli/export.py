"""``linkspread export``: vectors and rankings for other programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from linkspread.cli import options
from linkspread.cli.opening import choose_views, open_model
from linkspread.cli.output import check_writable, notice
from linkspread.ground.errors import LinkspreadError

# Read here and not by typer, so that no help text shows their values.
URLS = ("LINKSPREAD_POSTGRES", "DATABASE_URL")
# The function of `exchange` that writes each format, and its options.
WRITERS = {
    ".parquet": ("write_vectors", {"role", "dtype"}),
    ".npz": ("write_vectors", {"role", "dtype"}),
    ".faiss": ("write_vectors", {"role", "index"}),
    ".run": ("write_run", {"n_results"}),
    "--postgres": ("write_postgres", {"role", "index"}),
}


def run_export(
    model: options.Model,
    source: options.Source = None,
    target: options.Target = None,
    output: Annotated[
        Path | None,
        typer.Option(help="File: .parquet, .npz, .faiss, or .run for rankings."),
    ] = None,
    postgres: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Table in the database of LINKSPREAD_POSTGRES or DATABASE_URL.",
        ),
    ] = None,
    role: Annotated[
        str | None,
        typer.Option(help="found (the default), or searching for vectors of queries."),
    ] = None,
    index: Annotated[
        str | None, typer.Option(help="For faiss and PostgreSQL: exact or hnsw.")
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(help="For .parquet and .npz: float32 or float64.")
    ] = None,
    n_results: Annotated[
        int | None,
        typer.Option(
            "--n-results", "-n", min=1, help="For .run: items for each query."
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    store: options.Store = None,
) -> None:
    """Write vectors whose inner products are scores, or rankings.

    The URL of a database is read from the environment and never shown. A file is
    complete or not written at all.
    """
    from linkspread import exchange
    from linkspread.storage.files import check_new

    typed = {"role": role, "index": index, "dtype": dtype, "n_results": n_results}
    given = {name: value for name, value in typed.items() if value is not None}
    form = _choose_form(output, postgres)
    writer, known = WRITERS[form]
    for name in given.keys() - known:
        others = ", ".join(options.option_of(own) for own in sorted(known))
        raise LinkspreadError(
            f"`{options.option_of(name)}` is no option of {form}, which has {others}, "
            f"got {given[name]!r}. Leave it out."
        )
    place: tuple[Any, ...] = (output,)
    if output is None:
        place = (_database_url(), postgres)
    else:
        check_new(output, overwrite)
        check_writable(output)
    _, loaded = open_model(model, store)
    source, target = choose_views(loaded, source, target)
    given |= {"source": source, "target": target, "overwrite": overwrite}
    getattr(exchange, writer)(loaded, *place, **given)
    notice(f"Written: {output or f'table {postgres}'}")


def _choose_form(output: Path | None, postgres: str | None) -> str:
    """Return the format of the export."""
    if (output is None) == (postgres is None):
        raise LinkspreadError(
            "an export must go to one of `--output` and `--postgres`, got "
            f"{'both' if output else 'none'}. Give one of them."
        )
    form = "--postgres" if output is None else output.suffix.lower()
    if form not in WRITERS:
        files = ", ".join(own for own in WRITERS if own.startswith("."))
        raise LinkspreadError(
            f"`--output` must end in {files}, got {str(output)!r}. Choose one of these."
        )
    return form


def _database_url() -> str:
    """Return the URL of the database from the environment."""
    for name in URLS:
        if os.environ.get(name):
            return os.environ[name]
    raise LinkspreadError(
        f"`--postgres` needs a database, and neither {' nor '.join(URLS)} is set. "
        "Set one to a URL such as postgresql://user@host:5432/database."
    )
