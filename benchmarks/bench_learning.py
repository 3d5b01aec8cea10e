"""What a fit of CrossViewSearch takes, and a judgement with the search after it.

make_views in float32, of 32 and 24 columns, without a shared space: 40 judged pairs at
several sizes, half of them must-links, beside the neighbour graphs of both views, made
in the same run; the same with 32 columns each, which are searched by their cosine; many
pairs of 600 items; labels of glyphs beside scikit-learn's LabelSpreading on each view;
single links, each with a search, after few pairs and after ten thousand. Seconds of the
processors count little of what other processes do meanwhile. ``python
benchmarks/bench_learning.py --n 4000`` prints one size as JSON, and ``--live`` only its
single links.
"""

import argparse
import json
import time
import warnings

import numpy as np
from sklearn.semi_supervised import LabelSpreading

import harness
import linkspread as ls
from linkspread.ground.errors import ConflictWarning

BETWEEN = ("text", "image")
ASK = {"source": "text", "target": "image"}
SIZES = (1_000, 2_000, 4_000, 8_000, 16_000, 64_000, 256_000)
WIDTHS, SHARED = {"text": 32, "image": 24}, {"text": 32, "image": 32}
# Judged pairs that are known before single links are added.
KNOWN, N_MANY_ITEMS, N_LIVE, N_FEW = (40, 10_000), 100_000, 100, 40
N_LABELS = 5


def judged(data, n_pairs, seed=0):
    """Return random judged pairs of two views; of few, half are must-links."""
    rng = np.random.default_rng(seed)
    labels = [data.labels[view] for view in BETWEEN]
    i, j = (rng.integers(0, len(own), n_pairs) for own in labels)
    if n_pairs <= N_FEW:
        for k in range(seed % 2, n_pairs, 2):
            j[k] = rng.choice(np.flatnonzero(labels[1] == labels[0][i[k]]))
    verdicts = np.where(labels[0][i] == labels[1][j], 1.0, -1.0)
    table = np.unique(np.column_stack([i, j, verdicts]), axis=0)
    return ls.Links.from_pairs(table, between=BETWEEN)


def timed(work):
    """Return the seconds of some work, and its result."""
    seconds, _, found = timed_twice(work)
    return seconds, found


def timed_twice(work):
    """Return the seconds of some work, those of all processors, and its result."""
    start, busy = time.perf_counter(), time.process_time()
    found = work()
    return time.perf_counter() - start, time.process_time() - busy, found


def views_of(n_items, widths=WIDTHS):
    """Return a collection, and its tables in single precision."""
    data = ls.datasets.make_views(
        n_items, n_classes=10, n_features=widths, random_state=0
    )
    return data, {view: X.astype(np.float32) for view, X in data.views().items()}


def measure(n_items, widths=WIDTHS):
    """Return the times of graphs, of a fit to 40 pairs and of single links."""
    data, tables = views_of(n_items, widths)
    graphs, graphs_busy, _ = timed_twice(
        lambda: [ls.graphs.knn_graph(X, n_neighbors=30) for X in tables.values()]
    )
    links = judged(data, N_FEW)
    seconds, busy, model = timed_twice(lambda: ls.CrossViewSearch().fit(tables, links))
    return {
        "n_items": n_items,
        "widths": list(widths.values()),
        "graph_seconds": graphs,
        "fit_seconds": seconds,
        "busy_seconds": [busy, graphs_busy],
        "link_seconds": live_seconds(model, data, 50),
    }


def live_seconds(model, data, n_links):
    """Return median, 99th percentile and first of single links, each with a search."""
    live = []
    for seed in range(n_links):
        one = judged(data, 1, seed=seed + 1)
        spent, _ = timed(
            lambda one=one, seed=seed: model.add_links(one).search(seed, **ASK)
        )
        live.append(spent)
    return [*map(float, np.percentile(live, [50, 99])), live[0]]


def measure_live(n_items, known=KNOWN, before_links=None, **options):
    """Return the times of single links after few judged pairs, and after many.

    `before_links` is called when all models are fitted, to leave them fewer cores.
    """
    data, tables = views_of(n_items)
    models = []
    for n_pairs in known:
        seconds, model = timed(
            lambda n_pairs=n_pairs: ls.CrossViewSearch(**options).fit(
                tables, judged(data, n_pairs)
            )
        )
        models.append((n_pairs, seconds, model))
    if before_links is not None:
        before_links()
    found = []
    for n_pairs, seconds, model in models:
        # The first search computes the bounds of scores.
        model.search(0, **ASK)
        times = live_seconds(model, data, N_LIVE if n_pairs > N_LIVE else N_LIVE // 3)
        found.append(
            {
                "n_items": n_items,
                "n_pairs": n_pairs,
                "fit_seconds": seconds,
                "link_seconds": times,
            }
        )
    return found


def measure_pairs(n_pairs):
    """Return the time of a fit to many pairs of 600 items."""
    data, tables = views_of(600)
    links = judged(data, n_pairs)
    seconds, busy, _ = timed_twice(lambda: ls.CrossViewSearch().fit(tables, links))
    return {"n_pairs": n_pairs, "fit_seconds": seconds, "busy_seconds": [busy]}


def measure_labels():
    """Return the times of a fit to labels of glyphs, and of LabelSpreading twice."""
    data = ls.datasets.load_glyphs()
    order = np.random.default_rng(0).permutation(len(data.labels))
    kept = [order[data.labels[order] == c][:N_LABELS] for c in np.unique(data.labels)]
    known = np.full(len(data.labels), -1)
    known[np.concatenate(kept)] = data.labels[np.concatenate(kept)]
    links = ls.Links.from_labels(dict.fromkeys(data.views, known))
    seconds, _ = timed(lambda: ls.CrossViewSearch().fit(data.views, links))

    def spread():
        for X in data.views.values():
            rows = X.toarray() if hasattr(X, "toarray") else X
            LabelSpreading(kernel="knn", n_neighbors=10).fit(rows, known)

    return {"fit_seconds": seconds, "spreading_seconds": timed(spread)[0]}


def main(sizes=SIZES):
    """Return all measurements."""
    warnings.simplefilter("ignore", ConflictWarning)
    # Compile everything at first, outside all measurements.
    measure(300)
    return {
        "models": [measure(n, widths) for widths in (WIDTHS, SHARED) for n in sizes],
        "many": [measure_pairs(n) for n in (3_000, 30_000)],
        "labels": measure_labels(),
        "live": measure_live(N_MANY_ITEMS),
    }


def link_times(measured):
    """Return the columns of single links."""
    median, slow, first = (1e3 * own for own in measured["link_seconds"])
    return {
        "link and search, p50 ms": f"{median:.0f}",
        "p99 ms": f"{slow:.0f}",
        "first ms": f"{first:.0f}",
    }


def busy_times(measured):
    """Return the columns of seconds of the processors; older results have none."""
    found = {}
    for name, own in zip(
        ("fit, processor s", "beside, processor s"),
        measured.get("busy_seconds", ()),
        strict=False,
    ):
        found[name] = f"{own:.1f}"
    return found


def rows(result):
    """Return a line for each measurement."""
    found = [
        {
            "what": f"2 x {m['n_items']:,} items, {N_FEW} judged pairs"
            + (", one space" if m["widths"][0] == m["widths"][1] else ""),
            "fit s": f"{m['fit_seconds']:.1f}",
            "beside": f"graphs of both views {m['graph_seconds']:.2f} s",
            "ratio": f"{m['fit_seconds'] / m['graph_seconds']:.1f}",
            **busy_times(m),
            **link_times(m),
        }
        for m in result["models"]
    ]
    for m in result["live"]:
        found.append(
            {
                "what": f"2 x {m['n_items']:,} items, {m['n_pairs']:,} judged pairs",
                "fit s": f"{m['fit_seconds']:.1f}",
                **link_times(m),
            }
        )
    for m in result["many"]:
        found.append(
            {
                "what": f"2 x 600 items, {m['n_pairs']:,} judged pairs",
                "fit s": f"{m['fit_seconds']:.1f}",
                **busy_times(m),
            }
        )
    own = result["labels"]
    found.append(
        {
            "what": f"glyphs, {N_LABELS} labels a family",
            "fit s": f"{own['fit_seconds']:.1f}",
            "beside": f"LabelSpreading twice {own['spreading_seconds']:.1f} s",
            "ratio": f"{own['fit_seconds'] / own['spreading_seconds']:.1f}",
        }
    )
    keys = list(found[0])
    return [{key: row.get(key, "") for key in keys} for row in found]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=4_000)
    parser.add_argument("--live", action="store_true")
    options = parser.parse_args()
    found = measure_live(options.n) if options.live else measure(options.n)
    print(json.dumps({"machine": harness.environment(), "result": found}))
