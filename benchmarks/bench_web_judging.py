"""Judging Wikipedia through the served page: suggested pairs against random ones.

`linkspread serve` serves a model fitted to 20 random judged pairs, and a simulated
person who knows all labels judges through the JSON interface: pairs that the server
suggests, or random pairs of training items. Pairs with a test item are judged unsure,
so that no test item is in any judged pair. Mean average precision among the test items
of the standard split, both directions, is that of the snapshot that the server makes of
the same folder and store; the answers of the server itself are compared with it.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import harness
from linkspread import ModelFolder
from linkspread.metrics import mean_average_precision
from linkspread.studies.budgets import judging_learner
from linkspread.studies.collections import load_benchmark, random_links
from linkspread.web.live_model import LiveModel
from served_model import serving

AMOUNTS = (0, 50, 200, 500)
SEEDS = (0, 1, 2)
N_START = 20
# People who judge the pairs of one queue.
N_AT_ONCE = 8
N_COMPARED, N_BEST = 30, 10
VIEWS = ("text", "image")
METHODS = SUGGESTED, RANDOM = "suggested", "random"


class Oracle:
    """Judge pairs by their labels through a server, and be unsure of test items."""

    def __init__(self, server, benchmark, seed):
        self.server, self.labels = server, benchmark.collection.labels
        self.train = benchmark.standard.train
        self.is_train = np.isin(np.arange(len(self.labels)), self.train)
        self.rng = np.random.default_rng(1000 + seed)
        self.verdicts = Counter()

    def suggested(self, amount):
        """Judge what the server suggests until so many pairs are judged."""
        path = f"/api/suggestions?source={VIEWS[0]}&target={VIEWS[1]}&who=oracle"
        while self.verdicts.total() - self.verdicts["unsure"] < amount:
            queue = self.server.ask(path)["pairs"]
            self._judge([(int(p["left"]), int(p["right"])) for p in queue], amount)

    def random(self, amount):
        """Judge random pairs until so many are judged."""
        n_more = amount - self.verdicts.total()
        pairs = self.rng.choice(self.train, (n_more, 2))
        self._judge(pairs.tolist(), amount)

    def _judge(self, pairs, amount):
        """Judge pairs, a few at a time, up to a number of answers."""
        n_left = amount - self.verdicts.total() + self.verdicts["unsure"]
        asked = []
        for pair in pairs:
            verdict = self._verdict(*pair)
            n_left -= verdict != "unsure"
            if n_left >= 0:
                asked.append((pair, verdict))
        self.verdicts.update(verdict for _, verdict in asked)
        with ThreadPoolExecutor(N_AT_ONCE) as pool:
            list(pool.map(lambda own: self._send(*own), asked))

    def _verdict(self, i, j):
        """Return the verdict on a pair."""
        if not (self.is_train[i] and self.is_train[j]):
            return "unsure"
        return "must" if self.labels[i] == self.labels[j] else "cannot"

    def _send(self, pair, verdict):
        """Send a verdict to the server, which stores it before it answers."""
        body = {"who": "oracle", "verdict": verdict}
        body |= {"source": VIEWS[0], "source_id": str(pair[0])}
        body |= {"target": VIEWS[1], "target_id": str(pair[1])}
        self.server.ask("/api/judgements", body)


def run_session(benchmark, model, method, seed, amounts, step):
    """Return the precision after each number of judgements."""
    points = []
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "model"
        model.save(path)
        with serving(path) as server:
            folder, oracle = ModelFolder(path), Oracle(server, benchmark, seed)
            with folder.store() as store:
                live = LiveModel(folder.model, store, absorbed=folder.applied)
                for amount in amounts:
                    start = time.perf_counter()
                    getattr(oracle, method)(amount)
                    seconds = time.perf_counter() - start
                    live.follow()
                    server.wait_for(live.shown.number)
                    points.append(
                        measure(benchmark, live.shown.model, server)
                        | {"method": method, "seed": seed, "amount": amount}
                        | {f"n_{v}": oracle.verdicts[v] for v in ("must", "unsure")}
                        | {"seconds": seconds}
                    )
                    step(points[-1])
    return points


def measure(benchmark, model, server):
    """Return the precision of a model, and how well the server agrees with it."""
    test = benchmark.standard.test
    y = benchmark.collection.labels[test]
    block = model.scores(*VIEWS, rows=test, cols=test)
    return {
        "text_query": float(mean_average_precision(block, y, y)),
        "image_query": float(
            mean_average_precision(np.ascontiguousarray(block.T), y, y)
        ),
        "agreement": agreement(model, server, test),
    }


def agreement(model, server, test):
    """Return the share of the ten best items that the server finds as well."""
    path = f"/api/search?source={VIEWS[0]}&target={VIEWS[1]}&n={N_BEST}&item="
    shared = 0
    queries = test[:: max(1, len(test) // N_COMPARED)][:N_COMPARED]
    for query in queries.tolist():
        own, _ = model.search(query, source=VIEWS[0], target=VIEWS[1], n_results=N_BEST)
        found = {int(hit["id"]) for hit in server.ask(f"{path}{query}")["results"]}
        shared += len(found & set(own.tolist()))
    return shared / (len(queries) * N_BEST)


def print_point(point):
    """Print a point at once, because a session takes minutes."""
    print(point, file=sys.stderr, flush=True)


def main(amounts=AMOUNTS, seeds=SEEDS, methods=METHODS, step=print_point):
    """Return all points of all sessions."""
    benchmark = load_benchmark("wikipedia", harness.data_folder("wikipedia"))
    collection, points = benchmark.collection, []
    load = os.getloadavg()[0]
    for seed in seeds:
        links = random_links(
            collection.labels, benchmark.standard.train, VIEWS, N_START, seed=seed
        )
        # With the few directions of the study, what was judged first would count.
        learner = judging_learner(benchmark.metrics).set_params(rank=None)
        model = learner.fit(collection.views, links)
        for method in methods:
            points += run_session(benchmark, model, method, seed, amounts, step)
    return {"points": points, "load_average": [load, os.getloadavg()[0]]}


def means(result):
    """Return the mean precision and its deviation by method and amount."""
    found = {}
    for point in result["points"]:
        score = (point["text_query"] + point["image_query"]) / 2
        found.setdefault((point["method"], point["amount"]), []).append(score)
    return {k: (np.mean(own), np.std(own), len(own)) for k, own in found.items()}


def rows(result):
    """Return one line per number of judgements; what was not measured is empty."""
    amounts = sorted({point["amount"] for point in result["points"]})
    return [
        {
            "judgements": amount,
            **{f"{m} pairs": _cell(result, m, amount) for m in METHODS},
            "seeds with suggested ahead": _n_ahead(result, amount),
            **{
                f"must-links, {m}": _mean(result, m, amount, "n_must", ".0f")
                for m in METHODS
            },
            "unsure, suggested": _mean(result, SUGGESTED, amount, "n_unsure", ".0f"),
            "server agrees": _mean(result, None, amount, "agreement", ".3f"),
        }
        for amount in amounts
    ]


def _cell(result, method, amount):
    """Return the mean precision, its deviation and the number of seeds."""
    mean, deviation, n = means(result).get((method, amount), (0.0, 0.0, 0))
    return f"{mean:.3f} ± {deviation:.3f} ({n})" if n else ""


def _n_ahead(result, amount):
    """Return in how many seeds suggested pairs were ahead."""
    scores = {
        (point["method"], point["seed"]): point["text_query"] + point["image_query"]
        for point in result["points"]
        if point["amount"] == amount
    }
    seeds = [s for m, s in scores if m == SUGGESTED and (RANDOM, s) in scores]
    n_ahead = sum(scores[SUGGESTED, s] > scores[RANDOM, s] for s in seeds)
    return f"{n_ahead} of {len(seeds)}"


def _mean(result, method, amount, name, form):
    """Return the mean of a figure over the sessions of a method, or of both."""
    found = [
        point[name]
        for point in result["points"]
        if point["amount"] == amount and method in (None, point["method"])
    ]
    return format(np.mean(found), form) if found else ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--amounts", type=int, nargs="+", default=AMOUNTS)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    options = parser.parse_args()
    result = main(options.amounts, options.seeds, options.methods)
    print(json.dumps(result, indent=2))
