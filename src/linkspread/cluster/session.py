"""The workers of a fit: tasks sent to them, results fetched, what it cost counted.

Everything that a task needs is either another task or small: no data is scattered, so
that whatever a lost worker held can be computed again by the others.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import numpy as np
from scipy import sparse

from linkspread import __version__
from linkspread.cluster.row_blocks import RowBlocks
from linkspread.compiled.threads import few_cores
from linkspread.ground.errors import LinkspreadError, require
from linkspread.ground.progress import format_bytes, track

# Compiled loops use all threads of a process and must not be entered twice at once.
_COMPUTING = threading.RLock()
VERSIONS = {"linkspread": __version__, "numpy": np.__version__}


def _measure_graphs() -> None:
    """Tell Dask how large sparse blocks are, where it is loaded, as in workers.

    It would take them for a few bytes, and send and count them as such.
    """
    if "dask" not in sys.modules:
        return
    from dask.sizeof import sizeof

    @sizeof.register(sparse.csr_array)
    def size_of_graph(W: sparse.csr_array) -> int:
        return W.data.nbytes + W.indices.nbytes + W.indptr.nbytes


_measure_graphs()


def alone(task: Callable[..., Any]) -> Callable[..., Any]:
    """Let a task have the threads of its worker for itself, and no more than these."""

    @wraps(task)
    def run(*args: Any, **kwargs: Any) -> Any:
        with _COMPUTING, few_cores(worker_threads()):
            return task(*args, **kwargs)

    return run


def worker_threads() -> int | None:
    """Return how many threads the worker that runs this was given."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return get_worker().state.nthreads
    except ValueError:  # this is no worker
        return None


@dataclass(frozen=True)
class Usage:
    """What the workers moved and held.

    Attributes
    ----------
    n_workers : int
    moved_bytes : int
        Sent by workers, to each other and to the client; what a worker that was lost
        had sent is not known.
    peak_bytes : int
        Largest memory that a worker took beyond what it had at the start.
    """

    n_workers: int
    moved_bytes: int
    peak_bytes: int

    def __str__(self) -> str:
        return (
            f"{self.n_workers} workers: {format_bytes(self.moved_bytes)} moved, at "
            f"most {format_bytes(self.peak_bytes)} of memory in one"
        )


class Session:
    """A client of a Dask cluster, with the few things that a fit does with it."""

    def __init__(self, client: Any, *, verbose: bool = False) -> None:
        self.distributed = _check_client(client)
        self.client, self.verbose = client, verbose
        self._kept: list[Any] = []
        self._start = self._ask(_begin)
        _check_versions(self._start)

    @property
    def n_workers(self) -> int:
        """Number of workers at the start."""
        return len(self._start)

    def submit(
        self, task: Callable[..., Any], *args: Any, home: str | None = None
    ) -> Any:
        """Send a task whose arguments may be other tasks, and lists of them."""
        place: dict[str, Any] = {}
        if home is not None:
            place = {"workers": [home], "allow_other_workers": True}
        return self.client.submit(task, *args, pure=False, **place)

    def submit_each(
        self, blocks: RowBlocks, task: Callable[..., Any], *columns: Sequence[Any]
    ) -> list[Any]:
        """Send a task for each block to the worker of that block."""
        rows = zip(*columns, strict=True)
        return [
            self.submit(task, *args, home=blocks.home(i)) for i, args in enumerate(rows)
        ]

    def settle(self, blocks: RowBlocks, futures: Sequence[Any]) -> RowBlocks:
        """Let blocks stay with the workers that hold their results."""
        holders = self.client.who_has(futures)
        homes = [(*holders.get(future.key, ()), "")[0] for future in futures]
        return replace(blocks, homes=tuple(homes) if all(homes) else ())

    def hold(self, value: Any) -> Any:
        """Return a small value as a task, for many others that need it.

        The scheduler keeps it, so that it is not lost with a worker.
        """
        import dask

        # A vector of all items is meant to be here, however long it is.
        name = "distributed.admin.large-graph-warning-threshold"
        with dask.config.set({name: "1TB"}):
            future = self.submit(_same, value)
        self.keep(future)
        return future

    def keep(self, *futures: Any) -> None:
        """Hold results until the end of the session.

        What is made of them, and is lost with a worker, is then made again from them
        and not from the beginning.
        """
        self._kept.extend(futures)

    def finish(self, futures: Sequence[Any], label: str) -> None:
        """Wait until tasks are done, and show how far they are."""
        done = self.distributed.as_completed(futures)
        for future in track(
            done, total=len(futures), label=label, verbose=self.verbose
        ):
            if future.status == "error":
                self.fetch(future)

    def wait(self, futures: Sequence[Any], label: str) -> None:
        """Wait until tasks are done or have failed, which fetching them will tell."""
        self.distributed.wait(futures)

    def fetch(self, futures: Any) -> Any:
        """Return the result of one task, or of several."""
        try:
            return self.client.gather(futures)
        except self.distributed.KilledWorker as error:
            raise LinkspreadError(
                "a task must not bring down the worker it runs on, and one did so "
                f"several times ({error.args[0]!s:.60}). Give the workers more memory, "
                "or use more of them."
            ) from error

    def each(self, futures: Sequence[Any]) -> Iterator[Any]:
        """Yield the results of tasks, holding one at a time."""
        for future in futures:
            yield self.fetch(future)

    def usage(self) -> Usage:
        """Return what was moved and held since the session began."""
        now = self._ask(_state)
        moved = peak = 0
        for worker, (sent, most, _, _) in now.items():
            sent_before, _, held_before, _ = self._start.get(worker, (0, 0, 0, None))
            moved += sent - sent_before
            peak = max(peak, most - held_before)
        return Usage(len(now), moved, peak)

    def _ask(self, question: Callable[..., Any]) -> dict[str, Any]:
        """Return what each worker answers."""
        answers = self.client.run(question, on_error="return")
        if not answers:
            raise LinkspreadError(
                "`client` must have workers, and none are connected to its scheduler. "
                "Start some, and wait with `client.wait_for_workers(1)`."
            )
        for worker, answer in answers.items():
            if isinstance(answer, Exception):
                raise LinkspreadError(
                    f"every worker must have linkspread {__version__} installed, and "
                    f"{worker} answered {answer!r:.80}. Install the same packages "
                    "there as here."
                )
        return answers


def _same(value: Any) -> Any:
    """Return a value as it is."""
    return value


def _check_client(client: Any) -> Any:
    """Return the module of Dask if this is a client of its own."""
    distributed = require("distributed", extra="dask", purpose="a fit on a cluster")
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise LinkspreadError(
            "`client` must be a distributed.Client that is not asynchronous, got "
            f"{type(client).__name__}. Make one with `Client(address)`."
        )
    return distributed


def _check_versions(answers: dict[str, Any]) -> None:
    """Refuse workers with other versions, whose numbers may differ."""
    for worker, (*_, versions) in answers.items():
        for package, here in VERSIONS.items():
            if versions[package] != here:
                raise LinkspreadError(
                    f"every worker must have {package} {here} as it is here, got "
                    f"{package} {versions[package]} on {worker}. Install the same "
                    "version there."
                )


def _begin(dask_worker: Any) -> tuple[int, int, int, dict[str, str]]:
    """Start to count the memory of a worker anew, and return its state."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:  # not Linux, or not allowed: the peak is that since the start
        pass
    return _state(dask_worker)


def _state(dask_worker: Any) -> tuple[int, int, int, dict[str, str]]:
    """Return bytes sent, peak and present memory, and the versions of a worker."""
    peak, held = _memory()
    return dask_worker.transfer_outgoing_bytes_total, peak, held, VERSIONS


def _memory() -> tuple[int, int]:
    """Return the largest and the present memory of this process, in bytes."""
    try:
        with open("/proc/self/status") as file:
            lines = dict(line.split(":", 1) for line in file)
        return tuple(int(lines[n].split()[0]) * 1024 for n in ("VmHWM", "VmRSS"))  # type: ignore[return-value]
    except (OSError, KeyError, ValueError):
        import resource

        unit = 1 if os.uname().sysname == "Darwin" else 1024
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        return most, 0
