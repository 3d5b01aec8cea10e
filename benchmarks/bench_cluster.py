"""The fit by Dask workers of 3 GB each, from 100,000 to 1,000,000 items a view.

Views of `make_views` on the disk, 32 features in single precision, the second view four
fifths of the first; 20 neighbours, 32 classes, 1 % of the labels known. At the smallest
size, the plain fit of the same files is measured too. Peak memory is the largest of all
workers, beyond that of an idle one. The last line is a plan, not a measured fit.
``python benchmarks/bench_cluster.py --sizes 5000 10000`` prints JSON.
"""

import argparse
import json
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

from linkspread import LinkSpreading, cluster
from linkspread.datasets import make_views

SIZES = (100_000, 300_000, 1_000_000)
N_WORKERS, WORKER_MEMORY = 2, "3GB"
N_CLASSES, N_NEIGHBORS = 32, 20
WARMUP = 2_000
OUTLOOK_SIZE, OUTLOOK_WORKERS, N_FEATURES = 100_000_000, 32, 32


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
            "rounds": report.plan.n_rounds,
            "moved_bytes": report.usage.moved_bytes,
            "planned_moved_bytes": report.plan.moved_bytes,
            "peak_bytes": report.usage.peak_bytes,
            "planned_peak_bytes": report.plan.worker_bytes,
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


def planned(size, n_workers):
    """Return the plan of a fit to tables in sparse files without content."""
    sizes = {"text": size, "image": 4 * size // 5}
    with tempfile.TemporaryDirectory() as folder:
        paths, labels = {}, {}
        for view, n in sizes.items():
            paths[view] = Path(folder, f"{view}.npy")
            shape = n, N_FEATURES
            np.lib.format.open_memmap(paths[view], "w+", dtype=np.float32, shape=shape)
            labels[view] = np.full(n, -1, dtype=np.int8)
            labels[view][:N_CLASSES] = np.arange(N_CLASSES)
        model = LinkSpreading(n_neighbors=N_NEIGHBORS)
        plan = cluster.plan(model, paths, labels, n_workers=n_workers)
    return {"n_items": sizes, **asdict(plan)}


def main(sizes=SIZES):
    """Return the figures of every size, and the plan of a size beyond them."""
    return {
        "outlook": planned(OUTLOOK_SIZE, OUTLOOK_WORKERS),
        "n_workers": N_WORKERS,
        "worker_memory": WORKER_MEMORY,
        "sizes": {str(n): measure_size(n, compare=n == min(sizes)) for n in sizes},
    }


def rows(result):
    """Return one line of the table per size, and one of the plan beyond them."""
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
                "rounds": case["rounds"],
                "moved": f"{case['moved_bytes'] / 1e6:.0f} MB",
                "planned": f"{case['planned_moved_bytes'] / 1e6:.0f} MB",
                "most in a worker": f"{case['peak_bytes'] / 1e6:.0f} MB",
                "planned most": f"{case['planned_peak_bytes'] / 1e6:.0f} MB",
            }
        )
    plan = result["outlook"]
    lines.append(
        {
            "items": " + ".join(f"{n:,}" for n in plan["n_items"].values()),
            "seconds": f"on {plan['n_workers']} workers",
            "rounds": plan["n_rounds"],
            "planned": f"{plan['moved_bytes'] / 1e6:,.0f} MB",
            "planned most": f"{plan['worker_bytes'] / 1e6:,.0f} MB",
        }
    )
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    print(json.dumps(main(parser.parse_args().sizes), indent=1))
