"""Approximate neighbours of 200,000 items, against the exact search.

Exact seconds are extrapolated from 4,096 queries against all items, taken before and
after the approximate search. The recall is measured on 500 other items.
``python benchmarks/bench_approximate.py --n 50000`` prints one result as JSON.
"""

import argparse
import json
from functools import partial

import numpy as np

import harness
from bench_graphs import N_FEATURES, N_NEIGHBORS, setup
from linkspread.graphs.approximate import approximate_neighbors
from linkspread.graphs.neighbors import NeighborIndex

N_QUERIES = 4096
N_CHECKED = 500
WARMUP = 3000
N_LATENT = 24


def setup_latent(size):
    """Return ``size`` items on a curved surface of 24 dimensions, with noise."""
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((size, N_LATENT), dtype=np.float32)
    directions = rng.standard_normal((N_LATENT, N_FEATURES), dtype=np.float32)
    noise = rng.standard_normal((size, N_FEATURES), dtype=np.float32)
    return np.tanh(0.4 * latent @ directions) + 0.1 * noise


DATA = {"100 clusters": setup, "curved surface": setup_latent}


def search(X):
    return approximate_neighbors(NeighborIndex(X), n_neighbors=N_NEIGHBORS)


def exact_seconds(index):
    """Return the seconds of an exact search, extrapolated from some queries."""
    queries, excluded = index.prepare(None)
    part = slice(0, N_QUERIES)
    run = partial(index.search_prepared, queries[part], excluded[part])
    timing = harness.measure(partial(run, n_neighbors=N_NEIGHBORS), repeats=1)
    return timing["seconds_median"] * len(queries) / len(queries[part])


def measure_recall(index, ids):
    """Return the share of true neighbours among ``ids``, on a sample."""
    rows = np.random.default_rng(1).choice(len(ids), N_CHECKED, replace=False)
    queries, excluded = index.prepare(None)
    true, _ = index.search_prepared(
        queries[rows], excluded[rows], n_neighbors=N_NEIGHBORS
    )
    pairs = zip(ids[rows], true, strict=True)
    return float(np.mean([np.isin(expected, row).mean() for row, expected in pairs]))


def measure_data(make, size, *, repeats):
    """Return seconds, memory and recall on one kind of data."""
    X = make(size)
    search(make(WARMUP))
    index = NeighborIndex(X)
    before = exact_seconds(index)
    seconds = harness.measure(partial(search, X), repeats=repeats, warmup=0)
    exact = (before + exact_seconds(index)) / 2
    ids, _, own_recall = search(X)
    recall = measure_recall(index, ids)
    del X, index, ids
    memory = harness.peak_memory(make, search, size, warmup_size=WARMUP)
    return {
        **seconds,
        "exact_seconds": exact,
        "times_faster": exact / seconds["seconds_median"],
        "recall": recall,
        "recall_reported": own_recall,
        "extra_bytes": memory["extra"],
    }


def main(n=200_000, repeats=2):
    """Return the figures of both kinds of data."""
    data = {name: measure_data(make, n, repeats=repeats) for name, make in DATA.items()}
    shape = {"n_items": n, "n_features": N_FEATURES, "n_neighbors": N_NEIGHBORS}
    return {**shape, "data": data}


def rows(result):
    """Return one line of the table per kind of data."""
    size = f"{result['n_items']:,} x {result['n_features']}, k={result['n_neighbors']}"
    return [
        {
            "data": name,
            "size": size,
            "seconds": f"{case['seconds_median']:.1f}",
            "exact seconds (extrapolated)": f"{case['exact_seconds']:.0f}",
            "times faster": f"{case['times_faster']:.1f}",
            "recall": f"{case['recall']:.3f}",
            "memory": f"{case['extra_bytes'] / 1e6:.0f} MB",
        }
        for name, case in result["data"].items()
    ]


def headline(result):
    """Return the sentence for the front page."""
    case = min(result["data"].values(), key=lambda case: case["times_faster"])
    return [
        f"Approximate neighbours of {result['n_items']:,} x {result['n_features']} "
        f"items: {case['seconds_median']:.0f} s with a recall of {case['recall']:.2f}, "
        f"{case['times_faster']:.0f} times faster than the exact search."
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=200_000, help="items")
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    print(json.dumps(main(options.n, options.repeats), indent=2))
