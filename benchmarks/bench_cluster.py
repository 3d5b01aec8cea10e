"""The fit by Dask workers of 3 GB each, from 100,000 to 1,000,000 items a view.

Views of `make_views` on the disk, 32 features in single precision, the second view four
fifths of the first; 20 neighbours, 32 classes, 1 % of the labels known. At the smallest
size, the plain fit of the same files is measured too. Peak memory is the largest of all
workers, beyond that of an idle one.
``python benchmarks/bench_cluster.py --sizes 5000 10000`` prints JSON.
"""

import argparse
import json
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

from linkspread import LinkSpreading, cluster
from linkspread.datasets import make_views

SIZES = (100_000, 300_000, 1_000_000)
N_WORKERS, WORKER_MEMORY = 2, "3GB"
N_CLASSES, N_NEIGHBORS = 32, 20
WARMUP = 2_000


def setup(size, folder):
    """Write two views to a folder; return their paths and labels."""
    sizes = {"text": size, "image": 4 * size // 5}
    made = make_views(sizes, n_classes=N_CLASSES, random_state=0)
    rng = np.random.default_rng(0)
    paths, labels = {}, {}
    for view, X in made.views().items():
        paths[view] = Path(folder, f"{view}.npy")
        np.save(paths[view], X)
        known = rng.random(len(X)) < max(0.01, N_CLASSES * 4 / size)
        labels[view] = np.where(known, made.labels[view], -1)
    return paths, labels


@contextmanager
def workers():
    """Start the workers of the benchmark."""
    local = LocalCluster(
        n_workers=N_WORKERS,
        threads_per_worker=1,
        processes=True,
        memory_limit=WORKER_MEMORY,
        dashboard_address=":0",
    )
    with local, Client(local) as client:
        yield client


def fit_on_cluster(client, paths, labels):
    model = LinkSpreading(n_neighbors=N_NEIGHBORS)
    return cluster.fit(model, paths, labels, client=client)


def fit_plainly(paths, labels):
    views = {view: np.load(path, mmap_mode="r") for view, path in paths.items()}
    return LinkSpreading(n_neighbors=N_NEIGHBORS).fit(views, labels)


def timed(function, *args):
    """Return the result of a function, and its seconds."""
    start = time.perf_counter()
    result = function(*args)
    return result, time.perf_counter() - start


def measure_size(size, *, compare):
    """Return time, bytes and memory at one size, measured and planned."""
    with tempfile.TemporaryDirectory() as folder, workers() as client:
        small = Path(folder, "small")
        small.mkdir()
        fit_on_cluster(client, *setup(WARMUP, small))  # loads what is compiled
        inputs = setup(size, folder)
        model, seconds = timed(fit_on_cluster, client, *inputs)
        report = model.cluster_report_
        case = {
            "n_items": {view: len(own.ids) for view, own in model.items_.items()},
            "seconds": seconds,
            "graph_seconds": sum(g.seconds for g in model.report_.graphs.values()),
            "moved_bytes": report.moved_bytes,
            "peak_bytes": report.peak_bytes,
        }
        return {**case, **(_compared(model, inputs) if compare else {})}


def _compared(model, inputs):
    """Return the time of the plain fit, and how far its scores are."""
    fit_plainly(*setup(WARMUP, Path(inputs[0]["text"]).parent / "small"))
    plain, seconds = timed(fit_plainly, *inputs)
    rows = slice(0, 200)
    one, other = (own.scores("text", "image", rows=rows) for own in (plain, model))
    difference = np.abs(one - other).max() / np.abs(one).max()
    return {
        "plain_seconds": seconds,
        "recall_of_plain": {v: g.recall_ for v, g in plain.graphs_.items()},
        "largest_difference": float(difference),
    }


def main(sizes=SIZES):
    """Return the figures of every size."""
    return {
        "n_workers": N_WORKERS,
        "worker_memory": WORKER_MEMORY,
        "sizes": {str(n): measure_size(n, compare=n == min(sizes)) for n in sizes},
    }


def rows(result):
    """Return one line of the table per size."""
    lines = []
    for case in result["sizes"].values():
        plain = case.get("plain_seconds")
        lines.append(
            {
                "items": " + ".join(f"{n:,}" for n in case["n_items"].values()),
                "seconds": f"{case['seconds']:.0f}",
                "of these graphs": f"{case['graph_seconds']:.0f}",
                "times the plain fit": f"{case['seconds'] / plain:.1f}"
                if plain
                else "",
                "moved": f"{case['moved_bytes'] / 1e6:.0f} MB",
                "most in a worker": f"{case['peak_bytes'] / 1e6:.0f} MB",
            }
        )
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    print(json.dumps(main(parser.parse_args().sizes), indent=1))
