"""What exactness costs: fits, searches and single judgements with thousands of pairs.

make_views in float32, judged pairs at random, a third of which belong together. Exact
scores of so many pairs have no short vectors; a search computes its rows. Compared with
the time and error of a fit to vectors of 64 numbers. Single links are timed with the
search that follows: their cost must not grow with the number of earlier links or of
changes since the fit.
``python benchmarks/bench_live.py --n 20000`` prints one result as JSON.
"""

import argparse
import json
import time
import warnings

import numpy as np

import harness
import linkspread as ls
from linkspread.ground.errors import ConflictWarning

N_CLASSES = 32
RANK = 64
SIZES = (10_000, 100_000)
N_KNOWN = (1_000, 10_000)
# Searches and links that are timed one by one.
N_TIMED = 60
BETWEEN = ("text", "image")
ASK = {"source": "text", "target": "image"}


class Judge:
    """Draw random pairs and answer by the labels."""

    def __init__(self, data, seed=0):
        self.labels = [data.labels[view] for view in BETWEEN]
        self.rng = np.random.default_rng(seed)

    def pairs(self, n_pairs):
        """Return judged pairs, a third of which belong together."""
        i = self.rng.integers(0, len(self.labels[0]), n_pairs)
        j = self.rng.integers(0, len(self.labels[1]), n_pairs)
        for k in np.flatnonzero(self.rng.random(n_pairs) < 1 / 3):
            same = np.flatnonzero(self.labels[1] == self.labels[0][i[k]])
            j[k] = self.rng.choice(same)
        weights = np.where(self.labels[0][i] == self.labels[1][j], 1.0, -1.0)
        return list(zip(i.tolist(), j.tolist(), weights.tolist(), strict=True))


def as_links(pairs):
    return ls.Links.from_pairs(pairs, between=BETWEEN)


def timed(work):
    """Return the seconds of some work."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def percentiles(seconds):
    """Return the median and the 99th percentile."""
    return [float(np.percentile(seconds, q)) for q in (50, 99)]


def measure(graphs, judge, n_known):
    """Return the times and the memory of exact scores, and of short vectors."""
    pairs = judge.pairs(n_known)
    model = ls.LinkSpreading(graph="precomputed")
    fit = timed(lambda: model.fit(graphs, as_links(pairs)))
    n_bytes = harness.extra_memory(
        lambda: model.fit(graphs, as_links(pairs)).search(0, **ASK)
    )
    items = judge.rng.integers(0, len(judge.labels[0]), N_TIMED)

    def search(item):
        model.search(int(item), **ASK)

    def judge_and_search(pair):
        model.add_links(as_links([pair]))
        search(pair[0])

    searches = [timed(lambda i=i: search(i)) for i in items]
    block = timed(lambda: model.search(items, **ASK))
    links = [timed(lambda p=p: judge_and_search(p)) for p in judge.pairs(N_TIMED)]
    cut = ls.LinkSpreading(graph="precomputed", rank=RANK)
    cut_fit = timed(lambda: cut.fit(graphs, as_links(pairs)))
    return {
        "n_items": len(judge.labels[0]),
        "n_known": n_known,
        "fit_seconds": fit,
        "peak_bytes": n_bytes,
        "search_seconds": percentiles(searches),
        "block_seconds": block / N_TIMED,
        "link_seconds": percentiles(links),
        "growth": float(np.median(links[-20:]) / np.median(links[:20])),
        "cut_fit_seconds": cut_fit,
        "cut_search_seconds": percentiles(
            [timed(lambda i=i: cut.search(int(i), **ASK))
             for i in items]
        ),
        "cut_error": cut.report_.spreads[BETWEEN].error,
    }  # fmt: skip


def main(sizes=SIZES):
    """Return a measurement for each size and number of pairs."""
    # Pairs drawn at random may be drawn twice.
    warnings.simplefilter("ignore", ConflictWarning)
    models = []
    for n in sizes:
        data = ls.datasets.make_views(n, n_classes=N_CLASSES, random_state=0)
        start = time.perf_counter()
        graphs = {
            view: ls.graphs.knn_graph(X.astype(np.float32), n_neighbors=30)
            for view, X in data.views().items()
        }
        seconds = time.perf_counter() - start
        models += [
            {"graph_seconds": seconds} | measure(graphs, Judge(data), n_known)
            for n_known in N_KNOWN
        ]
    return {"models": models}


def rows(result):
    """Return a line for each size and number of pairs."""
    return [
        {
            "items": f"2 x {m['n_items']:,}",
            "pairs": f"{m['n_known']:,}",
            "graphs s": f"{m['graph_seconds']:.1f}",
            "fit s": f"{m['fit_seconds']:.2f}",
            "memory beyond the graphs": f"{m['peak_bytes'] / 1e6:.0f} MB",
            "search, p50 ms": f"{1e3 * m['search_seconds'][0]:.0f}",
            "p99 ms": f"{1e3 * m['search_seconds'][1]:.0f}",
            "of 60 at once, each ms": f"{1e3 * m['block_seconds']:.0f}",
            "link and search, p50 ms": f"{1e3 * m['link_seconds'][0]:.0f}",
            "p99 ms ": f"{1e3 * m['link_seconds'][1]:.0f}",
            "last 20 / first 20": f"{m['growth']:.2f}",
            f"{RANK} dimensions: fit s": f"{m['cut_fit_seconds']:.1f}",
            "search, p50 ms ": f"{1e3 * m['cut_search_seconds'][0]:.1f}",
            "error": f"{m['cut_error']:.2f}",
        }
        for m in result["models"]
    ]


def headline(result):
    """Return the sentences for the front page."""
    m = result["models"][-1]
    return [
        f"A link added to a model of {m['n_items']:,} + {m['n_items']:,} items that "
        f"knows {m['n_known']:,}, and an exact search with it: "
        f"{1e3 * m['link_seconds'][0]:.0f} ms; {m['growth']:.2f} times that after "
        f"{N_TIMED} more. Vectors of {RANK} dimensions are searched in "
        f"{1e3 * m['cut_search_seconds'][0]:.0f} ms, after a fit of "
        f"{m['cut_fit_seconds']:.0f} s, with an error of {m['cut_error']:.2f}.",
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, nargs="+", default=SIZES, help="items a view")
    result = main(parser.parse_args().n)
    print(json.dumps(result, indent=2), *rows(result), sep="\n")
