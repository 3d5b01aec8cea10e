"""The command line: ``linkspread COMMAND``.

Commands parse their arguments, call the library and render what it returns. Input
errors and what the system refuses become one line on standard error, exit status 2.
"""

import sys
from typing import Annotated

import typer

from linkspread import __version__
from linkspread.cli.demo import run_demo
from linkspread.cli.evaluate import run_evaluate
from linkspread.cli.explain import run_explain
from linkspread.cli.export import run_export
from linkspread.cli.featurize import run_featurize
from linkspread.cli.fit import run_fit
from linkspread.cli.info import run_info
from linkspread.cli.links import links_app
from linkspread.cli.reproduce import reproduce_app
from linkspread.cli.search import run_search
from linkspread.cli.serve import run_serve
from linkspread.cli.suggest import run_suggest
from linkspread.cli.tune import run_tune
from linkspread.ground.errors import LinkspreadError

__all__ = ["app", "main"]

app = typer.Typer(
    help="Search between views of a collection, learnt from a few links.",
    no_args_is_help=True,
    # A traceback means a fault of the program; plain ones can be pasted whole.
    pretty_exceptions_enable=False,
)
app.command("demo", epilog="Example: linkspread demo --output demo")(run_demo)
app.command(
    "featurize", epilog="Example: linkspread featurize photos --output features"
)(run_featurize)
app.command(
    "fit",
    epilog="Example: linkspread fit --view text=text.parquet "
    "--view image=image.parquet --links pairs.csv --output new-model",
)(run_fit)
app.command(
    "tune",
    epilog="Example: linkspread tune --view text=text.parquet "
    "--view image=image.parquet --links pairs.csv --alpha 0.1,0.5 --n-neighbors 5,10",
)(run_tune)
app.command(
    "evaluate",
    epilog="Example: linkspread evaluate model --labels text=text-labels.csv "
    "--labels image=image-labels.csv --threshold 0.3",
)(run_evaluate)
app.command("info", epilog="Example: linkspread info model")(run_info)
app.command("search", epilog="Example: linkspread search model --id t7")(run_search)
app.command("explain", epilog="Example: linkspread explain model --id t7 --with i3")(
    run_explain
)
app.command("suggest", epilog="Example: linkspread suggest model -n 5")(run_suggest)
app.add_typer(links_app, name="links")
app.command(
    "export",
    epilog="Example: linkspread export model --source text --output images.npz",
)(run_export)
app.command("serve", epilog="Example: linkspread serve model --port 8080")(run_serve)
app.add_typer(reproduce_app, name="reproduce")


def main() -> None:
    """Run the command line and turn input errors into one line."""
    try:
        app(prog_name="linkspread")
    except LinkspreadError as error:
        print(f"linkspread: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        print(f"linkspread: {_refused(error)}", file=sys.stderr)
        raise SystemExit(2) from None


def _refused(error: OSError) -> str:
    """Return what the system refused as a sentence."""
    place = "" if error.filename is None else f" {str(error.filename)!r}"
    reason = error.strerror or " ".join(str(error).split())
    return (
        f"a file{place} must be one that the system lets be read or written, and it "
        f"says: {reason}. Free some space, or correct the path or its permissions."
    )


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
