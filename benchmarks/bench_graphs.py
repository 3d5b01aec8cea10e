"""Exact neighbours in single precision, against scikit-learn's brute force.

``python benchmarks/bench_graphs.py --n 20000`` prints one result as JSON.
"""

import argparse
import json
from functools import partial

import numpy as np
from sklearn.neighbors import NearestNeighbors

import harness
from linkspread.graphs import knn_graph, nearest_neighbors

N_FEATURES = 128
N_NEIGHBORS = 20
WARMUP = 1100  # more than one tile of queries, so that every loop is compiled


def setup(size):
    """Return ``size`` items around a hundred centres, in float32."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((100, N_FEATURES), dtype=np.float32)
    noise = rng.standard_normal((size, N_FEATURES), dtype=np.float32)
    return centres[rng.integers(0, 100, size)] + noise


def linkspread_neighbors(X):
    return nearest_neighbors(X, n_neighbors=N_NEIGHBORS)[0]


def linkspread_graph(X):
    return knn_graph(X, n_neighbors=N_NEIGHBORS)


def sklearn_neighbors(X):
    search = NearestNeighbors(n_neighbors=N_NEIGHBORS, algorithm="brute").fit(X)
    graph = search.kneighbors_graph(mode="distance")
    return graph.indices.reshape(len(X), N_NEIGHBORS)


CASES = {
    "linkspread neighbours": linkspread_neighbors,
    "linkspread graph": linkspread_graph,
    "scikit-learn neighbours": sklearn_neighbors,
}


def measure_case(case, size, *, repeats=3):
    """Return seconds and peak memory of one case."""
    X = setup(size)
    case(setup(WARMUP))
    seconds = harness.measure(partial(case, X), repeats=repeats, warmup=0)
    memory = harness.peak_memory(setup, case, size, warmup_size=WARMUP)
    return {**seconds, "extra_bytes": memory["extra"]}


def measure_agreement(size):
    """Return the share of scikit-learn's neighbours that are found."""
    X = setup(size)
    found, expected = linkspread_neighbors(X), sklearn_neighbors(X)
    pairs = zip(found, expected, strict=True)
    return float(np.mean([np.isin(row, other).mean() for row, other in pairs]))


def main(n=50_000, repeats=3):
    """Return the seconds, memory and agreement of every case."""
    cases = {
        name: measure_case(case, n, repeats=repeats) for name, case in CASES.items()
    }
    ours, theirs = (
        cases[f"{name} neighbours"] for name in ("linkspread", "scikit-learn")
    )
    return {
        "n_items": n,
        "n_features": N_FEATURES,
        "n_neighbors": N_NEIGHBORS,
        "cases": cases,
        "times_faster": theirs["seconds_median"] / ours["seconds_median"],
        "agreement": measure_agreement(n),
    }


def rows(result):
    """Return one line of the table per case."""
    size = f"{result['n_items']:,} x {result['n_features']}, k={result['n_neighbors']}"
    return [
        {
            "case": name,
            "size": size,
            "seconds": f"{case['seconds_median']:.2f}",
            "memory": f"{case['extra_bytes'] / 1e6:.0f} MB",
            "agreement": f"{result['agreement']:.6f}",
        }
        for name, case in result["cases"].items()
    ]


def headline(result):
    """Return the sentence for the front page."""
    seconds = result["cases"]["linkspread neighbours"]["seconds_median"]
    return [
        f"Exact neighbours of {result['n_items']:,} x {result['n_features']} items: "
        f"{seconds:.1f} s, {result['times_faster']:.1f} times faster than "
        "scikit-learn's brute force, with the same neighbours."
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=50_000, help="items")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(json.dumps(main(options.n, options.repeats), indent=2))
