"""Propagation of label links on given graphs, from 100,000 to 1,000,000 items a view.

Graphs have 20 neighbours an item, 32 classes, 1 % of the labels known, ids shuffled so
that neighbours lie far apart in memory, single precision.
"""

from functools import partial

import numpy as np

import harness
from linkspread import Links
from linkspread.graphs import normalize
from linkspread.propagation import propagate
from linkspread.propagation.filter import fitted_response, separate
from neighbor_graphs import make_neighbor_graph

N_CLASSES = 32

ALPHA, BETA, TOL = 0.1, 0.95, 1e-6
SIZES = (100_000, 1_000_000)


def setup(size):
    """Return two graphs and the links between their labelled items."""
    rng = np.random.default_rng(0)
    graphs, labels = [], {}
    for seed, view in enumerate(("text", "image")):
        classes = rng.integers(0, N_CLASSES, size)
        W = make_neighbor_graph(classes, shuffled=True, random_state=seed)
        graphs.append(normalize(W))
        labels[view] = np.where(rng.random(size) < 0.01, classes, -1)
    return *graphs, Links.from_labels(labels).between("text", "image")


def run(inputs):
    """Propagate once."""
    S_x, S_y, Z = inputs
    return propagate(S_x, Z, S_y, alpha=ALPHA, beta=BETA, tol=TOL)


def moved_bytes(S_x, S_y):
    """Return the bytes that the recurrences cannot avoid moving.

    Each product reads the graph and two blocks and writes one; the neighbours' rows
    are counted once, as if they came from a cache of infinite size.
    """
    degrees = separate((fitted_response((ALPHA, ALPHA), BETA),), tol=TOL / 2).degrees
    total = 0
    for S, degree in zip((S_x, S_y), degrees, strict=True):
        graph = S.data.nbytes + S.indices.nbytes + S.indptr.nbytes
        total += degree * (graph + 3 * S.shape[0] * N_CLASSES * S.dtype.itemsize)
    return total


def measure_size(size, *, repeats):
    """Return time, memory and the bandwidth floor at one size."""
    inputs = setup(size)
    seconds = harness.measure(partial(run, inputs), repeats=repeats, warmup=1)
    floor = harness.bandwidth_floor(moved_bytes(*inputs[:2]))
    factors = run(inputs)
    del inputs
    memory = harness.peak_memory(setup, run, size, warmup_size=2000)
    return {
        **seconds,
        "floor_seconds": floor["seconds"],
        "gigabytes_per_second": floor["gigabytes_per_second"],
        "extra_bytes": memory["extra"],
        "rank": factors.rank,
        "error": factors.error,
    }


def main():
    """Return the figures of every size and how time grows."""
    sizes = {str(n): measure_size(n, repeats=3) for n in SIZES}
    small, large = (sizes[str(n)]["seconds_median"] for n in SIZES)
    return {"sizes": sizes, "growth": large / small}


def rows(result):
    """Return one line of the table per size."""
    return [
        {
            "items": f"{int(size):,} + {int(size):,}",
            "seconds": f"{case['seconds_median']:.2f}",
            "times the floor": f"{case['seconds_median'] / case['floor_seconds']:.1f}",
            "memory": f"{case['extra_bytes'] / 1e9:.2f} GB",
            "rank": case["rank"],
            "error": f"{case['error']:.0e}",
            "time against the smallest": (
                f"{result['growth']:.1f}" if int(size) == SIZES[-1] else "1.0"
            ),
        }
        for size, case in result["sizes"].items()
    ]


def headline(result):
    """Return the sentence for the front page."""
    case = result["sizes"][str(SIZES[-1])]
    return [
        f"{SIZES[-1]:,} + {SIZES[-1]:,} items, {N_CLASSES} classes, given graphs: "
        f"{case['seconds_median']:.0f} s and {case['extra_bytes'] / 1e9:.1f} GB beyond "
        f"the graphs; {result['growth']:.0f} times the time of a tenth of the items."
    ]
