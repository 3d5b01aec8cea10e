"""Progress of long loops: a bar on a terminal, a log line elsewhere.

The library never prints by itself: a bar is drawn only for ``verbose=True``.
"""

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

logger = logging.getLogger("linkspread")
Item = TypeVar("Item")


def announce(message: str, *, verbose: bool = False) -> None:
    """Log a message, at level INFO and with a handler if `verbose`."""
    if verbose and not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())
        logger.setLevel(logging.INFO)
    logger.log(logging.INFO if verbose else logging.DEBUG, message)


def track(
    steps: Iterable[Item], *, total: int, label: str, verbose: bool = False
) -> Iterator[Item]:
    """Yield the steps and show the progress."""
    start = time.perf_counter()
    if verbose and _is_notebook():
        yield from _notebook_bar(steps, total, label)
    elif verbose and sys.stderr.isatty():
        yield from _bar(steps, total, label)
    else:
        yield from steps
    elapsed = time.perf_counter() - start
    announce(f"{label}: done in {format_seconds(elapsed)}", verbose=verbose)


def _bar(steps: Iterable[Item], total: int, label: str) -> Iterator[Item]:
    """Yield the steps with a progress bar on standard error."""
    # Imported here because importing rich is slow.
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        yield from progress.track(steps, total=total, description=label)


def _is_notebook() -> bool:
    """Tell whether this runs in the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _notebook_bar(steps: Iterable[Item], total: int, label: str) -> Iterator[Item]:
    """Yield the steps with a progress bar in the output of a cell."""
    from IPython.display import HTML, display

    def bar(done: int) -> HTML:
        return HTML(f'<progress max="{total}" value="{done}"></progress> {label}')

    handle = display(bar(0), display_id=True)
    drawn = time.perf_counter()
    for done, step in enumerate(steps, start=1):
        yield step
        if time.perf_counter() - drawn > 0.1:
            handle.update(bar(done))
            drawn = time.perf_counter()
    handle.update(HTML(""))


def format_bytes(n_bytes: float) -> str:
    """Format a size, such as ``'1.5 GB'``."""
    units = ["B", "kB", "MB", "GB", "TB"]
    while round(n_bytes, 1) >= 1000 and len(units) > 1:
        n_bytes /= 1000
        units.pop(0)
    return f"{n_bytes:.0f} B" if units[0] == "B" else f"{n_bytes:.1f} {units[0]}"


def format_seconds(seconds: float) -> str:
    """Format a duration, such as ``'2 min 5 s'``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
    return f"{minutes // 60} h {minutes % 60} min"
