"""What the commands print: tables, and a bar while something runs."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed
from rich.progress import TimeRemainingColumn as Remaining
from rich.table import Table

from linkspread.ground.progress import format_seconds
from linkspread.studies.report import ComparisonRow, Search


@contextmanager
def step_bar(n_steps: int, *, lines: bool = False) -> Iterator[Callable[[str], None]]:
    """Show a bar on standard error; calling the value names the next step.

    Where there is no terminal nothing is shown, or, with `lines`, a line for each
    step, so that a log of hours shows how far they went.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console, start = Console(stderr=True), time.perf_counter()
    with Progress(
        *columns,
        Elapsed(),
        Remaining(),
        console=console,
        transient=True,
        # Without a terminal a bar would only leave a blank line.
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("", total=n_steps)
        n_ended = count()

        def step(description: str) -> None:
            ended = next(n_ended)
            progress.update(task, description=description, completed=ended)
            if lines and not console.is_terminal:
                elapsed = format_seconds(time.perf_counter() - start)
                line = f"{ended + 1}/{n_steps} {description} (after {elapsed})"
                print(line, file=sys.stderr, flush=True)

        yield step


def comparison_table(rows: Sequence[ComparisonRow], directions: Sequence[str]) -> Table:
    """Return the table of methods; the one with the best average is set in bold."""
    best = max((row.average for row in rows), default=None)
    table = Table(title="Mean average precision", title_justify="left")
    table.add_column("Method")
    for heading in (*directions, "Average", "Seconds"):
        table.add_column(heading, justify="right")
    for row in rows:
        values = [f"{v:.3f}" for v in (row.forward, row.backward, row.average)]
        seconds = "" if row.seconds is None else f"{row.seconds:.1f}"
        style = "bold" if row.average == best else None
        table.add_row(escape(row.method), *values, seconds, style=style)
    return table


def searches_table(searches: Sequence[Search]) -> Table:
    """Return one line per search: the query, and which of its results are right."""
    table = Table(title="Searches", title_justify="left")
    for heading in ("From", "To", "Query", "Family", "Results"):
        table.add_column(heading, no_wrap=heading == "Results")
    for search in searches:
        query = search.query
        marks = "".join(_mark(hit.right) for hit in search.hits)
        texts = (search.source, search.target, query.title, query.caption)
        table.add_row(*map(escape, texts), marks)
    return table


def _mark(right: bool) -> str:
    """Return a sign that can be told apart without colour."""
    return "[green]+[/]" if right else "[red]-[/]"
