"""The command line: ``linkspread COMMAND``.

Commands parse their arguments, call the library and print its results. They import what
they need when they run, so that help is fast. Errors of the input and of the system
become one line on standard error, with exit status 2.
"""

import os
import sys
from typing import Annotated

import typer

from linkspread import __version__
from linkspread.cli.demo import run_demo
from linkspread.cli.export import run_export
from linkspread.cli.featurize import run_featurize
from linkspread.cli.fit import run_fit
from linkspread.cli.info import run_info
from linkspread.cli.judge import links_app, run_doubts, run_progress, run_suggest
from linkspread.cli.match import run_match
from linkspread.cli.measure import run_evaluate
from linkspread.cli.reproduce import reproduce_app
from linkspread.cli.search import run_explain, run_search
from linkspread.cli.serve import run_serve
from linkspread.ground.errors import LinkspreadError

__all__ = ["app", "main"]

VIEWS = "--view text=text.parquet --view image=image.parquet --links pairs.csv"
LABELS = "--labels text=text-labels.csv --labels image=image-labels.csv"

app = typer.Typer(
    help="Search between views of a collection, learnt from a few links.",
    no_args_is_help=True,
    # A traceback means a bug; a plain one can be pasted into a report.
    pretty_exceptions_enable=False,
)
for run, example in (
    (run_demo, "demo --output demo"),
    (run_featurize, "featurize photos --output features"),
    (run_fit, f"fit {VIEWS} --output new-model"),
    (run_evaluate, f"evaluate model {LABELS} --threshold 0.3"),
    (run_info, "info model"),
    (run_search, "search model --id t7"),
    (run_explain, "explain model --id t7 --with i3"),
    (run_match, "match ours.csv theirs.csv --judged rows.csv --output matches.csv"),
    (run_suggest, "suggest model -n 5"),
    (run_doubts, "doubts model"),
    (run_progress, "progress model"),
    (run_export, "export model --source text --output images.npz"),
    (run_serve, "serve model --port 8080"),
):
    name = example.partition(" ")[0]
    app.command(name, epilog=f"Example: linkspread {example}")(run)
app.add_typer(links_app, name="links")
app.add_typer(reproduce_app, name="reproduce")


def main() -> None:
    """Run the command line; print errors of the input as one line."""
    try:
        try:
            app(prog_name="linkspread")
        finally:
            _flush()
    except LinkspreadError as error:
        sentence = " ".join(str(error).split())
    except OSError as error:
        place = "" if error.filename is None else f" {str(error.filename)!r}"
        reason = error.strerror or " ".join(str(error).split())
        sentence = (
            f"a file{place} must be readable and writable, and the system reports: "
            f"{reason}. Free some space, or correct the path or its permissions."
        )
    print(f"linkspread: {sentence}", file=sys.stderr)
    raise SystemExit(2)


def _flush() -> None:
    """Write what is still to be printed; a reader that is gone is no error."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # Or Python would try again at its end, and fail with a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise


def _print_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        print(f"linkspread {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
) -> None:
    """Take the options before a command."""
