"""Propagation with nodes as numbered and renumbered for memory.

Nearest-neighbour graphs of `make_views`, whose items come in random order: 20
neighbours, found through faiss, 32 classes, 1 % of the labels known, single precision.
All sizes and both cases take turns in the same run; seconds include finding the order.
The process keeps freed memory, because on a virtual machine the first use of a page can
take as long as all later ones, whatever the order. ``python
benchmarks/bench_renumbering.py --sizes 20000 100000`` prints one as JSON, and returns
freed memory as processes do.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from contextlib import contextmanager
from functools import partial

import numpy as np

import harness
from bench_propagation import N_CLASSES, SIZES, run
from linkspread import Links
from linkspread.datasets import make_views
from linkspread.graphs import knn_graph, normalize
from linkspread.propagation import chebyshev

N_NEIGHBORS = 20
# Settings of the GNU C library, in bytes.
KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": "1000000000000",
    "MALLOC_TRIM_THRESHOLD_": "1000000000000",
}


def setup(size):
    """Return two graphs and the links between their labelled items."""
    data = make_views(size, n_classes=N_CLASSES, random_state=0)
    rng = np.random.default_rng(0)
    graphs, labels = [], {}
    for view, X in data.views().items():
        W = knn_graph(X, n_neighbors=N_NEIGHBORS, method="approximate")
        graphs.append(normalize(W))
        labels[view] = np.where(rng.random(size) < 0.01, data.labels[view], -1)
    return *graphs, Links.from_labels(labels).between("text", "image")


@contextmanager
def as_numbered():
    """Leave all graphs as they are."""
    before, chebyshev.CACHE_BYTES = chebyshev.CACHE_BYTES, float("inf")
    try:
        yield
    finally:
        chebyshev.CACHE_BYTES = before


def run_as_numbered(inputs):
    with as_numbered():
        return run(inputs)


CASES = {"as numbered": run_as_numbered, "renumbered": run}


def difference(inputs):
    """Return how far apart the results of both cases are, on a sample of scores."""
    rows = np.arange(0, inputs[0].shape[0], inputs[0].shape[0] // 50)
    blocks = [case(inputs).block(rows, rows) for case in CASES.values()]
    return float(np.linalg.norm(blocks[0] - blocks[1]) / np.linalg.norm(blocks[0]))


def main(sizes=SIZES, repeats=5):
    """Return the figures from a process that keeps its memory."""
    command = [sys.executable, __file__, "--repeats", str(repeats), "--sizes"]
    done = subprocess.run(
        [*command, *map(str, sizes)],
        env={**os.environ, **KEEP_MEMORY},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def measure(sizes, repeats):
    """Return the figures of every size, and how time grows either way."""
    inputs = {size: setup(size) for size in sizes}
    # This also compiles everything.
    apart = {size: difference(own) for size, own in inputs.items()}
    seconds = measure_in_turn(inputs, repeats)
    ends = seconds[sizes[0]], seconds[sizes[-1]]
    growth = {
        name: statistics.median(ends[1][name]) / statistics.median(ends[0][name])
        for name in CASES
    }
    measured = {
        str(size): {
            "cases": {name: spread_of(own) for name, own in seconds[size].items()},
            "relative_difference": apart[size],
        }
        for size in sizes
    }
    return {"sizes": measured, "growth": growth}


def measure_in_turn(inputs, repeats):
    """Return the seconds of whole propagations of each size, either way.

    All take turns, so that a slow minute of the machine is one of all of them.
    """
    seconds = {size: {name: [] for name in CASES} for size in inputs}
    for _ in range(repeats):
        for size, own in inputs.items():
            for name, case in CASES.items():
                timing = harness.measure(partial(case, own), repeats=1, warmup=0)
                seconds[size][name].append(timing["seconds_median"])
    return seconds


def spread_of(seconds):
    """Return the middle and the ends of some times."""
    return {
        "seconds_median": statistics.median(seconds),
        "seconds_min": min(seconds),
        "seconds_max": max(seconds),
    }


def rows(result):
    """Return one line of the table per size and case."""
    last = list(result["sizes"])[-1]
    return [
        {
            "items": f"{int(size):,} + {int(size):,}",
            "nodes": name,
            "seconds": f"{case['seconds_median']:.2f}",
            "fastest and slowest": (
                f"{case['seconds_min']:.2f} to {case['seconds_max']:.2f}"
            ),
            "time against the smallest": (
                f"{result['growth'][name]:.1f}" if size == last else "1.0"
            ),
        }
        for size, measured in result["sizes"].items()
        for name, case in measured["cases"].items()
    ]


def headline(result):
    """Return the sentence for the front page."""
    size, measured = list(result["sizes"].items())[-1]
    plain, renumbered = (measured["cases"][name] for name in CASES)
    ratio = plain["seconds_median"] / renumbered["seconds_median"]
    return [
        f"Nodes renumbered so that neighbours are near in memory: {int(size):,} + "
        f"{int(size):,} items propagate {ratio:.1f} times faster, order included; "
        f"{result['growth']['renumbered']:.1f} times the time of a tenth of the items."
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="items")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(json.dumps(measure(options.sizes, options.repeats), indent=2))
