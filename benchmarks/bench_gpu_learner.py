"""What CrossViewSearch takes on a GPU: one fit, its stages, and the processor's answer.

``python benchmarks/bench_gpu_learner.py --n 1000000`` prints JSON: the seconds of a fit
to 1 % labels, first of views without a shared space (128 and 96 columns), then of views
of 128 columns each; of the same fit again, with allocated memory; of its stages, in a
third fit that waits for the device after each stage; and the difference to the scores
of the processor at a small size. Then single judgements with a search after each, on
two cores of the processor, for models that were fitted on the GPU.
"""

import argparse
import json
import os
import time
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np
import torch

import bench_learning
import harness
import linkspread as ls
import run
from linkspread.compiled.gpu import features
from linkspread.graphs import knn
from linkspread.graphs.neighbors import NeighborIndex
from linkspread.learning import choice, cores, factors, maps, terms
from linkspread.models import cross_view_search, search_pairs

CASES = {"labels": (128, 96), "labels, same columns": (128, 128)}
N_CENTRES, N_CLASSES, N_SMALL, N_CORES = 100, 32, 4_000, 2
ASK = {"source": "text", "target": "image"}
# What is timed: the place, the name there. A stage holds those that are called in it.
STAGES = [
    (cross_view_search, "check_views"),
    (cross_view_search, "_suited_metric"),
    (cross_view_search, "Items"),
    (ls.Links, "resolve"),
    (cross_view_search.CrossViewSearch, "_choose_priors"),
    (cross_view_search, "_judged_items"),
    (cross_view_search, "make_map"),
    (maps._Linear, "of"),
    (maps._Gaussian, "of"),
    (maps.NeighborGraph, "fit"),
    (NeighborIndex, "search"),
    (knn, "weigh_edges"),
    (knn, "symmetric_graph"),
    (maps, "heat"),
    (maps, "heat_on_device"),
    (features, "heat_kernel"),
    (features, "gaussian_kernel"),
    (features, "whiten"),
    (features, "standardize"),
    (features, "to_host"),
    (maps, "_fill"),
    (maps, "_fill_on_device"),
    (cross_view_search, "read_evidence"),
    (search_pairs, "choose"),
    (choice, "_make_folds"),
    (search_pairs, "fit_factors"),
    (terms, "fit_labels"),
    (cores, "_best_ridge"),
    (cores, "_ridge_fit"),
    (cores, "_surprise"),
    (cores, "_likeliest_weights"),
    (factors, "_scales"),
    (factors, "_classes"),
    (factors, "_hubs"),
]


def clouds(n, n_columns, seed):
    """Return items around a hundred centres, in float32, and their centres."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((N_CENTRES, n_columns), dtype=np.float32)
    own = rng.integers(0, N_CENTRES, n)
    X = rng.standard_normal((n, n_columns), dtype=np.float32)
    X += centres[own]
    return X, own % N_CLASSES


def collection(n, widths, share=0.01):
    """Return two tables, their classes, and the classes of a share of the items."""
    rng = np.random.default_rng(2)
    tables, classes, known = {}, {}, {}
    for seed, (view, width) in enumerate(zip(("text", "image"), widths, strict=True)):
        tables[view], classes[view] = clouds(n, width, seed)
        known[view] = np.where(rng.random(n) < share, classes[view], -1)
    return tables, classes, known


def wait():
    """Wait for the device."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


@contextmanager
def timed_stages():
    """Yield seconds and calls of every stage, filled while it lasts."""
    found = {}

    def timed(name, work):
        def run(*args, **kwargs):
            wait()
            start = time.perf_counter()
            try:
                result = work(*args, **kwargs)
                # Generators do their work here.
                return iter(list(result)) if name == "_make_folds" else result
            finally:
                wait()
                seconds, calls = found.get(name, (0.0, 0))
                found[name] = seconds + time.perf_counter() - start, calls + 1

        return run

    with ExitStack() as stack:
        for place, name in STAGES:
            work = getattr(place, name)
            owner = getattr(place, "__name__", "") if isinstance(place, type) else ""
            label = f"{owner}.{name}" if owner else name
            # A class is timed when it is made into an object, as a function is.
            wrapped = timed(label, work)
            if isinstance(place, type) and hasattr(work, "__self__"):
                wrapped = staticmethod(wrapped)
            stack.enter_context(patch.object(place, name, wrapped))
        yield found


def fit(tables, known, backend):
    """Return a fitted model, the seconds of the links and those of the fit."""
    start = time.perf_counter()
    links = ls.Links.from_labels(known)
    linked = time.perf_counter()
    model = ls.CrossViewSearch(backend=backend).fit(tables, links)
    wait()
    return model, linked - start, time.perf_counter() - linked


def accuracy(model, classes, n_queries=200):
    """Return the share of answers of the class of the query."""
    n = len(classes["text"])
    asked = np.random.default_rng(3).choice(n, min(n_queries, n), replace=False)
    ids, _ = model.search(asked, n_results=10, **ASK)
    return float(np.mean(classes["image"][ids] == classes["text"][asked][:, None]))


def measure(n, widths, backend, stages=True):
    """Return the times of one case, and how good its answers are."""
    tables, classes, known = collection(n, widths)
    model, linking, fitting = fit(tables, known, backend)
    start = time.perf_counter()
    model.search(7, **ASK)
    found = {
        "n_items": n,
        "columns": list(widths),
        "n_labels": int(sum((own >= 0).sum() for own in known.values())),
        "links_seconds": linking,
        "fit_seconds": fitting,
        "first_search_seconds": time.perf_counter() - start,
        "same_class": accuracy(model, classes),
        "terms": [term.kind for own in model.choices_.values() for term in own.terms],
    }
    del model
    found["fit_again_seconds"] = fit(tables, known, backend)[2]
    if stages:
        with timed_stages() as seconds:
            _, _, found["staged_fit_seconds"] = fit(tables, known, backend)
        order = sorted(seconds.items(), key=lambda entry: -entry[1][0])
        found["stages"] = {
            name: {"seconds": round(own, 3), "calls": calls}
            for name, (own, calls) in order
        }
    return found


def compare(widths, backend):
    """Return how far scores and accuracy are from those of the processor."""
    tables, classes, known = collection(N_SMALL, widths, share=0.05)
    models = [fit(tables, known, own)[0] for own in (backend, "cpu")]
    one, other = (model.scores("text", "image") for model in models)
    return {
        "n_items": N_SMALL,
        "largest_difference": float(np.abs(one - other).max()),
        "largest_score": float(np.abs(other).max()),
        "same_class": [accuracy(model, classes) for model in models],
    }


def keep_to_cores():
    """Restrict this process to a number of cores."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), set(range(N_CORES)))


def main(n=1_000_000, backend="cuda", stages=True):
    """Return all figures."""
    if backend == "cuda" and not torch.cuda.is_available():
        raise harness.DataMissingError("needs a GPU")
    place = torch.cuda.get_device_name() if backend == "cuda" else "the processor"
    result = {"device": place, "torch": torch.__version__}
    for case, widths in CASES.items():
        # Compile everything at first, outside all measurements.
        part = {"beside_cpu": compare(widths, backend)}
        part |= measure(n, widths, backend, stages)
        result[case] = part
    result["live"] = bench_learning.measure_live(
        n, backend=backend, n_jobs=N_CORES, before_links=keep_to_cores
    )
    return result


def table(result):
    """Return a table of fits, and one of single judgements."""
    live = [
        {
            "views": f"{m['n_items']:,} + {m['n_items']:,} items, "
            f"{m['n_pairs']:,} judged pairs",
            "fit s": f"{m['fit_seconds']:.1f}",
            **bench_learning.link_times(m),
        }
        for m in result["live"]
    ]
    return f"{run.markdown(rows(result))}\n\n{run.markdown(live)}"


def rows(result):
    """Return a line for each case."""
    shared = {"labels": "nothing", "labels, same columns": "all columns"}
    return [
        {
            "views": f"{m['n_items']:,} + {m['n_items']:,} items of "
            f"{m['columns'][0]} and {m['columns'][1]} columns",
            "views share": shared[case],
            "labels": f"{m['n_labels']:,}",
            "fit s": f"{m['fit_seconds']:.1f}",
            "again s": f"{m['fit_again_seconds']:.1f}",
            "graphs s": f"{m['stages']['NeighborGraph.fit']['seconds']:.1f}",
            "maps s": f"{m['stages']['make_map']['seconds']:.1f}",
            "choosing s": f"{m['stages']['choose']['seconds']:.1f}",
        }
        for case, m in ((case, result[case]) for case in CASES)
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure the learner on a GPU.")
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--no-stages", action="store_true")
    parser.add_argument("--commit", help="where neither git nor the package can tell")
    options = parser.parse_args()
    # Single judgements keep the process to two cores: the machine has more.
    environment = harness.environment(options.commit)
    found = main(options.n, options.backend, not options.no_stages)
    print(json.dumps({"environment": environment, "result": found}))
