"""Propagation with nodes as numbered and renumbered for memory.

The graphs of `bench_propagation`: ids shuffled, 20 neighbours, 32 classes, single
precision. Both cases alternate in the same run; seconds include finding the order.
``python benchmarks/bench_renumbering.py --sizes 20000 100000`` prints one as JSON.
"""

import argparse
import json
import statistics
from contextlib import contextmanager
from functools import partial

import numpy as np

import harness
from bench_propagation import N_CLASSES, SIZES, run, setup
from linkspread.propagation import ordering
from linkspread.propagation.chebyshev import filtered_sums
from linkspread.propagation.ordering import renumber

N_STEPS = 14


@contextmanager
def as_numbered():
    """Leave all graphs as they are."""
    before, ordering.CACHE_BYTES = ordering.CACHE_BYTES, float("inf")
    try:
        yield
    finally:
        ordering.CACHE_BYTES = before


def seconds_of(function):
    return harness.measure(function, repeats=1, warmup=0)["seconds_median"]


def run_as_numbered(inputs):
    with as_numbered():
        return run(inputs)


CASES = {"as numbered": run_as_numbered, "renumbered": run}


def measure_products(S):
    """Return the seconds of one product either way, and those of the order."""
    block = np.ones((S.shape[0], N_CLASSES), dtype=S.dtype)
    coefficients = np.ones((1, N_STEPS + 1))
    order = partial(renumber, S, width=N_CLASSES, n_steps=N_STEPS)
    graphs = {"as numbered": S, "renumbered": order().S}
    products = {
        name: seconds_of(partial(filtered_sums, graph, block, coefficients)) / N_STEPS
        for name, graph in graphs.items()
    }
    return {"product": products, "order": seconds_of(order)}


def difference(inputs):
    """Return how far apart the results of both cases are, on a sample of scores."""
    rows = np.arange(0, inputs[0].shape[0], inputs[0].shape[0] // 50)
    blocks = [case(inputs).block(rows, rows) for case in CASES.values()]
    return float(np.linalg.norm(blocks[0] - blocks[1]) / np.linalg.norm(blocks[0]))


def measure_size(size, *, repeats):
    """Return the seconds of whole propagations and of single products."""
    inputs = setup(size)
    apart = difference(inputs)  # and everything is compiled
    seconds = {name: [] for name in CASES}
    products = []
    for _ in range(repeats):
        for name, case in CASES.items():
            seconds[name].append(seconds_of(partial(case, inputs)))
        products.append(measure_products(inputs[0]))
    del inputs
    memory = {
        name: harness.peak_memory(setup, case, size, warmup_size=2000)["extra"]
        for name, case in CASES.items()
    }
    return {
        "cases": {
            name: {
                "seconds_median": statistics.median(seconds[name]),
                "seconds_min": min(seconds[name]),
                "seconds_max": max(seconds[name]),
                "product_seconds": statistics.median(
                    measured["product"][name] for measured in products
                ),
                "extra_bytes": memory[name],
            }
            for name in CASES
        },
        "order_seconds": statistics.median(m["order"] for m in products),
        "relative_difference": apart,
    }


def main(sizes=SIZES, repeats=3):
    """Return the figures of every size, and how time grows either way."""
    measured = {str(n): measure_size(n, repeats=repeats) for n in sizes}
    ends = measured[str(sizes[0])]["cases"], measured[str(sizes[-1])]["cases"]
    growth = {
        name: ends[1][name]["seconds_median"] / ends[0][name]["seconds_median"]
        for name in CASES
    }
    return {"sizes": measured, "growth": growth}


def rows(result):
    """Return one line of the table per size and case."""
    last = list(result["sizes"])[-1]
    return [
        {
            "items": f"{int(size):,} + {int(size):,}",
            "nodes": name,
            "seconds": f"{case['seconds_median']:.2f}",
            "of them, order of both graphs": (
                f"{2 * measured['order_seconds']:.2f}" if name == "renumbered" else "0"
            ),
            "one product": f"{1000 * case['product_seconds']:.0f} ms",
            "memory": f"{case['extra_bytes'] / 1e9:.2f} GB",
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
        f"{int(size):,} items propagate {ratio:.1f} times faster, order included."
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="items")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(json.dumps(main(options.sizes, options.repeats), indent=2))
