"""Printing of commands, and a check of where they may write.

Results go to standard output, messages for people to standard error.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkspread.ground.errors import LinkspreadError

if TYPE_CHECKING:
    from rich.console import Console

# Width of a table without a terminal; a file gets complete texts.
PIPED_WIDTH = 200


def notice(text: str) -> None:
    """Print a message for people to standard error."""
    print(text, file=sys.stderr, flush=True)


def clean(value: Any) -> str:
    """Replace control characters in a text, which could control the terminal."""
    return "".join(c if c.isprintable() else " " for c in str(value))


def shorten(content: str, n_letters: int) -> str:
    """Return how a text begins; a path stays whole, because a part names no file."""
    return content if Path(content).is_absolute() else content[:n_letters]


def console() -> Console:
    """Return standard output for tables, without markup in texts."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPED_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)


def print_line(text: Any) -> None:
    """Print a line of text without wrapping it."""
    console().print(clean(text), soft_wrap=True)


def print_json(document: Any) -> None:
    """Print one JSON document."""
    print(json.dumps(document, ensure_ascii=False, indent=1), flush=True)


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    right: Collection[str] = (),
    title: str | None = None,
) -> None:
    """Print a table; the columns named in `right` are numbers."""
    from rich.table import Table

    table = Table(title=title and clean(title), title_justify="left")
    for heading in map(clean, headings):
        side: Any = "right" if heading in right else "left"
        table.add_column(heading, justify=side, overflow="fold")
    for row in rows:
        table.add_row(*map(clean, row))
    console().print(table)


@contextmanager
def step_bar(
    n_steps: int, *, lines: bool = False, quiet: bool = False
) -> Iterator[Callable[[str], None]]:
    """Show a progress bar on standard error; call the value to name the next step.

    Without a terminal nothing is shown, or, with `lines`, a line for each step.
    """
    if quiet:
        yield lambda description: None
        return
    from rich import progress
    from rich.console import Console

    from linkspread.ground.progress import format_seconds

    screen, start = Console(stderr=True), time.perf_counter()
    n_ended = count()
    with progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        console=screen,
        transient=True,
        # Without a terminal a bar would only leave a blank line.
        disable=not screen.is_terminal,
    ) as bar:
        task = bar.add_task("", total=n_steps)

        def step(description: str) -> None:
            ended = next(n_ended)
            bar.update(task, description=description, completed=ended)
            if lines and not screen.is_terminal:
                elapsed = format_seconds(time.perf_counter() - start)
                notice(f"{ended + 1}/{n_steps} {description} (after {elapsed})")

        yield step


def check_writable(path: Path) -> None:
    """Refuse an output that cannot be written, before anything is computed."""
    from linkspread.storage.files import temporary_file

    place = path.absolute()
    try:
        if not place.is_dir():
            place = place.parent
        while not place.exists():
            place = place.parent
        with temporary_file(place):
            pass
    except OSError as error:
        raise LinkspreadError(
            f"`--output` must be in a writable folder, and {str(place)!r} is not "
            f"writable: {error.strerror}. Give another path."
        ) from error
