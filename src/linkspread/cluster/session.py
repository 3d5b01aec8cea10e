"""The workers of a Dask cluster: send tasks, fetch results, measure the cost.

The arguments of a task are other tasks or small: no data is scattered, so that all
results of a lost worker can be computed again by the others.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import Any
from uuid import uuid4

import numpy as np
from scipy import sparse

from linkspread import __version__
from linkspread.compiled.backends import few_cores
from linkspread.ground.errors import LinkspreadError, require
from linkspread.ground.progress import announce, format_bytes, track

Array = np.ndarray
# The first and the last row of a block of a table.
Range = tuple[int, int]
Task = Callable[..., Any]

VERSIONS = {"linkspread": __version__, "numpy": np.__version__}
TIMEOUT = "10s"
# Codes are solved so many at a time: blocks of multiples give the same numbers as one
# machine.
MULTIPLE = 64
# More than one, so that a worker that is done early can take another.
BLOCKS_PER_WORKER = 2
# Size of a block of a table: a search holds two of them and copies of both.
BLOCK_BYTES = 1 << 27
# Compiled loops use all threads of a process and must not be entered twice at once.
_COMPUTING = threading.RLock()


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """Connect to a Dask scheduler, which keeps running afterwards.

    Parameters
    ----------
    address : str
        Such as "tcp://10.0.0.1:8786".

    Yields
    ------
    client : distributed.Client
    """
    distributed = _distributed()
    try:
        client = distributed.Client(address, timeout=TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise LinkspreadError(
            f"`scheduler` must be the address of a running Dask scheduler, got "
            f"{address!r} ({error!s:.80}). Start one with `dask scheduler`, and "
            "workers with `dask worker`."
        ) from error
    with client:
        yield client


@dataclass(frozen=True)
class Usage:
    """The measured traffic and memory of the workers."""

    n_workers: int
    moved_bytes: int  # sent by workers that were not lost, to each other and the client
    peak_bytes: int  # largest memory of a worker beyond what it had at the start

    def __str__(self) -> str:
        return (
            f"{self.n_workers} workers: {format_bytes(self.moved_bytes)} moved, at "
            f"most {format_bytes(self.peak_bytes)} of memory in one"
        )


def cut_rows(
    n_items: int, row_bytes: int, *, n_workers: int, multiple: int = MULTIPLE
) -> list[Range]:
    """Cut a table into blocks, a few for each worker and none too large."""
    n_blocks = BLOCKS_PER_WORKER * n_workers
    step = min(-(-n_items // n_blocks), max(BLOCK_BYTES // row_bytes, 1))
    step = -(-step // multiple) * multiple
    return [(i, min(i + step, n_items)) for i in range(0, n_items, step)]


class Session:
    """A client of a Dask cluster, with the operations that a fit needs."""

    def __init__(self, client: Any, *, verbose: bool = False) -> None:
        self.distributed = _distributed()
        if not isinstance(client, self.distributed.Client) or client.asynchronous:
            raise LinkspreadError(
                "`client` must be a distributed.Client that is not asynchronous, got "
                f"{type(client).__name__}. Make one with `Client(address)`."
            )
        self.client, self.verbose = client, verbose
        self._kept: list[Any] = []
        self._start = self._run_on_all(_begin)
        self.n_workers = len(self._start)
        for worker, (*_, versions) in self._start.items():
            for package, here in VERSIONS.items():
                if versions[package] != here:  # whose numbers may differ
                    raise LinkspreadError(
                        f"every worker must have {package} {here} like the client, got "
                        f"{package} {versions[package]} on {worker}. Install the same "
                        "version there."
                    )

    def submit(self, task: Task, /, *args: Any, **named: Any) -> Any:
        """Send a task whose arguments may be other tasks, and lists of them."""
        import dask

        key = f"{task.__name__}-{uuid4().hex}"
        # A vector of all items may be long: no warning about that.
        name = "distributed.admin.large-graph-warning-threshold"
        with dask.config.set({name: "1TB"}):
            return self.client.submit(alone, task, *args, key=key, pure=False, **named)

    def map(self, task: Task, /, *columns: Sequence[Any], **shared: Any) -> list[Any]:
        """Send a task for each block, to the same worker every time if that is there.

        Shared arguments go by name.
        """
        shared["allow_other_workers"] = True
        return [
            self.submit(task, *own, workers=[home], **shared)
            for home, own in zip(cycle(self._start), zip(*columns, strict=True))
        ]

    def results(self, task: Task, /, *columns: Sequence[Any], **shared: Any) -> Any:
        """Return what a task gives for each block."""
        return self.fetch(self.map(task, *columns, **shared))

    def hold(self, value: Any) -> Any:
        """Return a small value as a task that many others can take.

        The scheduler keeps it, so that it is not lost with a worker.
        """
        future = self.submit(same, value)
        self.keep(future)
        return future

    def keep(self, *futures: Any) -> None:
        """Keep results until the end of the session.

        What is lost with a worker is then computed again from them, not from the start.
        """
        self._kept.extend(futures)

    def finish(self, futures: Sequence[Any], label: str) -> None:
        """Wait until tasks are done, show progress, and raise their errors."""
        done = self.distributed.as_completed(futures)
        done = track(done, total=len(futures), label=label, verbose=self.verbose)
        for future in done:
            if future.status == "error":
                self.fetch(future)

    def fetch(self, futures: Any) -> Any:
        """Return the result of one task, or of several."""
        try:
            return self.client.gather(futures)
        except self.distributed.KilledWorker as error:
            raise LinkspreadError(
                "a task must not kill its worker, got one that did so several times "
                f"({error.args[0]!s:.60}). Give the workers more memory, or use more "
                "of them."
            ) from error

    def report(self) -> Usage:
        """Return and announce traffic and memory since the session began."""
        now = self._run_on_all(_state)
        moved = peak = 0
        for worker, (sent, most, _, _) in now.items():
            sent_before, _, held_before, _ = self._start.get(worker, (0, 0, 0, None))
            moved += sent - sent_before
            peak = max(peak, most - held_before)
        usage = Usage(len(now), moved, peak)
        announce(str(usage), verbose=self.verbose)
        return usage

    def _run_on_all(self, function: Task) -> dict[str, Any]:
        """Return the result of a function on each worker."""
        answers = self.client.run(function, on_error="return")
        if not answers:
            raise LinkspreadError(
                "`client` must have workers, got none connected to its scheduler. "
                "Start some, and wait with `client.wait_for_workers(1)`."
            )
        for worker, answer in answers.items():
            if isinstance(answer, Exception):
                raise LinkspreadError(
                    f"every worker must have linkspread {__version__} installed, got "
                    f"{answer!r:.80} from {worker}. Install the same packages there as "
                    "here."
                )
        return answers


def alone(task: Task, *args: Any, **named: Any) -> Any:
    """Run a task with all threads of its worker, one such task at a time."""
    with _COMPUTING, few_cores(worker_threads()):
        return task(*args, **named)


def same(value: Any) -> Any:
    """Return a value as a task of its own, whose copies on workers can be freed."""
    return value


def worker_threads() -> int | None:
    """Return the number of threads of the worker that runs this, or None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return get_worker().state.nthreads
    except ValueError:  # this is no worker
        return None


def _distributed() -> Any:
    """Return the package `distributed`."""
    return require("distributed", purpose="a fit on a cluster")


def _begin(dask_worker: Any) -> tuple[int, int, int, dict[str, str]]:
    """Reset the largest memory of a worker, and return its state."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:  # not Linux, or not allowed: the peak is that since the start
        pass
    return _state(dask_worker)


def _state(dask_worker: Any) -> tuple[int, int, int, dict[str, str]]:
    """Return bytes sent, largest and present memory, and the versions of a worker."""
    try:
        with open("/proc/self/status") as file:
            lines = dict(line.split(":", 1) for line in file)
        peak, held = (int(lines[n].split()[0]) * 1024 for n in ("VmHWM", "VmRSS"))
    except (OSError, KeyError, ValueError):
        import resource

        unit = 1 if os.uname().sysname == "Darwin" else 1024
        peak, held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, 0
    return dask_worker.transfer_outgoing_bytes_total, peak, held, VERSIONS


if "dask" in sys.modules:  # as in a worker
    from dask.sizeof import sizeof

    @sizeof.register(sparse.csr_array)  # type: ignore[untyped-decorator,no-untyped-call]
    def size_of_graph(W: sparse.csr_array) -> int:
        """Return the size of a sparse matrix, which Dask takes for a few bytes."""
        return W.data.nbytes + W.indices.nbytes + W.indptr.nbytes
