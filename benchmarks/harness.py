"""Measure time and memory, and state the machine they were measured on.

A benchmark ``bench_<room>.py`` has ``setup(size) -> inputs``, one function per case,
``main() -> dict`` and ``rows(result) -> list of dicts`` (or ``table(result) -> str``).
"""

import ctypes
import datetime
import gc
import importlib.metadata
import json
import multiprocessing
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
from joblib import cpu_count

from linkspread.studies.running import name_processor

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "linkspread")
KILOBYTE = 1024


class DataMissingError(Exception):
    """A data set that a benchmark needs is not on this machine."""


def data_folder(name):
    """Return the folder of a data set in LINKSPREAD_DATA, or raise an error.

    Parameters
    ----------
    name : str
        Such as "wikipedia".

    Returns
    -------
    folder : Path
    """
    parent = os.environ.get("LINKSPREAD_DATA")
    if not parent or not (Path(parent) / name).is_dir():
        raise DataMissingError(
            f"needs the data set {name}; set LINKSPREAD_DATA to the folder holding it"
        )
    return Path(parent) / name


def measure(function, *, repeats=5, warmup=1):
    """Time a function without arguments.

    Parameters
    ----------
    function : callable
    repeats : int, default=5
    warmup : int, default=1
        Calls before the clock starts, for compilation and caches.

    Returns
    -------
    timing : dict
        The median, the extremes, and the number of repeats.
    """
    for _ in range(warmup):
        function()
    seconds = [_seconds(function) for _ in range(repeats)]
    return {
        "seconds_median": statistics.median(seconds),
        "seconds_min": min(seconds),
        "seconds_max": max(seconds),
        "repeats": repeats,
    }


def peak_memory(setup, run, size, *, warmup_size=None):
    """Measure the memory that ``run(inputs)`` needs beyond its inputs.

    Everything happens in a fresh process, so ``setup`` and ``run`` must be functions
    at the top of a module.

    Parameters
    ----------
    setup : callable
        ``setup(size) -> inputs``.
    run : callable
        ``run(inputs)``.
    size : object
    warmup_size : object, default=None
        Run this small size first, so that compilation is not counted.

    Returns
    -------
    memory : dict
        Bytes of ``inputs`` (resident before the run), ``peak``, ``extra`` (their
        difference), and the ``method``. With "ru_maxrss", used where the kernel cannot
        reset its high-water mark, ``extra`` is an upper bound.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
        return pool.submit(_peak_memory, setup, run, size, warmup_size).result()


def extra_memory(run):
    """Return the bytes that ``run()`` needs beyond those this process holds now."""
    return _peak_memory(lambda _: None, lambda _: run(), None, None)["extra"]


def bandwidth_floor(n_bytes):
    """Return the rate of memory copies, and the least time to move some bytes.

    Parameters
    ----------
    n_bytes : float
        Bytes read plus bytes written by the computation to compare with.

    Returns
    -------
    floor : dict
        ``gigabytes_per_second`` of all cores together and ``seconds``.
    """
    speed = _copy_speed()
    return {"gigabytes_per_second": speed / 1e9, "seconds": n_bytes / speed}


def environment(commit=None):
    """Return the versions, the hardware, the commit and the date.

    Parameters
    ----------
    commit : str, default=None
        Of the sources, where git cannot tell; there the package need not be installed.

    Returns
    -------
    environment : dict
    """
    names = PACKAGES if commit is None else [p for p in PACKAGES if p != "linkspread"]
    versions = {name: importlib.metadata.version(name) for name in names}
    is_changed = not commit
    if commit is None:
        commit = _git("rev-parse", "--short", "HEAD")
        is_changed = bool(_git("status", "--porcelain", "--", ":/src"))
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "python": platform.python_version(),
        **versions,
        "cpu": name_processor(),
        "cores": cpu_count(),
        "memory_gigabytes": round(pages / 1e9, 1),
        "commit": commit,
        "modified": is_changed,
        "date": datetime.date.today().isoformat(),
    }


def save(name, result):
    """Write a result and the environment to ``results/NAME.json``.

    Parameters
    ----------
    name : str
    result : dict
        What JSON can hold; NumPy scalars are converted.

    Returns
    -------
    path : Path
    """
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    content = {"environment": environment(), "result": result}
    text = json.dumps(content, indent=2, default=lambda value: value.item())
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _seconds(function):
    """Time one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _peak_memory(setup, run, size, warmup_size):
    """Measure in this process; see `peak_memory`."""
    if warmup_size is not None:
        run(setup(warmup_size))
    inputs = setup(size)
    _give_back_freed_memory()
    before = _status_bytes("VmRSS")
    is_reset = _reset_high_water_mark()
    run(inputs)
    peak = _status_bytes("VmHWM") if is_reset else _largest_ever()
    method = "VmHWM" if is_reset else "ru_maxrss"
    extra = max(0, peak - before)
    return {"inputs": before, "peak": peak, "extra": extra, "method": method}


def _give_back_freed_memory():
    """Return freed memory to the system, or the run could use it uncounted."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except AttributeError:
        pass  # Only glibc keeps freed memory and has this function.


def _reset_high_water_mark():
    """Set VmHWM back to what is resident now; return whether that worked."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    # Some containers accept the write and ignore it.
    return _status_bytes("VmHWM") < 1.05 * _status_bytes("VmRSS") + 2**20


def _status_bytes(field):
    """Read one size from the kernel's account of this process."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return _largest_ever()
    line = next(line for line in lines if line.startswith(f"{field}:"))
    return int(line.split()[1]) * KILOBYTE


def _largest_ever():
    """Return the most that was ever resident in this process."""
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * KILOBYTE


@cache
def _copy_speed(n_bytes=2**28):
    """Return bytes read and written per second by copies on all cores at once."""
    n_cores = cpu_count()
    source = np.ones(n_bytes // 8)
    target = np.zeros_like(source)
    parts = [np.array_split(array, n_cores) for array in (target, source)]
    with ThreadPoolExecutor(n_cores) as pool:
        # NumPy releases the interpreter lock while it copies.
        timing = measure(lambda: list(pool.map(np.copyto, *parts)))
    return 2 * source.nbytes / timing["seconds_min"]


def _git(*arguments):
    """Return the answer of git, or nothing outside a repository."""
    done = subprocess.run(
        ["git", *arguments], cwd=FOLDER, capture_output=True, text=True
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def replace_between(text, name, content):
    """Replace the text between the two marks of a part of a page.

    The marks are ``<!-- NAME -->`` or ``<!-- NAME: anything -->``, and
    ``<!-- end of NAME -->``.
    """
    start = rf"<!-- {re.escape(name)}(?:: [^\n]*?)? -->"
    parts = re.compile(rf"({start}).*?(<!-- end of {re.escape(name)} -->)", re.DOTALL)
    n_found = len(parts.findall(text))
    if n_found != 1:
        raise ValueError(
            f"The page must have one part named {name!r}, got {n_found}. Mark it with "
            f"`<!-- {name} -->` and `<!-- end of {name} -->`."
        )
    # A function, as backslashes in a replacement text would be interpreted.
    return parts.sub(lambda found: f"{found[1]}\n\n{content}\n\n{found[2]}", text)
