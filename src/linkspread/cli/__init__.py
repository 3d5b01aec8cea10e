"""The command line: ``linkspread COMMAND``.

Commands parse their arguments, call the library and render what it returns. Input
errors become one line on standard error and exit status 2.
"""

import sys
from typing import Annotated

import typer

from linkspread import __version__
from linkspread.cli.demo import run_demo
from linkspread.cli.reproduce import reproduce_app
from linkspread.exceptions import LinkspreadError

__all__ = ["app", "main"]

app = typer.Typer(
    help="Search between views of a collection, learnt from a few links.",
    no_args_is_help=True,
    # A traceback means a fault of the program; plain ones can be pasted whole.
    pretty_exceptions_enable=False,
)
app.command("demo")(run_demo)
app.add_typer(reproduce_app, name="reproduce")


def main() -> None:
    """Run the command line and turn input errors into one line."""
    try:
        app(prog_name="linkspread")
    except LinkspreadError as error:
        print(f"linkspread: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(2) from None


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
    """Take the options that stand before a command."""
