"""A fit beside two processes that take the cores, against one thread.

The ten lines of the README, and the same with more items. Each fit runs in its own
process, alone and beside two busy loops, with all threads and with one thread, in
rounds, so that other work of the machine affects all cases alike. Seconds are those of
the fit and a search; a ratio is the median over the rounds. Processor seconds show
threads that spin.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager

import linkspread as ls

N_ROUNDS = 5
N_PAIRS = 40
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
SIZES = {"few": (600, 400), "many": (6_000, 4_000)}


def setup(size):
    """Return views with a number of items, and forty judged pairs."""
    n_items = dict(zip(("text", "image"), size, strict=True))
    data = ls.datasets.make_views(n_items, n_classes=5, random_state=0)
    same = data.labels["text"][:, None] == data.labels["image"][None, :]
    chosen = [(i, 7 * i % N_PAIRS) for i in range(N_PAIRS)]
    judged = [(i, j, 1.0 if same[i, j] else -1.0) for i, j in chosen]
    return data.views(), ls.Links.from_pairs(judged, between=("text", "image"))


def measure_here(name):
    """Return the seconds of one fit and one search here, and of the processors."""
    inputs = setup(SIZES[name])
    start, processed = time.perf_counter(), time.process_time()
    model = ls.LinkSpreading().fit(*inputs)
    model.search(123, source="text", target="image", n_results=5)
    return time.perf_counter() - start, time.process_time() - processed


def measure_apart(name, threads):
    """Return the same, measured in a new process."""
    command = [sys.executable, __file__, "--case", name]
    done = subprocess.run(
        command, env=os.environ | threads, capture_output=True, text=True, check=True
    )
    return [float(seconds) for seconds in done.stdout.split()]


@contextmanager
def busy_cores(n_loops=2):
    """Keep the cores busy with other processes."""
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(n_loops)
    ]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def measure_round(name):
    """Return the seconds of a case in all four ways."""
    ways = {"all threads": {}, "one thread": ONE_THREAD}
    seconds = {f"{way}, alone": measure_apart(name, env) for way, env in ways.items()}
    with busy_cores():
        busy = {f"{way}, busy": measure_apart(name, env) for way, env in ways.items()}
    return seconds | busy


def main(n_rounds=N_ROUNDS):
    """Return the seconds of all rounds of each case."""
    for name in SIZES:
        measure_apart(name, {})  # compiled
    rounds = {name: [measure_round(name) for _ in range(n_rounds)] for name in SIZES}
    return {"sizes": SIZES, "rounds": rounds}


def rows(result):
    """Return two lines of the table per case."""
    return [
        {
            "fit": f"{name}, {' + '.join(f'{n:,}' for n in result['sizes'][name])}",
            "beside": "two busy loops" if where == "busy" else "nothing",
            "seconds": _seconds(rounds, f"all threads, {where}"),
            "with one thread": _seconds(rounds, f"one thread, {where}"),
            "ratio": _ratio(rounds, where, 0),
            "ratio of processor seconds": _ratio(rounds, where, 1),
        }
        for name, rounds in result["rounds"].items()
        for where in ("alone", "busy")
    ]


def _seconds(rounds, way):
    """Return the median of a way, as text."""
    return f"{statistics.median(own[way][0] for own in rounds):.1f}"


def _ratio(rounds, where, k):
    """Return all threads against one, the median of the rounds and the extremes."""
    ratios = [own[f"all threads, {where}"][k] / own[f"one thread, {where}"][k]
              for own in rounds]  # fmt: skip
    middle = statistics.median(ratios)
    return f"{middle:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=list(SIZES))
    parser.add_argument("--rounds", type=int, default=N_ROUNDS)
    options = parser.parse_args()
    if options.case:
        print(*measure_here(options.case))
    else:
        print(json.dumps(main(options.rounds), indent=2))
