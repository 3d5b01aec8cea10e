"""One query against 1,000,000 items: exact, approximate, and NumPy's argpartition.

Queries and items are drawn around the same 200 centres with different norms, like
vectors of propagated links. The baseline is ``argpartition`` of one product, on the
same cores. ``python benchmarks/bench_search.py --n 100000`` prints one result as JSON.
"""

import argparse
import json
import time

import numpy as np

from linkspread.search import ItemIndex

WIDTH = 64
N_RESULTS = 10
N_QUERIES = 200
N_PLACES = 200
TURN = 20


def setup(size):
    """Return items, queries to set up an index by, and queries to time."""
    rng = np.random.default_rng(0)
    places = rng.standard_normal((N_PLACES, WIDTH), dtype=np.float32)

    def draw(n_drawn):
        noise = rng.standard_normal((n_drawn, WIDTH), dtype=np.float32)
        return places[rng.integers(0, N_PLACES, n_drawn)] + 0.7 * noise

    lengths = np.exp(0.5 * rng.standard_normal((size, 1), dtype=np.float32))
    spectrum = np.arange(1, WIDTH + 1, dtype=np.float32) ** -0.7
    return draw(size) * lengths, draw(512) * spectrum, draw(N_QUERIES) * spectrum


def argpartition_search(items, query):
    """Return the best items in plain NumPy."""
    scores = items @ query
    best = np.argpartition(scores, -N_RESULTS)[-N_RESULTS:]
    return best[np.argsort(-scores[best])]


def time_each(searches, queries):
    """Return what every search finds for every query, and in how many seconds."""
    found = {name: [] for name in searches}
    seconds = {name: [] for name in searches}
    # In turns, so that other work of the machine slows all of them alike.
    for start in range(0, len(queries), TURN):
        for name, search in searches.items():
            search(queries[start])
            for query in queries[start : start + TURN]:
                before = time.perf_counter()
                found[name].append(search(query))
                seconds[name].append(time.perf_counter() - before)
    return found, seconds


def share_found(found, true):
    """Return the share of the true items that were found."""
    pairs = zip(found, true, strict=True)
    return float(np.mean([np.isin(best, row).mean() for row, best in pairs]))


def main(n=1_000_000):
    """Return latencies, recalls and the time to build the index."""
    items, sample, queries = setup(n)
    exact = ItemIndex(items, method="exact")
    start = time.perf_counter()
    cells = ItemIndex(items, method="approximate", queries=sample)
    build_seconds = time.perf_counter() - start

    def through(index):
        return lambda q: index.search(q[None], n_results=N_RESULTS)[0][0]

    searches = {
        "exact": through(exact),
        "approximate": through(cells),
        "numpy argpartition": lambda query: argpartition_search(items, query),
    }
    found, seconds = time_each(searches, queries)
    cases = {}
    for name in searches:
        p50, p99 = np.percentile(seconds[name], [50, 99])
        recall = share_found(found[name], found["exact"])
        cases[name] = {"seconds_p50": p50, "seconds_p99": p99, "recall": recall}
    shape = {"n_items": n, "width": WIDTH, "n_results": N_RESULTS}
    built = {"build_seconds": build_seconds, "recall_reported": cells.recall_}
    return {**shape, **built, "cases": cases}


def rows(result):
    """Return one line of the table per way to search."""
    baseline = result["cases"]["numpy argpartition"]["seconds_p50"]
    return [
        {
            "search": name,
            "size": f"{result['n_items']:,} x {result['width']}",
            "p50 ms": f"{1e3 * case['seconds_p50']:.2f}",
            "p99 ms": f"{1e3 * case['seconds_p99']:.2f}",
            "recall at 10": f"{case['recall']:.3f}",
            "times faster than numpy": f"{baseline / case['seconds_p50']:.2f}",
            "seconds to build": f"{result['build_seconds']:.0f}"
            if name == "approximate"
            else "",
        }
        for name, case in result["cases"].items()
    ]


def headline(result):
    """Return the sentence for the front page."""
    cases = result["cases"]
    exact, near = cases["exact"], cases["approximate"]
    return [
        f"One query against {result['n_items']:,} x {result['width']} items: "
        f"{1e3 * exact['seconds_p50']:.0f} ms exactly, "
        f"{1e3 * near['seconds_p50']:.1f} ms with a recall of {near['recall']:.2f} "
        f"through an index built in {result['build_seconds']:.0f} s."
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1_000_000, help="items")
    result = main(parser.parse_args().n)
    print(json.dumps(result, indent=2, default=float))
